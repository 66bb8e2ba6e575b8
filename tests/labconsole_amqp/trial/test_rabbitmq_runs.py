"""Every figure also through a foreign broker: RabbitMQ, and proton.Message as second reader.

Such a run mostly waits for the broker: those that check figures, not times, run in parallel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from proton import Message, symbol

from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.wire.envelope import FieldsIn
from labconsole_amqp.wire.envelope_layout import decode
from labconsole_amqp.wire.payload import load_payload
from tests.helpers.parallel import run_parallel
from tests.helpers.recorded_runs import RecordedRuns, record_runs
from tests.helpers.shared_once import shared_once
from tests.labconsole_amqp.lab import Lab, Outcome, run
from tests.labconsole_amqp.lab_pki import PASSPHRASE
from tests.labconsole_amqp.real_broker import USER
from tests.labconsole_amqp.run_judgements import ALWAYS, CRYPTO, PAYLOADS, SIZES, SIZES_IN_ANNOTATIONS
from tests.labconsole_amqp.shared_rabbitmq import SharedRabbitmq

pytestmark = [pytest.mark.usefixtures("lab_home"), pytest.mark.timeout(600)]

PROPERTIES, ANNOTATIONS = FieldsIn.APPLICATION_PROPERTIES, FieldsIn.MESSAGE_ANNOTATIONS
FIGURES = {
    f"{test}-{payload}": (test, payload)
    for test, payload in (
        (1, "small"),
        (1, "fpl-fixm"),
        (2, "fpl-tac"),
        (3, "fpl-fixm"),
        (4, "small"),
        (4, "fpl-tac"),
    )
}
"""Each test and payload; all of them together run through the embedded broker."""
LEFT = (
    (1, "fpl-tac", PROPERTIES),
    (2, "fpl-fixm", PROPERTIES),
    (3, "fpl-tac", PROPERTIES),
    (4, "small", PROPERTIES),
    (3, "small", ANNOTATIONS),
    (4, "fpl-fixm", ANNOTATIONS),
)
_OPTIONS: tuple[tuple[int, dict[str, Any]], ...] = (
    (1, {"settlement": "pre-settled"}),
    (1, {"durable": True}),
    (1, {"numbered": True}),
    (4, {"fields_in": "message-annotations"}),
    (4, {"settlement": "pre-settled", "credit": 5}),
    (3, {"envelope": "compact"}),
    (3, {"envelope": "jose", "numbered": True}),
    (4, {"envelope": "cms", "durable": True}),
    (4, {"envelope": "xml-dsig", "numbered": True}),
)
OPTIONS = {f"{test}-{options}": (test, options) for test, options in _OPTIONS}
LANES = 4


class Foreign:
    """A running RabbitMQ, which accepts state-x and state-y by their certificates (SASL EXTERNAL)."""

    def __init__(self, rabbitmq: SharedRabbitmq, folder: Path) -> None:
        self.rabbitmq = rabbitmq
        self._passphrase = _private(folder / "passphrase", PASSPHRASE)

    def settings(self, test: int, address: str, **more: Any) -> dict[str, Any]:
        """Parameters of a run through it: user and password for Test 1, client certificates for the others."""
        broker, sender, receiver = self.rabbitmq.broker, self.rabbitmq.sender, self.rabbitmq.receiver
        common = {"broker": "external", "host": "127.0.0.1", "address": address, "test": test}
        if test == 1:
            common |= {"port": broker.port, "username": USER, "password_file": str(broker.password_file)}
        else:
            common |= {
                "port": broker.tls_port,
                "trust": str(self.rabbitmq.ca_file),
                "sender_certificate": str(sender.certificate),
                "sender_key": str(sender.key),
                "sender_passphrase_file": str(self._passphrase),
                "receiver_certificate": str(receiver.certificate),
                "receiver_key": str(receiver.key),
                "receiver_passphrase_file": str(self._passphrase),
            }
        return common | more

    def fetch(self, address: str, count: int) -> list[bytes]:
        """The raw messages in the queue."""
        with connect(self.rabbitmq.plain) as connection:
            receiver, raw = Receiver(connection, address), []
            deadline = time.monotonic() + 10
            while len(raw) < count and time.monotonic() < deadline:
                batch = receiver.receive(count - len(raw), 0.2)
                raw += [batch.raw[index] for index in range(len(batch))]
        return raw


def _private(path: Path, text: str) -> Path:
    path.touch(0o600)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def foreign(rabbitmq: SharedRabbitmq, tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    return Foreign(rabbitmq, tmp_path_factory.mktemp("foreign"))


@pytest.fixture
def address(rabbitmq: SharedRabbitmq) -> str:
    """A queue of the test."""
    return rabbitmq.fresh_queue()


def all_good(outcome: Outcome, count: int) -> None:
    """Everything arrived and was accepted; the order is left to the foreign broker (it may redeliver)."""
    assert outcome.failure is None
    figures = outcome.figures
    assert figures["sent"] == figures["received"] == count
    assert [figures[name] for name in ("lost", "duplicated", "unknown", "failed_verifications")] == [0] * 4
    assert set(outcome.verdicts.values()) == {"pass"}


def _count(payload: str) -> int:
    return 30 if payload == "fpl-fixm" else 200


@pytest.fixture(scope="module")
def figures_runs(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> RecordedRuns[Outcome]:
    """A run of each case of `FIGURES`."""

    def play(folder: Path, case: str) -> Outcome:
        test, payload = FIGURES[case]
        settings = foreign.settings(test, foreign.rabbitmq.fresh_queue(), payload=payload, count=_count(payload))
        return Lab(folder).run(**settings)

    return record_runs(tmp_path_factory, "amqp-rabbitmq-figures", Lab, FIGURES, play, LANES)


@pytest.mark.parametrize("case", FIGURES)
def test_rabbitmq_runs_give_every_figure(case: str, figures_runs: RecordedRuns[Outcome]) -> None:
    (test, payload), outcome = FIGURES[case], figures_runs[case]
    all_good(outcome, _count(payload))
    assert outcome.figures["sent_size"] == SIZES[test][PAYLOADS.index(payload)]
    assert set(outcome.figures) == ALWAYS | CRYPTO[test]
    containers = {event.data["container"] for event in outcome.events_named("connected")}
    assert len(containers) == 1
    assert "labconsole-broker" not in containers
    assert {event.data["tls"] is not None for event in outcome.events_named("connected")} == {test >= 2}


@pytest.fixture(scope="module")
def runs_with_options(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> RecordedRuns[Outcome]:
    """A run of each of `OPTIONS`."""

    def play(folder: Path, case: str) -> Outcome:
        test, options = OPTIONS[case]
        return Lab(folder).run(**foreign.settings(test, foreign.rabbitmq.fresh_queue(), count=50, **options))

    return record_runs(tmp_path_factory, "amqp-rabbitmq-options", Lab, OPTIONS, play, LANES)


@pytest.mark.parametrize("case", OPTIONS)
def test_options_work_through_a_foreign_broker(case: str, runs_with_options: RecordedRuns[Outcome]) -> None:
    (test, options), outcome = OPTIONS[case], runs_with_options[case]
    all_good(outcome, 50)
    if "fields_in" in options:
        assert outcome.figures["sent_size"] == SIZES_IN_ANNOTATIONS[test][1]


def test_an_open_loop_works_through_a_foreign_broker(foreign: Foreign, address: str, tmp_path: Path) -> None:
    all_good(run(tmp_path / "run", **foreign.settings(2, address, count=50, loop="open", rate=200.0)), 50)


Slow = Mapping[Callable[[Foreign, Path], Any], Future[Any]]


@pytest.fixture(scope="module")
def slow(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Slow:
    """Runs that are slow at the broker, in parallel: the result of each function."""
    folder = tmp_path_factory.mktemp("slow")
    return run_parallel(
        (_shared, _missing_or_not_empty, _wrong_password), lambda make: make(foreign, folder / make.__name__), LANES
    )


def _shared(foreign: Foreign, folder: Path) -> Outcome:
    address = foreign.rabbitmq.fresh_queue()
    return run(folder, **foreign.settings(4, address, count=50, numbered=True, senders=2, receivers=2))


def _missing_or_not_empty(foreign: Foreign, folder: Path) -> tuple[Outcome, ...]:
    missing, left = foreign.rabbitmq.broker.address("no-such-queue"), foreign.rabbitmq.fresh_queue()
    return (
        run(folder / "a", **foreign.settings(1, missing, count=5)),
        run(folder / "b", **foreign.settings(1, left, count=7, mode="sender")),
        run(folder / "c", **foreign.settings(1, left, count=5)),
        run(folder / "d", **foreign.settings(1, left, count=5, leftover="drain")),
    )


def _wrong_password(foreign: Foreign, folder: Path) -> Outcome:
    folder.mkdir()
    wrong = {"password_file": str(_private(folder / "wrong", "not this"))}
    return run(folder / "a", **foreign.settings(1, foreign.rabbitmq.fresh_queue(), count=5) | wrong)


def test_several_senders_and_receivers_share_a_foreign_queue(slow: Slow) -> None:
    outcome = slow[_shared].result()
    assert outcome.failure is None
    assert [outcome.figures[name] for name in ("sent", "received", "lost", "duplicated", "unknown")] == [
        100,
        100,
        0,
        0,
        0,
    ]
    assert outcome.samples.roles("received") == ["receiver-0", "receiver-1"]


@pytest.fixture(scope="module")
def left(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each case of `LEFT` that only sends three messages, which are read from the queue."""

    def record(folder: Path) -> None:
        def play(case: tuple[int, str, FieldsIn]) -> None:
            test, payload, fields_in = case
            address, own = foreign.rabbitmq.fresh_queue(), folder / _name(case)
            settings = foreign.settings(test, address, payload=payload, count=3, mode="sender", fields_in=fields_in)
            Lab(own).run(**settings).write()
            for number, message in enumerate(foreign.fetch(address, 3)):
                (own / f"message-{number}").write_bytes(message)

        for run_ in run_parallel(LEFT, play, LANES).values():
            run_.result()

    return shared_once(tmp_path_factory, "amqp-rabbitmq-left", record)


def _name(case: tuple[int, str, FieldsIn]) -> str:
    return "-".join(map(str, case))


@pytest.mark.parametrize(("test", "payload", "fields_in"), LEFT)
def test_a_second_reader_finds_in_the_foreign_queue_what_was_sent(
    test: int, payload: str, fields_in: FieldsIn, left: Path
) -> None:
    own = left / _name((test, payload, fields_in))
    outcome, raw = Lab.read(own), [path.read_bytes() for path in sorted(own.glob("message-*"))]
    assert outcome.failure is None
    assert len(raw) == 3
    text = load_payload(payload).data
    for message, stamp_ms in zip(raw, outcome.column("sent", "stamp_ms").tolist(), strict=True):
        second, ours = Message(), decode(message)
        second.decode(message)
        fields = second.annotations if fields_in is ANNOTATIONS else second.properties
        assert int(second.properties["sent_time"]) == ours.stamp_ms == stamp_ms
        body = second.body.encode() if isinstance(second.body, str) else bytes(second.body)
        assert body == ours.body
        if test < 4:
            assert isinstance(second.body, str)
            assert body == text
        names = {1: (), 2: (), 3: ("x-digital-signature",), 4: ("x-digital-signature", "x-encrypted-key", "x-iv")}[test]
        for name in names:
            assert len(fields[symbol(name) if fields is second.annotations else name]) == (
                24 if name == "x-iv" else 344
            )


def test_a_queue_that_is_missing_or_not_empty_is_reported_in_one_sentence(slow: Slow) -> None:
    missing, sent, refused, drained = slow[_missing_or_not_empty].result()
    assert missing.failure is not None
    assert "has no queue /amq/queue/no-such-queue" in missing.failure
    assert sent.failure is None
    assert refused.failure is not None
    assert "is not empty, 7 messages are in it" in refused.failure
    all_good(drained, 5)


def test_a_wrong_password_is_reported_in_one_sentence(slow: Slow) -> None:
    failure = slow[_wrong_password].result().failure
    assert failure is not None
    assert "refused user lab: wrong user name or password" in failure


def test_the_receiver_opens_messages_stored_in_the_foreign_queue(
    foreign: Foreign, address: str, tmp_path: Path
) -> None:
    """Sent by one console, kept by a durable queue, received by another."""
    options = {"count": 20, "durable": True}
    sent = run(tmp_path / "s", **foreign.settings(4, address, mode="sender", **options))
    received = run(tmp_path / "r", **foreign.settings(4, address, mode="receiver", **options))
    assert (sent.failure, received.failure) == (None, None)
    assert (received.figures["received"], received.figures["failed_verifications"]) == (20, 0)


@pytest.mark.parametrize("test", (1, 3))
def test_two_queues_with_drawn_sizes(foreign: Foreign, test: int, tmp_path: Path) -> None:
    """It changes the form of messages: each size is learned, and its payload is still that of its number."""
    more: dict[str, Any] = {"message_sizes": "uniform", "senders": 2, "receivers": 2, "numbered": True, "count": 300}
    first, second = foreign.rabbitmq.fresh_queues(2)
    outcome = run(tmp_path / "run", **foreign.settings(test, f"{first}, {second}", **more))
    all_good(outcome, 600)
    assert {queue: one.samples for queue, one in outcome.labelled("lost").items()} == {first: 300, second: 300}
