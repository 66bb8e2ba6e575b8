"""A key in a token signs in any process through a child: all that a CA signs, on a real SoftHSM2."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pkcs11 import Attribute, ObjectClass

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.remote_private_key import RemotePrivateKey, opened_new_token_key, opened_token_key
from labconsole.security.x509 import cms
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr, judge_csr
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

TOKEN = "office"
KINDS = (KeyKind.P_256, KeyKind.RSA_2048)
HASHES = (hashes.SHA256(), hashes.SHA384(), hashes.SHA512())


@pytest.fixture(autouse=True)
def named_token(own_home: Path, configuration: TokenConfiguration) -> None:
    """The SoftHSM2 token of this file is called `office` in the test's home."""
    save_configuration(TOKEN, configuration)


@pytest.fixture(scope="module")
def module_home(
    configuration: TokenConfiguration, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pytest.MonkeyPatch]:
    """A home in which the token has that name, for what is created once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABCONSOLE_HOME", str(tmp_path_factory.mktemp("home")))
        save_configuration(TOKEN, configuration)
        yield patch


@pytest.fixture(scope="module")
def labels(module_home: pytest.MonkeyPatch, pin: Secret) -> dict[KeyKind, str]:
    """Labels of keys that were made in the token, one of each kind."""
    for kind in KINDS:
        with opened_new_token_key(TOKEN, f"root {kind}", kind, pin):
            pass
    return {kind: f"root {kind}" for kind in KINDS}


@pytest.fixture(scope="module")
def key(module_home: pytest.MonkeyPatch, labels: dict[KeyKind, str], pin: Secret) -> Iterator[RemotePrivateKey]:
    """The P-256 key, open, for tests that leave it so."""
    with opened_token_key(TOKEN, labels[KeyKind.P_256], pin) as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_a_ca_with_a_token_key_signs_all_that_a_ca_signs(
    labels: dict[KeyKind, str], pin: Secret, kind: KeyKind, tmp_path: Path
) -> None:
    day = Validity.for_days(1)
    with opened_token_key(TOKEN, labels[kind], pin) as key:
        root = issue_root(key, name_from_text("CN=Root in a token,C=SG"), day)
        authority = Issuer(root, key)
        leaf_key = key_of(KeyType.P_256)
        server = CertificateProfile.TLS_SERVER
        leaf = issue(authority, leaf_key.public_key(), name_from_text("CN=broker"), [x509.DNSName("a.sg")], server, day)
        crl = issue_crl(
            authority, [Revoked(leaf.serial_number, datetime.now(UTC), x509.ReasonFlags.superseded)], 1, day
        )
        csr = create_csr(key, name_from_text("CN=Root in a token"), [], CertificateProfile.INTERMEDIATE)
        signed = cms.sign(b"roots", root, key)
    root.verify_directly_issued_by(root)
    leaf.verify_directly_issued_by(root)
    assert crl.is_signature_valid(root.public_key())  # type: ignore[arg-type]  # what this root has
    assert judge_csr(csr).proof_of_possession
    assert cms.verify(signed).content == b"roots"
    files = {"root": root, "leaf": leaf, "crl": crl}
    for name, thing in files.items():
        (tmp_path / name).write_bytes(thing.public_bytes(Encoding.PEM))
    assert "leaf: OK" in run_openssl("verify", "-CAfile", tmp_path / "root", tmp_path / "leaf")
    assert "verify OK" in run_openssl("crl", "-noout", "-CAfile", tmp_path / "root", "-in", tmp_path / "crl")


def test_rsa_signs_with_both_paddings_and_ec_with_ecdsa(labels: dict[KeyKind, str], pin: Secret) -> None:
    digest = hashlib.sha384(b"data").digest()
    with opened_token_key(TOKEN, labels[KeyKind.RSA_2048], pin) as key:
        assert isinstance(key, rsa.RSAPrivateKey) and key.key_size == 2048
        for hashed in HASHES:
            for scheme in (padding.PKCS1v15(), padding.PSS(padding.MGF1(hashed), padding.PSS.DIGEST_LENGTH)):
                key.public_key().verify(key.sign(b"data", scheme, hashed), b"data", scheme, hashed)
        signature = key.sign(digest, padding.PKCS1v15(), utils.Prehashed(hashes.SHA384()))
        key.public_key().verify(signature, b"data", padding.PKCS1v15(), hashes.SHA384())
    with opened_token_key(TOKEN, labels[KeyKind.P_256], pin) as key:
        assert isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1"
        for hashed in HASHES:
            key.public_key().verify(key.sign(b"data", ec.ECDSA(hashed)), b"data", ec.ECDSA(hashed))


def test_the_key_never_leaves_and_only_signs(key: RemotePrivateKey) -> None:
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    with pytest.raises(UnsupportedAlgorithm, match="never leaves its token"):
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(UnsupportedAlgorithm, match="never leaves its token"):
        key.private_numbers()
    with pytest.raises(UnsupportedAlgorithm, match="agrees on no secret"):
        key.exchange(ec.ECDH(), key.public_key())
    with pytest.raises(UnsupportedAlgorithm, match="SHA-256, 384 or 512"):
        key.sign(b"data", ec.ECDSA(hashes.SHA3_256()))
    with pytest.raises(UnsupportedAlgorithm, match="random number of the token's"):
        key.sign(b"data", ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def test_threads_share_a_key(key: RemotePrivateKey) -> None:
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signatures: dict[int, bytes] = {}

    def sign(number: int) -> None:
        signatures[number] = key.sign(b"%d" % number, ec.ECDSA(hashes.SHA256()))

    threads = [threading.Thread(target=sign, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        key.public_key().verify(signatures[number], b"%d" % number, ec.ECDSA(hashes.SHA256()))


def test_a_key_that_is_made_never_leaves_the_token(labels: dict[KeyKind, str], token: Token) -> None:
    """Asked of the token itself, in this process."""
    session = token.session()
    sought = {Attribute.CLASS: ObjectClass.PRIVATE_KEY, Attribute.LABEL: labels[KeyKind.P_256]}
    [private] = session.get_objects(sought)
    assert private[Attribute.SENSITIVE] and private[Attribute.NEVER_EXTRACTABLE] and not private[Attribute.EXTRACTABLE]


def test_a_label_is_given_once(labels: dict[KeyKind, str], pin: Secret) -> None:
    with (
        pytest.raises(TokenError, match="has something labelled root p-256 already: take another label"),
        opened_new_token_key(TOKEN, labels[KeyKind.P_256], KeyKind.P_256, pin),
    ):
        pass


def test_missing_tokens_and_keys_are_reported(labels: dict[KeyKind, str], pin: Secret) -> None:
    cases = {
        ("offic", "root p-256", pin.reveal()): "No token is called offic; did you mean office",
        (TOKEN, "none", pin.reveal()): "has no private keys labelled none",
        (TOKEN, "root p-256", "wrong-pin"): "refuses the PIN: it is wrong, and was tried once",
    }
    for (token, label, secret), reason in cases.items():
        with pytest.raises(TokenError, match=reason) as refused, opened_token_key(token, label, Secret(secret)):
            pass
        assert secret not in str(refused.value)
    with opened_token_key(TOKEN, "root p-256", pin):
        pass  # and a right PIN clears the count of wrong ones


@pytest.mark.usefixtures("started_programs")
def test_a_closed_key_signs_no_more_and_its_process_is_gone(labels: dict[KeyKind, str], pin: Secret) -> None:
    before = set(psutil.Process().children())
    with opened_token_key(TOKEN, labels[KeyKind.P_256], pin) as key:
        [child] = set(psutil.Process().children()) - before
        visible = " ".join([*child.cmdline(), *child.environ().values()])
        assert "signing_process" in visible and pin.reveal() not in visible
    assert set(psutil.Process().children()) == before
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    with pytest.raises(TokenError, match="is closed: open its key again"):
        key.sign(b"data", ec.ECDSA(hashes.SHA256()))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no signals")
def test_a_module_crash_is_reported_and_stays_in_its_process(labels: dict[KeyKind, str], pin: Secret) -> None:
    before = set(psutil.Process().children())
    with opened_token_key(TOKEN, labels[KeyKind.P_256], pin) as key:
        [child] = set(psutil.Process().children()) - before
        child.kill()
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        with pytest.raises(TokenError, match=r"ended its process \(signal 9\)"):
            key.sign(b"data", ec.ECDSA(hashes.SHA256()))


def test_the_process_that_signs_loads_no_module() -> None:
    code = "import sys, labconsole.security.token.remote_private_key; sys.exit('pkcs11' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
