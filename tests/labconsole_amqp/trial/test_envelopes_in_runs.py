"""Runs of Tests 3 and 4 with each envelope over the embedded broker: figures, sizes, refusals, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.validation_faults import fault_sentence
from labconsole_amqp.envelopes.formats import HARDENED, EnvelopeFormat
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.wire.payload import load_payload
from labconsole_amqp.wire.protected_message import decode_protected
from tests.helpers.repeated_runs import repeated
from tests.labconsole_amqp.lab import Lab, run, sent_at_full_speed
from tests.labconsole_amqp.other_clients import replaying
from tests.labconsole_amqp.run_judgements import all_good, as_drawn, refusals

pytestmark = pytest.mark.usefixtures("lab_home")


SIGNED_IN_CI = (EnvelopeFormat.COMPACT, EnvelopeFormat.XML_DSIG)


def signed(envelope: EnvelopeFormat) -> Any:
    """The case of Test 3 with this envelope."""
    return pytest.param(envelope, 3, marks=[] if envelope in SIGNED_IN_CI else pytest.mark.nightly)


@pytest.mark.parametrize(
    ("envelope", "test"), [*((envelope, 4) for envelope in HARDENED), *(signed(envelope) for envelope in HARDENED)]
)
def test_each_envelope_carries_a_run(envelope: EnvelopeFormat, test: int, tmp_path: Path) -> None:
    """One payload where messages are signed, drawn sizes where they are encrypted too.

    Nightly: signed messages of formats that CI tests as signed and encrypted ones.
    """
    sizes = {"message_sizes": "uniform", "smallest_size": 10, "largest_size": 3_000} if test == 4 else {}
    outcome = run(tmp_path / "run", test=test, envelope=envelope.value, count=30, numbered=True, **sizes)
    if sizes:
        as_drawn(outcome, 30)
    else:
        all_good(outcome, 30)
        payload = len(load_payload("fpl-tac").data)
        assert outcome.figures["sent_size"] == pytest.approx(outcome.parameters.message_size(payload), abs=1)
    wanted = {"sign_time", "verify_time"} | ({"encrypt_time", "decrypt_time"} if test == 4 else set())
    assert wanted <= outcome.figures.keys()
    example = decode_protected(outcome.artefacts["message.amqp"])
    assert example.content_type.decode() == envelope.content_types[test == 4]


def test_a_run_without_an_envelope_in_its_parameters_has_the_sources() -> None:
    assert AmqpParameters.of_stored({"test": 4}).envelope is EnvelopeFormat.SEED_2025
    with pytest.raises(ValidationError) as caught:
        AmqpParameters.model_validate({"test": 3, "envelope": "pgp"})
    assert "compact" in fault_sentence(caught.value, AmqpParameters)


def test_the_sources_envelope_is_warned_about_and_others_are_not() -> None:
    def warned(**settings: object) -> str:
        return " ".join(AmqpTrial().warnings(AmqpParameters.model_validate(settings)))

    assert "replayed" in warned(test=3) and "CBC" not in warned(test=3)
    assert "AES-CBC without a MAC" in warned(test=4)
    assert "seed-2025" not in warned(test=2) + warned(test=4, envelope="compact")


@pytest.mark.parametrize("test", (pytest.param(3, marks=pytest.mark.nightly), 4))
def test_replays_are_refused_and_counted(test: int, tmp_path: Path) -> None:
    """Nightly: Test 3, whose replays are counted in CI where connections are restored (below)."""
    lab = Lab(tmp_path / "run", during=replaying(5))
    outcome = lab.run(test=test, envelope="compact", count=100, loop="open", rate=50.0, numbered=True, patience=2.0)
    assert outcome.failure is None
    assert refusals(outcome) == {"replayed": 5}
    assert (outcome.figures["lost"], outcome.figures["duplicated"]) == (0, 5)
    assert outcome.verdicts["all messages were accepted"] == "fail"


def test_repeats_where_connections_are_restored_are_duplicates_and_only_one_was_lost_excuses_them(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path / "run", during=replaying(5))
    outcome = lab.run(
        test=3, envelope="compact", count=100, loop="open", rate=50.0, numbered=True, reconnect=5.0, patience=2.0
    )
    assert outcome.failure is None
    assert (outcome.figures["duplicated"], outcome.figures["failed_verifications"]) == (5, 0)
    assert outcome.verdicts["all messages were accepted"] == "pass"
    assert outcome.verdicts["no message arrived twice or from elsewhere"] == "fail", "no connection was lost"
    assert "failed" not in outcome.frame.channels, "the live figure is the stored one"


def test_several_senders_and_receivers_count_their_messages_each(tmp_path: Path) -> None:
    outcome = run(
        tmp_path / "run", test=4, envelope="hybrid", count=40, numbered=True, senders=3, receivers=2, crypto_threads=2
    )
    all_good(outcome, 120)


def test_both_phases_continue_the_numbers(tmp_path: Path) -> None:
    settings = {"test": 3, "envelope": "cose", "numbered": True, "loop": "both", "full_speed": 0.2, "open_loop": 0.4}
    outcome = repeated(lambda number: run(tmp_path / str(number), **settings, rate=50.0), sent_at_full_speed)
    assert outcome.failure is None
    assert outcome.figures["failed_verifications"] == outcome.figures["lost"] == 0
    assert outcome.figures["throughput"] > 0


def test_a_narrow_window_or_tolerance_is_that_of_the_parameters(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=3, envelope="hybrid", count=30, replay_window=1, time_tolerance=1.0)
    all_good(outcome, 30)
