"""Identities for tests, good ones and deliberately bad ones: expired, not yet valid, of a foreign CA."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.identities import IdentityFiles
from labconsole.security.key_files import save_private_key
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import PublicKey
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.x509_keys import p_256_key_for, rsa_key_for

_NOW = datetime.now(UTC).replace(microsecond=0)
VALID = Validity.for_days(30)
EXPIRED = Validity(_NOW - timedelta(days=60), _NOW - timedelta(days=30))
NOT_YET_VALID = Validity(_NOW + timedelta(days=30), _NOW + timedelta(days=60))

_THIS_MACHINE: list[x509.GeneralName] = [
    x509.DNSName("localhost"),
    *(x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")),
]


def foreign_authority() -> Issuer:
    """A CA that is not trusted."""
    return new_authority("Foreign CA")


def certify(
    authority: Issuer,
    name: str,
    public_key: PublicKey,
    profile: CertificateProfile = CertificateProfile.STATE,
    validity: Validity = VALID,
) -> x509.Certificate:
    """A certificate for `name`: a TLS server on this machine, or whatever else with the host `<name>.lab.test`."""
    names = _THIS_MACHINE if profile is CertificateProfile.TLS_SERVER else [x509.DNSName(f"{name}.lab.test")]
    return issue(authority, public_key, named(f"CN={name},O=Lab Console"), names, profile, validity)


def write_identity(
    directory: Path,
    name: str,
    authority: Issuer,
    profile: CertificateProfile = CertificateProfile.STATE,
    validity: Validity = VALID,
    trust: Path | None = None,
) -> IdentityFiles:
    """Write certificate, encrypted key and passphrase file of `name` to `directory`; nothing asks the keyring.

    The key is that of the name, in each test the same one: of a TLS server P-256, else RSA.

    `trust` defaults to the certificate of `authority`, which is written too.
    """
    key = p_256_key_for(name) if profile is CertificateProfile.TLS_SERVER else rsa_key_for(name)
    secret = Secret(f"passphrase of {name}")
    certificate = certify(authority, name, key.public_key(), profile, validity)
    if trust is None:
        trust = directory / f"{name}.trust.pem"
        trust.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    files = identity_files(directory, name).model_copy(update={"trust": trust})
    files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    save_private_key(files.key, key, secret)
    write_private(directory / f"{name}.passphrase", secret.reveal().encode())
    return files


def identity_files(directory: Path, name: str) -> IdentityFiles:
    """The files of an identity that `write_identity` has written to `directory`."""
    return IdentityFiles(
        certificate=directory / f"{name}.pem",
        key=directory / f"{name}.key.pem",
        trust=directory / f"{name}.trust.pem",
        passphrase_file=directory / f"{name}.passphrase",
        keyring_entry="",
    )
