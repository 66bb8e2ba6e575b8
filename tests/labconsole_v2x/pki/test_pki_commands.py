"""From the terminal: authorities in a process of their own, a station that enrols, and its ticket on the road."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from labconsole.cli.main import main
from labconsole.engine.operation import perform_operation
from labconsole_v2x.messages.geonetworking import encode_basic_header
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.pki.key_folders import KeyFolder, create_lab
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.stations.capture import capture_header, ethernet_frame, packet_block
from tests.helpers.signals import interruptible
from tests.labconsole_v2x.security.lab_certificates import cam_payload

READY = r"Ready: (RCA|EA|AA|DC) (http://127\.0\.0\.1:\d+/)"
COMMAND = [sys.executable, "-m", "labconsole.cli.main", "v2x"]


@contextmanager
def authorities(lab: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The command, and the URL of each authority that it serves."""
    ports = ("--rca-port", "0", "--ea-port", "0", "--aa-port", "0", "--dc-port", "0")
    with interruptible():
        process = subprocess.Popen(
            [*COMMAND, "authorities", str(lab), *ports, *arguments], stdout=subprocess.PIPE, text=True
        )
    assert process.stdout is not None
    urls: dict[str, str] = {}
    try:
        while len(urls) < (1 if "--serve" in arguments else 4):
            line = process.stdout.readline()
            assert line, "the command has ended"
            if ready := re.fullmatch(READY, line.rstrip("\n")):
                urls[ready[1]] = ready[2]
        yield process, urls
    finally:
        process.kill()
        process.communicate()


class _Operation:
    """The channel of the authorities of a thread: their reports, and a cancel."""

    def __init__(self) -> None:
        self.messages: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self.cancel: Callable[[], None] = lambda: None

    def send(self, message: Mapping[str, Any]) -> None:
        self.messages.put(message)

    def listen(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        self.cancel = lambda: on_message({"t": "cancel"})


@contextmanager
def authorities_here(lab: Path, serve: str = "all", **parameters: str) -> Iterator[dict[str, str]]:
    """The URL of each authority that a thread of the test process serves, where the process is not what is tested."""
    ports = dict.fromkeys(("rca_port", "ea_port", "aa_port", "dc_port"), 0)
    values = {"lab": str(lab), "serve": serve, **ports, **parameters}
    task = {"name": "v2x.serve-authorities", "parameters": values, "typed": "", "secrets": {}}
    channel, urls = _Operation(), {}
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(perform_operation, task, channel)
        try:
            while len(urls) < (4 if serve == "all" else 1):
                message = channel.messages.get(timeout=60)
                assert message["t"] != "end", message
                if ready := re.fullmatch(
                    r"Ready: (RCA|EA|AA|DC) (http://127\.0\.0\.1:\d+/)", message.get("sentence", "")
                ):
                    urls[ready[1]] = ready[2]
            yield urls
        finally:
            channel.cancel()
    assert done.result()


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process: its exit code, and what it prints."""
    words = ["v2x", *map(str, arguments)]
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        code = main(words)
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def run_process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def certificates(lab: Path, *names: str) -> list[str | Path]:
    """Options that name the certificates of a lab."""
    options: list[str | Path] = ["--root", lab / "root" / "certificate.oer"]
    for name in names:
        options += [f"--{name}-certificate", lab / name / "certificate.oer"]
    return options


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_station_enrols_gets_tickets_and_its_packets_are_accepted(tmp_path: Path, own_home: Path) -> None:
    lab, car = tmp_path / "lab", tmp_path / "car-1"
    with authorities(lab) as (process, urls):
        assert "Registered: car-1" in run("register", car, "--lab", lab).stdout
        enrolled = run_process("enrol", car, "--ea", urls["EA"], *certificates(lab, "ea"))
        assert (enrolled.returncode, "Lab EA - Lab root CA" in enrolled.stdout) == (0, True), enrolled
        renewed = run("enrol", car, "--ea", urls["EA"], *certificates(lab, "ea"), "--renew")
        assert (renewed.returncode, "Enrolled: 1 stored" in renewed.stdout) == (0, True), renewed
        options = ("authorize", car, "--aa", urls["AA"], *certificates(lab, "ea", "aa"))
        authorized = run(*options, "--count", "2", "--json")
        assert authorized.returncode == 0, authorized
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.splitlines()[-1] == "Stopped: 6 granted, 0 refused."
    tickets = json.loads(authorized.stdout)["certificates"]
    assert len({one["hashed_id8"] for one in tickets}) == 2
    for key in (*car.glob("keys/*.pem"), *lab.glob("*/keys/*.pem")):
        assert key.stat().st_mode & 0o777 == 0o600 and b"ENCRYPTED PRIVATE KEY" in key.read_bytes()

    # The ticket signs a CAM, which is accepted up to the root of the lab.
    ticket = KeyFolder(car).certified(f"ticket-{tickets[0]['hashed_id8']}")
    time_ns = time.time_ns()
    signer = PacketSigner(ticket.certificate, ticket.key)
    packet = signer.sign(cam_payload(), Header(CAM_PSID, its_us(time_ns)), include_certificate=True)
    frame = ethernet_frame(encode_basic_header(60_000, 1, secured=True) + packet, b"\2\0\0\0\0\1")
    capture = tmp_path / "road.pcapng"
    capture.write_bytes(capture_header(["road"]) + packet_block(time_ns, frame))
    issuers = ("--root", lab / "root" / "certificate.oer", "--issuer", lab / "aa" / "certificate.oer")
    inspected = json.loads(run("inspect", capture, *issuers, "--json").stdout)
    assert (inspected["packets"], inspected["verdicts"]["valid"]) == (1, 1)
    assert inspected["stations"][0]["tickets"] == [tickets[0]["hashed_id8"]]
    (chain,) = inspected["chains"]
    assert [issuer.split(" (")[0] for issuer in chain["issuers"]] == ["Lab AA", "Lab root CA"]


def test_authorities_run_in_a_process_each_and_refusals_are_one_sentence(tmp_path: Path, own_home: Path) -> None:
    lab, car, unknown = tmp_path / "lab", tmp_path / "car-1", tmp_path / "car-2"
    with (
        authorities(lab, "--serve", "ea") as (_, ea),
        authorities(lab, "--serve", "aa", "--ea-url", ea["EA"]) as (_, aa),
    ):
        run("register", car, "--lab", lab, "--messages", "cam")
        run("register", unknown, "--lab", lab)
        (lab / "ea" / "stations" / f"{b'car-2'.hex()}.json").unlink()
        refused = run("enrol", unknown, "--ea", ea["EA"], *certificates(lab, "ea"))
        assert refused.returncode != 0
        assert refused.stderr.strip().endswith(
            f"{ea['EA']} refuses: unknownits; the EA does not know this station or its credential: register it, or "
            "enrol again."
        )
        assert run("enrol", car, "--ea", ea["EA"], *certificates(lab, "ea")).returncode == 0
        options = ("authorize", car, "--aa", aa["AA"], *certificates(lab, "ea", "aa"))
        assert "refuses: deniedpermissions" in run(*options).stderr
        assert run(*options, "--messages", "cam").returncode == 0
        # An AA is not an EA: it does not have the key that the request is encrypted to.
        wrong = run("enrol", car, "--ea", aa["AA"], *certificates(lab, "ea"))
        assert wrong.returncode != 0 and f"{aa['AA']} cannot read the request (HTTP 400" in wrong.stderr
    gone = run("enrol", car, "--ea", ea["EA"], *certificates(lab, "ea"))
    assert gone.returncode != 0 and f"{ea['EA']} does not answer" in gone.stderr and "Traceback" not in gone.stderr


def test_a_root_ca_of_its_own_certifies_authorities_of_other_sites_and_renews_them(
    tmp_path: Path, own_home: Path
) -> None:
    lab, site, car = tmp_path / "lab", tmp_path / "site", tmp_path / "car-1"
    with authorities(lab, "--serve", "rca") as (process, root):
        (site / "root").mkdir(parents=True)
        missing = run("certify-authority", site, "ea", "--rca", root["RCA"])
        assert (
            missing.returncode == 1 and f"copy the root's certificate to {site}/root/certificate.oer" in missing.stderr
        )
        (site / "root" / "certificate.oer").write_bytes((lab / "root" / "certificate.oer").read_bytes())
        for name in ("ea", "aa"):
            certify = ("certify-authority", site, name, "--rca", root["RCA"])
            early = run(*certify)
            key = early.stdout.strip().removeprefix("Key: ")
            assert early.returncode == 1 and "refuses: unknownkey: the root's operator has not accepted" in early.stderr
            assert key not in early.stderr  # who is on the way could name another one there
            accept = ("accept-authority", lab, key, "--url", f"http://{name}.test/", "--name", f"Site {name}")
            other = "aa" if name == "ea" else "ea"
            for kind in (other, name):  # a slip can be corrected
                assert "Accepted" in run(*accept, "--authority", kind).stdout
            granted = run(*certify)
            assert (granted.returncode, "Certified: 1 stored." in granted.stdout) == (0, True), granted
            again = run(*accept, "--authority", name)
            assert again.returncode == 1 and "has a certificate already" in again.stderr
        elsewhere = run("accept-authority", site, key, "--authority", "aa")
        assert (
            elsewhere.returncode == 1 and "has no key of a root CA: run this in the lab of the root" in elsewhere.stderr
        )

        # EA and AA of the site serve stations, and what they issue leads to the root of the other lab.
        with (
            authorities_here(site, "ea") as ea,
            authorities_here(site, "aa", ea_url=ea["EA"]) as aa,
        ):
            run("register", car, "--lab", site)
            assert run("enrol", car, "--ea", ea["EA"], *certificates(site, "ea")).returncode == 0
            authorized = run("authorize", car, "--aa", aa["AA"], *certificates(site, "ea", "aa"))
            assert authorized.returncode == 0 and "Site aa - Lab root CA" in authorized.stdout, authorized
        assert not (site / "tlm").exists()  # only the holder of a root has a TLM

        before = (site / "aa" / "certificate.oer").read_bytes()
        renewed = run("certify-authority", site, "aa", "--rca", root["RCA"], "--json")
        assert renewed.returncode == 0, renewed
        after = (site / "aa" / "certificate.oer").read_bytes()
        assert before != after

        # The lists of the root name them, too, and the AA's former certificate, whose tickets are valid.
        run("issue-lists", lab)
        with authorities_here(lab, "dc") as centre:
            trusted = run("trust", car, "--dc", centre["DC"], "--root", lab / "root" / "certificate.oer")
        assert (trusted.stdout.count("http://ea.test/"), trusted.stdout.count("http://aa.test/")) == (1, 2), trusted

        # A revoked authority gets no further certificate, and keeps its keys.
        (certified,) = json.loads(renewed.stdout)["certificates"]
        assert run("issue-lists", lab, "--revoke", certified["hashed_id8"]).returncode == 0
        revoked = run("certify-authority", site, "aa", "--rca", root["RCA"])
        assert revoked.returncode == 1 and "refuses: revoked: its certificate" in revoked.stderr
        assert (site / "aa" / "certificate.oer").read_bytes() == after
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert output.splitlines()[-1] == "Stopped: 3 granted, 3 refused."
    for file in site.glob("*/keys/*.pem"):
        assert file.stat().st_mode & 0o777 == 0o600 and b"ENCRYPTED PRIVATE KEY" in file.read_bytes()


def test_tickets_of_a_renewed_aa_stay_valid_until_it_is_revoked(tmp_path: Path, own_home: Path) -> None:
    lab, car = tmp_path / "lab", tmp_path / "car-1"

    def trusted(dc: str) -> list[str]:
        data = json.loads(run("trust", car, "--dc", dc, "--tlm", lab / "tlm" / "certificate.oer", "--json").stdout)
        assert not data["failed"]
        return [one["kind"] for one in data["trusted"]]

    with authorities_here(lab) as urls:
        run("register", car, "--lab", lab)
        run("issue-lists", lab, "--dc", urls["DC"])
        assert run("certify-authority", lab, "aa", "--rca", urls["RCA"]).returncode == 0
        run("issue-lists", lab, "--dc", urls["DC"])
        assert trusted(urls["DC"]) == ["root CA", "EA", "AA", "AA"]
        run("issue-lists", lab, "--dc", urls["DC"], "--revoke", "aa")
        assert trusted(urls["DC"]) == ["root CA", "EA"]


def test_what_is_missing_is_named(tmp_path: Path, own_home: Path) -> None:
    assert "has no EA" in run("register", tmp_path / "car", "--lab", tmp_path / "none").stderr
    without_lab = run("register", tmp_path / "car", "--json")
    public_key = Path(json.loads(without_lab.stdout)["public_key"]).read_bytes()
    assert public_key.startswith(b"-----BEGIN PUBLIC KEY")
    assert "Not registered yet" in run("register", tmp_path / "car").stdout
    missing = run("enrol", tmp_path / "car", *certificates(tmp_path, "ea"))
    assert missing.returncode != 0 and "certificate.oer" in missing.stderr


def test_steps_in_the_wrong_order_name_the_one_that_comes_first(tmp_path: Path, own_home: Path) -> None:
    lab, car = tmp_path / "lab", tmp_path / "car"
    create_lab(lab, its_us(time.time_ns()) // 1_000_000 - 3600)
    early = run("enrol", car, *certificates(lab, "ea"))
    assert early.returncode == 1 and "car is not the folder of a station: register it first" in early.stderr
    assert not car.exists()
    run("register", car, "--lab", lab)
    early = run("authorize", car, *certificates(lab, "ea", "aa"))
    assert early.returncode == 1 and "car has no enrolment credential: enrol the station first" in early.stderr


def test_folder_of_others_is_left_as_it_is(tmp_path: Path, own_home: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    for command in ("authorities", "register"):
        refused = run(command, folder)
        assert refused.returncode == 1 and "notes has files of others: choose an empty folder" in refused.stderr
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_station_follows_the_lists_of_a_lab_and_a_revoked_aa_is_gone(tmp_path: Path, own_home: Path) -> None:
    lab, car = tmp_path / "lab", tmp_path / "car-1"
    with authorities_here(lab, "dc") as urls:
        run("register", car, "--lab", lab)
        options = ("trust", car, "--dc", urls["DC"], "--tlm", lab / "tlm" / "certificate.oer")
        nothing = run(*options)
        assert nothing.returncode == 1 and "HTTP 404, no such list is published" in nothing.stderr
        assert max(line.count(urls["DC"]) for line in nothing.stderr.splitlines()) == 1
        urls_of_lists = ("--ea", "http://ea.test/", "--aa", "http://aa.test/", "--dc", urls["DC"])
        issued = json.loads(run("issue-lists", lab, *urls_of_lists, "--json").stdout)
        assert issued == {"ectl": 0, "ctl": 0, "revoked": []}
        trusted = run(*options)
        assert trusted.returncode == 0 and "Lists: 3 applied, 0 not; revoked: none." in trusted.stdout, trusted
        for part in ("Lab EA - Lab root CA", "http://ea.test/", "http://aa.test/"):
            assert part in trusted.stdout
        older = {path: path.read_bytes() for path in (lab / "lists").glob("*.oer")}

        revoked = json.loads(run("issue-lists", lab, *urls_of_lists, "--revoke", "aa", "--json").stdout)
        assert revoked["ctl"] == 1 and len(revoked["revoked"]) == 1
        data = json.loads(run(*options, "--json").stdout)
        assert [one["kind"] for one in data["trusted"]] == ["root CA", "EA"]
        assert (data["revoked"], data["failed"]) == (revoked["revoked"], [])

        # The centre, or who answers in its place, comes with older lists: what was revoked stays so.
        for path in (lab / "lists").glob("*.oer"):
            path.unlink()
        for path, octets in older.items():
            path.write_bytes(octets)
        rolled_back = run(*options, "--json")
        data = json.loads(rolled_back.stdout)
        assert rolled_back.returncode == 1 and len(data["failed"]) == 3
        assert all("older than the list applied" in one["reason"] for one in data["failed"])
        assert data["revoked"] == revoked["revoked"]


def test_lists_of_what_is_missing_or_unknown_are_refused(tmp_path: Path, own_home: Path) -> None:
    lab = tmp_path / "lab"
    assert "has no root CA" in run("issue-lists", lab).stderr
    create_lab(lab, its_us(time.time_ns()) // 1_000_000 - 3600)
    for options, reason in (
        (("--revoke", "rsu"), "rsu is neither aa, ea nor a HashedId8"),
        (("--revoke", "00"), "00 is neither"),
        (("--delete", "tlm"), "tlm is not an entry of a list"),
        (("--dc", "nowhere"), "nowhere is not the URL"),
    ):
        refused = run("issue-lists", lab, *options)
        assert refused.returncode == 1 and reason in refused.stderr
    assert not (lab / "lists").exists()
    assert "Nothing is trusted" in run("trust", tmp_path).stderr
    wrong = run("trust", tmp_path, "--tlm", lab / "root" / "certificate.oer")
    assert wrong.returncode == 1 and "Lab root CA cannot be a TLM" in wrong.stderr
