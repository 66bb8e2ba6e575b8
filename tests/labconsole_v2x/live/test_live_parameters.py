"""Parameters of the live trial: bounds, combinations that are refused, the load of a scenario, and fair pairs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.validation_faults import fault_sentence
from labconsole.security.secrets import Secret
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.named_tokens import save_configuration
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.live_trial import LiveTrial, uses_token
from labconsole_v2x.live.spread import divided_cores, spread
from labconsole_v2x.security.verification import CheckSettings
from labconsole_v2x.stations.transports import TransportKind

TRIAL = LiveTrial()


def parameters(**settings: Any) -> LiveParameters:
    return LiveParameters.model_validate(settings)


def warned(**settings: Any) -> str:
    given = parameters(**settings)
    return " ".join((*TRIAL.warnings(given), *TRIAL.local_warnings(given)))


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("senders", 1, 300),
        ("rate", 1, 1000),
        ("instances", 1, 100),
        ("receiver_rate", 1, 10),
        ("processes", 0, 300),
        ("tickets", 1, 100),
        ("change_interval", 1, 86_400),
        ("threads", 1, 16),
        ("queue_limit", 1, 1_000_000),
        ("cam_past", 0, 600_000),
        ("denm_past", 0, 86_400_000),
        ("other_future", 0, 600_000),
        ("port", 1, 65_535),
        ("warm_up", 0, 600),
        ("duration", 0.5, 86_400),
    ],
)
def test_bounds(name: str, least: float, most: float) -> None:
    for value in (least, most):
        assert getattr(parameters(**{name: value}), name) == value
    for value in (least - 0.1, most + 1):
        with pytest.raises(ValidationError, match=name):
            parameters(**{name: value})


@pytest.mark.parametrize(
    ("settings", "field", "sentence"),
    [
        ({"signing": "aws-lc"}, "signing", "a backend for verification only"),
        ({"transport": "udp-unicast", "receivers": "all"}, "transport", "in unicast only one station receives"),
        ({"transport": "udp-unicast", "dcc": True}, "transport", "in unicast stations do not hear the channel"),
        ({"transport": "udp-unicast", "inclusion": "congestion"}, "transport", "do not hear the channel"),
        ({"transport": "ethernet", "device": "eth0", "dcc": True}, "device", "do not hear each other, except on lo"),
        ({"transport": "ethernet", "device": "eth0", "receivers": "all"}, "device", "do not hear each other"),
        ({"transport": "ethernet", "device": "eth0", "inclusion": "congestion"}, "device", "do not hear each other"),
        ({"change": "periodic"}, "tickets", "a station with one ticket cannot change its identity"),
        ({"change": "start", "tickets": 1}, "tickets", "give each 2 or more"),
        ({"senders": 101, "tickets": 100}, "tickets", "would have 10,100 tickets: give them 10,000 at most"),
        ({"interface": "localhost"}, "interface", "localhost is not an IPv4 address"),
        ({"interface": "::1"}, "interface", "::1 is not an IPv4 address"),
        ({"group": "192.168.1.1"}, "group", "not a multicast address"),
        ({"speed": 1}, "speed", "Extra inputs"),
    ],
)
def test_refused_values_are_faults_of_one_field(settings: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as raised:
        parameters(**settings)
    (fault,) = raised.value.errors()
    assert fault["loc"] == (field,) and sentence in fault["msg"]


@pytest.mark.parametrize(
    "settings",
    [
        {"transport": "udp-unicast", "inclusion": "congestion", "security": "none"},
        {"transport": "ethernet", "device": "lo", "receivers": "all", "dcc": True},
        {"transport": "ethernet", "device": "eth0", "inclusion": "always"},
        {"security": "none", "change": "periodic"},
        {"senders": 300, "instances": 100},
        {"transport": "udp-multicast", "device": "eth0", "receivers": "all", "dcc": True},
    ],
)
def test_values_without_effect_refuse_nothing(settings: dict[str, Any]) -> None:
    assert parameters(**settings)


@pytest.mark.parametrize(
    ("settings", "remembered"),
    [
        ({}, 4096),
        ({"senders": 15, "rate": 100.0}, 6600),
        ({"senders": 15, "rate": 100.0, "cam_past": 10_000.0}, 30_600),
        ({"senders": 15, "rate": 100.0, "cam_past": 600_000.0}, 500_000),
    ],
)
def test_receivers_remember_twice_what_the_window_for_cams_holds(settings: dict[str, Any], remembered: int) -> None:
    assert parameters(**settings).duplicate_window == remembered
    assert ("Receivers remember 500,000 packets" in warned(**settings)) is (remembered == 500_000)


@pytest.mark.parametrize(
    ("settings", "messages", "instance_rate"),
    [
        ({}, 50, 10),
        ({"senders": 15, "rate": 100.0, "instances": 10}, 1500, 10),
        ({"senders": 300, "rate": 5.0}, 1500, 5),
        ({"senders": 1, "rate": 1000.0}, 1000, 1000),
        ({"senders": 7, "rate": 99.0, "generation": "rules", "instances": 2}, 140, 10),
    ],
)
def test_load_of_a_scenario(settings: dict[str, Any], messages: float, instance_rate: float) -> None:
    assert (parameters(**settings).most_messages, parameters(**settings).instance_rate) == (messages, instance_rate)


@pytest.mark.parametrize(
    ("settings", "stress"),
    [
        ({"rate": 10.0}, False),
        ({"rate": 11.0}, True),
        ({"rate": 100.0}, True),
        ({"rate": 100.0, "instances": 10}, False),
        ({"rate": 100.0, "instances": 9}, True),
        ({"rate": 1000.0, "generation": "rules"}, False),
    ],
)
def test_more_than_ten_a_second_of_an_instance_are_stress(settings: dict[str, Any], stress: bool) -> None:
    assert ("break EN 302 637-2, which allows 10" in warned(**settings)) is stress


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"rate": 100.0, "instances": 10}, "a station sends 100 CAMs a second as 10 instances"),
        ({"rate": 1.0, "instances": 2}, "0.5 CAMs a second of one instance break EN 302 637-2, which asks for 1"),
    ],
)
def test_rates_of_a_station_and_of_an_instance_are_judged_apart(settings: dict[str, Any], part: str) -> None:
    assert part in warned(**settings)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({}, "Loopback: "),
        ({"security": "header"}, "placeholders for signatures"),
        ({"inclusion": "never"}, "knows all tickets before the run"),
        ({"verification": "aws-lc", "threads": 2}, "AWS-LC verifies in one thread at a time"),
        ({"processes": 99}, f"More sender processes (99) than cores ({os.cpu_count()})"),
    ],
)
def test_what_limits_a_result_is_warned_of(settings: dict[str, Any], part: str) -> None:
    assert part in warned(**settings)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"interface": "10.0.0.5"}, "Loopback"),
        ({"transport": "ethernet"}, "Loopback"),
        ({"inclusion": "never", "security": "signed"}, "knows all tickets"),
        ({"verification": "aws-lc"}, "AWS-LC"),
        ({"threads": 2}, "AWS-LC"),
    ],
)
def test_warnings_are_left_out_where_they_do_not_apply(settings: dict[str, Any], part: str) -> None:
    assert part not in warned(**settings)


@pytest.mark.parametrize(
    ("senders", "processes", "messages", "sizes"),
    [
        (5, 0, 50, [5]),
        (15, 1, 1500, [15]),
        (15, 2, 1500, [8, 7]),
        (3, 8, 30, [1, 1, 1]),
        (300, 7, 3000, [43] * 6 + [42]),
        (1, 0, 1, [1]),
    ],
)
def test_stations_are_spread_over_processes(senders: int, processes: int, messages: float, sizes: list[int]) -> None:
    groups = spread(senders, processes, messages, 2)
    assert [len(group) for group in groups] == sizes
    assert [number for group in groups for number in group] == list(range(1, senders + 1))


def test_as_many_processes_as_the_load_needs_and_cores_allow() -> None:
    assert len(spread(300, 0, 3000, 4)) == 1
    assert len(spread(300, 0, 3001, 4)) == 2
    assert len(spread(300, 0, 300_000, 4)) == 4
    assert len(spread(300, 0, 300_000, 0)) == 1


def test_single_receiver_has_a_core_for_itself_where_there_are_two() -> None:
    assert divided_cores({0, 1, 5}) == ({5}, {0, 1})
    assert not any(divided_cores({3})) and not any(divided_cores(()))
    assert LiveParameters().divides_cores
    assert not parameters(receivers="all").divides_cores and not parameters(threads=2).divides_cores


def test_sentence_that_begins_with_a_name_keeps_its_capitals() -> None:
    with pytest.raises(ValidationError) as caught:
        parameters(signing="aws-lc")
    assert fault_sentence(caught.value, LiveParameters).startswith("signing: AWS-LC is a backend for verification only")


@pytest.mark.parametrize(
    ("settings", "leaves"),
    [
        ({"senders": 1, "rate": 10.0}, True),
        ({"senders": 300, "rate": 1000.0, "instances": 100}, False),
        ({"senders": 300, "rate": 10.0, "receivers": "all"}, False),
    ],
)
def test_run_leaves_idle_time_if_its_packets_need_less_than_all_cores(settings: dict[str, Any], leaves: bool) -> None:
    assert TRIAL.leaves_idle_time(parameters(**settings)) is leaves


def test_windows_are_those_of_the_receiver_s_checks() -> None:
    default = CheckSettings()
    windows = (default.cam_window, default.denm_window, default.other_window)
    assert parameters().windows_us == [[window.past_us, window.future_us] for window in windows]
    assert parameters(cam_past=1.5, cam_future=0.001).windows_us[0] == [1500, 1]
    assert parameters().cam_past == 2000, "the source of the default: RS_BSP_168"


def test_transport_of_each_side() -> None:
    multicast, unicast = parameters(group="239.1.1.1", port=5), parameters(transport="udp-unicast", port=6)
    for receiver in (True, False):
        one, other = (given.transport_settings(receiver=receiver) for given in (multicast, unicast))
        assert (one.kind, one.interface, one.group, one.port) == (TransportKind.MULTICAST, "127.0.0.1", "239.1.1.1", 5)
        assert (other.group, other.port) == ("127.0.0.1", 6)
    pair = parameters(transport="ethernet", device="veth0", receiver_device="veth1")
    assert [pair.transport_settings(receiver=receiver).interface for receiver in (False, True)] == ["veth0", "veth1"]
    assert parameters(transport="ethernet", device="veth0").transport_settings(receiver=True).interface == "veth0"


@pytest.mark.parametrize(
    ("settings", "hears"),
    [
        ({}, False),
        ({"dcc": True}, True),
        ({"inclusion": "congestion"}, True),
        ({"inclusion": "congestion", "security": "none"}, False),
    ],
)
def test_stations_hear_the_channel_for_congestion_only(settings: dict[str, Any], hears: bool) -> None:
    assert parameters(**settings).hears_channel is hears


@pytest.mark.parametrize(
    ("settings", "token"),
    [
        ({}, False),
        ({"signing": "token"}, True),
        ({"verification": "token"}, True),
        ({"signing": "token", "security": "header"}, False),
        ({"verification": "token", "security": "signed"}, False),
        ({"signing": "token", "security": "signed"}, True),
        ({"signing": "token", "verification": "token", "security": "none"}, False),
    ],
)
def test_token_is_used_where_it_has_work(settings: dict[str, Any], token: bool) -> None:
    assert uses_token(parameters(**settings)) is token
    assert TRIAL.secrets(parameters(**settings)) == (), "the built-in one needs no PIN from the operator"


def test_pin_of_another_token_is_asked_for(tmp_path: Path) -> None:
    pins = Secret("1234-user"), Secret("5678-officer")
    save_configuration("office", make_softhsm_token(tmp_path / "office", "office", *pins))
    (request,) = TRIAL.secrets(parameters(token="office", signing="token"))
    assert request.key == "pin office"
    assert TRIAL.secrets(parameters(token="office")) == (), "unused"


@pytest.mark.parametrize(
    ("reference", "other", "label"),
    [
        ("none", "full", "Full security against none"),
        ("none", "signed", "Signing against no security"),
        ("none", "header", "A security header against none"),
        ("header", "signed", "Signing against the header alone"),
        ("header", "full", "Full security against the header alone"),
        ("signed", "full", "Verifying against signing alone"),
        ("full", "none", ""),
        ("full", "full", ""),
    ],
)
def test_configurations_under_one_load_are_a_fair_pair(reference: str, other: str, label: str) -> None:
    one, two = parameters(security=reference), parameters(security=other, duration=7.0, port=9, processes=2)
    assert TRIAL.contrast(one, two) == label
    assert [question.subject for question in TRIAL.questions(one, two)] == (
        [label.partition(" against ")[0]] if label else []
    )


@pytest.mark.parametrize("change", [{"rate": 20.0}, {"senders": 6}, {"warm_up": 1.0}, {"transport": "udp-unicast"}])
def test_another_load_is_not_a_fair_pair(change: dict[str, Any]) -> None:
    assert TRIAL.contrast(parameters(security="none"), parameters(security="full", **change)) == ""
    assert TRIAL.questions(parameters(security="none"), parameters(security="full", **change)) == ()
