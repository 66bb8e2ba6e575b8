"""Certificates for the AMQP tests, created with `cryptography`: CAs, and identities that they issue."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from labconsole.security.identities import IdentityFiles, load_identity
from labconsole.security.lab_identities import BROKER, THIS_MACHINE
from labconsole.security.pki.keys import make_key, opened_key, own_passphrase
from labconsole.security.pki.records import Origin
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import KeyType, PrivateKey, PublicKey, generate
from labconsole.security.x509.validity import Validity
from labconsole_amqp.link.tls import TlsSettings

PASSPHRASE = "lab passphrase"


def tls_of(own: IdentityFiles, **more: Any) -> TlsSettings:
    """TLS settings of an end with the identity `own`."""
    return TlsSettings(load_identity(own, "the test's end", lambda _: Secret(PASSPHRASE)), **more)


def certify_lab_broker(directory: Path) -> None:
    """Give the lab's broker a P-256 key in place of its RSA key, which takes each run 50 ms to open."""
    with PkiStore.open(directory) as store:
        snapshot = store.snapshot()
        broker = next(identity for identity in snapshot.identities if identity.name == BROKER)
        before = snapshot.certificate_by_id[broker.certificate]
        *_, root = snapshot.chain_of(before)
        assert root.key is not None
        key = make_key(directory, KeyType.P_256, *own_passphrase(directory))
        with opened_key(directory, snapshot.key_by_id[root.key]) as authority:
            issuer, public_key = Issuer(root.certificate, authority), key.private.public_key()
            subject, profile, validity = before.certificate.subject, before.profile, Validity.for_days(365)
            assert profile is CertificateProfile.TLS_SERVER
            certificate = issue(issuer, public_key, subject, THIS_MACHINE, profile, validity)
        with store.change() as change:
            change.add_key(broker.state, "broker P-256", public_key, key.place)
            added = change.add_certificate(certificate, origin=Origin.ISSUED, profile=profile)
            change.name_identity(BROKER, added.id)


class LabCa:
    """A CA for tests; `ca_file` is its certificate."""

    def __init__(self, folder: Path, name: str = "Lab CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key.public_key(), days=(-1, 30))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str,
        *,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
        days: tuple[int, int] = (-1, 30),
        encrypted: bool = False,
        of_rsa: bool = False,
    ) -> IdentityFiles:
        """A certificate with common name `name`, valid from day `days[0]` to day `days[1]` from now.

        Its key (PKCS#8), P-256 unless `of_rsa`, is encrypted with `PASSPHRASE` if `encrypted`; its end trusts this CA.
        """
        key: PrivateKey = generate(KeyType.RSA_2048 if of_rsa else KeyType.P_256)
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Lab"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
        )
        builder = _builder(subject, self._name, key.public_key(), days)
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        identity = identity_files(self._folder, name)
        identity.certificate.write_bytes(
            builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        protection = (
            serialization.BestAvailableEncryption(PASSPHRASE.encode()) if encrypted else serialization.NoEncryption()
        )
        identity.key.touch(0o600)
        identity.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
        )
        return identity


def identity_files(folder: Path, name: str) -> IdentityFiles:
    """The files of an identity that a `LabCa` has issued in this folder."""
    return IdentityFiles(
        certificate=folder / f"{name}.pem", key=folder / f"{name}.key", trust=folder / "ca.pem", keyring_entry=""
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: PublicKey, days: tuple[int, int]
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
