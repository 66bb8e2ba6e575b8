"""The role that opens the token and does each operation of Appendix C with keys of each size, each for its time."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from labconsole.clock import now_ns
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole.security.token.cryptoki.raw_rsa import RawRSAPair, generate_rsa
from labconsole.security.token.errors import TokenError
from labconsole_keypool.measuring.device_benchmark_parameters import (
    DONE_CHANNEL,
    OPERATIONS,
    OPERATIONS_CHANNEL,
    DeviceBenchmarkParameters,
    RSAOperation,
)
from labconsole_keypool.measuring.timed_operations import TIME_CHANNEL, Operations, durations_ns
from labconsole_keypool.measuring.timed_role import TimedRole, identity

_DATA_BYTES, _HASHED_BYTES = 16, 1024
"""The data sizes of Appendix C."""
_WITH_A_KEY = tuple(operation for operation in RSAOperation if operation is not RSAOperation.KEY_GENERATION)


class DeviceBenchmarkRole(TimedRole):
    """Times RSA operations size by size. Settings: as of `TimedRole`."""

    operations = OPERATIONS

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = DeviceBenchmarkParameters.model_validate(context.settings["parameters"])

    def prepare(self) -> dict[str, Any]:
        """Open the token, with a session for each thread. Raises TokenError."""
        token = self.open_token(self._parameters.token)
        self._sessions = [token.session() for _ in range(self._parameters.threads)]
        return {"identity": identity(token)}

    def measure(self) -> None:
        """Measure size by size; what the token cannot do is reported and left out."""
        for bits in self._parameters.sizes:
            if self.context.stop_requested:
                break
            self._measure(bits)

    def _measure(self, bits: int) -> None:
        made: list[RawRSAPair] = []
        try:
            self.time_threads([partial(self._generate, bits, made)])
        except TokenError as error:
            self._left_out(f"RSA keys of {bits} bits", error, len(RSAOperation))
            return
        self.context.count(DONE_CHANNEL.name, 1)
        for operation in _WITH_A_KEY if made else ():
            if self.context.stop_requested:
                break
            pairs = [made[0].in_session(session) for session in self._sessions]
            try:
                self.time_threads([partial(self._repeat, operation, bits, *pair) for pair in enumerate(pairs, start=1)])
            except TokenError as error:
                self._left_out(f"{operation.title} with {bits} bits", error, 1)
            else:
                self.context.count(DONE_CHANNEL.name, 1)
        for pair in made:
            pair.destroy()

    def _left_out(self, what: str, error: TokenError, measurements: int) -> None:
        self.context.event("left out", f"{what}: left out. {error}", Level.WARNING)
        self.context.count(DONE_CHANNEL.name, measurements)

    def _generate(self, bits: int, made: list[RawRSAPair]) -> None:
        """Key pairs until the time is over, one at least; the first one stays."""
        end_ns = now_ns() + round(self._parameters.key_seconds * 1e9)
        while not self.context.stop_requested and (not made or now_ns() < end_ns):
            started_ns = now_ns()
            pair = generate_rsa(self._sessions[0], bits)
            self.observations.add(RSAOperation.KEY_GENERATION, bits, 1, started_ns, now_ns())
            if made:
                pair.destroy()
            else:
                made.append(pair)

    def _repeat(self, operation: RSAOperation, bits: int, thread: int, pair: RawRSAPair) -> None:
        """The operation until its time is over, once at least."""
        once = _prepared(operation, pair)
        end_ns = now_ns() + round(self._parameters.seconds * 1e9)
        while True:
            started_ns = now_ns()
            once()
            finished_ns = now_ns()
            self.observations.add(operation, bits, thread, started_ns, finished_ns)
            if finished_ns >= end_ns or self.stopped():
                return

    def show(self, operations: Operations) -> None:
        """Count the operations, and show their durations."""
        if count := len(operations["operation"]):
            span_ns = (int(operations["started"].min()), int(operations["finished"].max()))
            self.context.count(OPERATIONS_CHANNEL.name, count, span_ns)
            self.context.observe(TIME_CHANNEL.name, durations_ns(operations))


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
