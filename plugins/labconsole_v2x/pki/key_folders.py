"""Folders of authorities and stations: certificates (COER), encrypted keys (0600), and the stations of an EA."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from filelock import FileLock, Timeout

from labconsole.errors import UserError
from labconsole.security.key_files import load_private_key, save_private_key
from labconsole.security.pki.keys import own_passphrase
from labconsole.security.private_files import read_private, write_private
from labconsole_v2x.inspection.capture_certificates import read_certificate
from labconsole_v2x.pki.enrolment_authority import RegisteredStation
from labconsole_v2x.pki.enrolment_messages import MOST_ITS_ID
from labconsole_v2x.pki.request_parts import read_whole
from labconsole_v2x.pki.secured_messages import AuthorityIdentity
from labconsole_v2x.pki.station_requests import CertifiedKey
from labconsole_v2x.security.encoding import encode_verification_key
from labconsole_v2x.security.issuing import LabPki, issue_tlm
from labconsole_v2x.security.keys import CURVES, SoftwareKey
from labconsole_v2x.security.reading import MalformedDataError, read_key_on, read_on_curve
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import Certificate, Permission

TLM, ROOT, EA, AA = "tlm", "root", "ea", "aa"
"""The folders of a lab's authorities."""
LISTS = "lists"
"""The folder of the lists that a lab publishes."""
_ENCRYPTION, _CERTIFICATE = "encryption", "certificate"
_NEXT, _NEXT_ENCRYPTION = "next", "next-encryption"
"""Keys of an authority that wait for their certificate."""
_LOCK, _LOCK_TIMEOUT_S = ".lab.lock", 60.0
_RENEWAL_LOCK = ".renewal.lock"
_STATION_REMEDY = "remove it, and register the station again"
_HASHED_ID8 = re.compile("[0-9a-f]{16}")
_CURVES = {library.name: curve for curve, library in CURVES.items()}


class KeyFolder:
    """Certificates of one holder, and their keys under a passphrase that the console keeps for this folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, key: SoftwareKey, certificate: Certificate | None = None) -> None:
        """Store a key, then its certificate. Raises UserError."""
        with _writing(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _, passphrase = own_passphrase(self.folder)
            save_private_key(self._key_path(name), key.private, passphrase)
            if certificate is not None:
                path = self.certificate_path(name)
                path.parent.mkdir(exist_ok=True)
                write_private(path, certificate.octets)

    def certificate_path(self, name: str) -> Path:
        """The file of a certificate."""
        return self.folder / f"{name}.oer"

    def write_public_key(self, name: str, key: SoftwareKey) -> Path:
        """Write the public key of a key as PEM; its file. Raises UserError."""
        path = self.folder / f"{name}-public.pem"
        with _writing(self.folder):
            path.write_bytes(key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        return path

    def has_key(self, name: str) -> bool:
        """Whether a key is stored."""
        return self._key_path(name).exists()

    def _key_path(self, name: str) -> Path:
        return self.folder / "keys" / f"{name}.pem"

    def replace_key(self, new: str, old: str) -> None:
        """Put one key in the place of another. Raises UserError."""
        with _writing(self.folder):
            self._key_path(new).replace(self._key_path(old))

    def key(self, name: str) -> SoftwareKey:
        """A key. Raises UserError: missing, readable by others, or its passphrase is missing."""
        path = self._key_path(name)
        if not self.has_key(name):
            raise UserError(f"The key file {path} does not exist: check the folder.")
        _, passphrase = own_passphrase(self.folder)
        key = load_private_key(path, passphrase)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name not in _CURVES:
            raise UserError(f"The key file {path} is not of a curve of IEEE 1609.2: check the folder.")
        return SoftwareKey(key, _CURVES[key.curve.name])

    def certified(self, name: str) -> CertifiedKey:
        """A certificate with its key. Raises UserError."""
        return CertifiedKey(read_certificate(self.certificate_path(name)), self.key(name))


def create_lab(folder: Path, start_s: int) -> bool:
    """Create TLM, RCA, EA and AA, each in a folder of its own, unless they exist; whether it did. Raises UserError.

    The root's certificate is written last, so that what was interrupted is created again. A lab without TLM, as it
    was before labs had one, gets one.
    """
    if folder.is_dir() and not {path.name for path in folder.iterdir()} <= {TLM, ROOT, EA, AA, LISTS, _LOCK}:
        raise UserError(f"{folder} has files of others: choose an empty folder, or that of a lab.")
    try:
        with _writing(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(folder / _LOCK, timeout=_LOCK_TIMEOUT_S, mode=0o600):
                if certificate_file(folder, ROOT).exists():
                    if has_root_key(folder) and not certificate_file(folder, TLM).exists():
                        tlm, key = issue_tlm(start_s)
                        KeyFolder(folder / TLM).add(_CERTIFICATE, key, tlm)
                    return False
                _create_lab(folder, LabPki.create(start_s))
    except Timeout as error:
        raise UserError(f"Another process has been creating {folder} for {_LOCK_TIMEOUT_S:.0f} s: end it.") from error
    return True


def _create_lab(folder: Path, pki: LabPki) -> None:
    for name, certificate, key, encryption_key in (
        (EA, pki.ea, pki.ea_key, pki.ea_encryption_key),
        (AA, pki.aa, pki.aa_key, pki.aa_encryption_key),
    ):
        authority = KeyFolder(folder / name)
        authority.add(_ENCRYPTION, encryption_key)
        authority.add(_CERTIFICATE, key, certificate)
    KeyFolder(folder / TLM).add(_CERTIFICATE, pki.tlm_key, pki.tlm)
    KeyFolder(folder / ROOT).add(_CERTIFICATE, pki.root_key, pki.root)


def certificate_file(folder: Path, authority: str) -> Path:
    """The certificate file of an authority of a lab."""
    return KeyFolder(folder / authority).certificate_path(_CERTIFICATE)


def has_root_key(folder: Path) -> bool:
    """Whether the root CA is in this lab, with its key."""
    return KeyFolder(folder / ROOT).has_key(_CERTIFICATE)


def partner_certificate(folder: Path, name: str) -> Certificate:
    """The certificate of the other authority of a lab. Raises UserError."""
    path = certificate_file(folder, name)
    if not path.exists():
        raise UserError(f"{path} does not exist: copy the certificate of the {name.upper()} there.")
    return read_certificate(path)


def load_list_signer(folder: Path, name: str) -> CertifiedKey:
    """The TLM or root CA of a lab with its key, to sign lists. Raises UserError."""
    return KeyFolder(folder / name).certified(_CERTIFICATE)


def load_authority(folder: Path, name: str) -> AuthorityIdentity:
    """An authority of a lab with its keys. Raises UserError."""
    _finish_renewal(folder, name)
    authority = KeyFolder(folder / name)
    own = authority.certified(_CERTIFICATE)
    root = read_certificate(certificate_file(folder, ROOT))
    return AuthorityIdentity(own.certificate, root, own.key, authority.key(_ENCRYPTION))


def next_keys(folder: Path, name: str) -> tuple[SoftwareKey, SoftwareKey]:
    """The keys of an authority's next certificate, for signatures and encryption: created once. Raises UserError."""
    authority = KeyFolder(folder / name)
    for key in (_NEXT, _NEXT_ENCRYPTION):
        if not authority.has_key(key):
            authority.add(key, SoftwareKey.generate())
    return authority.key(_NEXT), authority.key(_NEXT_ENCRYPTION)


def current_certificate(folder: Path, name: str) -> CertifiedKey | None:
    """The certificate of an authority with its key, None before the first. Raises UserError."""
    _finish_renewal(folder, name)
    return KeyFolder(folder / name).certified(_CERTIFICATE) if certificate_file(folder, name).exists() else None


def use_next_keys(folder: Path, name: str, certificate: Certificate) -> Path:
    """Put the next keys with their certificate in the place of the current ones; its file. Raises UserError."""
    path = KeyFolder(folder / name).certificate_path(_NEXT)
    with _writing(path.parent):
        write_private(path, certificate.octets)
    _finish_renewal(folder, name)
    return certificate_file(folder, name)


def _finish_renewal(folder: Path, name: str) -> None:
    """Move the next keys and, last, their certificate: what an interruption has left is finished by the next call."""
    authority = KeyFolder(folder / name)
    granted, current = authority.certificate_path(_NEXT), certificate_file(folder, name)
    if not granted.exists():
        return
    with _writing(folder):
        for new, old in ((_NEXT, _CERTIFICATE), (_NEXT_ENCRYPTION, _ENCRYPTION)):
            if authority.has_key(new):
                authority.replace_key(new, old)
        granted.replace(current)


@contextmanager
def renewing(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of an authority's renewal. Raises UserError: another process has it."""
    path = folder / name
    with _writing(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with FileLock(path / _RENEWAL_LOCK, timeout=0, mode=0o600):
            yield
    except Timeout as error:
        raise UserError(f"Another process renews the certificate in {path}: wait for it.") from error


class StationFolder:
    """The stations and credentials of an EA, a file each: any process may add a station while the EA runs."""

    def __init__(self, lab: Path) -> None:
        self._stations = lab / EA / "stations"
        self._credentials = lab / EA / "credentials"
        self._current = lab / EA / "current"
        self._turn = Lock()

    def add_station(self, station: RegisteredStation) -> None:
        """Register a station, again with other permissions if it was registered. Raises UserError."""
        permissions = [[one.psid, one.ssp.hex() if one.ssp is not None else None] for one in station.permissions]
        record = {"key": encode_verification_key(station.canonical_key).hex(), "permissions": permissions}
        write_record(self._stations / f"{station.its_id.hex()}.json", record)

    def station(self, its_id: bytes) -> RegisteredStation | None:
        """A registered station. Raises UserError: its file is broken."""
        if not 0 < len(its_id) <= MOST_ITS_ID:
            return None
        path = self._stations / f"{its_id.hex()}.json"
        record = read_record(path)
        if record is None:
            return None
        try:
            key = read_whole(
                bytes.fromhex(record["key"]), lambda octets, at: read_on_curve(octets, at, "Key", read_key_on)
            )
            permissions = tuple(
                Permission(psid, bytes.fromhex(ssp) if ssp is not None else None) for psid, ssp in record["permissions"]
            )
        except (KeyError, TypeError, ValueError, MalformedDataError) as error:
            raise broken_record(path) from error
        return RegisteredStation(its_id, key, permissions)

    def add_credential(self, its_id: bytes, certificate: Certificate) -> None:
        """Note a credential, and withdraw the station's one before. Raises UserError."""
        name, current = certificate.hashed_id8.hex(), self._current / f"{its_id.hex()}.json"
        with self._turn:
            before = (read_record(current) or {}).get("credential")
            write_record(
                self._credentials / f"{name}.json", {"station": its_id.hex(), "certificate": certificate.octets.hex()}
            )
            write_record(current, {"credential": name})
            if isinstance(before, str) and _HASHED_ID8.fullmatch(before) and before != name:
                with _writing(self._credentials):
                    (self._credentials / f"{before}.json").unlink(missing_ok=True)

    def credential(self, hashed_id8: bytes) -> tuple[RegisteredStation, Certificate] | None:
        """A credential that was issued, and its station; None once it was withdrawn. Raises UserError."""
        path = self._credentials / f"{hashed_id8.hex()}.json"
        record = read_record(path)
        if record is None:
            return None
        try:
            station = self.station(bytes.fromhex(record["station"]))
            certificate = scan_certificate(bytes.fromhex(record["certificate"]))
        except (KeyError, TypeError, ValueError, MalformedDataError) as error:
            raise broken_record(path) from error
        return (station, certificate) if station else None


def write_record(path: Path, record: Mapping[str, object]) -> None:
    """Write a record as JSON. Raises UserError."""
    with _writing(path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, json.dumps(record).encode())


def read_record(path: Path, remedy: str = _STATION_REMEDY) -> dict[str, Any] | None:
    """A record, None where there is none. Raises UserError: it is broken, with the remedy."""
    if not path.exists():
        return None
    try:
        record = json.loads(read_private(path, "record"))
    except ValueError as error:
        raise broken_record(path, remedy) from error
    if not isinstance(record, dict):
        raise broken_record(path, remedy)
    return record


def broken_record(path: Path, remedy: str = _STATION_REMEDY) -> UserError:
    """The fault of a broken record."""
    return UserError(f"{path} is broken: {remedy}.")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror or error}): choose another folder.") from error
