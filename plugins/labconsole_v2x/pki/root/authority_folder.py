"""The EAs and AAs that a root CA certifies, in a folder of its lab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from labconsole_v2x.inspection.capture_certificates import read_certificate
from labconsole_v2x.pki.key_folders import ROOT, broken_record, certificate_file, read_record, write_record
from labconsole_v2x.pki.root.authority_requests import AuthorityKind, fingerprint
from labconsole_v2x.pki.root.root_authority import AcceptedAuthority
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import Certificate

_REMEDY = "restore it from a copy, or remove it and accept a new key of the authority"


class AuthorityFolder:
    """Each authority in a file of its own: any process may accept one while the root CA runs."""

    def __init__(self, lab: Path) -> None:
        self._lab = lab
        self._folder = lab / ROOT / "authorities"

    def accept(self, authority: AcceptedAuthority) -> None:
        """Accept an authority, in place of one with the same first key. Raises UserError."""
        certificates = [one.octets.hex() for one in authority.certificates]
        record = {
            "kind": authority.kind.name,
            "name": authority.name,
            "url": authority.url,
            "own": authority.own,
            "certificates": certificates,
        }
        write_record(self._folder / f"{authority.fingerprint.hex()}.json", record)

    def adopt_of_lab(self) -> None:
        """Accept EA and AA of the lab, whose certificates were created with the root's. Raises UserError."""
        root = read_certificate(certificate_file(self._lab, ROOT))
        for kind in AuthorityKind:
            path = certificate_file(self._lab, kind.folder)
            certificate = read_certificate(path) if path.exists() else None
            if certificate is None or certificate.issuer != root.hashed_id8:
                continue
            key = fingerprint(certificate.verification_key)
            if self.by_key(key) is None:
                self.accept(AcceptedAuthority(key, kind, certificate.name, own=True, certificates=(certificate,)))

    def by_key(self, key: bytes) -> AcceptedAuthority | None:
        """The authority that has, or has had, the key with a fingerprint. Raises UserError: a file is broken."""
        return next((one for one in self.authorities() if one.has_key(key)), None)

    def certified(self, hashed_id8: bytes) -> AcceptedAuthority | None:
        """The authority with a current certificate. Raises UserError: a file is broken."""
        found = (one for one in self.authorities() if one.certificate and one.certificate.hashed_id8 == hashed_id8)
        return next(found, None)

    def add_certificate(self, authority: AcceptedAuthority, certificate: Certificate) -> None:
        """Note the next certificate of an authority. Raises UserError."""
        self.accept(replace(authority, certificates=(*authority.certificates, certificate)))

    def authorities(self) -> Iterator[AcceptedAuthority]:
        """All of them. Raises UserError: a file is broken."""
        for path in sorted(self._folder.glob(f"{'[0-9a-f]' * 64}.json")):
            record = read_record(path, _REMEDY) or {}
            try:
                certificates = tuple(scan_certificate(bytes.fromhex(one)) for one in record["certificates"])
                name, url, own = str(record["name"]), str(record["url"]), bool(record["own"])
                kind = AuthorityKind[record["kind"]]
                yield AcceptedAuthority(bytes.fromhex(path.stem), kind, name, url, own, certificates)
            except (KeyError, TypeError, ValueError, MalformedDataError) as error:
                raise broken_record(path, _REMEDY) from error
