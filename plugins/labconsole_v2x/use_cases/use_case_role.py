"""The role that tests use cases one after the other, and records the evidence of each."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.series import LiveChannel, LiveKind
from labconsole_v2x.security.backends import Backend, open_backend_token
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.use_cases.cases.bench import BenchSettings
from labconsole_v2x.use_cases.cases.case_runs import run_case
from labconsole_v2x.use_cases.evidence import EVIDENCE, Evidence, Kind, Record, columns_of, encode_line, header_line
from labconsole_v2x.use_cases.judging import RESULT_WORDS, Judgement, judge

TESTED_CHANNEL = LiveChannel("tested", "Use cases tested", "cases")
RESULTS_CHANNEL = LiveChannel("results", "Results by code", "", shown=False, kind=LiveKind.STATE)
RUNNING = "in progress"
FILE = "use-cases.jsonl"
"""The evidence of all cases, as a file of the run."""
_TICK_S = 0.05


class UseCaseRole(Role):
    """Settings: `codes`, `backend`, `rate`, `seed`; `token`, `configuration`, and `missing`, why there is no token."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        settings = context.settings
        self._settings = BenchSettings(Backend(settings["backend"]), settings["rate"], settings["seed"])
        self._missing: str = settings["missing"]
        self._resources = ExitStack()
        self._results: dict[str, str] = {}

    def prepare(self) -> dict[str, Any]:
        """Open the token; without it no case is tested, and each says why."""
        settings = self.context.settings
        self._token = None
        if not self._missing:
            try:
                self._token = open_backend_token(
                    settings["token"], settings["configuration"], self.context, self._resources
                )
            except UserError as error:
                self._missing = str(error)
        return {}

    def run(self) -> dict[str, Any]:
        """Test each case in a thread, so that what is recorded is written meanwhile."""
        series = self.context.series(EVIDENCE)
        with (
            self.context.attachment(FILE, "application/jsonl") as file,
            ThreadPoolExecutor(1, "use-cases") as thread,
        ):
            file.write(header_line())
            for code in self.context.settings["codes"]:
                if self.context.stop_requested:
                    break
                self._show(code, RUNNING)
                evidence, judgement = self._awaited(thread.submit(self._tested, code))
                series.extend(**columns_of(evidence.records))
                file.write(b"".join(map(encode_line, evidence.records)))
                self._show(code, RESULT_WORDS[judgement.result])
                self.context.count(TESTED_CHANNEL.name, 1)
        return dict(self._results)

    def close(self) -> None:
        """Close the token."""
        self._resources.close()

    def _tested(self, code: str) -> tuple[Evidence, Judgement]:
        if self._missing:
            records = [Record(code, Kind.NOT_TESTED, its_now(), result=self._missing)]
            evidence = Evidence(code, records)
        else:
            evidence = run_case(code, self._settings, self._token)
        return evidence, judge(evidence)

    def _awaited(self, result: Future[tuple[Evidence, Judgement]]) -> tuple[Evidence, Judgement]:
        while True:
            self.context.tick()
            try:
                return result.result(_TICK_S)
            except TimeoutError:
                if result.done():
                    raise

    def _show(self, code: str, result: str) -> None:
        self._results[code] = result
        self.context.state(RESULTS_CHANNEL.name, dict(self._results))
