"""Runs over a link that the console shapes: their figures are those of the link, and what does not fit is refused."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from labconsole_amqp.parameters import AmqpParameters
from tests.labconsole_amqp.cut_relay import cut_relay
from tests.labconsole_amqp.embedded_broker import RunningBroker
from tests.labconsole_amqp.lab import SHAPED, Lab, run
from tests.labconsole_amqp.real_broker import USER
from tests.labconsole_amqp.run_files import Files, login, through
from tests.labconsole_amqp.run_judgements import all_arrived
from tests.labconsole_amqp.shared_rabbitmq import SharedRabbitmq

pytestmark = pytest.mark.usefixtures("lab_home")

LARGEST_SHARE = 97.0
"""Headers take 3.5 % of a full link, and TLS and frames take more."""


@pytest.mark.parametrize("test", (1, 4))
def test_a_full_link_bounds_the_run_and_is_called_link_bound(tmp_path: Path, test: int) -> None:
    outcome = run(tmp_path / "run", test=test, payload="fpl-fixm", count=8, warm_up=2, **SHAPED)
    all_arrived(outcome, 10)
    figures = outcome.figures
    assert 50 < figures["link_use"] < LARGEST_SHARE
    assert outcome.verdicts["the link rate can be as stated"] == "pass"
    # The calibration never shows more than there is, however busy the computer.
    assert 0.2 < figures["link_rate_to_broker"] < 2.1 and 0.2 < figures["link_rate_from_broker"] < 2.1
    assert "link_round_trip" in figures
    assert "the shaped link is as set" in outcome.verdicts
    (event,) = outcome.events_named("link calibrated")
    assert "Mbit/s to the broker" in event.message


def test_a_delay_is_part_of_connecting_and_of_each_latency(tmp_path: Path) -> None:
    settings = {"loop": "open", "rate": 50.0, "count": 25, "link_delay": 100.0, **SHAPED, "link_rate": 50.0}
    outcome = run(tmp_path / "run", **settings)
    all_arrived(outcome, 25)
    assert outcome.figures["latency_min"] >= 200  # to the broker and from it
    assert outcome.figures["connect_time"] >= 2 * 200
    assert outcome.figures["link_round_trip"] >= 200
    one_end = run(tmp_path / "one", **settings, link_ends="receiver")
    all_arrived(one_end, 25)
    assert 100 <= one_end.figures["latency_min"] < 200
    assert one_end.figures["connect_time"] < outcome.figures["connect_time"]


@pytest.mark.parametrize("test", (1, 2))
def test_an_external_broker_is_reached_over_the_link_by_its_own_name(
    files_broker: RunningBroker, files: Files, tmp_path: Path, test: int
) -> None:
    more = login(tmp_path, "right") if test == 1 else {}
    outcome = run(tmp_path / "run", **through(files_broker, files, test, **more, **SHAPED), link_ends="sender")
    all_arrived(outcome, 20)
    wrong = {"server_name": "other.example"} if test == 2 else {"link_rate": None}
    if test == 2:
        outcome = run(tmp_path / "wrong", **through(files_broker, files, test, **SHAPED, **wrong))
        assert outcome.failure is not None and "other.example" in str(outcome.failure)


def test_rabbitmq_is_reached_over_the_link(rabbitmq: SharedRabbitmq, tmp_path: Path) -> None:
    broker = rabbitmq.broker
    values = {"broker": "external", "port": broker.port, "address": rabbitmq.fresh_queue(), "username": USER}
    values |= {"password_file": str(broker.password_file), "payload": "fpl-fixm", "count": 8, "warm_up": 2}
    outcome = run(tmp_path / "run", **values, **SHAPED, link_delay=20.0)
    all_arrived(outcome, 10)
    figures = outcome.figures
    assert figures["connect_time"] >= 4 * 40 and figures["link_use"] < LARGEST_SHARE


def test_a_broker_that_is_not_there_is_named(tmp_path: Path, files: Files, files_broker: RunningBroker) -> None:
    settings = through(files_broker, files, 2, **SHAPED)
    with socket.create_server(("127.0.0.1", 0)) as gone:
        unused = gone.getsockname()[1]
    for wrong, sentence in (
        ({"host": "broker.invalid"}, "The host name broker.invalid cannot be resolved: check its spelling and DNS."),
        (
            {"port": unused},
            f"The broker 127.0.0.1:{unused} refused the connection: is the broker running, and on this",
        ),
    ):
        at = {**settings, **wrong}
        outcome = run(tmp_path / str(at["port"]) / str(at["host"]), **at)
        assert outcome.failure is not None and sentence in outcome.failure


def test_messages_name_the_broker_and_not_the_shaper(files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", **through(files_broker, files, 1, **login(tmp_path, "wrong"), **SHAPED))
    assert outcome.failure is not None and f"127.0.0.1:{files_broker.ports.plain}" in outcome.failure


def test_a_lost_connection_is_restored_over_the_link(files_broker: RunningBroker, files: Files, tmp_path: Path) -> None:
    settings = through(files_broker, files, 2, count=400, reconnect=20.0, loop="open", rate=200.0)
    with cut_relay(settings["port"]) as relay:

        def during(lab: Lab) -> None:
            lab.until("received", 80)
            relay.cut()

        shaped = {**SHAPED, "link_rate": 50.0, "link_delay": 5.0}
        outcome = Lab(tmp_path / "run", during=during).run(**{**settings, **shaped, "port": relay.port})
    assert outcome.failure is None, outcome.failure
    assert outcome.figures["lost"] == 0 and outcome.figures["reconnects"] >= 1


def test_cancel_while_the_link_is_calibrated_is_quick(tmp_path: Path) -> None:
    begin = time.monotonic()
    lab = Lab(tmp_path / "run")
    timer = threading.Timer(1.0, lab.cancel)
    timer.start()
    outcome = lab.run(count=10, **{**SHAPED, "link_calibration": 60.0})
    timer.join()
    assert outcome.figures.get("received", 0) == 0 and time.monotonic() - begin < 20


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"shaping": "built-in"}, "needs a rate: set `link_rate`"),
        ({**SHAPED, "mode": "sender", "broker": "external", "link_ends": "receiver"}, "plays the sender only"),
        ({**SHAPED, "link_loss": -1}, "greater than or equal to 0"),
        ({**SHAPED, "link_rate": 0}, "greater than 0"),
        ({**SHAPED, "link_rate": 0.01}, "shapes links from 0.05 Mbit/s on"),
        ({**SHAPED, "link_rate_down": 0.01}, "shapes links from 0.05 Mbit/s on"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_field(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        AmqpParameters.model_validate(values)


def test_the_share_of_a_link_is_that_of_its_narrowest_direction() -> None:
    def narrowest(**values: object) -> float | None:
        return AmqpParameters.model_validate({**SHAPED, **values}).narrowest_rate

    assert narrowest() == 2.0
    assert narrowest(link_rate_down=8.0) == 2.0
    assert narrowest(link_rate_down=1.0) == 1.0
    assert narrowest(link_rate_down=1.0, link_ends="sender") == 2.0
    assert narrowest(link_rate_down=8.0, link_ends="receiver") == 8.0
    one_end = {"broker": "external", "link_rate_down": 20.0}
    assert narrowest(mode="receiver", **one_end) == 20.0 and narrowest(mode="sender", **one_end) == 2.0
    assert narrowest(shaping="outside", link_rate_down=1.0) == 2.0
    assert narrowest(shaping="outside", link_rate=None) is None
