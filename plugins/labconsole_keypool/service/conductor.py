"""Conducts one run of the live signing service: plan, fill the pool, serve, replace killed processes, stop."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.trial import Level, RoleSpec, RunContext
from labconsole.security.token.configuration import TokenConfiguration, is_lab
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.choices import GenerateWhen, KeySource
from labconsole_keypool.messages.service_frames import TOKEN_BYTES
from labconsole_keypool.series import KEYS_STORED_CHANNEL, SETTLED_CHANNEL
from labconsole_keypool.service.connections import admit_command, connect_command, start_command
from labconsole_keypool.service.role_processes import RoleProcesses, unchanged
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.shares.wrapper_transfer import transfer_wrappers
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import WrapperKey


@dataclass(frozen=True)
class RunPlan:
    """The processes of one run, on the tokens of these `configurations`; `run` is its name in the key store."""

    parameters: ServiceParameters
    store: Path
    run: str
    configurations: Mapping[str, TokenConfiguration]

    def generators(self) -> list[RoleSettings]:
        """Those that generate keys, over the generating tokens in turn; none without a pool."""
        if self.parameters.keys is not KeySource.POOL:
            return []
        tokens, count = self.parameters.generating_tokens, self.parameters.generators
        return [self._settings(f"generator-{at + 1}", tokens[at % len(tokens)]) for at in range(count)]

    def signers(self) -> list[RoleSettings]:
        """Those that sign, over the signing tokens in turn; they share threads and the keys of the start."""
        parameters = self.parameters
        tokens, count = parameters.signing_tokens, parameters.signers
        shares = zip(
            _shares(parameters.threads, count),
            _shares(parameters.keys_at_start, count),
            _shares(parameters.store_keys, count),
            strict=True,
        )
        return [
            self._settings(f"signer-{at + 1}", tokens[at % len(tokens)]).model_copy(
                update={"threads": threads, "keys_at_start": keys, "store_keys": stored}
            )
            for at, (threads, keys, stored) in enumerate(shares)
        ]

    def _settings(self, name: str, token: str) -> RoleSettings:
        return RoleSettings(
            name=name,
            parameters=self.parameters,
            token=token,
            configuration=self.configurations[token],
            store=self.store,
            run=self.run,
        )


def plan_run(parameters: ServiceParameters, store: Path, run: str) -> RunPlan:
    """The plan of one run; creates the lab token if it is named and does not exist yet. Raises UserError."""
    return RunPlan(parameters, store, run, {name: find_configuration(name) for name in parameters.tokens})


def _shares(total: int, count: int) -> Iterator[int]:
    """`total` in `count` parts that differ by one at most, the larger ones first."""
    return (total // count + (at < total % count) for at in range(count))


_INTERVAL_S = 1.0


class WrapperKeyTransfer:
    """Transfers new wrapper keys between lab tokens; reports which signers on other tokens lack keys."""

    def __init__(self, parameters: ServiceParameters, context: RunContext, store: KeyReader) -> None:
        self._parameters = parameters
        self._context = context
        self._store = store
        self._names: dict[str, str] = {}
        self._transferred: set[tuple[str, str]] = set()
        self._checked_s = -_INTERVAL_S

    def add_generator_tokens(self, infos: Sequence[Mapping[str, Any]]) -> None:
        """Note the serial numbers of the generators' tokens."""
        self._names |= {info["token"]: info["settings"].token for info in infos}

    def transfer_new(self) -> None:
        """Transfer new wrapper keys, once a second at most. Raises UserError: a token refuses."""
        if len(self._parameters.tokens) < 2 or time.monotonic() - self._checked_s < _INTERVAL_S:
            return
        self._checked_s = time.monotonic()
        wrappers = self._store.wrappers()
        for serial, source in self._names.items():
            made = [wrapper for wrapper in wrappers if wrapper.token == serial]
            for token in self._parameters.signing_tokens:
                if token != source and is_lab(token) and is_lab(source):
                    self._transfer(source, token, made)

    def report_missing_keys(self, infos: Sequence[Mapping[str, Any]]) -> None:
        """Report signers that could load fewer keys than the scenario asks for."""
        if self._parameters.keys is not KeySource.POOL:
            return
        for info in infos:
            signer: RoleSettings = info["settings"]
            wanted = signer.keys_at_start + signer.store_keys
            if info["keys"] < wanted:
                self._context.event(
                    "keys missing",
                    f"{signer.name} could load {info['keys']:,} of {wanted:,} keys: the pool has no more, or they are "
                    f"wrapped by wrapper keys that the token {signer.token} lacks: load these from their shares.",
                    Level.WARNING,
                    signer=signer.name,
                    loaded=info["keys"],
                    wanted=wanted,
                )

    def _transfer(self, source: str, token: str, made: Sequence[WrapperKey]) -> None:
        # One that has wrapped nothing may not be in its token yet.
        new = [wrapper for wrapper in made if wrapper.pairs and (token, wrapper.serial) not in self._transferred]
        if not new:
            return
        arrived = transfer_wrappers(source, token, new)
        self._transferred |= {(token, wrapper.serial) for wrapper in new}
        if arrived:
            self._context.event(
                "carried",
                f"Wrapper keys carried from the token {source} to {token}, under a transport key of which any 2 of 3 "
                f"shares were needed: {', '.join(arrived)}.",
                wrappers=list(arrived),
            )


SERVICE = "labconsole_keypool.service.service_role:ServiceRole"
SIGNER = "labconsole_keypool.service.signer_role:SignerRole"
GENERATOR = "labconsole_keypool.service.generator_role:GeneratorRole"

_LEAD_NS = 200_000_000
"""T0 is this far ahead: by then all have connected."""
_POLL_S = 0.05
_STALL_S = 120.0
_GATHER_S = 0.3
_END_S = 2.0
"""How long roles may take to end by themselves on a cancel."""


class Conductor:
    """Conducts one run; `store` is open for reading until it ends."""

    def __init__(self, plan: RunPlan, context: RunContext, store: KeyReader) -> None:
        self._plan = plan
        self._context = context
        self._store = store
        self._parameters = plan.parameters
        self._service = context.start(service_spec(plan, context.seed))
        self._generators = RoleProcesses(context, GENERATOR)
        if self._parameters.generate is not GenerateWhen.NEVER:
            self._generators.start(plan.generators())
        self._signers = RoleProcesses(context, SIGNER)
        self._signers.start(plan.signers())
        self._transfer = WrapperKeyTransfer(plan.parameters, context, store)

    def conduct(self) -> Mapping[str, Any] | None:
        """The service's result; None if the run was cancelled. Raises UserError."""
        info = self._service.ready()
        token = secrets.token_bytes(TOKEN_BYTES)
        self._service.command(admit_command(token))
        self._service.begin(now_ns())
        connect = connect_command(info["port"], token)
        self._fill()
        if not self._context.stop_requested:
            self._serve(info["requests"], connect)
        if self._context.stop_requested:
            self._end()
            return None
        result = self._service.finish()
        self._generators.stop()
        self._signers.finish()
        self._generators.finish()
        return result

    def _fill(self) -> None:
        """Let the generators make the keys that the pool lacks."""
        if not len(self._generators):
            return
        self._transfer.add_generator_tokens(self._generators.get_ready())
        missing = self._missing()
        if not missing:
            return
        self._context.expect(missing, KEYS_STORED_CHANNEL.name, now_ns())
        self._context.event(
            "fill", f"Missing in the pool: {missing:,} keys, which are generated now, before T0.", keys=missing
        )
        count = len(self._generators)
        shares = [missing // count + (at < missing % count) for at in range(count)]
        self._generators.command(lambda at: [_fill_command(shares[at])])
        last, last_change = missing, time.monotonic()
        while not self._context.stop_requested and (missing := self._missing()):
            before = len(self._generators)
            self._generators.replace_lost(unchanged, (), lambda at: [_fill_command(self._missing())])
            if len(self._generators) < before:  # its token is gone: the others make its share
                self._generators.command(lambda at: [_fill_command(self._missing())])
            if missing != last:
                last, last_change = missing, time.monotonic()
            elif time.monotonic() - last_change > _STALL_S:
                raise UserError(f"The generators made no key for {_STALL_S:g} s: see their messages in the log.")
            time.sleep(_POLL_S)

    def _missing(self) -> int:
        return max(0, self._parameters.pool_at_start - self._store.counts(self._parameters.key_kind).new)

    def _serve(self, requests: int, connect: Mapping[str, Any]) -> None:
        """Let signers load keys and requests arrive; replace lost processes until the last request is answered."""
        self._transfer.transfer_new()
        try:
            infos = self._signers.get_ready([connect])
        except UserError:
            self._service_has_finished()
            raise
        self._transfer.report_missing_keys(infos)
        generates = self._parameters.generate is GenerateWhen.IDLE
        if generates:
            self._generators.command(lambda at: [connect])
        begin_ns = now_ns() + _LEAD_NS
        self._service.command(start_command(begin_ns))
        self._context.expect(requests, SETTLED_CHANNEL.name, begin_ns)
        self._context.event(
            "T0",
            f"T0: {requests:,} requests. Signers: {len(self._signers)}, generators: "
            f"{len(self._generators) if generates else 0}.",
            begin_ns=begin_ns,
        )
        while self._service.running and not self._context.stop_requested:
            try:
                self._signers.replace_lost(_loading_keys_later, [connect], lambda at: ())
                if generates:
                    self._generators.replace_lost(unchanged, (), lambda at: [connect])
            except UserError:
                if not self._service_has_finished():
                    raise
            self._transfer.transfer_new()
            time.sleep(_POLL_S)

    def _service_has_finished(self) -> bool:
        """Whether the service has finished, so that a failed client is irrelevant. Raises UserError: it failed itself.

        A client may report the lost connection a moment before the end of the service itself is known.
        """
        time.sleep(_GATHER_S)
        if self._service.running:
            return False
        self._service.finish()
        return True

    def _end(self) -> None:
        """Ask all processes to stop, so that they record how far they came; the engine ends those that are late."""
        self._service.stop()
        self._signers.stop()
        self._generators.stop()
        deadline = time.monotonic() + _END_S
        while (self._service.running or self._signers.running) and time.monotonic() < deadline:
            time.sleep(_POLL_S)


def service_spec(plan: RunPlan, seed: int) -> RoleSpec:
    """The service's role: it needs no token."""
    settings = {"parameters": plan.parameters.model_dump(mode="json"), "seed": seed}
    return RoleSpec("service", SERVICE, settings, files=plan.parameters.arrival_files)


def _fill_command(keys: int) -> dict[str, Any]:
    return {"do": "fill", "keys": keys}


def _loading_keys_later(settings: RoleSettings) -> RoleSettings:
    """The settings of a replacement signer: it loads its keys while it signs, since requests wait."""
    return settings.model_copy(update={"keys_at_start": 0, "store_keys": 0})
