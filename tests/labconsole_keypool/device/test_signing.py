"""The signing engine on a real token: a fresh key for every request, also from a manipulated store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.profiles.timing_profile import load_timing
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.errors import TokenError, TokenFullError
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeyOrigin, KeySource, SignTime
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.device.emulation import Device, DeviceOperation, Timing
from labconsole_keypool.messages import sign_request
from labconsole_keypool.messages.service_frames import Done, Job, JobKind, JobStatus
from labconsole_keypool.messages.sign_request import SignTask
from labconsole_keypool.messages.signature_algorithms import ECDSA_SHA256, RSA_SHA256
from labconsole_keypool.store.key_records import Counts, SignatureStatus
from labconsole_keypool.store.key_store import KeyStore
from tests.helpers.function_calls import calls_in
from tests.labconsole_keypool.recorded_device import RecordedDevice
from tests.labconsole_keypool.sign_request_lab import read
from tests.labconsole_keypool.signing_lab import (
    PIN,
    RecordedReports,
    change,
    digest,
    fill,
    new_token,
    rows,
    signing_engine,
)

A, B, C, D = KeyOrigin.TOKEN_RAM, KeyOrigin.TOKEN_STORE, KeyOrigin.POOL, KeyOrigin.GENERATED


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return new_token(tmp_path_factory.mktemp("softhsm"))


@pytest.fixture
def token(configuration: TokenConfiguration) -> Iterator[Token]:
    with open_token("test", configuration, PIN) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KeyStore]:
    with KeyStore.open(tmp_path / "keys.db", run="run") as opened:
        yield opened


@pytest.fixture
def reports() -> RecordedReports:
    return RecordedReports()


def test_each_request_gets_a_certificate_for_a_key_of_its_own(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 12)
    jobs = [digest(number) for number in range(1, 11)]
    with signing_engine(token, store, reports, threads=2) as engine:
        assert engine.fill(4) == 4
        engine.start_refill()
        answers = [engine.process(number % 2, job) for number, job in enumerate(jobs)]
    issuer = SigningCA.of_lab().chain[0]
    found = rows(store.path, "SELECT request, key, to_be_signed, signature, certificate, status FROM signature")
    public = dict(rows(store.path, "SELECT id, public FROM key"))
    assert [done.status for done in answers] == [JobStatus.SIGNED] * 10
    assert len({done.key for done in answers}) == 10
    for job, done, (request, key, to_be_signed, signature, certificate, status) in zip(
        jobs, answers, found, strict=True
    ):
        assert (request, key, to_be_signed, certificate) == (job.request, done.key, job.body, done.answer)
        assert status == SignatureStatus.SIGNED
        issued = x509.load_der_x509_certificate(certificate)
        issued.verify_directly_issued_by(issuer)
        signer = issued.public_key()
        assert isinstance(signer, ec.EllipticCurvePublicKey)
        assert signer.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) == public[key]
        half = len(signature) // 2
        numbers = (int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big"))
        signer.verify(encode_dss_signature(*numbers), job.body, ec.ECDSA(hashes.SHA256()))
        assert done.started_ns <= done.got_key_ns <= done.signed_ns <= done.finished_ns
    assert reports.counts["keys_used"] == 10


def test_unused_claimed_keys_become_invalid_and_used_keys_are_erased(
    token: Token, tmp_path: Path, reports: RecordedReports
) -> None:
    with KeyStore.open(tmp_path / "keys.db", run="run") as store:
        fill(token, store, 20)
        with signing_engine(token, store, reports, low_water=1) as engine:
            engine.fill(5)
            for number in range(2):
                engine.process(0, digest(number))
    with KeyStore.open(tmp_path / "keys.db") as store:
        assert store.counts() == Counts(new=15, in_use=0, used=2, invalid=3)
        assert store.claim(KeyKind.P_256, [wrapper.serial for wrapper in store.wrappers()], 100)[0].id not in (1, 2, 3)


def test_keys_are_taken_from_ram_then_the_token_s_store_then_the_pool_and_then_made(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 5)
    with signing_engine(token, store, reports, batch=2, low_water=1) as engine:
        assert engine.fill(2, 1) == 3
        engine.start_refill()
        done = [engine.process(0, digest(number)) for number in range(7)]
    assert [one.source for one in done] == [A, A, B, C, C, D, D]
    assert [one.key == 0 for one in done] == [False] * 5 + [True] * 2
    assert rows(store.path, "SELECT count(*) FROM signature WHERE pre_generated") == [(5,)]
    assert store.counts() == Counts(new=0, in_use=0, used=5, invalid=0)
    assert reports.counts == {"keys_claimed": 5, "keys_loaded": 5, "keys_used": 5}
    assert [keys for _, _, keys in reports.refills] == [2, 1, 2]


def test_without_a_pool_no_key_is_claimed(token: Token, store: KeyStore, reports: RecordedReports) -> None:
    fill(token, store, 2)
    with signing_engine(token, store, reports, keys=KeySource.GENERATED) as engine:
        engine.start_refill()
        assert engine.process(0, digest(1)).source is D
    assert store.counts() == Counts(new=2, in_use=0, used=0, invalid=0)


def test_exchanged_keys_are_found_out_by_their_signatures(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    """Each of the two unwraps perfectly: only a signature shows that it belongs to another public key."""
    fill(token, store, 4)
    (first, one), (second, other) = rows(store.path, "SELECT id, private FROM key ORDER BY id LIMIT 2")
    change(store.path, "UPDATE key SET private = ? WHERE id = ?", other, first)
    change(store.path, "UPDATE key SET private = ? WHERE id = ?", one, second)
    with signing_engine(token, store, reports) as engine:
        engine.fill(4)
        done = [engine.process(0, digest(number)) for number in range(3)]
    assert [one.status for one in done] == [JobStatus.SIGNED] * 3
    assert not {first, second} & {one.key for one in done}
    assert [one.source for one in done] == [A, A, D]
    assert store.counts() == Counts(new=0, in_use=0, used=2, invalid=2)
    assert [name for name, _ in reports.events] == ["key refused"] * 2
    assert f"Key {first} became invalid: its private key does not belong to its public key" in reports.events[0][1]


@pytest.mark.parametrize("what", ["private", "public"])
def test_a_changed_key_becomes_invalid_and_the_request_takes_the_next(
    token: Token, store: KeyStore, reports: RecordedReports, what: str
) -> None:
    fill(token, store, 2)
    [(first, blob)] = rows(store.path, f"SELECT id, {what} FROM key ORDER BY id LIMIT 1")
    change(store.path, f"UPDATE key SET {what} = ? WHERE id = ?", blob[:20] + bytes([blob[20] ^ 1]) + blob[21:], first)
    with signing_engine(token, store, reports, low_water=1) as engine:
        engine.start_refill()
        done = engine.process(0, digest(1))
    assert (done.status, done.source) == (JobStatus.SIGNED, C)
    assert done.key != first
    assert store.counts() == Counts(new=0, in_use=0, used=1, invalid=1)
    [(name, sentence)] = reports.events
    assert name == "key refused" and f"Key {first} became invalid" in sentence and "was changed" in sentence


def test_keys_of_a_wrapper_key_that_is_not_in_this_token_stay_in_the_store(
    configuration: TokenConfiguration, store: KeyStore, reports: RecordedReports, tmp_path: Path
) -> None:
    with open_token("other", new_token(tmp_path / "other"), PIN) as other:
        fill(other, store, 3)
    [wrapper] = store.wrappers()
    with open_token("test", configuration, PIN) as token:
        fill(token, store, 2)
        with signing_engine(token, store, reports, low_water=1) as engine:
            engine.start_refill()
            done = [engine.process(0, digest(number)) for number in range(3)]
    assert [one.source for one in done] == [C, C, D]
    assert store.counts() == Counts(new=3, in_use=0, used=2, invalid=0)
    [(name, sentence)] = reports.events
    assert name == "wrapper missing"
    assert f"has no wrapper key {wrapper.serial}: load it from its shares" in sentence


def xml(number: int, body: bytes, kind: KeyKind = KeyKind.P_256) -> Job:
    return Job(number, 0, JobKind.SIGN_REQUEST, kind, body)


def test_a_sign_request_is_answered_with_its_signatures_and_the_chain(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 2)
    body = sign_request.sample(7, algorithm=ECDSA_SHA256, tasks=3)
    tasks: tuple[SignTask, ...] = sign_request.parse(body).tasks
    with signing_engine(token, store, reports) as engine:
        engine.fill(2)
        done = engine.process(0, xml(1, body))
        second = engine.process(0, xml(2, sign_request.sample(8, algorithm=RSA_SHA256)))
    assert (done.source, second.source) == (A, D), "a request for RSA gets an RSA key, which this pool does not have"
    answer = read(done.answer)
    assert answer.chain[1] == SigningCA.of_lab().chain[0]
    answer.chain[0].verify_directly_issued_by(answer.chain[1])
    signer = answer.chain[0].public_key()
    assert isinstance(signer, ec.EllipticCurvePublicKey)
    for (name, _, _, signature), task in zip(answer.signatures, tasks, strict=True):
        assert name == task.id
        ECDSA_SHA256.verify(signer, signature, task.to_be_signed)


def test_a_sign_request_that_cannot_be_served_costs_no_key(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 1)
    with signing_engine(token, store, reports) as engine:
        engine.fill(1)
        done = engine.process(0, xml(1, b"<!DOCTYPE a []><a/>"))
        assert (done.status, done.source, done.key) == (JobStatus.FAILED, KeyOrigin.NONE, 0)
        assert b"DOCTYPE" in done.answer
        assert engine.process(0, digest(2)).source is A
    assert rows(store.path, "SELECT request, status FROM signature ORDER BY request") == [
        (1, SignatureStatus.FAILED),
        (2, SignatureStatus.SIGNED),
    ]


def test_more_keys_than_the_device_holds_are_refused_before_any_is_claimed(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 5)
    with signing_engine(token, store, reports, device=Device(ram=3, store=1)) as engine:
        with pytest.raises(TokenFullError, match=r"^The token's RAM holds 3 key pairs: ask for fewer than 4\.$"):
            engine.fill(4)
        with pytest.raises(TokenFullError, match=r"^The token's store holds 1 key pairs"):
            engine.fill(1, 2)
    assert store.counts() == Counts(new=5, in_use=0, used=0, invalid=0)


def test_removed_token_is_reported_in_one_sentence(token: Token, store: KeyStore, reports: RecordedReports) -> None:
    fill(token, store, 3)
    gone = r"^The token test cannot {}: it is gone: put it back and start again\.$"
    with (
        pytest.raises(TokenError, match=gone.format("destroy a private key")),
        signing_engine(token, store, reports) as engine,
    ):
        engine.fill(3)
        engine.process(0, digest(1))
        engine._sessions[0]._session.close()
        with pytest.raises(TokenError, match=gone.format("sign")):
            engine.process(0, digest(2))
    assert rows(store.path, "SELECT request FROM signature") == [(1,)], "what was signed is on record"


def test_an_emulated_device_keeps_its_rate_whatever_is_between_two_requests(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    """The device signs each request that waits right after the last one, though this process sleeps between them."""
    fill(token, store, 10)
    luna = load_timing("luna-sa-1700").model_copy(update={"warm_up": None})
    device = RecordedDevice(Timing(luna, SignTime.MALMO))
    answers: list[Done] = []
    with signing_engine(token, store, reports, device=device) as engine:
        engine.fill(10)
        jobs = [digest(number) for number in range(10)]
        for job in jobs:
            time.sleep(0.01)
            answers.append(engine.process(0, job))
    signed = [done for done in device.operations if done.operation is DeviceOperation.SIGN]
    free_ns = [(job.received_ns, job.received_ns) for job in jobs[:1]] + [done.free_ns for done in signed]
    for (earliest_ns, latest_ns), done, answer in zip(free_ns, signed, answers, strict=False):
        got_key_in_ns = answer.got_key_ns - answer.started_ns
        assert done.began_within(20_000_000, earliest_ns, latest_ns + got_key_in_ns)
        assert done.ends_ns <= answer.signed_ns <= done.free_ns[1]
    assert len(signed) == 10


def test_threads_in_lanes_share_the_keys_and_none_is_used_twice(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 120)
    done: list[Done] = []
    with signing_engine(token, store, reports, threads=4, batch=20, low_water=10) as engine:

        def sign(thread: int) -> None:
            done.extend(engine.process(thread, digest(thread * 100 + number)) for number in range(30))

        engine.fill(10)
        engine.start_refill()
        threads = [threading.Thread(target=sign, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls = calls_in(lambda: done.append(engine.process(0, digest(999))))
    pooled = [one.key for one in done if one.key]
    assert len(done) == 121 and len(set(pooled)) == len(pooled) >= 100
    assert store.counts().used == len(pooled)
    assert rows(store.path, "SELECT count(*), count(DISTINCT request) FROM signature") == [(121, 121)]
    assert calls < 1_500, "999 are usual; `benchmarks/keypool.py` has the time"
