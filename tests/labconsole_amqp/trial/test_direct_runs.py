"""Runs without a broker: a sender that is connected to the receiver, in each test, loop and envelope."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from pydantic import ValidationError

from labconsole.model.metrics import Verdict, VerdictKind
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_amqp.choices import Settlement
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import IDENTITIES_USED
from labconsole_amqp.trial import messaging_run
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.messaging_run import connect_command
from tests.helpers.forked_programs import own_children
from tests.labconsole_amqp.cut_relay import CutRelay, cut_relay
from tests.labconsole_amqp.lab import SHAPED, Lab, Outcome, ProcessLab
from tests.labconsole_amqp.other_clients import PACED, cutting
from tests.labconsole_amqp.run_judgements import all_arrived, all_good, nothing_lost
from tests.labconsole_amqp.states import NAMES, States, name_identity

CANARY = "canary-61b0"
AT_A_RATE = {"loop": "open", "rate": 150.0}


def run(folder: Path, **settings: Any) -> Outcome:
    return Lab(folder).run(broker="none", **settings)


def preflight(outcome: Outcome) -> dict[str, Verdict]:
    """Its verdicts by the name of the check."""
    verdicts = [one for one in outcome.evaluation.verdicts if one.kind is VerdictKind.PREFLIGHT]
    return {one.name.removeprefix("preflight: "): one for one in verdicts}


@pytest.mark.usefixtures("lab_home")
class TestRuns:
    @pytest.mark.parametrize(
        ("test", "payload"), [(1, "small"), (2, "small"), (3, "small"), (4, "small"), (1, "fpl-fixm"), (4, "fpl-fixm")]
    )
    def test_each_test_arrives_whole_and_has_the_figures_of_its_ends(
        self, test: int, payload: str, tmp_path: Path
    ) -> None:
        count = 40 if test >= 3 else 500
        outcome = run(tmp_path / "run", test=test, payload=payload, count=count)
        all_good(outcome, count)
        assert set(outcome.labelled("cpu_per_message")) == {"sender", "receiver"}
        assert outcome.samples.roles("depth") == [], "there is no queue"
        figures = outcome.figures
        # The receiver waits for the sender: its time says nothing.
        assert figures["connect_time"] > 0 and "receiver_link_time" not in figures
        tls = {event.data["tls"] for event in outcome.events_named("connected")}
        assert tls == ({None} if test == 1 else {"TLSv1.3"})

    def test_ends_are_processes_and_there_is_no_other(self, tmp_path: Path) -> None:
        before = own_children()
        lab = ProcessLab(tmp_path / "run")
        all_good(lab.run(broker="none", test=2, count=1_000), 1_000)
        assert lab.started == ["receiver-0", "sender-0"]
        assert own_children() <= before

    @pytest.mark.parametrize("test", (1, 3))
    def test_the_preflight_names_the_other_end_and_no_broker(self, test: int, tmp_path: Path) -> None:
        checks = preflight(run(tmp_path / "run", test=test, count=10))
        names = {"TCP", "TLS", "other end's certificate", "revocation", "SASL", "link", "message size", "clock offset"}
        assert checks.keys() == names | ({"own certificate"} if test == 3 else set())
        assert {check.result for check in checks.values()} == {"pass", "not applicable"}
        for check in checks.values():
            assert "queue" not in check.reason
        by_lab = [check.reason for name, check in checks.items() if "certificate" not in name and name != "SASL"]
        assert not any("broker" in reason for reason in by_lab)
        assert "has connected" in checks["TCP"].reason and "Connected to" in checks["TCP"].reason
        if test == 3:
            # The lab's identity that listens has that name.
            assert checks["other end's certificate"].reason.startswith("Receiver: state-a,")
            assert "Sender: broker," in checks["other end's certificate"].reason

    def test_a_certificate_for_another_name_fails_as_that_of_the_other_end(self, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", test=2, count=10, server_name="other.example")
        assert "is not for other.example" in str(outcome.failure)
        checks = preflight(outcome)
        assert checks["other end's certificate"].result == "fail" and "broker's certificate" not in checks
        assert outcome.events_named("refused client")[0].source == "receiver-0"

    @pytest.mark.parametrize(
        "more",
        [
            {"loop": "open", "rate": 500.0, "count": 100},
            {"loop": "both", "full_speed": 0.2, "open_loop": 0.3, "rate": 200.0},
            {"settlement": "pre-settled", "count": 500},
            {"credit": 1, "count": 50},
            {"count": 60, "warm_up": 40},
        ],
        ids=("open", "both phases", "pre-settled", "one credit", "warm-up"),
    )
    def test_loops_and_settlements(self, more: dict[str, Any], tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", **more)
        assert outcome.failure is None, outcome.failure
        assert outcome.figures["lost"] == outcome.figures["duplicated"] == 0 < outcome.figures["received"]
        assert set(outcome.verdicts.values()) == {"pass"}

    def test_a_hardened_envelope(self, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", test=4, envelope="cose", count=30)
        all_good(outcome, 30)
        assert outcome.figures["decrypt_time"] > 0

    def test_another_key_signs_each_message(self, tmp_path: Path) -> None:
        pool = {"test": 3, "envelope": "cose", "payload": "small", "message_keys": "pool", "count": 20}
        outcome = run(tmp_path / "run", **pool)
        all_good(outcome, 20)
        assert outcome.figures["keys_generated"] == 21

    def test_a_full_link_bounds_the_run(self, tmp_path: Path) -> None:
        outcome = run(tmp_path / "run", test=4, payload="fpl-fixm", count=8, warm_up=2, **SHAPED)
        all_arrived(outcome, 10)
        assert outcome.figures["link_use"] > 50 and outcome.figures["throughput"] < 8

    def test_a_delay_is_part_of_connecting_and_passed_once_by_a_message(self, tmp_path: Path) -> None:
        delayed = {**SHAPED, "link_rate": 50.0, "link_delay": 40.0}
        outcome = run(tmp_path / "run", loop="open", rate=50.0, count=25, **delayed)
        all_arrived(outcome, 25)
        assert outcome.figures["connect_time"] >= 2 * 80 and 40 <= outcome.figures["latency_min"] < 80

    def test_a_cancelled_run_ends_soon(self, tmp_path: Path) -> None:
        def cancel(lab: Lab) -> None:
            lab.until("received", 50)
            lab.cancel()

        outcome = Lab(tmp_path / "run", during=cancel).run(broker="none", count=100_000, loop="open", rate=500.0)
        assert outcome.failure is None and 50 <= outcome.figures["received"] < 100_000

    def test_a_receiver_that_awaits_its_sender_is_cancelled_too(self, tmp_path: Path) -> None:
        """The shaper calibrates itself before the sender connects."""
        began = time.monotonic()
        lab = Lab(tmp_path / "run")
        timer = threading.Timer(0.5, lab.cancel)
        timer.start()
        outcome = lab.run(broker="none", count=10, **{**SHAPED, "link_calibration": 60.0})
        timer.join()
        assert outcome.figures.get("received", 0) == 0 and time.monotonic() - began < 20

    def test_what_is_entered_for_an_external_broker_has_no_effect(self, tmp_path: Path) -> None:
        other = {"host": "nowhere.invalid", "port": 1, "username": "operator", "leftover": "drain"}
        all_good(run(tmp_path / "run", count=10, **other), 10)

    def test_a_warning_says_what_is_measured(self) -> None:
        def warned(**settings: object) -> str:
            return " ".join(AmqpTrial().warnings(AmqpParameters.model_validate(settings)))

        assert "no queue stores messages" in warned(broker="none") and "Embedded broker" not in warned(broker="none")
        assert "no queue stores messages" not in warned()


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CutRelay]]:
    """The relay over which the sender connects, once it is told where."""
    found: list[CutRelay] = []
    with ExitStack() as stack:

        def over_relay(host: str, port: int, shaper: int | None = None) -> dict[str, Any]:
            found.append(stack.enter_context(cut_relay(port)))
            return connect_command(host, found[-1].port, shaper)

        monkeypatch.setattr(messaging_run, "connect_command", over_relay)
        yield found


@pytest.mark.usefixtures("lab_home")
class TestReconnect:
    @pytest.mark.parametrize(("test", "numbered"), [(1, False), (4, True)])
    def test_no_message_is_lost_with_a_connection(
        self, relay: list[CutRelay], test: int, numbered: bool, tmp_path: Path
    ) -> None:
        pace = {**PACED, "count": 2_000} if test < 3 else {"loop": "open", "rate": 75.0, "count": 150}
        lab = Lab(tmp_path / "run", during=lambda lab: cutting(relay[0], 3, pace["count"] // 5)(lab))
        outcome = lab.run(broker="none", test=test, numbered=numbered, reconnect=20.0, **pace)
        nothing_lost(outcome, pace["count"])
        # Each end has lost its connection, and restores it by itself.
        assert {event.source for event in outcome.events_named("connection lost")} == {"receiver-0", "sender-0"}
        assert outcome.figures["reconnects"] >= 2
        assert 0 < outcome.figures["reconnect_time"] < 10_000

    def test_without_a_time_to_reconnect_a_lost_connection_ends_the_run(
        self, relay: list[CutRelay], tmp_path: Path
    ) -> None:
        lab = Lab(tmp_path / "run", during=lambda lab: cutting(relay[0], 1, 50)(lab))
        outcome = lab.run(broker="none", count=100_000, loop="open", rate=500.0)
        assert "was lost" in str(outcome.failure) and "broker" not in str(outcome.failure)

    def test_a_sender_that_does_not_return_ends_the_run(self, relay: list[CutRelay], tmp_path: Path) -> None:
        def cut(lab: Lab) -> None:
            lab.until("received", 50)
            relay[0].cut(refuse=1_000)

        lab = Lab(tmp_path / "run", during=cut)
        outcome = lab.run(broker="none", count=100_000, loop="open", rate=500.0, reconnect=1.0)
        assert "could not be restored within 1 s" in str(outcome.failure)
        assert outcome.figures["received"] >= 50 and "lost" not in outcome.figures

    def test_pre_settled_messages_that_were_under_way_are_lost_and_counted(
        self, relay: list[CutRelay], tmp_path: Path
    ) -> None:
        more = {"settlement": Settlement.PRE_SETTLED, "reconnect": 20.0, "patience": 1.0, "numbered": True}
        lab = Lab(tmp_path / "run", during=lambda lab: cutting(relay[0], 2, 400)(lab))
        outcome = lab.run(broker="none", count=2_000, **PACED, **more)
        assert outcome.failure is None, outcome.failure
        figures = outcome.figures
        assert figures["lost"] == figures["sent"] - figures["received"] and figures["duplicated"] == 0


class TestNamedIdentities:
    """The receiver listens with the identity that is the broker's elsewhere."""

    def test_the_named_identity_listens(self, states: States, tmp_path: Path) -> None:
        states.crl(states.alpha)
        states.crl(states.beta)
        outcome = run(tmp_path / "run", test=4, count=20, payload="small", **NAMES)
        all_good(outcome, 20)
        checks = preflight(outcome)
        assert "Sender: beta-broker," in checks["other end's certificate"].reason
        assert "By the CRLs the other end's certificate is not revoked." in checks["revocation"].reason
        listens = x509.load_pem_x509_certificates(outcome.artefacts["broker.pem"])[0]
        assert "beta-broker" in listens.subject.rfc4514_string()

    def test_what_changes_in_the_database_during_a_run_is_not_followed(self, states: States, tmp_path: Path) -> None:
        def change(lab: Lab) -> None:
            lab.until("received", 10)
            states.crl(states.alpha, "alpha-client")

        outcome = Lab(tmp_path / "run", during=change).run(broker="none", test=2, count=300, **NAMES, **AT_A_RATE)
        all_good(outcome, 300)
        assert not outcome.events_named(IDENTITIES_USED)

    def test_a_revoked_sender_is_refused_with_the_reason(self, states: States, tmp_path: Path) -> None:
        sender = states.files("alpha-client")
        states.crl(states.alpha, "alpha-client")
        trust = tmp_path / "trust.pem"
        assert sender.trust is not None
        trust.write_bytes(sender.trust.read_bytes())
        by_file = {"sender_certificate": str(sender.certificate), "sender_key": str(sender.key), "trust": str(trust)}
        by_file |= {"sender_passphrase_file": str(sender.passphrase_file), "sender_identity": ""}
        outcome = run(tmp_path / "run", test=2, count=5, **NAMES | by_file)
        assert "the certificate of alpha-client is revoked" in str(outcome.failure)
        assert "alpha-client is revoked" in outcome.events_named("refused client")[0].message

    def test_a_passphrase_that_the_operator_knows_opens_the_key_of_the_port(
        self, states: States, tmp_path: Path
    ) -> None:
        name_identity(states.store, states.beta, states.beta, "asked", CertificateProfile.TLS_SERVER, passphrase=CANARY)
        settings = {"broker": "none", "test": 2, "count": 5, **NAMES, "broker_identity": "asked"}
        requests = AmqpTrial().secrets(AmqpParameters.model_validate(settings))
        (asked,) = [request for request in requests if request.source.must_be_asked()]
        lab = Lab(tmp_path / "run", secrets={asked.key: Secret(CANARY)})
        all_good(lab.run(**settings), 5)
        kept = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
        assert kept and not [octets for octets in kept if CANARY.encode() in octets]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"senders": 2, "numbered": True}, "one sender connects to one receiver: set `senders` to 1"),
        ({"receivers": 2, "numbered": True}, "one sender connects to one receiver: set `receivers` to 1"),
        ({"address": "flights weather"}, "one sender connects to one receiver: name one queue"),
        ({"mode": "sender"}, "needs an external broker: set `broker` to external"),
        ({"mode": "receiver"}, "needs an external broker: set `broker` to external"),
        ({**SHAPED, "link_ends": "receiver"}, "it is the sender that connects: set `link_ends` to both or sender"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_field(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        AmqpParameters.model_validate({"broker": "none", **values})
