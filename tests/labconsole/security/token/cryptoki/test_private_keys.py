"""Keys in a token as `cryptography`'s private keys: what is made with them verifies, by the openssl program as well."""

import copy
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs7
from cryptography.x509 import ocsp
from cryptography.x509.oid import NameOID
from pkcs11 import Attribute, AttributeSensitive, Session

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.cryptoki.private_keys import (
    PrivateKey,
    TokenECPrivateKey,
    TokenRSAPrivateKey,
    find_private_key,
    private_key,
)
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind

HASHES = (hashes.SHA256(), hashes.SHA384(), hashes.SHA512())
HASH_NAMES = [algorithm.name for algorithm in HASHES]
MESSAGE = b"to be signed"
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Key in a token")])
NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture(scope="module")
def configuration(each_configuration: TokenConfiguration) -> TokenConfiguration:
    return each_configuration


@pytest.fixture(scope="module")
def token(configuration: TokenConfiguration, pin: Secret) -> Iterator[Token]:
    """The SoftHSM2 token, open for all tests here."""
    with open_token("test", configuration, pin) as opened:
        yield opened


@pytest.fixture(scope="module")
def session(token: Token) -> Session:
    return token.session()


@pytest.fixture(scope="module")
def rsa_key(session: Session) -> TokenRSAPrivateKey:
    pair = generate(session, KeyKind.RSA_2048, extractable=False)
    key = private_key(pair.private_handle, pair.public_key)
    assert isinstance(key, TokenRSAPrivateKey)
    return key


@pytest.fixture(scope="module")
def ec_key(session: Session) -> TokenECPrivateKey:
    pair = generate(session, KeyKind.P_256, extractable=False)
    key = private_key(pair.private_handle, pair.public_key)
    assert isinstance(key, TokenECPrivateKey)
    return key


@pytest.fixture(params=["rsa_key", "ec_key"])
def key(request: pytest.FixtureRequest, rsa_key: TokenRSAPrivateKey, ec_key: TokenECPrivateKey) -> PrivateKey:
    """Both keys, one after the other."""
    return rsa_key if request.param == "rsa_key" else ec_key


def certificate_of(key: PrivateKey) -> x509.Certificate:
    """A CA certificate that `key` signs for itself."""
    public_key = key.public_key()
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    return (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW)
        .not_valid_after(LATER)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public_key), critical=False)
        .sign(key, hashes.SHA256())
    )


def request_of(key: PrivateKey) -> x509.CertificateSigningRequest:
    return x509.CertificateSigningRequestBuilder().subject_name(NAME).sign(key, hashes.SHA256())


def revocations_of(key: PrivateKey) -> x509.CertificateRevocationList:
    builder = x509.CertificateRevocationListBuilder().issuer_name(NAME).last_update(NOW).next_update(LATER)
    return builder.add_extension(x509.CRLNumber(1), critical=False).sign(key, hashes.SHA256())


def ocsp_response_of(key: PrivateKey, certificate: x509.Certificate) -> ocsp.OCSPResponse:
    builder = ocsp.OCSPResponseBuilder().responder_id(ocsp.OCSPResponderEncoding.NAME, certificate)
    good = builder.add_response(
        certificate, certificate, hashes.SHA256(), ocsp.OCSPCertStatus.GOOD, NOW, LATER, None, None
    )
    return good.sign(key, hashes.SHA256())


def sign(key: PrivateKey, data: bytes, algorithm: hashes.HashAlgorithm | utils.Prehashed) -> bytes:
    if isinstance(key, TokenRSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), algorithm)
    return key.sign(data, ec.ECDSA(algorithm))


def verify(key: PrivateKey, signature: bytes, signed: bytes, algorithm: hashes.HashAlgorithm) -> None:
    """Verify outside the token. Raises InvalidSignature."""
    if isinstance(key, TokenRSAPrivateKey):
        key.public_key().verify(signature, signed, padding.PKCS1v15(), algorithm)
    else:
        key.public_key().verify(signature, signed, ec.ECDSA(algorithm))


def test_requests_certificates_and_revocations_verify(key: PrivateKey) -> None:
    assert request_of(key).is_signature_valid
    certificate = certificate_of(key)
    certificate.verify_directly_issued_by(certificate)
    assert revocations_of(key).is_signature_valid(key.public_key())
    response = ocsp_response_of(key, certificate)
    verify(key, response.signature, response.tbs_response_bytes, hashes.SHA256())


def openssl(*arguments: str | Path) -> str:
    """What the openssl program prints; fails the test if it ends with an error."""
    answer = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout + answer.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_openssl_verifies_what_the_token_signed(key: PrivateKey, tmp_path: Path) -> None:
    certificate = certificate_of(key)
    authority, request, revocations, answer, letter, cms = (
        tmp_path / name for name in ("ca.pem", "csr.pem", "crl.pem", "ocsp.der", "letter", "cms.der")
    )
    authority.write_bytes(certificate.public_bytes(Encoding.PEM))
    request.write_bytes(request_of(key).public_bytes(Encoding.PEM))
    revocations.write_bytes(revocations_of(key).public_bytes(Encoding.PEM))
    answer.write_bytes(ocsp_response_of(key, certificate).public_bytes(Encoding.DER))
    letter.write_bytes(MESSAGE)
    signer = pkcs7.PKCS7SignatureBuilder().set_data(MESSAGE).add_signer(certificate, key, hashes.SHA256())
    cms.write_bytes(signer.sign(Encoding.DER, [pkcs7.PKCS7Options.Binary, pkcs7.PKCS7Options.DetachedSignature]))

    assert "verify OK" in openssl("req", "-verify", "-noout", "-in", request)
    assert ": OK" in openssl("verify", "-x509_strict", "-check_ss_sig", "-CAfile", authority, authority)
    assert "verify OK" in openssl("crl", "-noout", "-CAfile", authority, "-in", revocations)
    said = openssl(
        *("ocsp", "-respin", answer, "-CAfile", authority, "-issuer", authority, "-sha256", "-cert", authority)
    )
    assert "Response verify OK" in said and ": good" in said
    detached = ("cms", "-verify", "-binary", "-inform", "DER", "-in", cms, "-content", letter, "-out", tmp_path / "out")
    assert "successful" in openssl(*detached, "-CAfile", authority, "-purpose", "any")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_openssl_verifies_a_request_with_pss(rsa_key: TokenRSAPrivateKey, tmp_path: Path) -> None:
    pss = padding.PSS(padding.MGF1(hashes.SHA384()), padding.PSS.DIGEST_LENGTH)
    builder = x509.CertificateSigningRequestBuilder().subject_name(NAME)
    request = builder.sign(rsa_key, hashes.SHA384(), rsa_padding=pss)
    assert request.is_signature_valid
    file = tmp_path / "csr.pem"
    file.write_bytes(request.public_bytes(Encoding.PEM))
    said = openssl("req", "-verify", "-noout", "-text", "-in", file)
    assert "verify OK" in said and "rsassaPss" in said


@pytest.mark.parametrize("algorithm", HASHES, ids=HASH_NAMES)
def test_every_hash_signs(key: PrivateKey, algorithm: hashes.HashAlgorithm) -> None:
    signature = sign(key, MESSAGE, algorithm)
    verify(key, signature, MESSAGE, algorithm)
    with pytest.raises(InvalidSignature):
        verify(key, signature, b"something else", algorithm)


@pytest.mark.parametrize("algorithm", HASHES, ids=HASH_NAMES)
def test_a_digest_made_elsewhere_signs(key: PrivateKey, algorithm: hashes.HashAlgorithm) -> None:
    digest = hashlib.new(algorithm.name, MESSAGE).digest()
    verify(key, sign(key, digest, utils.Prehashed(algorithm)), MESSAGE, algorithm)
    with pytest.raises(ValueError, match=f"has 12 bytes, its hash makes {algorithm.digest_size}"):
        sign(key, MESSAGE, utils.Prehashed(algorithm))


@pytest.mark.parametrize("algorithm", HASHES, ids=HASH_NAMES)
def test_pss_has_the_salt_that_was_asked_for(rsa_key: TokenRSAPrivateKey, algorithm: hashes.HashAlgorithm) -> None:
    mask = padding.MGF1(algorithm)
    longest = 256 - algorithm.digest_size - 2
    asked = {
        0: 0,
        20: 20,
        longest: longest,
        padding.PSS.DIGEST_LENGTH: algorithm.digest_size,
        padding.PSS.MAX_LENGTH: longest,
    }
    for salt, length in asked.items():
        signature = rsa_key.sign(MESSAGE, padding.PSS(mask, salt), algorithm)
        rsa_key.public_key().verify(signature, MESSAGE, padding.PSS(mask, length), algorithm)
    digest = hashlib.new(algorithm.name, MESSAGE).digest()
    signature = rsa_key.sign(digest, padding.PSS(mask, 20), utils.Prehashed(algorithm))
    rsa_key.public_key().verify(signature, MESSAGE, padding.PSS(mask, 20), algorithm)
    with pytest.raises(ValueError, match=f"A salt of {longest + 1} bytes is too long.*: {longest} at most"):
        rsa_key.sign(MESSAGE, padding.PSS(mask, longest + 1), algorithm)
    with pytest.raises(UnsupportedAlgorithm, match=r"say how long"):
        rsa_key.sign(MESSAGE, padding.PSS(mask, padding.PSS.AUTO), algorithm)


def test_what_a_token_cannot_sign_is_refused(rsa_key: TokenRSAPrivateKey, ec_key: TokenECPrivateKey) -> None:
    sha256 = hashes.SHA256()
    with pytest.raises(UnsupportedAlgorithm, match=r"not with sha1"):
        rsa_key.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA1())
    with pytest.raises(UnsupportedAlgorithm, match=r"whose mask has the same hash"):
        rsa_key.sign(MESSAGE, padding.PSS(padding.MGF1(hashes.SHA512()), 32), sha256)
    with pytest.raises(UnsupportedAlgorithm, match=r"PKCS #1 v1.5, or PSS"):
        rsa_key.sign(MESSAGE, padding.OAEP(padding.MGF1(sha256), sha256, None), sha256)
    with pytest.raises(UnsupportedAlgorithm, match=r"whose hash is named"):
        rsa_key.sign(MESSAGE, padding.PKCS1v15(), utils.NoDigestInfo())
    with pytest.raises(UnsupportedAlgorithm, match=r"random number"):
        ec_key.sign(MESSAGE, ec.ECDSA(sha256, deterministic_signing=True))


def test_private_parts_stay_in_the_token(rsa_key: TokenRSAPrivateKey, ec_key: TokenECPrivateKey) -> None:
    for key, secret in ((rsa_key, Attribute.PRIVATE_EXPONENT), (rsa_key, Attribute.PRIME_1), (ec_key, Attribute.VALUE)):
        with pytest.raises(UnsupportedAlgorithm, match=r"never leaves its token"):
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with pytest.raises(UnsupportedAlgorithm, match=r"never leaves its token"):
            key.private_numbers()
        with pytest.raises(AttributeSensitive):
            key.handle[secret]
        assert copy.copy(key) is key and copy.deepcopy([key])[0] is key
    with pytest.raises(UnsupportedAlgorithm, match=r"does not decrypt"):
        rsa_key.decrypt(bytes(256), padding.PKCS1v15())
    with pytest.raises(UnsupportedAlgorithm, match=r"agrees on no secret"):
        ec_key.exchange(ec.ECDH(), ec_key.public_key())


def test_a_signature_is_one_question_to_the_token_and_a_handful_of_calls(rsa_key: TokenRSAPrivateKey) -> None:
    """The time that it takes in addition to the token's own is a figure of `tests/benchmarks/token_layer.py`."""
    pkcs1, sha256 = padding.PKCS1v15(), hashes.SHA256()
    rsa_key.sign(MESSAGE, pkcs1, sha256)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        rsa_key.sign(MESSAGE, pkcs1, sha256)
    finally:
        sys.setprofile(None)
    assert calls.count("_sign") == 1
    assert len(calls) < 20, calls


def test_a_key_that_is_kept_is_found_by_its_label(session: Session) -> None:
    made = generate(session, KeyKind.P_256, extractable=False, label="lab-ca", stored=True)
    found = find_private_key(session, "lab-ca")
    assert made.private_handle[Attribute.TOKEN] and made.public_handle[Attribute.TOKEN]
    assert found.public_key() == made.public_key
    certificate = certificate_of(found)
    certificate.verify_directly_issued_by(certificate)
    generate(session, KeyKind.P_256, extractable=False, label="lab-ca")
    with pytest.raises(TokenError, match=r"^The token test has 2 private keys labelled lab-ca, where one is needed"):
        find_private_key(session, "lab-ca")
    with pytest.raises(TokenError, match=r"^The token test has no private keys labelled lab-cb, where one is needed"):
        find_private_key(session, "lab-cb")


def test_a_destroyed_pair_is_gone(session: Session) -> None:
    pair = generate(session, KeyKind.P_256, extractable=False, label="for once")
    key = find_private_key(session, "for once")
    pair.destroy()
    assert not list(session.get_objects({Attribute.LABEL: "for once"}))
    with pytest.raises(TokenError, match=r"^The token test cannot sign"):
        key.sign(MESSAGE, ec.ECDSA(hashes.SHA256()))
