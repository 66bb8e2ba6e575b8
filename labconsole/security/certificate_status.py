"""The status of certificates: valid, expiring, expired, not yet valid, revoked or untrusted, each with its cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509

from labconsole.security.pki.domains import path_refusal, state_of_path
from labconsole.security.pki.known_crls import crls_under
from labconsole.security.pki.records import CertificateRecord, State, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validation.judgement import Judgement
from labconsole.security.x509.validation.validator import Validator

NOTICES = (7, 30, 90)
"""Days before the end of validity at which an expiring certificate is reported, each more urgent than the last."""


class StatusKind(StrEnum):
    """The status of a certificate; the first that applies: revoked, expired, not yet valid, untrusted, expiring."""

    VALID = "valid"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    REVOKED = "revoked"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True)
class Status:
    """The status of a certificate, and its cause in one sentence. `notice`: 90, 30 or 7 if it is expiring."""

    kind: StatusKind
    cause: str
    notice: int | None = None


def status_of(record: CertificateRecord, snapshot: Snapshot, at: datetime, observer: int | None = None) -> Status:
    """Status of one certificate at time `at` (aware), judged by State `observer`, or by any local State."""
    return _StatusJudge(snapshot, at, observer).status(record)


def all_statuses(snapshot: Snapshot, at: datetime, observer: int | None = None) -> Mapping[int, Status]:
    """Status of every certificate in the snapshot, by id; about a second for 2,000, so for a background thread."""
    eyes = _StatusJudge(snapshot, at, observer)
    return {record.id: eyes.status(record) for record in snapshot.certificates}


def status_of_received(
    certificate: x509.Certificate,
    further: Sequence[x509.Certificate],
    snapshot: Snapshot,
    at: datetime,
    observer: int | None = None,
) -> tuple[Status, State | None]:
    """Status of a certificate that came with a file, and the State that it belongs to, if that is known.

    `further` are the other certificates of the file, none of them trusted; time and observer are as in `status_of`.
    """
    return _StatusJudge(snapshot, at, observer).received(certificate, further)


class _StatusJudge:
    """Judges certificates at one time, with the trust of the observing States."""

    def __init__(self, snapshot: Snapshot, at: datetime, observer: int | None) -> None:
        self._snapshot = snapshot
        self._at = at
        self._observers = (
            [state for state in snapshot.states if state.local]
            if observer is None
            else [snapshot.state_by_id[observer]]
        )
        self._pinned = {record.sha256 for record in self._trusted(TrustKind.PIN)}
        roots = self._trusted(TrustKind.ROOT)
        crls = crls_under(snapshot, roots)
        self._validator = Validator((record.certificate for record in roots), _intermediates(snapshot), crls, at=at)

    def status(self, record: CertificateRecord) -> Status:
        ended = self._status_of_record(record)
        if ended is not None:
            return ended
        chain = () if record.state is not None else self._snapshot.chain_of(record)
        refused = path_refusal(self._snapshot, [each.certificate for each in (record, *chain)])
        if refused:
            return Status(StatusKind.UNTRUSTED, refused)
        if record.sha256 in self._pinned:
            return self._valid_or_expiring(record, "It is pinned by its fingerprint.")
        judgement = self._validator.validate(record.certificate)
        above = self._revoked_above(judgement.path)
        if above is not None:
            return _revoked_issuer(above)
        if judgement.accepted:
            return self._valid_or_expiring(record, judgement.why)
        if judgement.revoked:
            return Status(StatusKind.REVOKED, judgement.why)
        return Status(StatusKind.UNTRUSTED, self._why_untrusted(record, judgement))

    def received(
        self, certificate: x509.Certificate, further: Sequence[x509.Certificate]
    ) -> tuple[Status, State | None]:
        """Status and State of a certificate that need not be in the database."""
        record = self._snapshot.certificate_by_sha256.get(fingerprint(certificate))
        judgement = self._validator.validate(certificate, presented=further)
        path = judgement.path or (certificate,)
        state = state_of_path(self._snapshot, path)
        if record is not None and (record.sha256 in self._pinned or not judgement.accepted):
            return self.status(record), state  # with the cause that the database knows
        ended = self._status_of_record(record) if record is not None else self._status_of_dates(certificate)
        refused = path_refusal(self._snapshot, path)
        above = self._revoked_above(path)
        if ended is not None:
            return ended, state
        if above is not None:
            return _revoked_issuer(above), state
        if refused:
            return Status(StatusKind.UNTRUSTED, refused), state
        if not judgement.accepted:
            unknown = "Unknown issuer, no trusted root leads to it: trust the root of its State first."
            why = judgement.why if judgement.path else unknown
            return Status(StatusKind.REVOKED if judgement.revoked else StatusKind.UNTRUSTED, why), state
        end = certificate.not_valid_after_utc
        return Status(StatusKind.VALID, f"Valid until {end:%Y-%m-%d}. {judgement.why}"), state

    def _status_of_record(self, record: CertificateRecord) -> Status | None:
        """The status by the certificate's own record and dates, for any observer; None if these leave it valid."""
        if record.revoked is not None:
            reason = record.revoked.reason.value
            return Status(StatusKind.REVOKED, f"Revoked on {record.revoked.at:%Y-%m-%d %H:%M} UTC ({reason}).")
        return self._status_of_dates(record.certificate)

    def _status_of_dates(self, certificate: x509.Certificate) -> Status | None:
        if self._at > certificate.not_valid_after_utc:
            return Status(StatusKind.EXPIRED, f"Expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC.")
        if self._at < certificate.not_valid_before_utc:
            begins = certificate.not_valid_before_utc
            return Status(StatusKind.NOT_YET_VALID, f"Not valid before {begins:%Y-%m-%d %H:%M} UTC.")
        return None

    def _valid_or_expiring(self, record: CertificateRecord, why: str) -> Status:
        end = record.certificate.not_valid_after_utc
        left = end - self._at
        notice = next((days for days in NOTICES if left <= timedelta(days=days)), None)
        crl = self._snapshot.newest_crl_of.get(record.id)
        if crl is not None and crl.renewal <= self._at:
            days = (crl.next_update - self._at).days
            cause = f"Its CRL expires on {crl.next_update:%Y-%m-%d}, in {days} days: publish or import the next one."
            return Status(StatusKind.EXPIRING, cause, next((each for each in NOTICES if days <= each), NOTICES[-1]))
        if notice is None:
            return Status(StatusKind.VALID, f"Valid until {end:%Y-%m-%d}. {why}")
        return Status(StatusKind.EXPIRING, f"Expires on {end:%Y-%m-%d}, in {left.days} days. {why}", notice)

    def _revoked_above(self, path: Sequence[x509.Certificate]) -> CertificateRecord | None:
        """A CA in the path that its State has revoked, whether or not a CRL says so yet."""
        records = (self._snapshot.certificate_by_sha256.get(fingerprint(certificate)) for certificate in path[1:])
        return next((record for record in records if record is not None and record.revoked is not None), None)

    def _why_untrusted(self, record: CertificateRecord, judgement: Judgement) -> str:
        chain = self._snapshot.chain_of(record)
        top = chain[-1] if chain else record
        for row in reversed(self._snapshot.trust):
            if row.withdrawn is not None and row.certificate in (top.id, record.id) and self._is_observer(row.state):
                name = self._snapshot.state_by_id[row.state].name
                what = short_name(self._snapshot.certificate_by_id[row.certificate].certificate)
                return f"{name} withdrew its trust in {what} on {row.withdrawn:%Y-%m-%d}. {judgement.why}"
        if judgement.path:
            return judgement.why
        if top.certificate.subject != top.certificate.issuer:
            return f"The issuer of {short_name(top.certificate)} is not known: import its certificate. {judgement.why}"
        names = " or ".join(state.name for state in self._observers) or "any State of this console"
        return f"{short_name(top.certificate)} is not trusted by {names}. {judgement.why}"

    def _trusted(self, kind: TrustKind) -> Sequence[CertificateRecord]:
        return [record for state in self._observers for record in self._snapshot.trusted_by(state.id, kind)]

    def _is_observer(self, state: int) -> bool:
        return any(observer.id == state for observer in self._observers)


def _revoked_issuer(above: CertificateRecord) -> Status:
    return Status(StatusKind.REVOKED, f"{short_name(above.certificate)}, through which it is trusted, was revoked.")


def _intermediates(snapshot: Snapshot) -> Sequence[x509.Certificate]:
    return [
        record.certificate
        for record in snapshot.certificates
        if record.profile is CertificateProfile.INTERMEDIATE and record.removed is None
    ]
