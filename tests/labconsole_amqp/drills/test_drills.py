"""Drills: certificates are rotated and revoked while messages flow, over the embedded broker."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from labconsole.model.trial import Event, Level
from labconsole_amqp.drills.drill_parameters import DrillParameters, RevocationParameters, RotationParameters
from labconsole_amqp.drills.drill_trials import RevocationDrill, RotationDrill
from labconsole_amqp.series import OUTCOMES
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.wire.envelope import SEQUENCE_MASK
from labconsole_amqp.wire.sign_encrypt import Outcome as Opened
from tests.helpers.repeated_runs import repeated
from tests.helpers.trial_lab import Outcome
from tests.labconsole_amqp.lab import ThreadLab, left_within
from tests.labconsole_amqp.synthetic_samples import Tables

pytestmark = pytest.mark.usefixtures("stored_rsa_keys")

SHORT = {"payload": "small", "rate": 25.0, "before": 0.5, "after": 2.0}
OVERLAP_S = 1.5
"""Half a second was too short for a busy computer: the sender had not yet moved when the old identity was revoked."""
_LATE_MS = 200.0
"""A run whose messages leave so late is repeated: a fifth of what the roles have to move to another connection."""


class RotationLab(ThreadLab[RotationParameters, Outcome[RotationParameters]]):
    trial = RotationDrill()
    outcome = Outcome


class RevocationLab(ThreadLab[RevocationParameters, Outcome[RevocationParameters]]):
    trial = RevocationDrill()
    outcome = Outcome


@pytest.fixture(autouse=True)
def drills_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where drills have their databases; each must be gone with its run."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def steps(outcome: Outcome[Any]) -> list[str]:
    return [event.data["step"] for event in outcome.events_named("drill step")]


@pytest.mark.parametrize(
    ("rotate", "test", "rate", "expected", "moves"),
    [
        ("client", 3, 100.0, ["named", "withdrawn"], {"sender-0"}),
        ("server", 2, 25.0, ["named", "withdrawn"], {"sender-0", "receiver-0"}),
        ("root", 4, 25.0, ["trusted", "named", "withdrawn"], {"sender-0"}),
    ],
)
def test_a_rotation_loses_nothing_and_ends_the_old_one(
    rotate: str, test: int, rate: float, expected: list[str], moves: set[str], tmp_path: Path, drills_folder: Path
) -> None:
    settings = {**SHORT, "rotate": rotate, "test": test, "overlap": OVERLAP_S, "rate": rate}

    def kept_up(run: Outcome[RotationParameters]) -> bool:
        if run.failure is not None or not run.events_named("connected again"):
            return True
        return left_within(_LATE_MS)(run) and (rotate != "client" or bool(signed_before_the_rotation(run).any()))

    outcome = repeated(lambda number: RotationLab(tmp_path / str(number)).run(**settings), kept_up)
    assert outcome.failure is None, outcome.failure
    assert steps(outcome) == expected
    figures = outcome.figures
    assert figures["sent"] == figures["received"] == outcome.parameters.messaging().count
    assert (figures["lost"], figures["failed_verifications"], figures["unknown"]) == (0, 0, 0)
    moved = outcome.events_named("connected again")
    assert {event.source for event in moved} == moves
    assert figures["reconnect_time"] == pytest.approx(max(event.data["took_ns"] for event in moved) / 1e6)
    assert figures["old_refused_after"] > 0
    assert set(outcome.verdicts.values()) == {"pass"}, outcome.evaluation.verdicts
    if rotate != "server":
        (refusal,) = outcome.events_named("old identity refused")
        assert ("revoked" if rotate == "client" else "") in refusal.message
    assert not list(drills_folder.iterdir())
    if rotate == "client":
        assert signed_before_the_rotation(outcome).any()
        assert not outcome.samples.table("received", "receiver-0")["outcome"].any()


def signed_before_the_rotation(outcome: Outcome[Any]) -> NDArray[np.bool_]:
    """Which messages were signed with the old certificate, and arrived once the receiver knew the new one.

    The receiver learns the new certificate before the sender does, and keeps the old one until it is revoked.
    Between the two are a few hundredths of a second: the rate is so high that messages arrive in them.
    """
    used = {event.source: event.t_ns for event in reversed(outcome.events_named("identities used"))}
    received, sent = outcome.samples.table("received", "receiver-0"), outcome.samples.table("sent", "sender-0")
    signed_before = np.isin(received["number"] & SEQUENCE_MASK, sent["seq"][sent["sent_ns"] < used["sender-0"]])
    between: NDArray[np.bool_] = (received["received_ns"] > used["receiver-0"]) & signed_before
    return between


def revoked(folder: Path, revoke: str) -> Outcome[RevocationParameters]:
    """A drill in which the sender's certificates are revoked."""
    return repeated(
        lambda number: RevocationLab(folder / str(number)).run(revoke=revoke, **SHORT), left_within(_LATE_MS)
    )


@pytest.mark.parametrize("revoke", ["both", "connection"])
def test_a_revoked_sender_is_turned_away(revoke: str, tmp_path: Path, drills_folder: Path) -> None:
    outcome = revoked(tmp_path, revoke)
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert figures["time_to_close"] > 0
    assert figures["sent"] < outcome.parameters.messaging().count
    assert "lost" not in figures  # what was not sent is not lost
    (away,) = outcome.events_named("sender turned away")
    assert "is revoked" in away.message
    assert outcome.verdicts == dict.fromkeys(
        ("the connection is closed within 2 s", "the revoked identity cannot connect again"), "pass"
    )
    assert not list(drills_folder.iterdir())


def test_messages_of_a_revoked_signer_are_refused_and_its_connection_stays(tmp_path: Path) -> None:
    outcome = revoked(tmp_path, "messages")
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert figures["sent"] == figures["received"] == outcome.parameters.messaging().count
    assert not outcome.events_named("connection lost")
    (received,) = (outcome.samples.table("received", role) for role in outcome.samples.roles("received"))
    refused = received["outcome"] == OUTCOMES.index(Opened.SIGNER_REFUSED)
    first = int(np.argmax(refused))
    assert refused.any() and refused[first:].all() and not received["outcome"][:first].any()
    (withdrawn,) = outcome.events_named("drill step")
    assert figures["time_to_refuse"] == pytest.approx((received["received_ns"][first] - withdrawn.t_ns) / 1e6)
    late = (received["received_ns"] > withdrawn.t_ns) & ~refused
    assert figures["accepted_after_revocation"] == np.count_nonzero(late)
    assert outcome.verdicts == {"messages are refused within 2 s": "pass"}


def test_a_cancelled_drill_leaves_nothing_and_removes_what_a_killed_one_has_left_a_day_ago(
    tmp_path: Path, drills_folder: Path
) -> None:
    old, new = drills_folder / "labconsole-drill-old", drills_folder / "labconsole-drill-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    outcome = RotationLab(tmp_path / "run", during=lambda lab: lab.cancel()).run(**SHORT | {"before": 60.0})
    assert outcome.failure is None
    assert steps(outcome) == [] and "old_refused_after" not in outcome.figures
    assert outcome.verdicts["the old one is refused within 2 s"] == "unknown"
    assert list(drills_folder.iterdir()) == [new]


def test_each_drill_is_a_run_of_messages_that_lasts_as_long_as_its_steps() -> None:
    root = RotationParameters(rotate="root", overlap=2.0, before=1.0, after=3.0, rate=10.0)
    assert root.messaging().count == 80
    assert RevocationParameters(revoke="both").messaging().sender_message_identity == ""
    assert RevocationParameters(revoke="messages").messaging().sender_message_identity == "drill-signer"
    with pytest.raises(ValidationError):
        DrillParameters(test=1)  # type: ignore[arg-type]


def test_messages_without_signatures_have_no_signer_to_revoke() -> None:
    with pytest.raises(ValidationError, match="messages of Test 2 are not signed"):
        RevocationParameters(test=2, revoke="messages")


def happened(t_ms: int, source: str, name: str, **data: Any) -> Event:
    return Event(t_ms * 1_000_000, source, Level.INFO, name, f"{name}.", data)


def test_a_drill_that_was_cut_short_is_neither_passed_nor_failed() -> None:
    events = [
        happened(1_000, "sender-0", "connection lost"),
        happened(7_000, "operators", "drill step", step="withdrawn"),
        happened(7_020, "operators", "old identity refused"),
    ]
    parameters = RevocationParameters(revoke="both")
    cut = RevocationDrill().evaluate(parameters, Tables({}), events)
    assert {verdict.result for verdict in cut.verdicts} == {"unknown"}
    figures = {metric.name: metric.value for metric in cut.metrics}
    assert "time_to_close" not in figures, "what was lost before has nothing to do with it"
    assert figures["accepted_after_revocation"] == 0
    done = [*events, happened(9_100, "sender-0", "connection lost"), happened(9_500, "operators", "drill done")]
    ended = RevocationDrill().evaluate(parameters, Tables({}), done)
    verdicts = {verdict.name: verdict.result for verdict in ended.verdicts}
    assert verdicts["the connection is closed within 2 s"] == "fail"
    assert verdicts["the revoked identity cannot connect again"] == "fail", "the sender was not turned away"


def test_drills_have_the_definitions_of_the_messages() -> None:
    assert RotationDrill.definitions == RevocationDrill.definitions == AmqpTrial.definitions
