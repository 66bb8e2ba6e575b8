"""The AMQP profiles that come with the console: the source's scenarios, sizes and sites."""

from __future__ import annotations

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import Order, Profile, load_profile
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.wire.envelope import encoded_size
from labconsole_amqp.wire.payload import load_payload

# WP/16, "Sender Message Size", by test and payload.
WITHIN_MALAYSIA = {
    (1, "small"): 56, (2, "small"): 56, (3, "small"): 438, (4, "small"): 841,
    (1, "fpl-tac"): 282, (2, "fpl-tac"): 282, (3, "fpl-tac"): 664, (4, "fpl-tac"): 1065,
    (1, "fpl-fixm"): 42756, (2, "fpl-fixm"): 42756, (3, "fpl-fixm"): 43138, (4, "fpl-fixm"): 43548,
}  # fmt: skip
MALAYSIA_TO_SINGAPORE = {
    (2, "small"): 56, (3, "small"): 426, (4, "small"): 903,
    (2, "fpl-tac"): 282, (3, "fpl-tac"): 652, (4, "fpl-tac"): 1053,
    (2, "fpl-fixm"): 42756, (3, "fpl-fixm"): 43126, (4, "fpl-fixm"): 43536,
}  # fmt: skip


def profile(name: str) -> Profile:
    return load_profile(name, Plugins.discover())


def sizes(name: str) -> dict[tuple[int, str], int]:
    """The encoded size of each scenario's messages."""
    found = {}
    for scenario in profile(name).scenarios:
        parameters = AmqpParameters.model_validate(dict(scenario.parameters))
        payload = load_payload(parameters.payload)
        found[parameters.test, parameters.payload] = encoded_size(
            len(payload.data), parameters.protection, parameters.fields_in
        )
    return found


def test_within_malaysia_is_the_source_s_first_test_in_the_annotation_form() -> None:
    assert sizes("swim-within-malaysia") == WITHIN_MALAYSIA


def test_malaysia_to_singapore_is_its_second_test_but_for_one_cell_that_the_profile_names() -> None:
    odd = {(4, "small"): 829}
    assert sizes("swim-my-sg") == MALAYSIA_TO_SINGAPORE | odd
    assert "printed as 903 bytes" in profile("swim-my-sg").description


@pytest.mark.parametrize("name", ("swim-within-malaysia", "swim-my-sg"))
def test_the_source_s_counts(name: str) -> None:
    counts = {(s.parameters["payload"], s.parameters["count"]) for s in profile(name).scenarios}
    assert counts == {("small", 10_000), ("fpl-tac", 10_000), ("fpl-fixm", 1_000)}


def test_the_profile_holds_the_source_s_resource_table() -> None:
    malaysia, singapore = profile("swim-my-sg").sites
    assert (malaysia.endpoint, malaysia.tls_port, malaysia.plain_port) == ("202.165.25.133", 5671, 5672)
    assert (malaysia.host_name, malaysia.server, malaysia.infrastructure) == (
        "gss-swim-test",
        "8 vCPU, 16 GB RAM",
        "TM Cloud Alpha Edge",
    )
    assert (singapore.endpoint, singapore.tls_port, singapore.plain_port) == ("13.250.244.73", 5871, 5872)
    assert singapore.host_name == "swim-cloud-ez-message-broker-2.iop.caas.gov.sg"
    assert singapore.remarks == "Only incoming whitelisted IP are allowed"
    assert profile("swim-within-malaysia").sites == (malaysia,)


def test_the_demo_has_five_rotated_rounds_of_both_phases_at_one_rate() -> None:
    demo = profile("demo")
    assert (demo.repeats, demo.order) == (5, Order.ROTATED)
    assert "about a minute and a half" in demo.description
    assert [scenario.parameters["test"] for scenario in demo.scenarios] == [1, 2, 3, 4]
    phases = {
        tuple(scenario.parameters[name] for name in ("loop", "rate", "full_speed", "open_loop"))
        for scenario in demo.scenarios
    }
    assert phases == {("both", 250.0, 0.5, 1.0)}


@pytest.mark.parametrize("name", ("swim-within-malaysia", "swim-my-sg"))
def test_the_source_s_campaigns_have_both_phases_at_one_rate_for_each_payload(name: str) -> None:
    found = {
        (s.parameters["payload"], s.parameters["rate"], s.parameters["full_speed"], s.parameters["open_loop"])
        for s in profile(name).scenarios
    }
    assert found == {("small", 250.0, 5.0, 20.0), ("fpl-tac", 250.0, 5.0, 20.0), ("fpl-fixm", 100.0, 5.0, 20.0)}
    assert {s.parameters["loop"] for s in profile(name).scenarios} == {"both"}


def test_the_envelopes_profile_has_every_format_in_both_tests() -> None:
    scenarios = [dict(scenario.parameters) for scenario in profile("swim-envelopes").scenarios]
    parameters = [AmqpParameters.model_validate(one) for one in scenarios]
    assert {(one.test, one.envelope) for one in parameters} == {(t, f) for t in (3, 4) for f in EnvelopeFormat}
    assert len(parameters) == 2 * len(EnvelopeFormat)
