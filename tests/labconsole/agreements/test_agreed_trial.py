"""Two owners run what they agreed upon over one broker, exchange signed results, and merge them into one run."""

from __future__ import annotations

import json
import signal
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from labconsole.agreements.agreed_runs import departures
from labconsole.cli import run
from labconsole.cli.exit_codes import CANCELLED
from labconsole.clock import wall_now
from labconsole.paths import HOME_VARIABLE
from labconsole.security.pki.signing_identities import signing_identity
from labconsole.security.x509 import cms
from labconsole.store.encoding import to_json
from labconsole.store.reader import Reader
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from tests.labconsole.agreements.agreement_files import agree, profile_of
from tests.labconsole.agreements.two_owners import Owner, finish
from tests.labconsole_amqp.embedded_broker import RunningBroker


def test_two_owners_run_what_they_agreed_upon_and_merge_signed_results(
    owners: tuple[Owner, Owner], tmp_path: Path, broker: RunningBroker
) -> None:
    a, b = owners
    files = agree(a, b, tmp_path, loop="open", rate=100.0, port=broker.ports.plain, patience=10.0)
    sending = a.begin("run", files.id, "--json", threads=True)
    received = b.command("run", files.id, "--json")
    sent = finish(sending)
    assert (sent[0], received.returncode) == (0, 0), (sent, received)

    b.does("bundle", "1", tmp_path / "b.lcz", "--sign", "b-signer")
    a.does("import", tmp_path / "b.lcz", "--signed")
    said = a.does("merge", "1", "2")
    assert "Run 3 is runs 1 and 2 merged" in said
    assert "Run 2 (receiver) came in a signed bundle. Signed by b-signer of State B, trusted here" in said
    assert f"Run 1 (sender) was as agreed upon in {files.id}." in said
    assert f"Run 2 (receiver) was as agreed upon in {files.id}." in said
    with Reader(a.folder / "runs.db") as reader:
        assert reader.run(3).row.metrics["lost"].value == 0

    statement = next((a.folder / "agreements").glob("*.results.pem"))
    signed_by_a = tmp_path / "a.lcz"
    a.does("bundle", "2", signed_by_a, "--sign", "a-signer")
    other = json.loads(cms.verify(signed_by_a.with_name("a.lcz.p7s").read_bytes()).content)
    other["runs"][0]["digest"] = "0" * 64
    statement.write_bytes(signing_identity("a-signer", a.pki).sign(to_json(other).encode(), "results"))
    assert "is not as a-signer of State A signed it" in a.refuses("merge", "1", "2")


@pytest.mark.parametrize("mode", ["sender", "receiver"])
def test_a_run_that_departs_from_the_agreement_is_reported(
    mode: str, owners: tuple[Owner, Owner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = owners
    files = agree(a, b, tmp_path, loop="open", rate=100.0)
    monkeypatch.setenv(HOME_VARIABLE, str(a.folder))
    owner = a if mode == "sender" else b
    trial, values = AmqpTrial(), AmqpParameters(**profile_of(owner, files.id)["parameters"]).model_dump(mode="json")
    assert departures(trial, values) == ()
    assert departures(trial, {**values, "host": "192.0.2.1", f"{mode}_identity": "own"}) == ()
    assert departures(trial, {**values, "rate": 50.0, "count": 40}) == (
        "Messages was 40, and 50 was agreed upon.",
        "Rate was 50, and 100 was agreed upon.",
    )
    assert departures(trial, {**values, "trial_id": "0" * 16}) is None


def test_a_run_waits_for_its_start(
    owners: tuple[Owner, Owner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = owners
    starts = (wall_now() + timedelta(hours=1)).replace(microsecond=0)
    files = agree(a, b, tmp_path, "--starts", starts.isoformat())
    monkeypatch.setenv(HOME_VARIABLE, str(b.folder))
    times, slept = [starts - timedelta(seconds=2.5)], [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        times[0] += timedelta(seconds=seconds)

    monkeypatch.setattr(run, "wall_now", lambda: times[0])
    monkeypatch.setattr(run, "time", SimpleNamespace(sleep=sleep))
    run._wait_for_agreed_start(files.id)
    assert (times[0], sum(slept)) == (starts, 2.5)
    assert f"begins at {starts:%Y-%m-%d %H:%M:%S} UTC, in 2.50 s: waiting" in capsys.readouterr().err
    run._wait_for_agreed_start(files.id)
    run._wait_for_agreed_start("demo")
    assert sum(slept) == 2.5 and capsys.readouterr().err == ""


def test_a_run_that_waits_for_its_start_is_cancelled_by_ctrl_c(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, b = owners
    files = agree(a, b, tmp_path, "--starts", (wall_now() + timedelta(hours=1)).isoformat())
    waiting = a.begin("run", files.id)
    assert waiting.stderr is not None
    assert "waiting, Ctrl+C cancels" in waiting.stderr.readline()
    time.sleep(0.2)
    waiting.send_signal(signal.SIGINT)
    assert finish(waiting)[0] == CANCELLED
    assert not (a.folder / "runs.db").exists()
