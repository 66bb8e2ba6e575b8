"""The signer's role: it refills the token when fewer keys are left in it than the scenario's low-water mark."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labconsole.clock import now_ns
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.messages.service_frames import (
    TOKEN_BYTES,
    Done,
    End,
    Hello,
    Job,
    JobKind,
    JobStatus,
    Member,
    Want,
)
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.service.signer_role import SignerRole
from labconsole_keypool.store.key_store import KeyStore
from tests.labconsole_keypool.role_lab import TOKEN, Context, Service, until
from tests.labconsole_keypool.signing_lab import PIN, fill, new_token

STORED, LOADED, BATCH = 30, 8, 3


@contextmanager
def signer(directory: Path, service: Service, low_water: int) -> Iterator[Context]:
    """A signer on a thread, with `LOADED` keys in its token and more in the store, that has asked for a job."""
    configuration, store = new_token(directory / "softhsm"), directory / "keys.db"
    token = open_token("test", configuration, PIN)
    with KeyStore.open(store, run="") as keys:
        fill(token, keys, STORED)
    token.close()
    settings = RoleSettings(
        name="signer-1",
        parameters=ServiceParameters(key_kind="p-256", batch=BATCH, low_water=low_water, ca="lab"),
        token="test",
        configuration=configuration,
        store=store,
        run="run",
        keys_at_start=LOADED,
    )
    context = Context(settings.model_dump(mode="json"))
    context.commands.append(service.command)
    role = SignerRole(context)
    thread = threading.Thread(target=lambda: (role.prepare(), role.run()))
    thread.start()
    try:
        assert service.accept() == Hello(TOKEN, Member.SIGNER, "signer-1")
        assert service.receive() == Want(1)
        yield context
        service.send(End())
    finally:
        context.stop_requested = True
        thread.join(30)
    assert not thread.is_alive()


def sign(service: Service, request: int) -> None:
    """Let the signer sign one request with a key of its token, and wait for the next one."""
    service.send(Job(request, now_ns(), JobKind.DIGEST, KeyKind.P_256, os.urandom(TOKEN_BYTES)))
    done = service.receive()
    assert isinstance(done, Done) and done.status is JobStatus.SIGNED
    assert service.receive() == Want(1)


@pytest.mark.parametrize("low_water", [2, 6])
def test_a_signer_refills_below_the_scenario_s_low_water_mark(tmp_path: Path, low_water: int) -> None:
    service = Service()
    with signer(tmp_path, service, low_water) as context:
        until(lambda: context.counts["keys_loaded"] == LOADED)
        for request in range(LOADED - low_water):
            sign(service, request)
        time.sleep(0.1)  # for a refill that would be wrong: as many keys as the mark are left
        assert context.counts["keys_loaded"] == LOADED
        sign(service, LOADED)
        until(lambda: context.counts["keys_loaded"] == LOADED + BATCH)
    service.close()
