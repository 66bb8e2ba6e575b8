"""A signer as a role: takes requests from the service, signs each with a fresh key in its token, and answers."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from contextlib import ExitStack, suppress
from typing import Any

from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level, Origin
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.errors import TokenError, TokenGoneError
from labconsole_keypool.choices import CaKey, KeySource
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.device.signing import SigningEngine
from labconsole_keypool.messages.service_frames import Busy, End, Frame, Idle, Job, Member, Want
from labconsole_keypool.series import REFILLS, of_origin
from labconsole_keypool.service.connections import ServiceLink, wait_for_link
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.store.key_store import KeyStore

_POLL_TIMEOUT_S = 0.05


class SignerRole(Role):
    """Settings: `RoleSettings`. Begun at once; it works when the service has something to do."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._reports = _ThreadReports(context, self._settings.parameters.origin)
        self._resources = ExitStack()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._fault: Exception | None = None
        self._ended = False
        self._engine: SigningEngine | None = None
        self._link: ServiceLink | None = None

    def prepare(self) -> dict[str, Any]:
        """Open the token, connect to the service on command, and load the first keys.

        The command comes late: the pool is filled and wrapper keys are transferred while the process starts.

        Raises:
            UserError: wrong PIN, token or key store missing, or the service is gone.
        """
        settings = self._settings
        parameters = settings.parameters
        token = open_token(settings.token, settings.configuration, settings.pin(self.context))
        self._resources.callback(token.close)
        store = self._resources.enter_context(KeyStore.open(settings.store, run=settings.run))
        device = settings.device()
        device.connect()
        device.warm_up()  # before T0: the simulation, and the peaks of the source, have a warm device
        self._engine = SigningEngine(
            token,
            store,
            SigningCA.of_lab() if parameters.ca is CaKey.LAB else SigningCA.in_token(token),
            device,
            self._reports,
            kind=parameters.key_kind,
            threads=settings.threads,
            keys=parameters.keys,
            batch=parameters.batch,
            low_water=parameters.low_water,
            refill=parameters.refill,
            run=settings.run,
        )
        self._resources.callback(self._engine.close)
        self._link = wait_for_link(self.context, Member.SIGNER, settings.name)
        if self._link is None:
            return {}
        self._resources.callback(self._link.close)
        loaded = 0
        if parameters.keys is KeySource.POOL:
            loaded = self._engine.fill(settings.keys_at_start, settings.store_keys)
        self._reports.flush()
        return {"keys": loaded}

    def run(self) -> dict[str, Any]:
        """Sign until the service sends the end. Raises UserError: the token or the service is gone."""
        if self._link is None or self._engine is None:
            return {}
        if self._settings.parameters.keys is KeySource.POOL:
            self._engine.start_refill()
        self._begin_threads(self._engine, self._link)
        while not self.context.stop_requested and self._fault is None:
            for frame in self._link.receive(_POLL_TIMEOUT_S):
                self._handle_frame(self._engine, frame)
            self._reports.flush()
            self.context.tick()
            if self._ended:
                break
        if isinstance(self._fault, TokenGoneError):
            with suppress(TokenError):  # nothing can be destroyed in a token that is gone
                self.close()
            return self._settings.without_token(self.context, self._fault)
        self.close()
        if self._fault is not None:
            raise self._fault
        return {}

    def close(self) -> None:
        """End the threads, destroy what is left in the token, and close everything; twice does nothing."""
        self._end_threads()
        try:
            self._resources.close()
        finally:
            self._reports.flush()

    def _handle_frame(self, engine: SigningEngine, frame: Frame) -> None:
        """Handle a frame of the service."""
        match frame:
            case Job():
                self._jobs.put(frame)
            case Idle() | Busy():
                engine.pause_refill(isinstance(frame, Busy))
            case End():
                self._ended = True

    def _begin_threads(self, engine: SigningEngine, link: ServiceLink) -> None:
        for number in range(self._settings.threads):
            thread = threading.Thread(target=self._sign, args=(engine, link, number), name=f"signing-{number}")
            self._threads.append(thread)
            thread.start()
        link.send(Want(len(self._threads)))

    def _sign(self, engine: SigningEngine, link: ServiceLink, number: int) -> None:
        """The function of one signing thread."""
        try:
            while (job := self._jobs.get()) is not None:
                link.send(engine.process(number, job), Want(1))
        except Exception as error:  # noqa: BLE001 - of a thread: the role's main thread raises it
            self._fault = self._fault or error

    def _end_threads(self) -> None:
        for _thread in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()


class _ThreadReports:
    """`Reports` of several threads, passed to the role's context by the role's own thread."""

    def __init__(self, context: RoleContext, origin: Origin) -> None:
        self._context = context
        self._refills = context.series(of_origin(REFILLS, origin))
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._loaded: list[tuple[int, int, int]] = []

    def count(self, channel: str, amount: int) -> None:
        with self._lock:
            self._counts[channel] += amount

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        self._context.event(name, message, level, **data)

    def refill(self, started_ns: int, finished_ns: int, keys: int) -> None:
        with self._lock:
            self._loaded.append((started_ns, finished_ns, keys))

    def flush(self) -> None:
        """Pass all reports to the context; called by the role's own thread."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            loaded, self._loaded = self._loaded, []
        for channel, amount in counts.items():
            self._context.count(channel, amount)
        if loaded:
            started, finished, keys = zip(*loaded, strict=True)
            self._refills.extend(started=started, finished=finished, keys=keys)
