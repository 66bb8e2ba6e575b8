"""Two owners that trust each other, created once; a test that changes one of them works on a copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole_amqp.broker.embedded_broker import BrokerSettings
from tests.labconsole.agreements.two_owners import Owner, trusting_owners
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving


@pytest.fixture(scope="session")
def owners_made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Owner, Owner]:
    """State A and State B."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        return trusting_owners(tmp_path_factory.mktemp("owners"))


@pytest.fixture
def owners(owners_made: tuple[Owner, Owner], tmp_path: Path) -> tuple[Owner, Owner]:
    """State A, who proposes, and State B, who accepts."""
    a, b = (
        replace(owner, folder=Path(shutil.copytree(owner.folder, tmp_path / owner.folder.name)))
        for owner in owners_made
    )
    return a, b


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The folder over which both owners exchange files."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    """The broker of both owners."""
    with serving(BrokerSettings(queues=("q", "q.clock", "q.clock-reply"))) as running:
        yield running
