"""Changes of certificates, requests and CRLs."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from sqlalchemy import bindparam, select

from labconsole.errors import BadInput
from labconsole.security.pki import schema
from labconsole.security.pki.audited_changes import Changing
from labconsole.security.pki.domains import refusal
from labconsole.security.pki.records import (
    CertificateRecord,
    CrlRecord,
    Origin,
    RequestRecord,
    RequestStatus,
    Revocation,
)
from labconsole.security.pki.tables import CERTIFICATES, CRLS, IDENTITIES, KEYS, REQUESTS, TRUST
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.extensions import alternative_names, crl_number, extension_of
from labconsole.security.x509.fingerprints import fingerprint, key_fingerprint
from labconsole.security.x509.names import short_name
from labconsole.store.rows import Prepared

_STORED = Prepared(
    select(*(schema.certificate.c[name] for name in ("id", "removed", "state", "profile", "replaces"))).where(
        schema.certificate.c.sha256 == bindparam("of_sha256")
    )
)
_ADDED = {
    Origin.SELF_SIGNED: "made self-signed certificate",
    Origin.ISSUED: "issued certificate",
    Origin.LINK: "issued link certificate",
    Origin.IMPORTED: "took in certificate",
    Origin.BUNDLE: "took in certificate from a bundle",
}


class CertificateChanges(Changing):
    """Methods take ids and return what the database then holds. They raise StoreError or BadInput, nothing changed."""

    def add_certificate(
        self,
        certificate: x509.Certificate,
        *,
        origin: Origin,
        state: int | None = None,
        profile: CertificateProfile | None = None,
        replaces: int | None = None,
    ) -> CertificateRecord:
        """Add a certificate of `state` (None: of the State whose key it is, else unknown).

        One that is known stays the same row: what was unknown of it is filled in, and it is no longer removed; but for
        a State's own root that was distrusted, which any peer can send: that takes `restore`.

        Raises BadInput: its issuer has given the same serial number to another certificate (RFC 5280, 4.1.2.2), it has
        names outside its State's domain, or it would be a root of a State of this console without that State's key.
        """
        der = certificate.public_bytes(Encoding.DER)
        sha256, spki = fingerprint(der), key_fingerprint(certificate.public_key())
        given: dict[str, Any] = {"state": state, "profile": profile, "replaces": replaces}
        stored = _STORED(self._connection, {"of_sha256": sha256}).fetchone()
        if stored is not None:
            number, removed, *values = stored
            new = {name: given[name] for name, old in zip(given, values, strict=True) if old is None and given[name]}
            if "state" in new:
                self._check_names(certificate, new["state"])
            if "state" in new or "profile" in new:
                self._check_root(certificate, spki, new.get("state", values[0]), new.get("profile", values[1]))
            if new:
                self._update(CERTIFICATES, number, **new)
            restored = removed is not None and not self._is_own_root(number)
            if restored:
                self._update(CERTIFICATES, number, removed=None)
            if new or restored:
                self.note("completed certificate", short_name(certificate), sha256)
            return self.certificate(number)
        self._check_names(certificate, state)
        self._check_root(certificate, spki, state, profile)
        issuer, serial = _issuer_key(certificate), f"{certificate.serial_number:x}"
        for twin in self._all(CERTIFICATES, issuer=issuer, serial=serial):
            raise BadInput(
                f"The serial number {serial} of {short_name(certificate)} was given by the same issuer to another "
                f"certificate ({twin.sha256[:16]}...): refuse it, and ask the issuer which of the two is right."
            )
        number = self._insert(
            CERTIFICATES,
            der=der,
            sha256=sha256,
            spki_sha256=spki,
            issuer=issuer,
            serial=serial,
            origin=origin,
            made=self.at,
            **given,
        )
        self.note(_ADDED[origin], short_name(certificate), sha256, profile or "")
        return self.certificate(number)

    def revoke(self, certificate: int, reason: x509.ReasonFlags, at: datetime | None = None) -> CertificateRecord:
        """Note that its issuer has revoked a certificate, at `at` or now. Raises BadInput: it is revoked."""
        record = self.certificate(certificate)
        name = short_name(record.certificate)
        if record.revoked is not None:
            raise BadInput(f"{name} has been revoked since {record.revoked.at:%Y-%m-%d %H:%M} UTC.")
        self._update(CERTIFICATES, certificate, revoked=Revocation(at or self.at, reason))
        self.note("revoked certificate", name, record.sha256, reason.value)
        return self.certificate(certificate)

    def remove(self, certificate: int) -> CertificateRecord:
        """Hide a certificate. Raises BadInput: it is hidden, a State trusts it, or an identity uses it."""
        record = self.certificate(certificate)
        name = short_name(record.certificate)
        if record.removed is not None:
            raise BadInput(f"{name} was removed before.")
        for trust in self._all(TRUST, certificate=certificate, withdrawn=None):
            raise BadInput(f"{self._state(trust.state).name} trusts {name}: withdraw that first.")
        for identity in self._all(IDENTITIES, certificate=certificate):
            raise BadInput(f"The identity {identity.name} uses {name}: give that name to another certificate first.")
        self._update(CERTIFICATES, certificate, removed=self.at)
        self.note("removed certificate", name, record.sha256)
        return self.certificate(certificate)

    def restore(self, certificate: int) -> CertificateRecord:
        """Show a certificate again that was removed. Raises BadInput: it was not."""
        record = self.certificate(certificate)
        if record.removed is None:
            raise BadInput(f"{short_name(record.certificate)} was not removed.")
        self._update(CERTIFICATES, certificate, removed=None)
        self.note("restored certificate", short_name(record.certificate), record.sha256)
        return self.certificate(certificate)

    def add_request(
        self,
        csr: x509.CertificateSigningRequest,
        *,
        requester: int,
        issuer: int,
        profile: CertificateProfile,
        status: RequestStatus,
    ) -> RequestRecord:
        """Add a CSR that a State of this console made (MADE) or that came to one (RECEIVED).

        The same CSR to the same issuer is one row: one that was made here is received once its issuer has it.
        """
        der = csr.public_bytes(Encoding.DER)
        sha256 = fingerprint(der)
        for known in self._all(REQUESTS, sha256=sha256, issuer=issuer):
            if (known.status, status) == (RequestStatus.MADE, RequestStatus.RECEIVED):
                self._update(REQUESTS, known.id, status=status)
                self.note("received request", short_name(csr), sha256, f"by {self._state(issuer).name}")
            return self.request(known.id)
        number = self._insert(
            REQUESTS,
            der=der,
            sha256=sha256,
            spki_sha256=key_fingerprint(csr.public_key()),
            requester=requester,
            issuer=issuer,
            profile=profile,
            status=status,
            reason="",
            made=self.at,
        )
        parties = f"from {self._state(requester).name} to {self._state(issuer).name}"
        self.note(f"{status} request", short_name(csr), sha256, parties)
        return self.request(number)

    def approve_request(self, request: int, certificate: int) -> RequestRecord:
        """Note which certificate was issued. Raises BadInput: it was decided before."""
        return self._decide(request, RequestStatus.APPROVED, certificate=certificate)

    def refuse_request(self, request: int, reason: str) -> RequestRecord:
        """Refuse a request, and say why. Raises BadInput: it was decided before, or there is no reason."""
        if not reason.strip():
            raise BadInput("A request is refused with a reason: say in a few words why.")
        return self._decide(request, RequestStatus.REFUSED, reason.strip())

    def add_crl(self, crl: x509.CertificateRevocationList, issuer: int) -> CrlRecord:
        """Add a CRL that the key of the certificate `issuer` signed; one that is known stays the same row.

        Raises BadInput: it does not say when the next one comes (RFC 5280, 5.1.2.5).
        """
        der = crl.public_bytes(Encoding.DER)
        sha256 = fingerprint(der)
        name = short_name(self.certificate(issuer).certificate)
        if crl.next_update_utc is None:
            raise BadInput(f"The CRL of {name} does not say when the next one comes: ask for one with nextUpdate.")
        if not self._all(CRLS, sha256=sha256):
            self._insert(
                CRLS,
                der=der,
                sha256=sha256,
                issuer=issuer,
                number=crl_number(crl),
                this_update=crl.last_update_utc,
                next_update=crl.next_update_utc,
            )
            self.note("added CRL", name, sha256, f"number {crl_number(crl)}, {len(crl)} revoked")
        return self._all(CRLS, sha256=sha256)[0]

    def _is_own_root(self, number: int) -> bool:
        record = self.certificate(number)
        own = record.state is not None and self._state(record.state).local
        return own and record.profile is CertificateProfile.ROOT

    def _check_names(self, certificate: x509.Certificate, state: int | None) -> None:
        """No certificate of a State has names outside its domain. Raises BadInput."""
        refused = "" if state is None else refusal(self._state(state), alternative_names(certificate.extensions))
        if refused:
            raise BadInput(f"{short_name(certificate)} is refused: {refused}")

    def _check_root(self, certificate: x509.Certificate, spki: str, state: int | None, profile: str | None) -> None:
        """A State of this console trusts its own roots: none becomes its own but by the private key."""
        if profile != CertificateProfile.ROOT or state is None or not self._state(state).local:
            return
        if not self._all(KEYS, spki_sha256=spki, state=state):
            name = self._state(state).name
            raise BadInput(
                f"{short_name(certificate)} is said to be a root of {name}, a State of this console that has no such "
                "key: import it with its private key if it is, else name the State that it is of."
            )

    def _decide(
        self, request: int, status: RequestStatus, reason: str = "", certificate: int | None = None
    ) -> RequestRecord:
        record = self.request(request)
        name = short_name(record.csr)
        if record.status in (RequestStatus.APPROVED, RequestStatus.REFUSED):
            raise BadInput(f"The request of {name} was {record.status} before: ask for a new one.")
        self._update(REQUESTS, request, status=status, reason=reason, certificate=certificate, decided=self.at)
        self.note(f"{status} request", name, record.sha256, reason)
        return self.request(request)


def _issuer_key(certificate: x509.Certificate) -> str:
    """Who gave the serial number: the issuer's name, and its key's identifier where it is said."""
    authority = extension_of(certificate.extensions, x509.AuthorityKeyIdentifier)
    identifier = None if authority is None else authority.key_identifier
    if identifier is None and certificate.subject == certificate.issuer:
        identifier = bytes.fromhex(key_fingerprint(certificate.public_key()))
    return hashlib.sha256(certificate.issuer.public_bytes() + (identifier or b"")).hexdigest()
