"""The role that opens the token and does each operation of Appendix C with keys of each size, each for its time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from labconsole.clock import now_ns
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.raw_rsa import RawRSAPair, generate_rsa
from labconsole.security.token.errors import TokenError
from labconsole_keypool.measuring.device_benchmark_parameters import (
    DONE_CHANNEL,
    OPERATIONS,
    OPERATIONS_CHANNEL,
    TIME_CHANNEL,
    DeviceBenchmarkParameters,
    RSAOperation,
)
from labconsole_keypool.measuring.timed_threads import Observations, run_threads

_DATA_BYTES, _HASHED_BYTES = 16, 1024
"""The data sizes of Appendix C."""
_WITH_A_KEY = tuple(operation for operation in RSAOperation if operation is not RSAOperation.KEY_GENERATION)


class DeviceBenchmarkRole(Role):
    """Settings: `parameters` and the token's `configuration` as JSON; the PIN under its request's key."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = DeviceBenchmarkParameters.model_validate(context.settings["parameters"])
        self._observations = Observations()
        self._closing = ExitStack()

    def prepare(self) -> dict[str, Any]:
        """Open the token, with a session for each thread. Raises TokenError."""
        configuration = TokenConfiguration.model_validate(self.context.settings["configuration"])
        request = configuration.pin_request(self._parameters.token)
        token = open_token(self._parameters.token, configuration, self.context.secret(request.key))
        self._closing.enter_context(token)
        self._sessions = [token.session() for _ in range(self._parameters.threads)]
        return {"identity": f"{token.identity.manufacturer} {token.identity.model}"}

    def run(self) -> dict[str, Any]:
        """Measure size by size; what the token cannot do is told and left out."""
        self._writer = self.context.series(OPERATIONS)
        for bits in self._parameters.sizes:
            if self.context.stop_requested:
                break
            self._measure(bits)
        return {}

    def close(self) -> None:
        """Close the token; all keys that were made go with it."""
        self._closing.close()

    def _measure(self, bits: int) -> None:
        made: list[RawRSAPair] = []
        try:
            self._do([partial(self._generate, bits, made)])
        except TokenError as error:
            self._left_out(f"RSA keys of {bits} bits", error, len(RSAOperation))
            return
        self.context.count(DONE_CHANNEL.name, 1)
        for operation in _WITH_A_KEY if made else ():
            if self.context.stop_requested:
                break
            pairs = [made[0].in_session(session) for session in self._sessions]
            try:
                self._do([partial(self._repeat, operation, bits, *pair) for pair in enumerate(pairs, start=1)])
            except TokenError as error:
                self._left_out(f"{operation.title} with {bits} bits", error, 1)
            else:
                self.context.count(DONE_CHANNEL.name, 1)
        for pair in made:
            pair.destroy()

    def _do(self, works: Sequence[Callable[[Event], None]]) -> None:
        failed = Event()
        run_threads([partial(work, failed) for work in works], self._record, failed)

    def _left_out(self, what: str, error: TokenError, measurements: int) -> None:
        self.context.event("left out", f"{what}: left out. {error}", Level.WARNING)
        self.context.count(DONE_CHANNEL.name, measurements)

    def _generate(self, bits: int, made: list[RawRSAPair], failed: Event) -> None:
        """Key pairs until the time is over, one at least; the first one stays."""
        end_ns = now_ns() + round(self._parameters.key_seconds * 1e9)
        while not self.context.stop_requested and (not made or now_ns() < end_ns):
            started_ns = now_ns()
            pair = generate_rsa(self._sessions[0], bits)
            self._observations.add(RSAOperation.KEY_GENERATION, bits, 1, started_ns, now_ns())
            if made:
                pair.destroy()
            else:
                made.append(pair)

    def _repeat(self, operation: RSAOperation, bits: int, thread: int, pair: RawRSAPair, failed: Event) -> None:
        """The operation until its time is over, once at least."""
        once = _prepared(operation, pair)
        end_ns = now_ns() + round(self._parameters.seconds * 1e9)
        while True:
            started_ns = now_ns()
            once()
            finished_ns = now_ns()
            self._observations.add(operation, bits, thread, started_ns, finished_ns)
            if finished_ns >= end_ns or self.context.stop_requested or failed.is_set():
                return

    def _record(self) -> None:
        rows = np.array(self._observations.take(), np.int64).reshape(-1, len(OPERATIONS.columns))
        self._writer.extend(**{column.name: rows[:, place] for place, column in enumerate(OPERATIONS.columns)})
        if len(rows):
            self.context.count(OPERATIONS_CHANNEL.name, len(rows), (int(rows[:, 3].min()), int(rows[:, 4].max())))
            self.context.observe(TIME_CHANNEL.name, rows[:, 4] - rows[:, 3])
        self.context.tick()


def _prepared(operation: RSAOperation, pair: RawRSAPair) -> Callable[[], object]:
    """One operation; what it needs is made before. Raises TokenError: the token cannot, or does it wrongly."""
    data, long_data = os.urandom(_DATA_BYTES), os.urandom(_HASHED_BYTES)
    match operation:
        case RSAOperation.SIGN:
            return partial(pair.sign, data)
        case RSAOperation.VERIFY:
            return partial(_right, partial(pair.verify, data, pair.sign(data)), True)
        case RSAOperation.HASH_AND_SIGN:
            return partial(pair.hash_and_sign, long_data)
        case RSAOperation.ENCRYPT:
            return partial(pair.encrypt, data)
        case RSAOperation.DECRYPT:
            return partial(_right, partial(pair.decrypt, pair.encrypt(data)), data)
        case RSAOperation.KEY_GENERATION:
            raise ValueError("a key pair is not generated with a key pair")


def _right(operation: Callable[[], object], result: object) -> None:
    if operation() != result:
        raise TokenError("The token's answer is wrong: do not use it.")
