"""OCSP answers signed with a key in a token (SoftHSM2): in the process that loaded the module, and through a child."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from pkcs11 import Session

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.remote_private_key import opened_new_token_key
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType, PublicKey
from labconsole.security.x509.validity import Validity
from labconsole_certificates.revocation.ocsp_answers import NotRevoked, answer
from tests.helpers.authorities import named
from tests.helpers.openssl_command import run_openssl
from tests.helpers.pkilint_errors import ocsp_errors
from tests.helpers.softhsm_token import create_softhsm_token
from tests.helpers.x509_keys import key_of

DAY = Validity.for_days(1)
KINDS = (KeyKind.RSA_2048, KeyKind.P_256)
PIN = Secret("1234-user")


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return create_softhsm_token(tmp_path_factory.mktemp("softhsm"), "test", PIN, Secret("5678-officer"))


@pytest.fixture
def session(configuration: TokenConfiguration) -> Iterator[Session]:
    with open_token("test", configuration, PIN) as token:
        yield token.session()


def leaf_of(root: Issuer, public_key: PublicKey) -> x509.Certificate:
    names = [x509.DNSName("broker.a.example")]
    return issue(root, public_key, named("CN=Broker"), names, CertificateProfile.TLS_SERVER, DAY)


def request_for(leaf: x509.Certificate, root: x509.Certificate) -> bytes:
    builder = ocsp.OCSPRequestBuilder().add_certificate(leaf, root, hashes.SHA256())
    return builder.build().public_bytes(Encoding.DER)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_a_token_signs_ocsp_answers(session: Session, kind: KeyKind) -> None:
    pair = generate(session, kind, extractable=False)
    key = private_key(pair.private_handle, pair.public_key)
    root = Issuer(issue_root(key, named("CN=State A Root,C=SG"), Validity.for_days(365)), key)
    leaf = leaf_of(root, pair.public_key)
    revoked = Revoked(leaf.serial_number, datetime.now(UTC), x509.ReasonFlags.superseded)
    response = answer(request_for(leaf, root.certificate), root.certificate, root, lambda _: revoked, DAY)
    assert ocsp.load_der_ocsp_response(response).certificate_status is ocsp.OCSPCertStatus.REVOKED
    assert ocsp_errors(response) == []


@pytest.mark.parametrize("kind", KINDS)
def test_openssl_verifies_an_ocsp_answer_signed_through_a_child_process(
    configuration: TokenConfiguration, own_home: Path, kind: KeyKind, tmp_path: Path
) -> None:
    save_configuration("office", configuration)
    with opened_new_token_key("office", f"root {kind}", kind, PIN) as key:
        root = issue_root(key, named("CN=Root in a token,C=SG"), DAY)
        issuer = Issuer(root, key)
        leaf = leaf_of(issuer, key_of(KeyType.P_256).public_key())
        response = answer(request_for(leaf, root), root, issuer, lambda _: NotRevoked.GOOD, DAY)
    for name, certificate in (("root", root), ("leaf", leaf)):
        (tmp_path / name).write_bytes(certificate.public_bytes(Encoding.PEM))
    (tmp_path / "response").write_bytes(response)
    options = ("-sha256", "-issuer", tmp_path / "root", "-cert", tmp_path / "leaf", "-CAfile", tmp_path / "root")
    output = run_openssl("ocsp", "-respin", tmp_path / "response", *options)
    assert "Response verify OK" in output and "leaf: good" in output
