"""Stations on other hosts, each with an address of its own, hear each other, and read nothing of the console's disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.live_trial import station_specs
from labconsole_v2x.live.process_settings import ProcessSettings
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.stations.transports import TransportKind, TransportSettings
from tests.helpers.other_hosts import OtherHosts
from tests.labconsole_v2x.live.live_lab import LiveLab, Outcome

ADDRESSES = {"receiver": "127.0.0.2", "stations": "127.0.0.3"}


def on_hosts(folder: Path, *console: Path, **settings: Any) -> Outcome:
    """A short run of two processes of stations and a receiver."""
    hosts = OtherHosts(folder.with_name(f"{folder.name}-hosts"), ADDRESSES, console)
    return LiveLab(folder, launcher=hosts).run(**{"processes": 2, **settings})


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has 127.0.0.2 from the start")
@pytest.mark.parametrize("transport", ["udp-multicast", "udp-unicast"])
def test_stations_on_hosts_hear_each_other(tmp_path: Path, transport: str) -> None:
    (tmp_path / "first").mkdir()
    root = tmp_path / "first" / "root.oer"
    root.write_bytes(LabPki.create(its_now() // 1_000_000 - 3600).root.octets)
    settings = {"transport": transport, "inclusion": "always", "roots": (str(root),)}
    outcome = on_hosts(tmp_path / "run", tmp_path / "first", **settings)
    assert outcome.failure is None, outcome.failure
    assert (outcome.figures["packet_loss"], outcome.figures["rejected"]) == (0, 0)
    assert outcome.due == 45 and outcome.figures["accepted"] == outcome.figures["sent"]


def settings_of(**parameters: Any) -> ProcessSettings:
    spec = station_specs(LiveParameters.model_validate(parameters), 1)[-1]
    return ProcessSettings.from_json(spec.settings)


def test_each_process_uses_the_interface_of_its_host() -> None:
    group = LiveParameters().group
    multicast, unicast = settings_of(), settings_of(transport="udp-unicast", inclusion="always")
    assert multicast.transport_settings("10.0.0.5") == TransportSettings(
        TransportKind.MULTICAST, "10.0.0.5", group, multicast.transport["port"]
    )
    assert unicast.transport_settings("10.0.0.5", "10.0.0.9").group == "10.0.0.9"
    assert unicast.transport_settings("10.0.0.9").group == "10.0.0.9", "the receiver"
    wired = settings_of(transport="ethernet", device="eth0")
    assert wired.transport_settings("10.0.0.5").interface == "eth0"


def test_stations_of_one_computer_use_the_interface_of_the_parameters() -> None:
    named = settings_of(interface="192.0.2.7")
    assert named.transport_settings("127.0.0.1").interface == "192.0.2.7"
