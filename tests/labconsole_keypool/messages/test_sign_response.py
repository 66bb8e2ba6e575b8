"""A SignResponse: its signatures verify with the certificate in its chain, and OpenSSL verifies the chain."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from lxml import etree

from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.lab_token import lab_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.device.signing import requested_signature
from labconsole_keypool.messages import signature_algorithms
from labconsole_keypool.messages.certificate_fields import fields_of
from labconsole_keypool.messages.safe_xml import NAMESPACES, SignRequestError
from labconsole_keypool.messages.service_frames import Job, JobKind
from labconsole_keypool.messages.sign_request import Form, SignRequest, parse, sample
from labconsole_keypool.messages.sign_response import Fault, build, refused
from labconsole_keypool.messages.signature_algorithms import ALGORITHMS, ECDSA_SHA256, RSA_SHA256
from tests.labconsole_keypool.sign_request_lab import Answer, LabCA, read

SUCCESS = "urn:oasis:names:tc:dss:1.0:resultmajor:Success"
CHAIN = {
    Form.SOURCE: "dss:OptionalOutputs/csig:SignatureCertificateChain",
    Form.CSIG: "dss:OptionalOutputs/csig:SignResponseExtension/csig:SignatureCertificateChain",
}


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    """A key that all RSA algorithms share."""
    return rsa.generate_private_key(65537, 2048)


def _answered(request: SignRequest, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> Answer:
    ca = LabCA.make()
    certificate = ca.issue(key.public_key(), fields_of(request))
    signatures = [request.algorithm.sign(key, task.to_be_signed) for task in request.tasks]
    return read(build(request, signatures, [certificate, ca.certificate]), CHAIN[request.form])


def _verify(answer: Answer) -> None:
    """Each signature verifies with the first certificate, and each certificate with the next."""
    key = answer.chain[0].public_key()
    assert isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
    for _, uri, signed, signature in answer.signatures:
        signature_algorithms.algorithm_of(uri).verify(key, signature, signed)
    for certificate, issuer in zip(answer.chain, answer.chain[1:], strict=False):
        certificate.verify_directly_issued_by(issuer)


@pytest.mark.parametrize("uri", ALGORITHMS)
def test_every_algorithm_signs_every_task_and_verifies(uri: str, rsa_key: rsa.RSAPrivateKey) -> None:
    algorithm = signature_algorithms.algorithm_of(uri)
    key = rsa_key if algorithm.serves(KeyKind.RSA_2048) else ec.generate_private_key(ec.SECP256R1())
    answer = _answered(parse(sample(algorithm=algorithm, tasks=[b"one", b"two", b"three"])), key)

    assert answer.major == SUCCESS
    assert [(name, kind, signed) for name, kind, signed, _ in answer.signatures] == [
        ("SignTask1", uri, b"one"),
        ("SignTask2", uri, b"two"),
        ("SignTask3", uri, b"three"),
    ]
    assert len(answer.chain) == 2
    _verify(answer)


@pytest.mark.parametrize("form", Form)
def test_the_answer_has_the_form_of_the_request(form: Form) -> None:
    request = parse(sample(form=form))
    answer = _answered(request, ec.generate_private_key(ec.SECP256R1()))
    assert (answer.request_id, answer.profile) == (request.request_id, request.profile)
    _verify(answer)


def test_csig_has_its_request_sent_back() -> None:
    request, ca = parse(sample(form=Form.CSIG)), LabCA.make()
    root = etree.fromstring(build(request, [b"one"], [ca.certificate]))
    path = "dss:OptionalOutputs/csig:SignResponseExtension/csig:Request"
    assert base64.b64decode(root.findtext(path, namespaces=NAMESPACES)) == sample(form=Form.CSIG)


def test_a_signature_by_ecdsa_is_r_and_s_as_xml_signatures_hold_it() -> None:
    answer = _answered(parse(sample()), ec.generate_private_key(ec.SECP256R1()))
    assert {len(signature) for *_, signature in answer.signatures} == {64}


def test_pss_has_a_salt_as_long_as_its_digest(rsa_key: rsa.RSAPrivateKey) -> None:
    for name, algorithm in (("sha256", hashes.SHA256()), ("sha384", hashes.SHA384()), ("sha512", hashes.SHA512())):
        uri = f"http://www.w3.org/2007/05/xmldsig-more#{name}-rsa-MGF1"
        signature = signature_algorithms.algorithm_of(uri).sign(rsa_key, b"one")
        scheme = padding.PSS(padding.MGF1(algorithm), algorithm.digest_size)
        rsa_key.public_key().verify(signature, b"one", scheme, algorithm)


def test_another_signature_does_not_verify(rsa_key: rsa.RSAPrivateKey) -> None:
    for algorithm, key in ((RSA_SHA256, rsa_key), (ECDSA_SHA256, ec.generate_private_key(ec.SECP256R1()))):
        signature = algorithm.sign(key, b"one")
        with pytest.raises(InvalidSignature):
            algorithm.verify(key.public_key(), signature, b"two")


def test_a_key_of_another_kind_is_a_mistake_of_the_program(rsa_key: rsa.RSAPrivateKey) -> None:
    with pytest.raises(TypeError, match="signs with a p-256 key"):
        ECDSA_SHA256.sign(rsa_key, b"")
    with pytest.raises(TypeError, match="is verified with a rsa-2048 key"):
        RSA_SHA256.verify(ec.generate_private_key(ec.SECP256R1()).public_key(), b"", b"")


def test_algorithms_serve_keys_of_their_family() -> None:
    assert [kind for kind in KeyKind if RSA_SHA256.serves(kind)] == [
        KeyKind.RSA_2048,
        KeyKind.RSA_3072,
        KeyKind.RSA_4096,
    ]
    assert [kind for kind in KeyKind if ECDSA_SHA256.serves(kind)] == [KeyKind.P_256]
    assert all(signature_algorithms.default_for(kind).serves(kind) for kind in KeyKind)


def test_openssl_verifies_chain_and_signature(tmp_path: Path, rsa_key: rsa.RSAPrivateKey) -> None:
    answer = _answered(parse(sample(algorithm=RSA_SHA256)), rsa_key)
    leaf = _openssl_verifies(answer, tmp_path)

    _, _, signed, signature = answer.signatures[0]
    for name, content in (("signed", signed), ("signature", signature)):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "key.pem").write_bytes(_openssl("x509", "-in", str(leaf), "-pubkey", "-noout"))
    check = ("dgst", "-sha256", "-verify", str(tmp_path / "key.pem"), "-signature", str(tmp_path / "signature"))
    assert b"Verified OK" in _openssl(*check, str(tmp_path / "signed"))


def test_the_service_answers_with_a_key_in_a_token_and_its_own_ca(tmp_path: Path) -> None:
    job = Job(1, 0, JobKind.SIGN_REQUEST, KeyKind.RSA_2048, sample(tasks=2))
    requested, authority = requested_signature(job), SigningCA.of_lab()
    assert requested.kind is KeyKind.P_256  # as the request asks, whatever the scenario makes
    with open_token("lab", lab_token()) as token:
        pair = generate(token.session(), requested.kind, extractable=False)
        key = private_key(pair.private_handle, pair.public_key)
        signatures = [requested.algorithm.sign(key, data) for data in requested.to_be_signed]
        csr = x509.CertificateSigningRequestBuilder(requested.fields.subject).sign(key, hashes.SHA256())
    answer = read(requested.answer(signatures, (authority.issue(csr, requested.fields), *authority.chain)))
    _verify(answer)
    assert len(answer.signatures) == 2
    _openssl_verifies(answer, tmp_path, "-x509_strict")


def test_as_many_signatures_as_tasks() -> None:
    request, ca = parse(sample(tasks=2)), LabCA.make()
    with pytest.raises(ValueError, match="zip"):
        build(request, [b"one"], [ca.certificate])


def test_untrusted_text_is_escaped() -> None:
    data = sample().replace(b'SignTaskId="SignTask1"', b'SignTaskId="&quot;&gt;&lt;evil"')
    answer = _answered(parse(data), ec.generate_private_key(ec.SECP256R1()))
    assert [name for name, *_ in answer.signatures] == ['"><evil']


def test_refusal_has_its_reason_and_no_chain() -> None:
    with pytest.raises(SignRequestError) as refusal:
        parse(sample().replace(b"QC/SSCD", b"<&>"))
    answer = read(refused(str(refusal.value)))
    assert answer == Answer(
        None, "http://id.elegnamnden.se/csig/1.0/dss-ext/profile", Fault.REQUESTER.value, str(refusal.value), (), ()
    )


def test_a_refusal_of_the_service_names_the_request() -> None:
    request = parse(sample())
    answer = read(refused("The token is gone.", request=request, fault=Fault.RESPONDER))
    assert (answer.request_id, answer.major) == (request.request_id, Fault.RESPONDER.value)


def _openssl_verifies(answer: Answer, directory: Path, *options: str) -> Path:
    """Let OpenSSL verify the chain; returns the file of the signer's certificate."""
    leaf, ca = (directory / name for name in ("leaf.pem", "ca.pem"))
    leaf.write_bytes(answer.chain[0].public_bytes(Encoding.PEM))
    ca.write_bytes(answer.chain[1].public_bytes(Encoding.PEM))
    _openssl("verify", *options, "-CAfile", str(ca), str(leaf))
    return leaf


def _openssl(*arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], capture_output=True, check=True).stdout


@pytest.mark.parametrize("request_", [None, parse(sample(1).replace(b' Profile="', b' x="', 1))])
def test_a_refusal_has_the_profile_that_the_schema_requires(request_: SignRequest | None) -> None:
    """OASIS DSS 1.0, 3.2: `ResponseBaseType` has a required Profile, also where the request could not be read."""
    root = etree.fromstring(refused("Not XML.", request=request_))
    assert root.get("Profile") == "http://id.elegnamnden.se/csig/1.0/dss-ext/profile"
    assert root.get("RequestID") == (request_.request_id if request_ else None)
