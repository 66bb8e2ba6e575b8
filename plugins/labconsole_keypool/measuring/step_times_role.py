"""The role of the step times: opens the token, prepares the keys of the step, and does it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from threading import Event
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.security.token.cryptoki.key_pairs import KeyPair, generate
from labconsole.security.token.cryptoki.mechanism_probes import mechanism_for
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import PrivateKey, private_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, make_wrapper
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.device.emulation import Device, DeviceOperation
from labconsole_keypool.measuring.step_times_parameters import (
    DONE_CHANNEL,
    MAIN,
    OPERATIONS,
    Step,
    StepOperation,
    StepTimesParameters,
)
from labconsole_keypool.measuring.storage_media import StorageMedium, open_medium, scratch_directory
from labconsole_keypool.measuring.timed_operations import TIME_CHANNEL, Operations, durations_ns, select
from labconsole_keypool.measuring.timed_role import Observations, TimedRole, identity
from labconsole_keypool.store.key_records import ClaimedKey, NewKey

_SHA256 = utils.Prehashed(hashes.SHA256())


@dataclass(frozen=True)
class StepKeys:
    """Does the operations of a step in one session of the token, and records them under the number `thread`."""

    kind: KeyKind
    device: Device
    wrapper: Wrapper
    observations: Observations
    thread: int = 1

    @classmethod
    def of(cls, token: Token, kind: KeyKind, device: Device, observations: Observations, *, wrapping: bool) -> StepKeys:
        """With a wrapper key of the session; its mechanism is probed only where the step is `wrapping`.

        Raises:
            TokenError: the token cannot wrap such keys.
        """
        session = token.session()
        mechanism = WrapMechanism.KEY_WRAP
        if wrapping:
            mechanism = mechanism_for(session, kind, token.wrap_mechanisms)
        wrapper = make_wrapper(session, f"step-times {secrets.token_hex(8)}", mechanism, stored=False)
        return cls(kind, device, wrapper, observations)

    def in_new_session(self, token: Token, thread: int) -> StepKeys:
        """For another thread; records the connection and the search for the wrapper key as the source's cipher
        initialization."""
        started_ns = now_ns()
        self.device.connect()
        wrapper = self.wrapper.in_session(token.session())
        self._record_operation(StepOperation.INITIALISE, started_ns)
        return StepKeys(self.kind, self.device, wrapper, self.observations, thread)

    def generate(self) -> KeyPair:
        """A new key pair. Raises TokenError."""
        started_ns = now_ns()
        with self.device.busy(DeviceOperation.GENERATE):
            pair = generate(self.wrapper.key.session, self.kind, extractable=True)
        self._record_operation(StepOperation.GENERATE, started_ns)
        return pair

    def make(self, serial: str) -> NewKey:
        """A new key pair, wrapped, for the wrapper key that a storage medium calls `serial`. Raises TokenError."""
        began_ns = time.time_ns()
        pair = self.generate()
        ended_ns, started_ns = time.time_ns(), now_ns()
        with self.device.busy(DeviceOperation.WRAP):
            private = self.wrapper.wrap(pair)
        self._record_operation(StepOperation.WRAP, started_ns)
        pair.destroy()
        return NewKey(
            kind=self.kind,
            private=private,
            public=pair.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            wrapper=serial,
            mechanism=self.wrapper.mechanism,
            generate_start_ns=began_ns,
            generate_end_ns=ended_ns,
            generate_duration_ns=ended_ns - began_ns,
        )

    def unwrap(self, key: ClaimedKey | NewKey) -> PrivateKey:
        """The key in the token. Raises TokenError: it was changed, or does not fit in."""
        started_ns = now_ns()
        with self.device.busy(DeviceOperation.UNWRAP):
            handle = self.wrapper.unwrap(key.private, self.kind)
        self._record_operation(StepOperation.UNWRAP, started_ns)
        public = load_der_public_key(key.public)
        assert isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
        return private_key(handle, public)

    def sign(self, key: PrivateKey, digest: bytes) -> bytes:
        """The signature of a SHA-256 digest: PKCS #1 v1.5, or ECDSA. Raises TokenError."""
        started_ns = now_ns()
        with self.device.busy(DeviceOperation.SIGN):
            if isinstance(key, rsa.RSAPrivateKey):
                signature = key.sign(digest, padding.PKCS1v15(), _SHA256)
            else:
                signature = key.sign(digest, ec.ECDSA(_SHA256))
        self._record_operation(StepOperation.SIGN, started_ns)
        return signature

    def _record_operation(self, operation: StepOperation, started_ns: int) -> None:
        self.observations.add(operation, self.thread, 1, started_ns, now_ns())


def verified(key: PrivateKey, digest: bytes, signature: bytes) -> None:
    """Raises InvalidSignature: it is not that of this key."""
    if isinstance(key, rsa.RSAPrivateKey):
        key.public_key().verify(signature, digest, padding.PKCS1v15(), _SHA256)
    else:
        key.public_key().verify(signature, digest, ec.ECDSA(_SHA256))


_DIGEST_BYTES = 32


@dataclass(frozen=True)
class StepRun:
    """One step on one token.

    Attributes:
        medium: Where wrapped keys are kept; None for a step that keeps none.
        device: The emulated speed of the token while the step is timed.
        observations: Receives the rows of the series `operations`.
        stop: Whether threads are to end after their current operation.
    """

    parameters: StepTimesParameters
    token: Token
    keys: StepKeys
    medium: StorageMedium | None
    device: Device
    observations: Observations
    stop: Callable[[], bool]

    def threads(self) -> list[Callable[[], None]]:
        """Make the keys that the step needs, and return the function of each thread.

        Raises:
            TokenError, StoreError: the token or the storage cannot prepare them.
        """
        step = self.parameters.step
        if step is Step.GENERATE:
            return [self._generate]
        if step in (Step.SIGN, Step.SIGN_WHILE_UNWRAPPING):
            return self._signing(self._made(self.keys.wrapper.serial))
        assert self.medium is not None
        if step is Step.WRAP_AND_SAVE:
            return [partial(self._wrap_and_save, self.medium)]
        made = self._made(self.medium.wrapper)
        if step is Step.SAVE:
            return [partial(self._save, self.medium, made)]
        for keys in self._batches(made):
            self.medium.save(keys)
        if step is Step.LOAD:
            return [partial(self._load, self.medium)]
        return [partial(self._load_and_unwrap, self.medium)]

    def _made(self, serial: str) -> list[NewKey]:
        """The different keys that a step copies, wrapped by the key that is called `serial`."""
        wanted = min(self.parameters.distinct, self.parameters.keys)
        return [self.keys.make(serial) for _ in range(wanted) if not self.stop()]

    def _timed(self) -> StepKeys:
        """The keys with the emulated device and the recorded observations."""
        return replace(self.keys, device=self.device, observations=self.observations)

    def _sizes(self) -> Iterator[int]:
        """Sizes of batches that have all keys together, fewer when the operator cancels."""
        for first in range(0, self.parameters.keys, self.parameters.batch):
            if self.stop():
                return
            yield min(self.parameters.batch, self.parameters.keys - first)

    def _batches(self, made: Sequence[NewKey]) -> Iterator[list[NewKey]]:
        """Copies of `made` in turn."""
        copies = cycle(made)
        return (list(islice(copies, size)) for size in self._sizes())

    def _generate(self) -> None:
        timed = self._timed()
        for _ in range(self.parameters.keys):
            if self.stop():
                return
            timed.generate().destroy()

    def _wrap_and_save(self, medium: StorageMedium) -> None:
        timed = self._timed()
        for size in self._sizes():
            made: list[NewKey] = []
            while len(made) < size and not self.stop():
                made.append(timed.make(medium.wrapper))
            self._keep(medium, made)

    def _save(self, medium: StorageMedium, made: Sequence[NewKey]) -> None:
        for keys in self._batches(made):
            self._keep(medium, keys)

    def _keep(self, medium: StorageMedium, keys: Sequence[NewKey]) -> None:
        started_ns = now_ns()
        medium.save(keys)
        self.observations.add(StepOperation.SAVE, 1, len(keys), started_ns, now_ns())

    def _load(self, medium: StorageMedium) -> None:
        for size in self._sizes():
            started_ns = now_ns()
            loaded = medium.load(size)
            self.observations.add(StepOperation.LOAD, 1, len(loaded), started_ns, now_ns())

    def _load_and_unwrap(self, medium: StorageMedium) -> None:
        """The keys of all batches stay in the token, as the pool's do."""
        timed = self._timed().in_new_session(self.token, 1)
        for size in self._sizes():
            started_ns = now_ns()
            loaded = medium.load(size)
            self.observations.add(StepOperation.LOAD, 1, len(loaded), started_ns, now_ns())
            for key in loaded:
                if self.stop():
                    return
                self.device.take_room()
                timed.unwrap(key)

    def _signing(self, made: Sequence[NewKey]) -> list[Callable[[], None]]:
        """The functions of the signing threads, whose keys are loaded first, and of one that unwraps meanwhile."""
        threads, requests = self.parameters.threads, self.parameters.keys
        self.device.connect()
        copies = cycle(made)
        ended = [Event() for _ in range(threads)]
        functions: list[Callable[[], None]] = []
        for lane, end in enumerate(ended):
            keys = self.keys.in_new_session(self.token, lane + 1)
            share = requests // threads + (lane < requests % threads)
            loaded_keys = [keys.unwrap(key) for key in islice(copies, share) if not self.stop()]
            timed = replace(keys, device=self.device, observations=self.observations)
            functions.append(partial(self._sign, timed, loaded_keys, end))
        if self.parameters.step is Step.SIGN_WHILE_UNWRAPPING:
            unwrapping = self.keys.in_new_session(self.token, threads + 1)
            unwrapping = replace(unwrapping, device=self.device, observations=self.observations)
            functions.append(partial(self._unwrap_during_signing, unwrapping, made, ended))
        return functions

    def _sign(self, timed: StepKeys, loaded_keys: Sequence[PrivateKey], end: Event) -> None:
        """A request after the other, each with its own key; the last signature is verified."""
        try:
            for key in loaded_keys:
                if self.stop():
                    return
                digest = os.urandom(_DIGEST_BYTES)
                signature = timed.sign(key, digest)
        finally:
            end.set()
        if loaded_keys:
            try:
                verified(key, digest, signature)
            except InvalidSignature as error:
                raise UserError(
                    f"A signature of the token {self.token.name} is not one of its key: do not use this token."
                ) from error

    def _unwrap_during_signing(self, timed: StepKeys, made: Sequence[NewKey], ended: Sequence[Event]) -> None:
        for key in cycle(made):
            if self.stop() or all(end.is_set() for end in ended):
                return
            timed.unwrap(key).handle.destroy()


_KEEPING = (Step.WRAP_AND_SAVE, Step.SAVE, Step.LOAD, Step.LOAD_AND_UNWRAP)


class StepTimesRole(TimedRole):
    """Times one step. Settings: as of `TimedRole`."""

    operations = OPERATIONS

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = StepTimesParameters.model_validate(context.settings["parameters"])

    def prepare(self) -> dict[str, Any]:
        """Open the token and make the keys that the step needs. Raises UserError: token or storage cannot."""
        parameters = self._parameters
        token = self.open_token(parameters.token)
        wrapping = parameters.step is not Step.GENERATE
        keys = StepKeys.of(token, parameters.key_kind, Device(), Observations(), wrapping=wrapping)
        medium = None
        if parameters.step in _KEEPING:
            medium = open_medium(
                parameters.storage,
                self.resources.enter_context(scratch_directory()),
                token.identity.serial,
                parameters.key_kind,
                keys.wrapper.mechanism,
            )
            self.resources.callback(medium.close)
        device = Device(parameters.device_times)
        device.threads = parameters.threads
        step = StepRun(parameters, token, keys, medium, device, self.observations, self.stopped)
        self._threads = step.threads()
        return {"identity": identity(token), "mechanism": keys.wrapper.mechanism.name if wrapping else ""}

    def measure(self) -> None:
        """Do the step."""
        self.time_threads(self._threads)

    def show(self, operations: Operations) -> None:
        """Count the keys of the step's main operation, and show its durations."""
        main = select(operations, operations["operation"] == MAIN[self._parameters.step])
        if keys := int(main["keys"].sum()):
            self.context.count(DONE_CHANNEL.name, keys, (int(main["started"][0]), int(main["finished"][-1])))
            self.context.observe(TIME_CHANNEL.name, durations_ns(main))
