"""Finds the State, certificate, request or CA that an operator's text means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from labconsole.errors import UserError
from labconsole.model.validation_faults import nearest
from labconsole.security.pki.records import (
    CertificateRecord,
    KeyRecord,
    RequestRecord,
    RotationRecord,
    RotationStatus,
    State,
)
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES, CertificateProfile
from labconsole.security.x509.names import short_name, shown

SHORTEST = 8
"""Minimum of hex digits of a fingerprint."""

_BETWEEN_DIGITS = re.compile(r"[\s:-]+")
_DIGITS = re.compile(r"[0-9a-f]+")


def state_named(snapshot: Snapshot, name: str) -> State:
    """The State called `name`. Raises UserError: there is none."""
    for state in snapshot.states:
        if state.name == name:
            return state
    if not snapshot.states:
        raise UserError(f"No State is called {shown(name)}, for there is none yet: add it first.")
    raise UserError(f"No State is called {shown(name)}{nearest(name, [state.name for state in snapshot.states])}")


def local_state_named(snapshot: Snapshot, name: str) -> State:
    """The State called `name`, whose keys are stored here. Raises UserError: none, or another console's."""
    return must_be_local(state_named(snapshot, name))


def must_be_local(state: State) -> State:
    """`state` itself. Raises UserError: its keys are on another console."""
    if not state.local:
        raise UserError(f"{state.name} is a State of another console, which has its keys: do this there.")
    return state


def certificate_named(snapshot: Snapshot, reference: str) -> CertificateRecord:
    """The certificate with this SHA-256 fingerprint, or its beginning (8 hex digits or more; blanks, colons and case
    do not matter), removed ones included; or `PROFILE:STATE`, as in `root:State B`: the newest of that State.

    Raises UserError: none, or several begin so.
    """
    profile, colon, state = reference.partition(":")
    if colon and profile in set(CertificateProfile):
        return _newest_of(snapshot, CertificateProfile(profile), state_named(snapshot, state.strip()))
    digits = _BETWEEN_DIGITS.sub("", reference).lower()
    if len(digits) < SHORTEST or not _DIGITS.fullmatch(digits):
        raise UserError(f"{shown(reference)} is not a fingerprint: give {SHORTEST} hex digits of one, or more.")
    found = [record for record in snapshot.certificates if record.sha256.startswith(digits)]
    if not found:
        raise UserError(f"No certificate here has the fingerprint {digits} ...: `labconsole pki list` lists them.")
    if len(found) > 1:
        raise UserError(f"{len(found)} certificates have a fingerprint that begins with {digits}: give more of it.")
    return found[0]


def _newest_of(snapshot: Snapshot, profile: CertificateProfile, state: State) -> CertificateRecord:
    """The newest certificate of `state` with this profile, neither removed nor revoked. Raises UserError: none."""
    for record in reversed(snapshot.certificates):
        ended = record.removed is not None or record.revoked is not None
        if (record.state, record.profile) == (state.id, profile) and not ended and not record.is_link:
            return record
    raise UserError(f"{state.name} has no certificate of the profile {profile}: `labconsole pki list` lists all.")


def request_numbered(snapshot: Snapshot, number: int) -> RequestRecord:
    """The request with this number. Raises UserError."""
    for request in snapshot.requests:
        if request.id == number:
            return request
    raise UserError(f"There is no request {number}: `labconsole pki requests` lists them.")


def rotation_numbered(snapshot: Snapshot, number: int) -> RotationRecord:
    """The rotation with this number. Raises UserError: there is none."""
    for rotation in snapshot.rotations:
        if rotation.id == number:
            return rotation
    raise UserError(f"There is no rotation {number}: `labconsole pki rotations` lists them.")


def key_of(snapshot: Snapshot, certificate: CertificateRecord) -> KeyRecord:
    """The private key of the certificate, which is stored here. Raises UserError: it is not."""
    if certificate.key is None:
        raise UserError(
            f"The private key of {short_name(certificate.certificate)} is not here: choose a certificate of your own."
        )
    return snapshot.key_by_id[certificate.key]


def authorities_of(snapshot: Snapshot, state: State, at: datetime) -> tuple[CertificateRecord, ...]:
    """The CA certificates with which `state` can issue here at `at`: key here, not removed, not revoked, valid.

    In order of preference: intermediates before roots, newest before older; one that a rotation has replaced, or is
    about to replace and has not switched to, comes after the one that is in use.
    """
    found = [record for record in _authorities(snapshot, state) if not _why_not(record, at)]
    resting = _resting(snapshot)
    return tuple(
        sorted(
            found,
            key=lambda one: (one.id in resting, one.profile is CertificateProfile.ROOT, -one.made.timestamp(), -one.id),
        ),
    )


def authority_of(snapshot: Snapshot, state: State, reference: str, at: datetime) -> CertificateRecord:
    """The CA certificate of `reference` (fingerprint; empty: the first of `authorities_of`).

    Raises UserError: `state` has none that can issue at `at`, and why (expired, revoked, no key here).
    """
    if reference:
        named = must_be_of(snapshot, certificate_named(snapshot, reference), state)
        return must_issue(snapshot, named, at)
    able = authorities_of(snapshot, state, at)
    if able:
        return able[0]
    known = sorted(_authorities(snapshot, state), key=lambda one: one.made)
    if known:
        raise UserError(f"The CA of {state.name} cannot issue: it {_why_not(known[-1], at)}. Create a new root.")
    raise UserError(f"{state.name} has no CA here: create a root, or import one.")


def must_be_of(snapshot: Snapshot, authority: CertificateRecord, state: State) -> CertificateRecord:
    """`authority` itself. Raises UserError: it is not a CA of `state`."""
    if authority.state != state.id:
        owner = "an unknown State" if authority.state is None else snapshot.state_by_id[authority.state].name
        raise UserError(
            f"{short_name(authority.certificate)} is a CA of {owner}, not of {state.name}: choose one of its own."
        )
    return authority


def must_issue(snapshot: Snapshot, authority: CertificateRecord, at: datetime) -> CertificateRecord:
    """`authority` itself. Raises UserError: it is not a CA, its key is not here, or it is not valid at `at`."""
    key_of(snapshot, authority)
    if authority.profile not in AUTHORITIES:
        raise UserError(f"{short_name(authority.certificate)} is not a CA: choose a CA certificate.")
    if authority.is_link:
        raise UserError(f"This is a link certificate of {short_name(authority.certificate)}: choose the root itself.")
    return must_be_valid(authority, at)


def must_be_valid(authority: CertificateRecord, at: datetime) -> CertificateRecord:
    """`authority` itself. Raises UserError: it is expired, revoked or removed."""
    if why := _why_not(authority, at):
        name = short_name(authority.certificate)
        raise UserError(f"The CA {name} cannot issue: it {why}. Choose another one, or create a new one.")
    return authority


def _authorities(snapshot: Snapshot, state: State) -> Sequence[CertificateRecord]:
    return [
        record
        for record in snapshot.certificates
        if record.state == state.id
        and record.profile in AUTHORITIES
        and record.key is not None
        and record.removed is None
        and not record.is_link
    ]


def _why_not(record: CertificateRecord, at: datetime) -> str:
    """Why a CA does not issue at `at`, to complete "it ..."; nothing if it does."""
    certificate = record.certificate
    if record.revoked is not None:
        return f"was revoked on {record.revoked.at:%Y-%m-%d}"
    if at > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if at < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    return "was removed" if record.removed is not None else ""


def _resting(snapshot: Snapshot) -> frozenset[int]:
    """Certificates that are second to the other one of their rotation."""
    resting = set()
    for rotation in snapshot.rotations:
        if rotation.status in (RotationStatus.SWITCHED, RotationStatus.FINISHED):
            resting.add(rotation.certificate)
        elif rotation.successor is not None:
            resting.add(rotation.successor)
    return frozenset(resting)
