"""Wrong input, and faults in mid-run: each is one sentence with a remedy, and nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import ProfileError, load_profile
from labconsole_amqp.link.connection import Endpoint
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.preflight.checks import full_sentence
from labconsole_amqp.roles import role_settings
from tests.labconsole_amqp.embedded_broker import RunningBroker, broker_process
from tests.labconsole_amqp.lab import Lab, Outcome, ProcessLab, run
from tests.labconsole_amqp.run_files import Files, identity, login, serving_files, through

pytestmark = pytest.mark.usefixtures("lab_home")


def sentence(outcome: Outcome) -> str:
    """The sentence with which a run failed."""
    assert outcome.failure is not None
    assert outcome.failure[0].isupper(), outcome.failure
    assert outcome.failure.endswith((".", "?")), outcome.failure
    assert "\n" not in outcome.failure
    return outcome.failure


def test_the_run_that_the_faults_are_applied_to_is_good_without_them(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    for test in (1, 4):
        outcome = run(
            tmp_path / str(test),
            **through(files_broker, files, test, **(login(tmp_path, "right") if test == 1 else {})),
        )
        assert outcome.failure is None
        assert outcome.figures["lost"] == 0


class TestConnecting:
    def test_a_host_that_does_not_answer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is waited for 10 s; here for one."""
        assert Endpoint("127.0.0.1", 9).connect_timeout_s == 10
        monkeypatch.setattr(role_settings, "Endpoint", partial(Endpoint, connect_timeout_s=1.0))
        with _black_hole() as port:
            began = time.monotonic()
            outcome = run(tmp_path / "run", broker="external", host="127.0.0.1", port=port, count=5)
            assert time.monotonic() - began < 6
        assert sentence(outcome) == (
            f"The broker 127.0.0.1:{port} did not answer within 1 s: check address, route and firewall."
        )

    def test_a_host_name_that_is_unknown(self, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", broker="external", host="no-such-host.invalid", count=5)
        assert sentence(outcome) == "The host name no-such-host.invalid cannot be resolved: check its spelling and DNS."

    def test_a_port_without_a_listener(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        outcome = run(tmp_path / "run", broker="external", host="127.0.0.1", port=port, count=5)
        assert sentence(outcome) == (
            f"The broker 127.0.0.1:{port} refused the connection: is the broker running, and on this port?"
        )

    def test_a_port_that_speaks_something_else(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        plain_to_tls = through(files_broker, files, 1, port=files_broker.ports.tls)
        assert "is a TLS port, and Test 1 has no TLS" in sentence(run(tmp_path / "a", **plain_to_tls))
        tls_to_plain = through(files_broker, files, 2, port=files_broker.ports.plain)
        assert "does not speak TLS: use its TLS port" in sentence(run(tmp_path / "b", **tls_to_plain))

    def test_a_wrong_password(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 1, **login(tmp_path, "wrong")))
        assert "refused user operator: wrong user name or password" in sentence(outcome)

    def test_a_missing_password(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 1, username="operator"))
        assert "There is no passphrase for user operator" in sentence(outcome)

    def test_a_password_file_that_others_can_read(
        self, files_broker: RunningBroker, files: Files, tmp_path: Path
    ) -> None:
        settings = through(files_broker, files, 1, **login(tmp_path, "right"))
        Path(settings["password_file"]).chmod(0o644)
        assert "password" in sentence(run(tmp_path / "run", **settings))

    def test_a_queue_that_is_missing(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 2, address="elsewhere"))
        assert "has no queue elsewhere: create it there, or correct the address" in sentence(outcome)


class TestTls:
    def test_the_wrong_authority(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 2, trust=str(files.unknown.trust)))
        assert re.search(r"certificate of 127.0.0.1:\d+ is not trusted by .*unknown.trust.pem", sentence(outcome))

    def test_a_broker_whose_certificate_has_expired(self, files: Files, tmp_path: Path) -> None:
        with serving_files(files.expired_broker, files) as running:
            outcome = run(tmp_path / "run", **through(running, files, 2))
        assert "has expired: the broker needs a new one" in sentence(outcome)

    def test_a_certificate_for_another_name(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 2, server_name="swim.example"))
        assert "is not for swim.example" in sentence(outcome)

    def test_a_client_certificate_of_a_foreign_authority(
        self, files_broker: RunningBroker, files: Files, tmp_path: Path
    ) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 2, **identity("sender", files.unknown)))
        assert "refused our client certificate" in sentence(outcome)
        assert "unknown.pem" in sentence(outcome)

    def test_a_client_certificate_that_has_expired(
        self, files_broker: RunningBroker, files: Files, tmp_path: Path
    ) -> None:
        outcome = run(tmp_path / "run", **through(files_broker, files, 2, **identity("receiver", files.expired)))
        assert re.search(r"certificate of the receiver, .*expired\.pem, expired on \d{4}-\d\d-\d\d", sentence(outcome))
        assert not files_broker.refused, "it is named before the broker sees it"


class TestIdentities:
    def test_a_wrong_passphrase(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        settings = through(files_broker, files, 2, sender_passphrase_file=str(files.receiver.passphrase_file))
        assert "passphrase" in sentence(run(tmp_path / "run", **settings))

    def test_a_key_of_another_certificate(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        settings = through(files_broker, files, 2, **identity("sender", files.receiver))
        settings["sender_certificate"] = str(files.sender.certificate)
        assert "does not belong to the certificate" in sentence(run(tmp_path / "run", **settings))

    def test_a_missing_file(self, files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
        settings = through(files_broker, files, 2, sender_certificate=str(tmp_path / "none.pem"))
        failure = sentence(run(tmp_path / "run", **settings))
        assert "none.pem cannot be read (No such file or directory): check its name." in failure

    @pytest.mark.parametrize(
        ("settings", "expected"),
        (
            ({"sender_key": "k.pem"}, "set `sender_certificate` too"),
            ({"receiver_certificate": "c.pem"}, "set `receiver_key` to that of `receiver_certificate`"),
            ({"mode": "sender"}, "needs an external broker"),
            ({"senders": 2}, "set `numbered` to true"),
            ({"cuont": 5}, "there is no key cuont; did you mean count?"),
        ),
    )
    def test_conflicting_parameters_are_refused(self, settings: dict[str, Any], expected: str, tmp_path: Path) -> None:
        lines = [f"{key} = {value if isinstance(value, int) else repr(value)}" for key, value in settings.items()]
        file = tmp_path / "trial.toml"
        file.write_text("\n".join(["format = 1", 'kind = "amqp.messaging"', "[parameters]", "test = 3", *lines]))
        with pytest.raises(ProfileError, match=re.escape(expected)):
            load_profile(str(file), Plugins.discover())

    @pytest.mark.parametrize(
        ("settings", "field", "expected"),
        (
            ({"sender_key": "k.pem"}, "sender_key", "set `sender_certificate` too"),
            ({"receiver_certificate": "c.pem"}, "receiver_key", "set `receiver_key` to that of"),
            ({"mode": "sender"}, "broker", "needs an external broker"),
            ({"receivers": 2}, "numbered", "set `numbered` to true"),
        ),
    )
    def test_conflicting_parameters_are_reported_at_a_field(
        self, settings: dict[str, Any], field: str, expected: str
    ) -> None:
        with pytest.raises(ValidationError) as caught:
            AmqpParameters(test=3, **settings)
        (error,) = caught.value.errors()
        assert error["loc"] == (field,)
        assert expected in error["msg"]

    def test_a_certificate_of_the_other_end_needs_no_key(self, tmp_path: Path) -> None:
        file = tmp_path / "trial.toml"
        settings = {"test": 4, "mode": "sender", "broker": "external", "receiver_certificate": "c.pem"}
        lines = [f"{key} = {value!r}" for key, value in settings.items()]
        file.write_text("\n".join(["format = 1", 'kind = "amqp.messaging"', "[parameters]", *lines]))
        assert load_profile(str(file), Plugins.discover()).scenarios[0].parameters["receiver_certificate"] == "c.pem"


class TestPayload:
    def test_a_payload_that_is_missing(self, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", payload=str(tmp_path / "none.xml"))
        assert "none.xml: name an existing file or one of small, fpl-tac, fpl-fixm." in sentence(outcome)
        assert outcome.events_named("connected") == [], "nothing should have been started for it"

    @pytest.mark.parametrize("test", (1, 3))
    def test_a_payload_that_is_larger_than_the_broker_takes(self, test: int, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", test=test, payload="fpl-fixm", max_message_size=10_000)
        assert re.match(
            r"The message has 4[23],\d{3} bytes, but 127.0.0.1:\d+ takes at most 10,000: raise its limit or send a "
            r"smaller payload\.",
            sentence(outcome),
        )


_ENDS = ("sender-0", "receiver-0")


def killing(role: str) -> Callable[[Lab], None]:
    """Kill a role's process once messages flow."""

    def kill(lab: Lab) -> None:
        lab.until("received", 200)
        os.kill(lab.pid(role), signal.SIGKILL)

    return kill


@pytest.mark.parametrize("role", ("broker", *(pytest.param(name, marks=pytest.mark.nightly) for name in _ENDS)))
def test_a_role_that_is_killed_in_mid_run_fails_it_with_everything_measured_until_then(
    role: str, tmp_path: Path
) -> None:
    """The nightly set also kills either end; a soak's sender is killed in each set."""
    lab = ProcessLab(tmp_path / "run", during=killing(role))
    outcome = lab.run(count=100_000, loop="open", rate=400.0)
    kept = "what was measured until then is kept"
    assert sentence(outcome) == f"Role {role} was killed by signal 9 in mid-run; {kept}. Run it again."
    assert outcome.figures["sent"] >= 100
    assert outcome.figures["received"] >= 100
    assert outcome.figures["throughput"] > 0
    assert outcome.figures["latency_p50"] > 0
    assert "lost" not in outcome.figures
    assert outcome.verdicts["all messages arrived"] == "unknown"


def test_an_external_broker_that_is_killed_in_mid_run(tmp_path: Path) -> None:
    with broker_process() as (process, endpoint):

        def kill(lab: Lab) -> None:
            lab.until("received", 50)
            process.kill()

        settings = {"broker": "external", "port": endpoint.port, "address": "q", "count": 100_000}
        outcome = Lab(tmp_path / "run", during=kill).run(**settings, loop="open", rate=200.0)
    assert f"onnection to 127.0.0.1:{endpoint.port} was lost" in sentence(outcome)
    assert outcome.figures["received"] >= 50
    assert "lost" not in outcome.figures


def test_a_full_queue_ends_the_run_after_the_timeout(tmp_path: Path, files: Files) -> None:
    with serving_files(files.broker, files, messages=10) as running:
        settings = through(running, files, 2, count=50, mode="sender", patience=1.0, wait_for_peer=1.0)
        assert "no receiver empties it" in sentence(run(tmp_path / "run", **settings))


@pytest.mark.parametrize(
    ("clause", "expected"),
    (
        ("host:1 refused it: is it on?", "The broker host:1 refused it: is it on?"),
        ("the file is gone", "The file is gone."),
        ("A whole sentence.", "A whole sentence."),
    ),
)
def test_clauses_of_the_link_become_sentences(clause: str, expected: str) -> None:
    assert full_sentence(clause, "host:1") == expected


@contextmanager
def _black_hole() -> Iterator[int]:
    """A port whose connections are never answered: a listener whose backlog is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = []
        try:
            for _ in range(4):
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(address)
                waiting.append(client)
            time.sleep(0.1)
            yield address[1]
        finally:
            for client in waiting:
                client.close()
