"""Runs in which another key signs each message: generated ahead in a token, loaded to sign, destroyed after it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.validation_faults import fault_sentence
from labconsole.security.lab_identities import STATE_A, lab_message_identity, load_identity
from labconsole.security.secrets import Secret
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.content_format import ContentKeys
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.message_envelope import HardenedEnvelope, MessageForm
from labconsole_amqp.envelopes.signing import KeySigner
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.identities import RunIdentities, secret_requests
from labconsole_amqp.trial.messaging_run import role_specs
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.envelope_layout import layout_of
from labconsole_amqp.wire.payload import load_payload
from tests.helpers.forked_programs import own_children
from tests.labconsole_amqp.lab import Lab, ProcessLab
from tests.labconsole_amqp.message_token import PIN, SIGNERS, SUCCESSOR
from tests.labconsole_amqp.other_clients import inject, replaying
from tests.labconsole_amqp.run_judgements import all_good, refusals
from tests.labconsole_amqp.states import NAMES, States

POOL: dict[str, Any] = {"test": 3, "envelope": "cose", "payload": "small", "message_keys": "pool", "patience": 2.0}
EC_SIGNER = SIGNERS[KeyKind.P_256]
OF_KEYS = {"key_load_time", "key_load_p99", "key_sign_time", "key_sign_p99", "key_destroy_time", "key_destroy_p99"}


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize(
    ("test", "envelope", "kind", "count", "lab"),
    [
        (3, "cose", KeyKind.P_256, 20, Lab),
        (4, "cms", KeyKind.P_256, 20, Lab),
        (3, "xml-dsig", KeyKind.RSA_2048, 2, Lab),
        pytest.param(4, "cms", KeyKind.P_256, 20, ProcessLab, marks=pytest.mark.nightly),
    ],
    ids=("cose", "cms encrypted", "xml rsa", "processes"),
)
def test_each_message_is_signed_by_a_key_of_its_own(
    test: int, envelope: str, kind: KeyKind, count: int, lab: type[Lab], tmp_path: Path
) -> None:
    """Nightly: a pool in a sender's process; keys of a token in one are tested in CI in `test_token_message_keys`."""
    before = own_children()
    settings = {"test": test, "envelope": envelope, "count": count, "sender_message_identity": SIGNERS[kind]}
    outcome = lab(tmp_path / "run", secrets={"pin office": PIN}).run(**POOL | NAMES | settings)
    all_good(outcome, count)
    figures = outcome.figures
    assert figures["keys_generated"] == count + 1 and figures["key_generation_time"] > 0
    assert min(figures[name] for name in OF_KEYS) > 0
    parts = sum(figures[f"key_{step}_time"] for step in ("load", "sign", "destroy"))
    assert parts < figures["sign_time"], "the steps in the token are a part of signing"
    assert outcome.column("key_uses", "seq").tolist() == list(range(count))
    assert own_children() <= before, "the token's process is over"
    kept = {path.name: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert b"message-keys.list" in kept["sender-0.spool"]
    assert not [name for name, octets in kept.items() if PIN.reveal().encode() in octets]


@pytest.mark.usefixtures("lab_home")
def test_without_an_identity_the_labs_token_signs() -> None:
    pooled = AmqpParameters.model_validate(POOL)
    assert not list(secret_requests(pooled)), "its PIN is kept by the console"
    identities = RunIdentities(pooled)
    token = identities.message_token("sender")
    assert token is not None and token.token == "lab"
    assert identities.certificate("sender_message") == token.certificate
    in_file = RunIdentities(AmqpParameters.model_validate(POOL | {"message_keys": "identity"}))
    assert in_file.message_token("sender") is None
    assert in_file.message_subject("sender") == identities.message_subject("sender")
    specs = list(chain.from_iterable(role_specs(pooled, identities)))
    assert [spec.name for spec in specs if spec.settings["message_token"]] == ["sender-0"]


@pytest.mark.nightly
@pytest.mark.usefixtures("lab_home")
def test_the_labs_token_carries_a_run(tmp_path: Path) -> None:
    """Nightly: alone finds that senders cannot share one key of the lab's token; CI has pools of that token."""
    settings = {"message_keys": "token", "senders": 2, "numbered": True, "count": 10}
    outcome = Lab(tmp_path / "run").run(**POOL | settings)
    all_good(outcome, 20)
    assert outcome.figures.keys().isdisjoint(OF_KEYS)


@pytest.mark.usefixtures("lab_home")
def test_each_of_several_queues_has_the_keys_of_its_senders(tmp_path: Path) -> None:
    several = {"address": "a b", "senders": 2, "receivers": 2, "numbered": True, "count": 10}
    outcome = Lab(tmp_path / "run").run(**POOL | several)
    assert outcome.failure is None and not refusals(outcome)
    assert (outcome.figures["received"], outcome.figures["lost"]) == (20, 0)
    assert set(outcome.verdicts.values()) == {"pass"} and outcome.figures.keys() >= OF_KEYS


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize("keys", ["token", "pool"])
def test_a_wrong_pin_is_tried_by_the_first_of_several_senders(keys: str, tmp_path: Path) -> None:
    settings = {"message_keys": keys, "senders": 3, "numbered": True, "sender_message_identity": EC_SIGNER}
    outcome = Lab(tmp_path / "run", secrets={"pin office": Secret("4321")}).run(**POOL | NAMES | settings)
    assert outcome.failure is not None and "PIN" in outcome.failure
    assert sorted(path.name for path in (tmp_path / "run").rglob("sender-*.spool")) == ["sender-0.spool"]


@pytest.mark.usefixtures("lab_home")
def test_replays_and_keys_that_are_not_of_the_pool_are_refused(tmp_path: Path) -> None:
    """The lab's own key in a file, which signs messages in other runs, has signed no list here."""
    parameters = AmqpParameters.model_validate(POOL)
    identities = RunIdentities(parameters)
    key = load_identity(lab_message_identity(STATE_A, KeyType.P_256), "state-a").private_key
    names = (identities.message_subject("sender"), identities.message_subject("receiver"), parameters.address)
    content = EnvelopeFormat.COSE.content_format()(ContentKeys(*names, signer=KeySigner(key)))
    envelope = HardenedEnvelope(MessageForm(Protection.SIGNED), EnvelopeFormat.COSE, content)
    message = envelope.protect(load_payload("small").data, message_number(0, 1000)).message

    def during(lab: Lab) -> None:
        lab.until("received", 10)
        inject(lab, [(message, layout_of(message).stamp.start)], tls=True)
        replaying(5)(lab)

    settings = {"count": 100, "loop": "open", "rate": 50.0, "numbered": True}
    outcome = Lab(tmp_path / "run", during=during).run(**POOL | settings)
    assert outcome.failure is None
    assert refusals(outcome) == {"unknown signer": 1, "replayed": 5}


@pytest.mark.usefixtures("lab_home")
def test_a_run_ends_when_its_pool_is_empty(tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(
        **POOL | {"loop": "both", "full_speed": 5.0, "numbered": True, "pool_keys": 20, "crypto_threads": 1}
    )
    assert outcome.failure is not None
    assert "The pool is empty: each of its 20 keys has signed a message" in outcome.failure
    assert '"Keys in the pool" (pool_keys)' in outcome.failure
    assert outcome.figures["sent"] == 20


def test_both_ends_keep_the_identity_that_has_signed_the_list(office: States, tmp_path: Path) -> None:
    """The keys of its successor are not in the pool."""

    def during(lab: Lab) -> None:
        lab.until("received", 15)
        with office.store.change() as change:
            change.name_identity(EC_SIGNER, office.store.identity(SUCCESSOR).certificate)

    outcome = Lab(tmp_path / "run", secrets={"pin office": PIN}, during=during).run(
        **POOL | NAMES | {"count": 100, "loop": "open", "rate": 50.0, "sender_message_identity": EC_SIGNER}
    )
    all_good(outcome, 100)
    kept = {event.source: event.message for event in outcome.events_named("identities kept")}
    assert kept.keys() == {"sender-0", "receiver-0"}
    assert "the keys of its pool are vouched for by the message identity of its start" in kept["sender-0"]
    assert "The list of the message keys of sender 0 is refused" in kept["receiver-0"]


@pytest.mark.usefixtures("states")
def test_an_identity_in_a_file_makes_no_pool(tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(
        **POOL | NAMES | {"envelope": "cms", "count": 5, "sender_message_identity": "alpha-second"}
    )
    assert outcome.failure is not None and "is in a file" in outcome.failure and "(message_keys)" in outcome.failure


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"envelope": "compact"}, "do not name the key that signs them"),
        ({"envelope": "seed-2025"}, "choose one of cms, jose, cose, xml-dsig"),
        ({"envelope": "ml-dsa-44"}, "a token signs with RSA and ECDSA P-256 keys"),
        ({"envelope": "hybrid", "message_keys": "token"}, "a token signs with RSA and ECDSA P-256 keys"),
        ({"mode": "sender", "broker": "external"}, "set `mode` to both"),
        ({"count": 100_000, "warm_up": 1}, "a pool has 100,000 keys at most"),
        ({"loop": "soak"}, "a soak sends more messages than a pool has keys"),
        ({"sender_identity": "alpha-client"}, "as `sender_message_identity`"),
        ({"sender_certificate": "a.pem", "sender_key": "a.key"}, "as `sender_message_identity`"),
    ],
    ids=("compact", "source", "ml-dsa", "hybrid", "one end", "too many", "soak", "identity", "file"),
)
def test_what_a_pool_cannot_be_used_with_is_a_fault_of_its_field(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AmqpParameters.model_validate(POOL | settings)
    (fault,) = caught.value.errors()
    assert sentence in fault["msg"]
    assert fault["loc"] == (("sender_certificate",) if "sender_certificate" in settings else ("message_keys",))
    assert fault_sentence(caught.value, AmqpParameters)


@pytest.mark.parametrize("settings", [{"test": 2}, {"message_keys": "identity"}])
def test_without_signatures_or_a_pool_the_envelope_is_free(settings: dict[str, Any]) -> None:
    parameters = AmqpParameters.model_validate(POOL | {"envelope": "compact"} | settings)
    assert parameters.pool_size == 0
