"""The steps of section 2.10, each as work for threads: what is prepared is not timed, what is done is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from threading import Event

from cryptography.exceptions import InvalidSignature

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import PrivateKey
from labconsole_keypool.device.emulation import Device
from labconsole_keypool.measuring.step_times_keys import StepKeys, verified
from labconsole_keypool.measuring.step_times_parameters import Step, StepTimesParameters
from labconsole_keypool.measuring.step_times_samples import StepOperation
from labconsole_keypool.measuring.storage_media import StorageMedium
from labconsole_keypool.measuring.timed_threads import Observations
from labconsole_keypool.store.key_records import NewKey

_DIGEST_BYTES = 32


@dataclass(frozen=True)
class StepWork:
    """One step on one token: `works` prepares it and gives what its threads do.

    Attributes:
        medium: Where wrapped keys are kept; None for a step that keeps none.
        device: How fast the token is taken for while the step is timed.
        observations: Takes the rows of the series `operations`.
        stop: Whether to end soon: threads do after the operation they are at.
    """

    parameters: StepTimesParameters
    token: Token
    keys: StepKeys
    medium: StorageMedium | None
    device: Device
    observations: Observations
    stop: Callable[[], bool]

    def works(self) -> list[Callable[[], None]]:
        """What each thread does. Raises TokenError, StoreError: token or storage cannot prepare it."""
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
        """As slow as the emulated device, and noted."""
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
        """A thread for each lane, whose keys lie in the token already; and one that unwraps beside them."""
        threads, requests = self.parameters.threads, self.parameters.keys
        self.device.connect()
        copies = cycle(made)
        ended = [Event() for _ in range(threads)]
        works: list[Callable[[], None]] = []
        for lane, end in enumerate(ended):
            keys = self.keys.in_new_session(self.token, lane + 1)
            share = requests // threads + (lane < requests % threads)
            lying = [keys.unwrap(key) for key in islice(copies, share) if not self.stop()]
            timed = replace(keys, device=self.device, observations=self.observations)
            works.append(partial(self._sign, timed, lying, end))
        if self.parameters.step is Step.SIGN_WHILE_UNWRAPPING:
            beside = self.keys.in_new_session(self.token, threads + 1)
            beside = replace(beside, device=self.device, observations=self.observations)
            works.append(partial(self._unwrap_beside, beside, made, ended))
        return works

    def _sign(self, timed: StepKeys, lying: Sequence[PrivateKey], end: Event) -> None:
        """A request after the other, each with its own key; the last signature is verified."""
        try:
            for key in lying:
                if self.stop():
                    return
                digest = os.urandom(_DIGEST_BYTES)
                signature = timed.sign(key, digest)
        finally:
            end.set()
        if lying:
            try:
                verified(key, digest, signature)
            except InvalidSignature as error:
                raise UserError(
                    f"A signature of the token {self.token.name} is not one of its key: do not use this token."
                ) from error

    def _unwrap_beside(self, timed: StepKeys, made: Sequence[NewKey], ended: Sequence[Event]) -> None:
        for key in cycle(made):
            if self.stop() or all(end.is_set() for end in ended):
                return
            timed.unwrap(key).handle.destroy()
