"""Mutual TLS handshakes over loopback: the report of each end on the other, and no resources left behind."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates, make_self_signed
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validity import Validity
from labconsole_certificates.exchange.handshake import Handshake, perform_handshake
from labconsole_certificates.exchange.tls_context import TlsCredentials
from tests.helpers.authorities import named, new_authority
from tests.helpers.x509_keys import key_of

MONTH = Validity.for_days(30)
NOW = datetime.now(UTC).replace(microsecond=0)
HOST = "broker.b.example"


def _end(
    issuer: Issuer, profile: CertificateProfile, trusted: Sequence[x509.Certificate], type_: KeyType = KeyType.P_256
) -> TlsCredentials:
    """A client or server certified by `issuer`, with its intermediates."""
    key = generate(KeyType.P_256) if type_ is KeyType.P_256 else key_of(type_)
    names = [x509.DNSName(HOST)] if profile is CertificateProfile.TLS_SERVER else []
    certificate = issue(issuer, key.public_key(), named(f"CN={profile}"), names, profile, MONTH)
    chain = tuple(one for one in (issuer.certificate, *issuer.chain) if one.subject != one.issuer)
    return TlsCredentials(certificate, chain, key, tuple(trusted))


class HandshakeLab:
    """B's CA has certified A's client and its own broker: the CSR method of the source, one way."""

    def __init__(self, type_: KeyType = KeyType.P_256) -> None:
        key = generate(KeyType.P_256) if type_ is KeyType.P_256 else key_of(type_)
        self.root = Issuer(issue_root(key, named("CN=State B Root"), MONTH), key)
        self.client = _end(self.root, CertificateProfile.TLS_CLIENT, [self.root.certificate], type_)
        self.server = _end(self.root, CertificateProfile.TLS_SERVER, [self.root.certificate], type_)

    def crl(self, *revoked: x509.Certificate, validity: Validity = MONTH) -> x509.CertificateRevocationList:
        """B's CRL."""
        reason = x509.ReasonFlags.superseded
        return issue_crl(self.root, [Revoked(one.serial_number, NOW, reason) for one in revoked], 1, validity)


@pytest.fixture
def lab() -> HandshakeLab:
    """Two ends that trust each other."""
    return HandshakeLab()


def _refused(done: Handshake) -> bool:
    return not done.ok and (done.protocol, done.cipher, done.group) == ("", "", "")


@pytest.mark.parametrize("type_", [KeyType.RSA_2048, KeyType.P_384, KeyType.ED25519, KeyType.ML_DSA_65])
def test_both_ends_accept_each_other_with_any_type_of_key(type_: KeyType) -> None:
    lab = HandshakeLab(type_)

    done = perform_handshake(lab.client, lab.server, HOST)

    assert done.ok, done
    assert done.protocol == "TLSv1.3"
    assert done.cipher.startswith("TLS_AES_")
    assert done.group
    assert 0 < done.duration_ns < 10_000_000_000
    assert done.client_report.startswith("Accepts tls-server: ")
    assert done.server_report.startswith("Accepts tls-client: ")


def test_an_end_serves_for_many_handshakes_and_leaves_no_thread(lab: HandshakeLab) -> None:
    before = threading.active_count()

    assert all(perform_handshake(lab.client, lab.server, HOST).ok for _ in range(20))
    assert threading.active_count() == before


def test_an_intermediate_is_sent_along_and_a_missing_one_refuses(lab: HandshakeLab) -> None:
    key = key_of(KeyType.P_384)
    profile = CertificateProfile.INTERMEDIATE
    below = issue(lab.root, key.public_key(), named("CN=State B Intermediate"), (), profile, MONTH)
    server = _end(Issuer(below, key, (lab.root.certificate,)), CertificateProfile.TLS_SERVER, lab.server.roots)

    assert perform_handshake(lab.client, server, HOST).ok
    without = perform_handshake(lab.client, replace(server, chain=()), HOST)
    assert _refused(without)
    assert "an intermediate is missing" in without.client_report


def test_an_untrusted_server_gets_a_tls_alert(lab: HandshakeLab) -> None:
    outsider = new_authority("State C Root")

    done = perform_handshake(replace(lab.client, roots=(outsider.certificate,)), lab.server, HOST)

    assert _refused(done)
    assert done.client_report.startswith("Refuses tls-server: Both refuse it. OpenSSL: ")
    assert done.server_report == "tls-client broke off: tlsv1 alert unknown ca."


def test_a_client_that_is_not_trusted_is_refused_although_tls_1_3_lets_it_finish_first(lab: HandshakeLab) -> None:
    outsider = new_authority("State C Root")

    done = perform_handshake(lab.client, replace(lab.server, roots=(outsider.certificate,)), HOST)

    assert _refused(done)
    assert done.client_report.startswith("Accepts tls-server: ")
    assert done.client_report.endswith(" tls-server broke off: tlsv1 alert unknown ca.")
    assert done.server_report.startswith("Refuses tls-client: ")


def test_an_intermediate_that_the_server_itself_trusts_is_not_sent_for_that(lab: HandshakeLab) -> None:
    key = key_of(KeyType.P_384)
    profile = CertificateProfile.INTERMEDIATE
    below = issue(lab.root, key.public_key(), named("CN=State B Intermediate"), (), profile, MONTH)
    server = _end(
        Issuer(below, key, (lab.root.certificate,)), CertificateProfile.TLS_SERVER, [below, *lab.server.roots]
    )

    assert _refused(perform_handshake(lab.client, replace(server, chain=()), HOST))


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_revoked_certificate_is_refused_where_the_crl_is_known(lab: HandshakeLab, who: str) -> None:
    crls = (lab.crl(lab.client.certificate if who == "client" else lab.server.certificate),)

    done = perform_handshake(replace(lab.client, crls=crls), replace(lab.server, crls=crls), HOST)
    unaware = perform_handshake(lab.client, lab.server, HOST)

    assert _refused(done)
    said = done.server_report if who == "client" else done.client_report
    assert "certificate revoked" in said
    assert unaware.ok
    assert "there is no CRL of CN=State B Root" in unaware.client_report


def test_with_a_current_crl_revocation_is_known(lab: HandshakeLab) -> None:
    crls = (lab.crl(),)

    done = perform_handshake(replace(lab.client, crls=crls), replace(lab.server, crls=crls), HOST)

    assert done.client_report == "Accepts tls-server: cryptography and OpenSSL both accept it."
    assert done.server_report == "Accepts tls-client: cryptography and OpenSSL both accept it."


def test_a_crl_out_of_date_refuses(lab: HandshakeLab) -> None:
    crls = (lab.crl(validity=Validity(NOW - timedelta(days=9), NOW - timedelta(days=2))),)

    done = perform_handshake(replace(lab.client, crls=crls), lab.server, HOST)

    assert _refused(done)
    assert "CRL has expired, so publish or import its issuer's newer one" in done.client_report


@pytest.mark.parametrize("who", ["old key", "new key"])
def test_crls_of_a_rotated_root_count_whichever_of_its_keys_signed_them(lab: HandshakeLab, who: str) -> None:
    """Who trusts only the new root meets CRLs that no key in the path has signed (OpenSSL: extended CRL support)."""
    key = generate(KeyType.P_256)
    new = Issuer(issue_root(key, lab.root.certificate.subject, MONTH), key)
    old_with_new, _ = link_certificates(lab.root, new)
    server = replace(lab.server, chain=(old_with_new,))
    signer = lab.root if who == "old key" else new
    one = Revoked(lab.server.certificate.serial_number, NOW, x509.ReasonFlags.superseded)
    nothing, listed = (issue_crl(signer, revoked, 1, MONTH) for revoked in ([], [one]))
    client = replace(lab.client, roots=(new.certificate,))
    assert perform_handshake(replace(client, crls=(nothing,)), server, HOST).ok
    done = perform_handshake(replace(client, crls=(listed,)), server, HOST)
    assert _refused(done) and "certificate revoked" in done.client_report


def test_the_servers_name_must_be_the_one_that_was_wanted(lab: HandshakeLab) -> None:
    assert perform_handshake(lab.client, lab.server).ok
    done = perform_handshake(lab.client, lab.server, "broker.c.example")

    assert _refused(done)
    assert "tls-server is for broker.b.example, and not for broker.c.example" in done.client_report
    with pytest.raises(BadInput):
        perform_handshake(lab.client, lab.server, "no host")


def test_a_client_certificate_serves_no_server(lab: HandshakeLab) -> None:
    done = perform_handshake(lab.client, lab.client)

    assert _refused(done)
    assert "Refuses tls-client: " in done.client_report


def test_pinned_certificates_need_no_ca() -> None:
    ends = []
    for profile in (CertificateProfile.TLS_CLIENT, CertificateProfile.TLS_SERVER):
        key = generate(KeyType.P_256)
        certificate = make_self_signed(key, named(f"CN={profile}"), [x509.DNSName(HOST)], profile, MONTH)
        ends.append(TlsCredentials(certificate, (), key, ()))
    client, server = ends
    pinned_client = replace(client, pins=[fingerprint(server.certificate)])
    pinned_server = replace(server, pins=[fingerprint(client.certificate)])

    done = perform_handshake(pinned_client, pinned_server, HOST)

    assert done.ok, done
    assert done.client_report == "Accepts tls-server: It is pinned by its fingerprint."
    assert _refused(perform_handshake(client, pinned_server, HOST))
    assert _refused(perform_handshake(pinned_client, server, HOST))


def test_a_pin_accepts_no_other_certificate(lab: HandshakeLab) -> None:
    outsider = HandshakeLab()

    done = perform_handshake(outsider.client, replace(lab.server, pins=[fingerprint(lab.client.certificate)]), None)

    assert _refused(done)


def test_certificates_from_a_peer_are_parsed_strictly(lab: HandshakeLab) -> None:
    """With pins TLS lets every certificate pass; one that has an extension twice is none."""
    key = generate(KeyType.P_256)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    host, profile = [x509.DNSName(HOST)], CertificateProfile.TLS_CLIENT
    certificate = make_self_signed(key, named("CN=odd"), host, profile, MONTH)
    damaged = asn1_x509.Certificate.load(certificate.public_bytes(Encoding.DER))
    content = damaged["tbs_certificate"]
    content["extensions"].append(content["extensions"][-1].copy())
    damaged["signature_value"] = key.sign(content.dump(force=True), ec.ECDSA(hashes.SHA256()))
    pins = {fingerprint(lab.server.certificate)}
    odd = TlsCredentials(x509.load_der_x509_certificate(damaged.dump(force=True)), (), key, (), pins=pins)
    pinning = replace(lab.server, pins={fingerprint(certificate)})

    done = perform_handshake(odd, pinning)

    assert not done.ok
    assert "that is damaged or not as its standard says" in done.server_report


def test_a_pin_ends_with_its_certificate(lab: HandshakeLab) -> None:
    key = generate(KeyType.P_256)
    past = Validity(NOW - timedelta(days=9), NOW - timedelta(days=2))
    old = make_self_signed(key, named("CN=old"), [], CertificateProfile.TLS_CLIENT, past)

    done = perform_handshake(
        TlsCredentials(old, (), key, lab.client.roots), replace(lab.server, pins=[fingerprint(old)]), HOST
    )

    assert _refused(done)
    assert done.server_report.startswith("Refuses old: It is pinned, but expired on ")


class _InToken:
    """In place of a key in a token: `cryptography`'s interface, without its bytes."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key

    def public_key(self) -> ec.EllipticCurvePublicKey:
        return self._key.public_key()

    def private_bytes(self, encoding: object, format: object, encryption_algorithm: object) -> NoReturn:
        raise UnsupportedAlgorithm("The private key never leaves its token.")


def test_keys_that_tls_cannot_use_and_keys_of_others_get_a_sentence(lab: HandshakeLab) -> None:
    key = lab.client.key
    assert isinstance(key, ec.EllipticCurvePrivateKey)

    with pytest.raises(BadInput, match="is in a token, and TLS cannot use it there"):
        perform_handshake(replace(lab.client, key=_InToken(key)), lab.server)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="choose the two that belong together"):
        perform_handshake(replace(lab.client, key=lab.server.key), lab.server)


@pytest.mark.parametrize("trusts_old", [True, False])
def test_a_server_of_the_new_root_is_accepted_by_its_link_certificate(trusts_old: bool) -> None:
    """A client that knows only the old root finds the new one through the link."""
    name, client_root = named("CN=State B Root"), new_authority("State A Root")
    old, new = (Issuer(issue_root(key, name, MONTH), key) for key in (key_of(KeyType.P_384), generate(KeyType.P_256)))
    _, new_with_old = link_certificates(old, new)
    client = _end(client_root, CertificateProfile.TLS_CLIENT, [(old if trusts_old else new).certificate])
    server = _end(new, CertificateProfile.TLS_SERVER, [client_root.certificate])
    done = perform_handshake(client, replace(server, chain=(new_with_old,)), HOST)
    assert done.ok, done.client_report


@pytest.mark.parametrize(("minutes", "accepted"), [(4, True), (6, False)])
def test_the_clock_of_a_ca_may_be_five_minutes_ahead(lab: HandshakeLab, minutes: int, accepted: bool) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=minutes)
    crls = (lab.crl(validity=Validity(begins, begins + timedelta(days=1))),)
    done = perform_handshake(replace(lab.client, crls=crls), replace(lab.server, crls=crls))
    assert done.ok is accepted
