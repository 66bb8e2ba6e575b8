"""Fair pairs of scenarios for a finding, and the warnings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import load_profile
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial

_IN_FILE = {"test": 3, "envelope": "cose"}
_IN_TOKEN, _POOL = {**_IN_FILE, "message_keys": "token"}, {**_IN_FILE, "message_keys": "pool"}


def contrast(reference: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    return AmqpTrial().contrast(AmqpParameters(**reference), AmqpParameters(**other))


@pytest.mark.parametrize(
    ("reference", "other", "label"),
    [
        (1, 2, "TLS against plain"),
        (1, 3, "TLS and signing against plain"),
        (1, 4, "TLS, signing and encryption against plain"),
        (2, 3, "Signing against TLS"),
        (2, 4, "Signing and encryption against TLS"),
        (3, 4, "Encryption against signing"),
        (2, 1, ""),
        (3, 3, ""),
    ],
)
def test_a_test_against_one_that_does_less_is_named(reference: int, other: int, label: str) -> None:
    assert contrast({"test": reference}, {"test": other}) == label


def test_every_pair_of_the_demo_is_a_fair_one() -> None:
    """Its tests have different counts."""
    scenarios = load_profile("demo", Plugins.discover()).scenarios
    for place, scenario in enumerate(scenarios):
        for other in scenarios[place + 1 :]:
            assert contrast(scenario.parameters, other.parameters)


@pytest.mark.parametrize(
    ("reference", "other", "fair"),
    [
        ({"test": 1, "port": 5672, "broker": "external"}, {"test": 2, "port": 5671, "broker": "external"}, True),
        ({"test": 2}, {"test": 3, "fields_in": "message-annotations", "crypto_threads": 8}, True),
        ({"test": 3}, {"test": 4, "fields_in": "message-annotations"}, False),
        ({"test": 3}, {"test": 4, "crypto_threads": 8}, False),
        ({"test": 2}, {"test": 3, "envelope": "compact"}, True),
        ({"test": 3}, {"test": 4, "envelope": "compact"}, False),
        ({"test": 3, "envelope": "compact"}, {"test": 4, "envelope": "compact"}, True),
        ({"test": 1}, {"test": 2, "tls_minimum": "1.3"}, True),
        ({"test": 2}, {"test": 3, "tls_minimum": "1.3"}, False),
        ({"test": 1, "rate": 5.0}, {"test": 2, "rate": 9.0}, True),
        ({"test": 1, "loop": "open", "rate": 5.0}, {"test": 2, "loop": "open", "rate": 9.0}, False),
        ({"test": 1, "payload": "small"}, {"test": 2, "payload": "fpl-tac"}, False),
        ({"test": 1, "link_rate": 2.0}, {"test": 2}, False),
        (_IN_FILE, _IN_TOKEN, True),
        (_IN_FILE, _POOL, True),
        (_IN_TOKEN, _POOL, True),
        (_POOL, _IN_TOKEN, False),
        (_IN_FILE, {**_POOL, "crypto_threads": 8}, False),
        ({**_IN_FILE, "sender_message_identity": "a"}, {**_IN_TOKEN, "sender_message_identity": "b"}, True),
        ({**_IN_FILE, "sender_message_identity": "a"}, {**_IN_FILE, "sender_message_identity": "b"}, False),
        ({"test": 1, "broker": "external", "host": "a"}, {"test": 2, "broker": "external", "host": "b"}, False),
    ],
)
def test_a_pair_is_fair_if_nothing_else_that_has_an_effect_in_both_differs(
    reference: Mapping[str, Any], other: Mapping[str, Any], fair: bool
) -> None:
    assert bool(contrast(reference, other)) is fair


@pytest.mark.parametrize(
    ("reference", "other", "title"),
    [
        (_IN_FILE, _IN_TOKEN, "What does a signing key in a token cost in throughput?"),
        (_IN_FILE, _POOL, "What does one signing key per message, in a token, cost in throughput?"),
        (_IN_TOKEN, _POOL, "What does one signing key per message cost in throughput?"),
    ],
)
def test_the_cost_of_keys_in_a_token_is_a_question(
    reference: Mapping[str, Any], other: Mapping[str, Any], title: str
) -> None:
    (question,) = AmqpTrial().questions(AmqpParameters(**reference), AmqpParameters(**other))
    assert (question.title, question.metric) == (title, "throughput")


def test_the_warning_about_queueing_is_shown_for_a_closed_loop_only() -> None:
    closed = " ".join(AmqpTrial().warnings(AmqpParameters()))
    assert "time in queue is not the link's latency" in closed
    assert "queueing" not in " ".join(AmqpTrial().warnings(AmqpParameters(loop="open")))


@pytest.mark.parametrize(("loop", "measured"), [("closed", "Time in queue"), ("open", "Latency")])
def test_a_receiver_alone_names_what_its_wall_clock_measures(loop: str, measured: str) -> None:
    parameters = AmqpParameters.model_validate(
        {"mode": "receiver", "broker": "external", "host": "broker.example", "loop": loop}
    )
    assert any(text.startswith(f"{measured} is from the time stamp") for text in AmqpTrial().warnings(parameters))
