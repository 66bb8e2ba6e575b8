"""Proposals that another console, or a hostile one, has signed: what is refused, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from labconsole import __version__
from labconsole.agreements.documents import Acceptance, Party, Proposal, received, signed_pem
from labconsole.agreements.review import Review, console_run, counterpart_of, review
from labconsole.errors import BadInput, UserError
from labconsole.model.plugin import Plugins
from labconsole.paths import HOME_VARIABLE
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.signing_identities import SigningIdentity, signing_identity
from labconsole.security.x509 import cms
from labconsole.security.x509.validity import Validity
from labconsole_amqp.counterpart import LOCAL, OWN
from labconsole_amqp.merging.merged_samples import _SAME
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from tests.labconsole.agreements.two_owners import Owner

ID = "0123456789abcdef"
NOW = datetime.now(UTC).replace(microsecond=0)
SENDER = {"mode": "sender", "broker": "external", "trial_id": ID}


def proposal(**changes: Any) -> Proposal:
    """A proposal as the console writes it, and then changed."""
    other = counterpart_of(console_run(AmqpTrial(), {**SENDER, **changes.pop("sender", {})}))
    values: dict[str, Any] = {
        "written": NOW,
        "id": ID,
        "title": "A trial",
        "kind": "amqp.messaging",
        "proposer": Party(state="State A", role="sender"),
        "accepter": Party(state="", role="receiver"),
        "starts": None,
        "valid_until": NOW + timedelta(days=1),
        "parameters": {**other.values, **changes.pop("parameters", {})},
    }
    return Proposal(**{**values, **changes})


@pytest.fixture
def signer(owners: tuple[Owner, Owner]) -> SigningIdentity:
    return signing_identity("a-signer", owners[0].pki)


Reviewer = Callable[[bytes], Review]


@pytest.fixture
def reviewed(owners: tuple[Owner, Owner]) -> Reviewer:
    """State B's review of a signed file."""

    def by_b(data: bytes) -> Review:
        with PkiReader.open(owners[1].pki) as reader:
            return review(data, reader.snapshot(), Plugins.discover())

    return by_b


def test_a_proposal_of_the_console_is_not_refused(signer: SigningIdentity, reviewed: Reviewer) -> None:
    seen = reviewed(signed_pem(proposal(), signer))
    assert seen.refusals == ()
    assert seen.accepted_run().values["mode"] == "receiver"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"valid_until": NOW - timedelta(seconds=1)}, "was valid until"),
        ({"written": NOW + timedelta(hours=1)}, "is in the future"),
        ({"kind": "no.such"}, "is not installed here"),
        ({"kind": "keypool.simulation"}, "refuses the parameters"),
        ({"parameters": {"no_such": 1}}, "refuses the parameters"),
        ({"parameters": {"count": 0}}, "refuses the parameters"),
        ({"parameters": {"mode": "both"}}, "runs on one console alone"),
        ({"parameters": {"trial_id": "another"}}, "is not that of the proposal"),
        ({"parameters": {"payload": "/etc/passwd"}}, "/etc/passwd"),
        ({"parameters": {"receiver_key": "/home/b/key.pem", "test": 1}}, "names files or identities of this console"),
        ({"parameters": {"receiver_identity": "b-tls"}}, "names files or identities of this console"),
        ({"parameters": {"password_file": "/home/b/password"}}, "names files or identities of this console"),
        ({"accepter": Party(state="", role="sender")}, "names other roles"),
        ({"parameters": {"count": "50"}}, "does not have all parameters"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_proposal_is_refused_with_the_reason(
    changes: dict[str, Any], reason: str, signer: SigningIdentity, reviewed: Reviewer
) -> None:
    seen = reviewed(signed_pem(proposal(**changes), signer))
    assert len(seen.refusals) == 1 and reason in seen.refusals[0]
    with pytest.raises(BadInput, match=reason):
        seen.accepted_run()


def test_a_sender_is_not_made_to_send_a_file_of_its_own(signer: SigningIdentity, reviewed: Reviewer) -> None:
    roles = {"proposer": Party(state="State A", role="receiver"), "accepter": Party(state="", role="sender")}
    hostile = proposal(sender={"mode": "receiver", "numbered": True}, parameters={"payload": "/etc/passwd"}, **roles)
    assert hostile.parameters["mode"] == "sender"
    assert "/etc/passwd" in reviewed(signed_pem(hostile, signer)).refusals[0]


def test_a_proposal_without_all_parameters_is_refused(signer: SigningIdentity, reviewed: Reviewer) -> None:
    made = proposal()
    fewer = {name: value for name, value in made.parameters.items() if name != "credit"}
    seen = reviewed(signed_pem(made.model_copy(update={"parameters": fewer}), signer))
    assert "does not have all parameters" in seen.refusals[0]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            lambda text: text.replace(f'"console":"{__version__}"', '"console":"9.9.9"'),
            "bring both consoles to the same",
        ),
        (lambda text: text.replace("agreement 1", "agreement 2"), "bring both consoles to the same"),
        (lambda text: text.replace("labconsole agreement", "another thing"), "is not an agreement"),
        (lambda text: text.replace('","', '", "'), "is not written as the console writes it"),
        (lambda text: text[:-1] + ',"title":"B"}', "is not written as the console writes it"),
        (lambda text: text[:-1] + ',"more":"B"}', "there is no key more"),
        (lambda text: "[" * 100_000, "is not an agreement"),
        (lambda text: text.replace('"starts":null', '"starts":"2026-12-01T12:00:00+08:00"'), "is in UTC"),
    ],
)
def test_a_document_that_the_console_does_not_write_is_refused(
    changed: Callable[[str], str], reason: str, signer: SigningIdentity, reviewed: Reviewer
) -> None:
    content = changed(proposal().encoded().decode()).encode()
    with pytest.raises(BadInput, match=reason):
        reviewed(signer.sign(content, "proposal"))


def test_an_acceptance_is_not_a_proposal(signer: SigningIdentity, reviewed: Reviewer) -> None:
    answer = Acceptance(written=NOW, id=ID, proposal_sha256="0" * 64, accepter=Party(state="State A", role="receiver"))
    with pytest.raises(BadInput, match="has the document acceptance, and here a proposal is needed"):
        reviewed(signed_pem(answer, signer))


def test_an_expired_certificate_is_not_trusted(
    owners: tuple[Owner, Owner], signer: SigningIdentity, reviewed: Reviewer
) -> None:
    a, _ = owners
    past = Validity(NOW - timedelta(days=9), NOW - timedelta(days=1))
    a.name_signer("a-old", validity=past)
    with pytest.raises(UserError, match="is of no use"):
        signing_identity("a-old", a.pki)
    with PkiReader.open(a.pki) as reader:
        snapshot = reader.snapshot()
    old = snapshot.certificates[-1]
    from labconsole.security.pki.keys import opened_key

    with opened_key(a.pki, snapshot.key_by_id[old.key or 0]) as key:
        signed = cms.sign(proposal().encoded(), old.certificate, key)
    assert "not trusted here" in (refusal := reviewed(signed).refusals[0]) and "expired" in refusal.lower()


def test_the_other_console_has_all_that_both_ends_must_have_alike() -> None:
    parameters = AmqpParameters(
        mode="sender", broker="external", test=4, envelope="cms", loop="open", rate=77.0, count=33, senders=2,
        numbered=True, message_sizes="mix", size_seed=9, sender_identity="a", username="u", link_rate=2.0,
        trial_id=ID, host="192.0.2.1", clock_queue="clocks",
    )  # fmt: skip
    other = AmqpTrial().counterpart(parameters)
    assert other is not None and other.mode == "receiver"
    values, theirs = parameters.model_dump(mode="json"), other.model_dump(mode="json")
    assert {name: theirs[name] for name in _SAME} == {name: values[name] for name in _SAME}
    changed = {name for name in values if values[name] != theirs[name]}
    assert changed == {"mode", "sender_identity", "username", "link_rate"} and changed - {"mode"} <= LOCAL < OWN
    assert AmqpTrial().counterpart(AmqpParameters()) is None and AmqpTrial().console_part(AmqpParameters()) is None


def test_a_message_is_judged_by_the_state_that_is_asked(
    owners: tuple[Owner, Owner], signer: SigningIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, b = owners
    monkeypatch.setenv(HOME_VARIABLE, str(b.folder))
    from labconsole.security.pki.store import PkiStore
    from tests.labconsole.security.pki.pki_lab import OwnState

    with PkiStore.open(b.pki) as store:
        second = OwnState(store, "State B2").state
        snapshot = store.snapshot()
    data = signed_pem(proposal(), signer)
    assert received(data, Proposal, snapshot).signer.trusted
    assert not received(data, Proposal, snapshot, second.id).signer.trusted
    assert json.loads(cms.verify(data).content)["id"] == ID


def test_a_proposal_in_the_name_of_another_state_shows_who_signed_it(
    signer: SigningIdentity, reviewed: Reviewer
) -> None:
    claimed = signed_pem(proposal(proposer=Party(state="State Z", role="sender")), signer)
    assert any("State A, which calls itself State Z, plays sender" in one for one in reviewed(claimed).sentences())
    honest = signed_pem(proposal(), signer)
    assert any(one.startswith("State A plays sender, this console plays") for one in reviewed(honest).sentences())


@pytest.mark.parametrize(
    ("mode", "test", "named", "said"),
    [
        ("receiver", 2, {}, ()),
        (
            "receiver",
            3,
            {},
            ("Accepts messages that are signed by the lab's sender on this console", "its certificate"),
        ),
        ("receiver", 4, {"sender_certificate": "a.pem"}, ("Accepts messages that are signed by a.pem.",)),
        ("sender", 3, {}, ()),
        ("sender", 4, {}, ("Encrypts messages to the lab's receiver on this console", "as receiver_certificate.")),
        ("sender", 4, {"receiver_certificate": "b.pem"}, ("Encrypts messages to b.pem.",)),
    ],
)
def test_a_person_reads_whose_certificate_protects_the_messages(
    mode: str, test: int, named: dict[str, str], said: tuple[str, ...]
) -> None:
    parameters = AmqpParameters.model_validate({**SENDER, "mode": mode, "test": test, **named})
    part = AmqpTrial().console_part(parameters)
    assert part is not None
    found = [effect for effect in part.effects if effect.startswith(("Accepts", "Encrypts"))]
    assert len(found) == (1 if said else 0) and all(text in found[0] for text in said)
