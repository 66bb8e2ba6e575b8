"""The commands of `labconsole shape-link`, word for word, and its refusal without the rights to run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labconsole.model.operation import Result
from labconsole_amqp.shaping.shape_operation import ShapeLink, ShapeLinkParameters
from labconsole_amqp.shaping.tc_commands import Interface, OneWay, lines
from tests.helpers.capabilities import without_capabilities
from tests.labconsole_amqp.command_line import run_command

COMMAND = "shape-link"
LAB = """\
ip netns add labconsole-client
ip netns add labconsole-broker
ip -n labconsole-client link add shaped0 type veth peer name shaped0 netns labconsole-broker
ip -n labconsole-client link set dev shaped0 gso_max_segs 1
tc -n labconsole-client qdisc add dev shaped0 root handle 1ab: stab overhead -14 tbf rate 2mbit burst 1764 latency 263ms
ip -n labconsole-client address add 10.0.0.1/30 dev shaped0
ip -n labconsole-client link set dev lo up
ip -n labconsole-client link set dev shaped0 up
ip -n labconsole-broker link set dev shaped0 gso_max_segs 1
tc -n labconsole-broker qdisc add dev shaped0 root handle 1ab: stab overhead -14 tbf rate 8mbit burst 2514 latency 66ms
ip -n labconsole-broker address add 10.0.0.2/30 dev shaped0
ip -n labconsole-broker link set dev lo up
ip -n labconsole-broker link set dev shaped0 up""".splitlines()
LAB_UNDO = """\
ip -n labconsole-client link delete dev shaped0
ip netns delete labconsole-client
ip netns delete labconsole-broker""".splitlines()


def shown(**values: Any) -> Result:
    return ShapeLink().run(ShapeLinkParameters.model_validate(values), None)  # type: ignore[arg-type]


def test_both_ends_of_a_real_link_have_their_interface_and_rate() -> None:
    result = shown(link_rate_down=0.512, client_interface="ens3", broker_interface="enp1s0.7")
    assert result.data == {
        "client": {
            "commands": [
                "ip link set dev ens3 gso_max_segs 1",
                "tc qdisc add dev ens3 root handle 1ab: stab overhead -14 tbf rate 2mbit burst 1764 latency 263ms",
            ],
            "undo": ["tc qdisc del dev ens3 root handle 1ab:", "ip link set dev ens3 gso_max_segs 65535"],
        },
        "broker": {
            "commands": [
                "ip link set dev enp1s0.7 gso_max_segs 1",
                "tc qdisc add dev enp1s0.7 root handle 1ab: stab overhead -14 "
                "tbf rate 0.512mbit burst 1578 latency 1024ms",
            ],
            "undo": ["tc qdisc del dev enp1s0.7 root handle 1ab:", "ip link set dev enp1s0.7 gso_max_segs 65535"],
        },
    }
    for end in result.data.values():
        assert "\n".join([*end["commands"], "To end it:", *end["undo"]]) in result.text
    assert "Clients' computer, 2 Mbit/s (burst 1,764 B, latency 263 ms):" in result.text
    assert not result.warnings


def test_a_delay_is_netems_and_in_front_of_the_rate() -> None:
    result = shown(link_rate=100, link_delay=250, client_interface="ens3")
    assert result.data["client"]["commands"][1:] == [
        "tc qdisc add dev ens3 root handle 1ab: netem delay 250ms limit 4167",
        "tc qdisc add dev ens3 parent 1ab:1 stab overhead -14 tbf rate 100mbit burst 14014 latency 50ms",
    ]
    assert "needs netem" in result.warnings[0]


def test_an_interface_without_ethernet_needs_no_overhead_and_has_its_own_burst() -> None:
    tunnel = Interface("tun0", mtu=9000, header=0)
    assert lines(OneWay(1e9).commands(tunnel))[1] == (
        "tc qdisc add dev tun0 root handle 1ab: tbf rate 1000mbit burst 134014 latency 50ms"
    )


def test_without_rights_the_commands_are_shown_and_the_exit_code_is_1() -> None:
    if sys.platform != "linux":
        pytest.skip("capabilities are Linux's")
    import fcntl

    with (Path(__file__).parent / "test_kernel_link.py").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # its tests set up the lab that must not be there
        done = without_capabilities(
            lambda: subprocess.run(
                [sys.executable, "-m", "labconsole.cli.main", COMMAND, "lab", "--link-rate-down", "8"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        )
        assert done.returncode == 1
        assert done.stdout.splitlines()[1:-1] == [*LAB, "To end it:", *LAB_UNDO]
        assert "Nothing was done, since this needs the rights of root" in done.stderr
        assert not Path("/run/labconsole-shaped-lab").exists() or "in use" in done.stderr


@pytest.mark.parametrize("name", ["-x", "a b", "eth0;reboot", "sixteen-letters0"])
def test_a_name_that_no_interface_has_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_command(capsys, COMMAND, f"--client-interface={name}")
    assert done.code == 2
    assert "--client-interface: " in done.err
