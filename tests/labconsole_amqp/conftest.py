"""Fixtures of the AMQP tests: a broker, a connection, CAs, States, a token, and a home with lab identities."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from labconsole.paths import HOME_VARIABLE, pki_dir
from labconsole.security.lab_identities import (
    STATE_A,
    STATE_B,
    lab_identities,
    lab_message_identity,
    lab_token_identity,
)
from labconsole.security.pki import keys
from labconsole.security.token import softhsm
from labconsole.security.x509 import key_types
from labconsole.security.x509.key_types import KeyType, PrivateKey
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.link.connection import Connection, connect
from tests.helpers.shared_once import common_folder, shared_once
from tests.helpers.x509_keys import rsa_key_for
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab_pki import LabCa, certify_lab_broker
from tests.labconsole_amqp.message_token import copied_office, create_office
from tests.labconsole_amqp.real_broker import missing
from tests.labconsole_amqp.run_files import Files, create_files, serving_files
from tests.labconsole_amqp.shared_rabbitmq import RabbitmqUse, SharedRabbitmq
from tests.labconsole_amqp.states import States, copied_states, create_states


def _create_lab(home: Path) -> None:
    """The lab identities, those for messages with keys of other types, and the lab's token."""
    lab_identities(home / "pki")
    certify_lab_broker(home / "pki")
    for state in (STATE_A, STATE_B):
        lab_message_identity(state, KeyType.P_256, home / "pki")
    if softhsm.library() is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(HOME_VARIABLE, str(home))
            lab_token_identity(STATE_A, KeyType.P_256)


@pytest.fixture(scope="session")
def _shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for each test process: what a run needs besides, it creates there."""
    home = tmp_path_factory.mktemp("amqp") / "home"
    return Path(shutil.copytree(shared_once(tmp_path_factory, "amqp-home", _create_lab), home))


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


@pytest.fixture(scope="session")
def _states_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_once(tmp_path_factory, "amqp-states", create_states)


@pytest.fixture
def stored_rsa_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """New RSA keys of the certificate database are stored ones, each another one: to generate one takes 0.2 s."""
    numbers = itertools.count()

    def generate(type: KeyType) -> PrivateKey:
        return rsa_key_for(f"database {next(numbers)}") if type is KeyType.RSA_2048 else key_types.generate(type)

    monkeypatch.setattr(keys, "generate", generate)


@pytest.fixture
def states(own_home: Path, _states_template: Path) -> Iterator[States]:
    """Two States in the certificate database of the test's home."""
    with copied_states(_states_template, pki_dir()) as states:
        yield states


@pytest.fixture
def office(
    own_home: Path, _states_template: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[States]:
    """The same with a token, whose keys sign for Alpha."""
    template = shared_once(tmp_path_factory, "amqp-office", partial(create_office, _states_template))
    with copied_office(template, tmp_path / "office") as states:
        yield states


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Certificates in files, good and bad ones."""
    return Files(shared_once(tmp_path_factory, "amqp-files", create_files))


@pytest.fixture
def files_broker(files: Files) -> Iterator[RunningBroker]:
    """A broker that accepts the good ones, and user `operator`."""
    with serving_files(files.broker, files) as running:
        yield running


_RABBITMQ = pytest.StashKey[RabbitmqUse]()


@pytest.fixture(scope="session")
def rabbitmq(
    request: pytest.FixtureRequest, _shared_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedRabbitmq]:
    """A running RabbitMQ for all tests; without it they are skipped."""
    if (reason := missing("rabbitmq")) is not None:
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(_shared_home))
        use = RabbitmqUse(common_folder(tmp_path_factory) / "amqp-rabbitmq")
    request.config.stash[_RABBITMQ] = use
    yield use.rabbitmq
    use.end()
    use.stop()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Wait for other test processes that still use the broker; at the end of a fixture a test would time out."""
    use = session.config.stash.get(_RABBITMQ, None)
    while use is not None and not use.stop():
        time.sleep(0.2)
