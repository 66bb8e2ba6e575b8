"""A root CA in the test's process, with a clock that the test sets, and an authority that it has accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labconsole_v2x.pki.authority import Decision
from labconsole_v2x.pki.root.authority_folder import AuthorityFolder
from labconsole_v2x.pki.root.authority_requests import (
    AuthorityKind,
    certificate_request,
    fingerprint,
    rekeying_request,
)
from labconsole_v2x.pki.root.root_authority import AcceptedAuthority, RootAuthority
from labconsole_v2x.pki.secured_messages import DeniedRequestError
from labconsole_v2x.pki.station_requests import CertifiedKey
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_certificate
from tests.labconsole_v2x.pki.pki_lab import NOW_US, lab_pki

AUTHORITY = AuthorityKind.AA


@dataclass
class RootLab:
    """A root CA with a clock that the test sets, and an accepted AA, whose keys have no certificate yet."""

    folder: Path
    pki: LabPki = field(default_factory=lab_pki)
    now_us: int = NOW_US

    def __post_init__(self) -> None:
        self.decisions: list[Decision] = []
        self.revoked: set[bytes] = set()
        self.register = AuthorityFolder(self.folder)
        self.keys = (SoftwareKey.generate(), SoftwareKey.generate())
        self.accept(self.keys[0])
        self.start()

    def start(self) -> None:
        """Start the root CA, or start it again."""
        root = CertifiedKey(self.pki.root, self.pki.root_key)
        clock = lambda: self.now_us  # noqa: E731
        self.root = RootAuthority(root, self.register, lambda: self.revoked, clock=clock, notify=self.decisions.append)

    def accept(self, key: SoftwareKey) -> None:
        """Accept an AA by its first key."""
        self.register.accept(AcceptedAuthority(fingerprint(key.public_key), AUTHORITY, "AA of a site"))

    def request(self, **changes: object) -> bytes:
        """A right first request; `changes` are other arguments of `certificate_request`."""
        key, encryption_key = self.keys
        arguments: dict[str, object] = {
            "key": key,
            "encryption_key": encryption_key,
            "attributes": AUTHORITY.attributes,
            "now_us": self.now_us,
        }
        return certificate_request(**(arguments | changes))  # type: ignore[arg-type]

    def certified(self) -> CertifiedKey:
        """The AA with its first certificate."""
        return CertifiedKey(scan_certificate(self.root.answer(self.request())), self.keys[0])

    def rekeying(self, current: CertifiedKey, **changes: object) -> bytes:
        """A right request for the next certificate; `changes` as of `request`."""
        keys = {"key": SoftwareKey.generate(), "encryption_key": SoftwareKey.generate()}
        return rekeying_request(self.request(**(keys | changes)), current, self.now_us)

    def refusal(self, octets: bytes) -> str:
        """The code of a refusal; nothing was issued."""
        with pytest.raises(DeniedRequestError) as refused:
            self.root.answer(octets)
        code = self.decisions[-1].code
        assert str(refused.value).startswith(f"{code}: ")
        assert fingerprint(self.keys[0].public_key).hex() not in str(refused.value)
        return code
