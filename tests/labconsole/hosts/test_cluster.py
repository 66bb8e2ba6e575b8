"""Hosts join a console's cluster, are listed with their clocks, and are refused or missed where they must be."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.hosts.cluster import ANSWER_S, Cluster
from labconsole.hosts.cluster_certificates import console_files
from labconsole.hosts.cluster_tls import Member
from labconsole.model.placement import RoleRequest
from labconsole.paths import HOME_VARIABLE
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.named_tokens import save_configuration, tokens_file
from tests.helpers.forked_programs import programs_started
from tests.helpers.signals import frozen
from tests.helpers.worker_threads import operations_in_threads
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, Served, cluster
from tests.labconsole.hosts.host_runs import SHIFT_NS, eventually

missed_within = pytest.mark.parametrize(
    "within_s", [ANSWER_S, pytest.param(1.0, marks=[pytest.mark.nightly, pytest.mark.serial])]
)
"""A lost host is missed without waiting for its answer; only the nightly set finds a look for it that is slow."""


def test_hosts_are_listed_with_what_they_are_and_have(running: ClusterProcesses) -> None:
    with Cluster(running.address, running.member()) as console:
        alpha, beta = map(console.host, sorted(console.addresses()))
    assert (alpha.name, beta.name) == ("alpha", "beta")
    assert alpha.described["tags"] == ["obu"] and beta.described["tags"] == []
    assert alpha.described["free_bytes"] > 0 and alpha.described["cores"] == os.cpu_count()
    alpha.require_this_version()


def test_a_role_may_ask_for_a_transport_or_a_token_of_its_host(running: ClusterProcesses) -> None:
    home = running.home / "agent"
    token = TokenConfiguration.model_validate({"module": "/usr/lib/token.so", "label": "office"})
    save_configuration("office", token, home)
    try:
        with Cluster(running.address, running.member()) as console:
            alpha = console.host("alpha").facts
            tokens_file(home).write_text("faulty")
            without = console.host("alpha").facts
    finally:
        tokens_file(home).unlink()
    assert alpha.offers[:2] == ("obu", "udp") and alpha.offers[-1] == "token:office"
    assert ("ethernet" in alpha.offers) == (sys.platform == "linux" and os.geteuid() == 0)
    request = RoleRequest(role="signer", tag="token:office")
    assert alpha.suits(request) and not without.suits(request)


def test_two_connections_of_a_process_do_not_depend_on_each_other(running: ClusterProcesses) -> None:
    with Cluster(running.address, running.member()) as first:
        with Cluster(running.address, running.member()) as second:
            assert first.call("alpha", "clock") > 0 and second.call("alpha", "clock") > 0
        assert all(first.call(host, "clock") > 0 for host in ("alpha", "beta"))


def test_the_command_lists_them_for_people_and_scripts(
    running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(running.home))
    with operations_in_threads():
        assert main(["hosts", "list", "--scheduler", running.address]) == 0
    table = capfd.readouterr().out
    assert "alpha" in table and "obu" in table and "±" in table
    assert main(["hosts", "list", "--scheduler", running.address, "--json"]) == 0
    alpha, beta = json.loads(capfd.readouterr().out)["hosts"]
    assert beta["clock_offset_ns"] - alpha["clock_offset_ns"] > 2 * SHIFT_NS // 3
    assert alpha["clock_uncertainty_ns"] > 0


def test_another_console_is_refused(running: ClusterProcesses, tmp_path: Path) -> None:
    stranger = Member.of_console(console_files(tmp_path / "pki"))
    with pytest.raises(UserError, match="does not answer"), Cluster(running.address, stranger):
        pass


def test_a_second_host_of_a_name_does_not_join(running: ClusterProcesses, tmp_path: Path) -> None:
    second = running.starts(running.enrolled("alpha", tmp_path))
    second.waits_for("has a host alpha already: stop its agent")
    assert second.ended() == 1


def test_a_wrong_passphrase_is_one_sentence(running: ClusterProcesses, tmp_path: Path) -> None:
    file, passphrase = running.enrolled("delta", tmp_path)
    passphrase.write_text("another one")
    agent = running.starts((file, passphrase))
    agent.waits_for("passphrase is wrong")
    assert agent.ended() == 1
    assert "Traceback" not in agent.said


def test_a_host_that_is_not_there_is_named(running: ClusterProcesses) -> None:
    with (
        Cluster(running.address, running.member()) as console,
        pytest.raises(UserError, match="no host omega in the cluster: its hosts are alpha, beta"),
    ):
        console.host("omega")


def test_a_clock_is_asked_until_its_offset_is_settled(
    running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labconsole.hosts.cluster.is_settled", lambda exchanges: len(exchanges) == 5)
    with Cluster(running.address, running.member()) as console:
        assert console.host("alpha").offset.exchanges == 5


@missed_within
def test_a_killed_agent_is_missed_within_a_second(running: ClusterProcesses, tmp_path: Path, within_s: float) -> None:
    agent = running.joins("epsilon", tmp_path)
    with Cluster(running.address, running.member()) as console:
        console.host("epsilon")
        agent.kill()
        began = time.monotonic()
        with pytest.raises(UserError, match="epsilon") as lost:
            console.host("epsilon")
        assert time.monotonic() - began < within_s
        assert not isinstance(lost.value.__cause__, TimeoutError), "it is gone, which takes no waiting for its answer"
        assert eventually(lambda: "epsilon" not in console.addresses(), 5 * within_s)


@missed_within
def test_a_killed_agent_is_missed_at_once_where_the_scheduler_says_nothing(
    running: ClusterProcesses, tmp_path: Path, within_s: float
) -> None:
    agent = running.joins("theta", tmp_path)
    with Cluster(running.address, running.member()) as console:
        console.host("theta")
        with frozen(running.scheduler.process.pid):
            agent.kill()
            time.sleep(0.3)  # its connection is seen as closed
            began = time.monotonic()
            with pytest.raises(UserError, match="theta") as lost:
                console.host("theta")
            assert time.monotonic() - began < within_s
            assert isinstance(lost.value.__cause__, ConnectionRefusedError), "the agent's port was asked"


@pytest.mark.parametrize("calls", [300, pytest.param(1000, marks=pytest.mark.nightly)])
def test_an_answer_that_comes_when_the_console_looks_for_the_agent_is_taken(
    running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """The nightly set has more calls: it alone may find an answer that is lost in one of hundreds."""
    monkeypatch.setattr("labconsole.hosts.cluster._SOON_S", 0.001)  # about as long as an answer takes
    with Cluster(running.address, running.member()) as console:
        assert all(console.call("alpha", "clock") > 0 for _ in range(calls))


def test_a_frozen_agent_is_missed_within_fifteen_seconds(running: ClusterProcesses, tmp_path: Path) -> None:
    agent = running.joins("zeta", tmp_path)
    try:
        with Cluster(running.address, running.member()) as console:
            console.host("zeta")
            with frozen(agent.process.pid):
                began = time.monotonic()
                with pytest.raises(UserError, match="host zeta does not answer"):
                    console.host("zeta")
                assert time.monotonic() - began <= 15
    finally:
        agent.kill()


def test_a_host_that_does_not_answer_hides_no_other(
    running: ClusterProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(running.home))
    agent = running.joins("alpha-0", tmp_path)
    try:
        with frozen(agent.process.pid), operations_in_threads():
            assert main(["hosts", "list", "--scheduler", running.address, "--json"]) == 0
    finally:
        agent.kill()
    said = capfd.readouterr()
    assert [host["name"] for host in json.loads(said.out)["hosts"]] == ["alpha", "beta"]
    assert "alpha-0 does not answer" in said.err


def test_ctrl_c_is_the_regular_end_of_an_agent(running: ClusterProcesses, tmp_path: Path) -> None:
    agent = running.joins("eta", tmp_path)
    assert agent.end() == 0
    assert "eta has left the cluster" in agent.said


def test_agents_join_again_without_their_enrolment_where_the_scheduler_comes_back(tmp_path: Path) -> None:
    """Scheduler and agent are started as at a terminal; no secret is in their arguments or output."""
    with ExitStack() as stack:
        with programs_started():
            found = stack.enter_context(cluster(tmp_path / "console"))
            agent = found.joins("alpha", tmp_path / "alpha")
        for served in (agent, found.scheduler):
            assert b"PRIVATE" not in Path(f"/proc/{served.process.pid}/cmdline").read_bytes()
            assert "PRIVATE" not in served.said
        (tmp_path / "alpha" / "alpha.pem").unlink()
        assert found.scheduler.end() == 0
        agent.waits_for("alpha has lost .* waits until it can join again")
        port = found.address.rpartition(":")[2]
        found.scheduler = Served(found.home, "scheduler", "--port", port)
        agent.waits_for("(?s)join again.*has joined")
        with Cluster(found.address, found.member()) as console:
            assert console.host("alpha").name == "alpha"
            assert list(console.addresses()) == ["alpha"]
        assert agent.end() == 0


def test_only_the_ports_of_the_cluster_are_open(running: ClusterProcesses, tmp_path: Path) -> None:
    agent = running.joins("iota", tmp_path)
    for served in (agent, running.scheduler):
        port = int(served.waits_for(r"listens on tls://127\.0\.0\.1:(\d+)")[1])
        listening = [one for one in psutil.Process(served.process.pid).net_connections() if one.status == "LISTEN"]
        assert [one.laddr for one in listening] == [("127.0.0.1", port)]
    assert agent.end() == 0


def test_a_taken_port_is_one_sentence(running: ClusterProcesses) -> None:
    second = Served(running.home, "scheduler", "--port", running.address.rpartition(":")[2])
    second.waits_for("cannot listen on 127.0.0.1:.*Address already in use")
    assert second.ended() == 1
    assert "Traceback" not in second.said


def test_ctrl_c_ends_an_agent_that_is_joining(running: ClusterProcesses, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        file, passphrase = running.enrolled("kappa", tmp_path)
        scheduler = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        agent = Served(
            running.home / "agent", "agent", str(file), "--passphrase-file", str(passphrase), "--scheduler", scheduler
        )
        silent.settimeout(30)
        connection, _ = silent.accept()
        with connection:
            began = time.monotonic()
            assert agent.end() == 0
        assert time.monotonic() - began < 3
    assert "kappa has left the cluster" in agent.said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--host", "192.0.2.77"], "cannot listen on 192.0.2.77 .* give an address of this computer"),
        (["--host", "tls://127.0.0.1:22"], "without a port"),
        (["--scheduler", "tls://no-such-host.invalid:8786"], "no way to the scheduler .* check its address"),
        (["--scheduler", "xtls://127.0.0.1:19000zz"], "of the form tls://192.0.2.10:8786"),
    ],
)
def test_a_wrong_address_is_one_sentence(
    running: ClusterProcesses, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    agent = running.starts(running.enrolled("lambda", tmp_path), *arguments)
    agent.waits_for(sentence)
    assert agent.ended() in (1, 2)
    assert "Traceback" not in agent.said and "Warning" not in agent.said
