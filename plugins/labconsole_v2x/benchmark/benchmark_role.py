"""The roles of the benchmark: each is a process that measures what the trial commands, one measurement at a time."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack
from typing import Any

from cryptography.hazmat.backends.openssl import backend as openssl_backend

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole_v2x.benchmark.benchmark_series import (
    DONE_CHANNEL,
    EXECUTIONS,
    MEASURE_COMMAND,
    OPENSSL_S,
    OPERATIONS_CHANNEL,
    How,
    Measured,
)
from labconsole_v2x.benchmark.operations import PacketOperations
from labconsole_v2x.security.backends import Backend, open_backend_token
from labconsole_v2x.security.structures import Curve

_EXECUTION_S = 0.02
"""An execution does so many operations as take about so long."""
_OPENSSL_NAMES = {
    "P256": "ecdsap256",
    "BRAINPOOL_P256R1": "ecdsabrp256r1",
    "BRAINPOOL_P384R1": "ecdsabrp384r1",
    "P384": "ecdsap384",
}
_POLL_S = 0.002


class BenchmarkRole(Role):
    """Measures. Settings: `backend`, `curve`, `token`, `configuration`."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._resources = ExitStack()
        self._counts: dict[tuple[int, int], int] = {}
        self._ended = False

    def prepare(self) -> dict[str, Any]:
        """Create keys, certificates and packets. Raises TokenError."""
        settings = self.context.settings
        token = open_backend_token(settings["token"], settings["configuration"], self.context, self._resources)
        self._curve = Curve[settings["curve"]]
        self._operations = PacketOperations(Backend(settings["backend"]), self._curve, token)
        return {"cryptography_openssl": openssl_backend.openssl_version_text(), "openssl": _openssl_version()}

    def run(self) -> dict[str, Any]:
        """Do what is commanded until the end, and report after each."""
        self._executions = self.context.series(EXECUTIONS)
        while not (self._ended or self.context.stop_requested):
            command = self.context.take_command()
            if command is None:
                time.sleep(_POLL_S)
            elif command["name"] == MEASURE_COMMAND:
                self._measure(command)
                self.context.report(done=True)
            else:
                self._ended = True
            self.context.tick()
        return {}

    def close(self) -> None:
        """Close the token."""
        self._resources.close()

    def _measure(self, command: dict[str, Any]) -> None:
        how = How(command["how"])
        if command["operation"] is None:
            self._openssl(how, command["round"], command["parallel"])
            return
        operation, threads = Measured(command["operation"]), command["parallel"] if how is How.THREADS else 1
        count = self._count(operation, threads)
        time.sleep(max(0, command["at_ns"] - now_ns()) / 1e9)
        end_ns, executions = now_ns() + round(command["seconds"] * 1e9), 0
        while now_ns() < end_ns or executions < command["executions"]:
            started_ns = now_ns()
            done, took_ns = self._operations.measure(operation, count, threads)
            executions += 1
            self._record(operation, how, command["round"], done, started_ns, took_ns)
        self.context.count(DONE_CHANNEL.name, 1)

    def _count(self, operation: Measured, threads: int) -> int:
        """Operations of one execution, by a first one that is not recorded."""
        key = (operation, threads)
        if key not in self._counts:
            done, took_ns = self._operations.measure(operation, 20, threads)
            self._counts[key] = max(20, round(_EXECUTION_S * 1e9 / (took_ns / done * threads)))
        return self._counts[key]

    def _record(self, operation: Measured, how: How, number: int, count: int, started_ns: int, took_ns: int) -> None:
        self._executions.extend(
            operation=[operation], how=[how], round=[number], count=[count], started_ns=[started_ns], took_ns=[took_ns]
        )
        self.context.count(OPERATIONS_CHANNEL.name, count, (started_ns, started_ns + took_ns))

    def _openssl(self, how: How, number: int, parallel: int) -> None:
        """Run `openssl speed`, and record its rates as executions of one second of its CPU time."""
        program = shutil.which("openssl")
        if program is None:
            raise UserError("The program openssl is not there: install it, or switch the comparison with it off.")
        multi = ["-multi", str(parallel)] if how is How.PROCESSES else []
        name = _OPENSSL_NAMES[self._curve.name]
        started_ns = now_ns()
        ended = subprocess.run(
            [program, "speed", "-mr", *multi, "-seconds", str(OPENSSL_S), name],
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in ended.stdout.splitlines() if line.startswith("+F")]
        if not lines:
            raise UserError(
                f"`openssl speed {name}` gave no figures: {ended.stderr.strip()[-200:] or ended.returncode}."
            )
        rates = [float(text) for text in lines[-1].split(":")[-2:]]
        for operation, rate in zip((Measured.OPENSSL_SIGN, Measured.OPENSSL_VERIFY), rates, strict=True):
            self._record(operation, how, number, round(rate), started_ns, 1_000_000_000)
        self.context.count(DONE_CHANNEL.name, 1)


def _openssl_version() -> str:
    program = shutil.which("openssl")
    if program is None:
        return ""
    return subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout.strip()
