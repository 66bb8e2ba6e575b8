"""Fixtures of the AMQP tests: a broker, a connection, a CA, and a home with lab identities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.paths import HOME_VARIABLE
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.link.connection import Connection, connect
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab_pki import LabCa


@pytest.fixture(scope="session")
def _shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def lab_home(own_home: Path, _shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory shared by the tests that use it: creating identities takes longer than a run."""
    monkeypatch.setenv(HOME_VARIABLE, str(_shared_home))
    return _shared_home


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    """A broker of one queue, `q`."""
    with serving(BrokerSettings(queues=("q",))) as running:
        yield running


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[Connection]:
    """A connection to it, without TLS."""
    with connect(broker.plain) as opened:
        yield opened


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> LabCa:
    """A CA for the tests."""
    return LabCa(tmp_path_factory.mktemp("pki"))
