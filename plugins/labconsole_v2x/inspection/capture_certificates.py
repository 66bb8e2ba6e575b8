"""The certificates of a capture, each with its loaded key and how far its chain leads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from labconsole.errors import UserError
from labconsole.safe_text import shown
from labconsole_v2x.inspection.verdicts import ChainState, cause
from labconsole_v2x.security.chain import ChainFault, ChainReason, DigestVerifier, link_fault, root_fault
from labconsole_v2x.security.scanning import MalformedDataError, scan_certificate
from labconsole_v2x.security.structures import Certificate, Validity
from labconsole_v2x.security.trust import software_verifier

MOST_CHAIN = 8
"""Certificates of a chain, of which TS 103 097 needs three."""
_MOST_FILE_OCTETS = 65_536


@dataclass(frozen=True)
class JudgedCertificate:
    """A certificate, its loaded key, and its chain."""

    certificate: Certificate
    verify: DigestVerifier | None
    """None where its public key is not a point of its curve."""
    state: ChainState
    reason: str = ""
    """Why the chain is not complete; empty if it is."""
    chain: tuple[Certificate, ...] = ()
    """From this certificate up, as far as the issuers are known; empty if the chain is invalid."""

    @cached_property
    def root(self) -> str:
        """Name or HashedId8 of the last certificate of the chain; empty if the chain is invalid."""
        return certificate_name(self.chain[-1]) if self.chain else ""

    @cached_property
    def validity(self) -> Validity:
        """The time in which all certificates of the chain are valid; only its own, if the chain is invalid."""
        each = [certificate.validity for certificate in self.chain or (self.certificate,)]
        return Validity(max(one.start_s for one in each), min(one.end_s for one in each))

    def validity_faults(self, earliest_us: int, latest_us: int) -> Iterator[str]:
        """Why certificates of the chain are not valid at any time from `earliest_us` to `latest_us` (ITS time)."""
        for certificate in self.chain or (self.certificate,):
            what = "the ticket" if certificate is self.certificate else certificate_name(certificate)
            if latest_us < certificate.validity.start_s * 1_000_000:
                yield f"{what} was not yet valid"
            elif earliest_us >= certificate.validity.end_s * 1_000_000:
                yield f"{what} had expired"


class CaptureCertificates:
    """The trusted roots, and certificates from files and the capture, by HashedId8.

    A chain is validated once, when it is first asked for: add all certificates before.
    """

    def __init__(self, roots: Iterable[Certificate] = ()) -> None:
        """Trust these roots. Raises UserError: one cannot be a root."""
        self._added: dict[bytes, Certificate] = {}
        self._ids: dict[bytes, bytes] = {}
        self._judged: dict[bytes, JudgedCertificate] = {}
        names = []
        for root in roots:
            verify = _verifier(root)
            fault = root_fault(root, verify) if verify is not None else _NO_POINT
            if fault is not None:
                raise UserError(
                    f"{certificate_name(root)} cannot be a trusted root ({fault}): choose the certificate of a root CA."
                )
            self._judged[root.hashed_id8] = JudgedCertificate(root, verify, ChainState.COMPLETE, chain=(root,))
            names.append(certificate_name(root))
        self.roots = tuple(names)
        """The names of the trusted roots."""

    def add(self, certificate: Certificate) -> None:
        """Add a certificate, which is not trusted unless its chain leads to a root."""
        self._added.setdefault(certificate.hashed_id8, certificate)

    def add_octets(self, octets: bytes) -> None:
        """Add a certificate as it was received; what is not one is left out."""
        if octets not in self._ids:
            try:
                certificate = scan_certificate(octets)
            except MalformedDataError:
                return
            self._ids[octets] = certificate.hashed_id8
            self.add(certificate)

    def id_of(self, octets: bytes) -> bytes | None:
        """Return the HashedId8 of a certificate that was added by these octets."""
        return self._ids.get(octets)

    def __len__(self) -> int:
        """Return the number of certificates that were added."""
        return len(self._added)

    def find(self, hashed_id8: bytes) -> JudgedCertificate | None:
        """Return a certificate with its chain; None if it is not known."""
        if hashed_id8 not in self._judged:
            path: dict[bytes, Certificate] = {}
            wanted: bytes | None = hashed_id8
            while wanted in self._added and wanted not in self._judged and wanted not in path:
                path[wanted] = self._added[wanted]
                wanted = path[wanted].issuer
            for certificate in reversed(path.values()):
                self._judged[certificate.hashed_id8] = self._judge(certificate)
        return self._judged.get(hashed_id8)

    def _judge(self, certificate: Certificate) -> JudgedCertificate:
        """Judge a certificate whose issuer is judged, if it is known."""
        verify, state = _verifier(certificate), ChainState.INCOMPLETE
        if verify is None:
            return JudgedCertificate(certificate, None, ChainState.INVALID, str(_NO_POINT))
        if certificate.issuer is None:
            reason = f"root {certificate_name(certificate)} is not trusted"
            return JudgedCertificate(certificate, verify, state, reason, (certificate,))
        issuer = self._judged.get(certificate.issuer)
        if issuer is None:
            reason = f"issuer {certificate.issuer.hex()} is not known"
            return JudgedCertificate(certificate, verify, state, reason, (certificate,))
        if issuer.verify is None or not issuer.chain:
            return JudgedCertificate(certificate, verify, ChainState.INVALID, f"issuer: {issuer.reason}")
        if len(issuer.chain) == MOST_CHAIN:
            reason = f"the chain has more than {MOST_CHAIN} certificates"
            return JudgedCertificate(certificate, verify, ChainState.INVALID, reason)
        fault = link_fault(certificate, issuer.chain, issuer.verify)
        if fault is not None:
            return JudgedCertificate(certificate, verify, ChainState.INVALID, str(fault))
        return JudgedCertificate(certificate, verify, issuer.state, issuer.reason, (certificate, *issuer.chain))


_NO_POINT = ChainFault(ChainReason.KEY, "it cannot be loaded")


def _verifier(certificate: Certificate) -> DigestVerifier | None:
    try:
        return software_verifier(certificate.verification_key)
    except ValueError:
        return None


def certificate_name(certificate: Certificate) -> str:
    """Its name, or its HashedId8 where it has none."""
    return shown(certificate.name) or certificate.hashed_id8.hex()


def identified(certificate: Certificate) -> str:
    """Its name, if it has one, and its HashedId8: names are free, and several certificates may have the same."""
    name, identifier = certificate_name(certificate), certificate.hashed_id8.hex()
    return name if name == identifier else f"{name} ({identifier})"


def read_certificate(path: Path) -> Certificate:
    """Read a certificate file (COER octets). Raises UserError: it cannot be read, or is not a certificate."""
    try:
        with path.open("rb") as file:
            octets = file.read(_MOST_FILE_OCTETS)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{shown(path.name)} cannot be read ({reason}): choose a certificate file.") from error
    try:
        return scan_certificate(octets)
    except MalformedDataError as error:
        raise UserError(
            f"{shown(path.name)} is not a certificate ({cause(error)}): choose a file with the COER octets of one."
        ) from error
