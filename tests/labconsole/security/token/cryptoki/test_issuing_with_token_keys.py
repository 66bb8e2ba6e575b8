"""A CA whose key never leaves its token issues as any other: certificates, CSRs, CRLs, links."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pkcs11 import Session

from labconsole.errors import BadInput
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr, judge_csr
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import run_openssl
from tests.helpers.pkilint_errors import certificate_errors, chain_errors, crl_errors

YEAR = Validity.for_days(365)
NAME = named("CN=State A Root,C=SG")
HOST = [x509.DNSName("broker.a.example")]


@pytest.mark.parametrize("kind", [KeyKind.RSA_2048, KeyKind.P_256])
def test_a_token_issues_everything(session: Session, kind: KeyKind, tmp_path: Path) -> None:
    pair = generate(session, kind, extractable=False)
    key = private_key(pair.private_handle, pair.public_key)
    root = Issuer(issue_root(key, NAME, YEAR), key)
    csr = create_csr(key, named("CN=Broker"), HOST, CertificateProfile.TLS_SERVER)
    assert judge_csr(csr).problems == ()
    leaf = issue(root, pair.public_key, csr.subject, HOST, CertificateProfile.TLS_SERVER, Validity.for_days(90))
    revoked = Revoked(leaf.serial_number, datetime.now(UTC), x509.ReasonFlags.superseded)
    crl = issue_crl(root, [revoked], 1, Validity.for_days(7))
    assert certificate_errors(root.certificate) + certificate_errors(leaf) + crl_errors(crl) == []
    assert chain_errors(root.certificate, leaf) == []
    for name, made in (("root", root.certificate), ("leaf", leaf), ("crl", crl)):
        (tmp_path / name).write_bytes(made.public_bytes(Encoding.PEM))
    run_openssl("verify", "-x509_strict", "-CAfile", tmp_path / "root", tmp_path / "leaf")
    run_openssl("crl", "-noout", "-CAfile", tmp_path / "root", "-in", tmp_path / "crl")


def test_a_root_moves_into_a_token(session: Session) -> None:
    """The old key is in a file, the new one in the token: the links lead from either to the other."""
    old = new_authority("State A Root")
    pair = generate(session, KeyKind.P_256, extractable=False)
    key = private_key(pair.private_handle, pair.public_key)
    new = Issuer(issue_root(key, old.certificate.subject, YEAR), key)
    old_with_new, new_with_old = link_certificates(old, new)
    old_with_new.verify_directly_issued_by(new.certificate)
    new_with_old.verify_directly_issued_by(old.certificate)


def test_the_key_of_a_token_is_not_taken_for_anothers(session: Session) -> None:
    pair = generate(session, KeyKind.P_256, extractable=False)
    key = private_key(pair.private_handle, pair.public_key)
    with pytest.raises(BadInput, match="not that of the certificate"):
        Issuer(new_authority("State A Root").certificate, key)
