"""Creates the successor of a certificate: the same subject, names and limits, with a new key."""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import AuthorityInformationAccessOID

from labconsole.errors import UserError
from labconsole.security.pki.change import Change
from labconsole.security.pki.records import CertificateRecord, Origin, RequestStatus, RotationRecord, RotationStatus
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.certificate_profiles import TEXTS, CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.extensions import alternative_names, extension_of
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates, make_self_signed
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.issuing import must_be_accepted, opened_issuer
from labconsole_certificates.operations.new_keys import NewKey, made_key
from labconsole_certificates.rotation.rotation_kinds import issuers_here, issuing_state, owner


def new_root(
    store: PkiStore,
    snapshot: Snapshot,
    rotation: RotationRecord,
    new: NewKey,
    validity: Validity,
    prompt: Prompt | None,
) -> RotationRecord:
    """A new root, and link certificates from the old one to it and back (RFC 9810, 4.4). Raises UserError."""
    old = snapshot.certificate_by_id[rotation.certificate]
    state = owner(snapshot, old)
    with (
        opened_issuer(store.directory, snapshot, old, prompt) as old_issuer,
        made_key(store.directory, new, _label(state.name, old), prompt) as key,
    ):
        root = issue_root(
            key.private,
            old.certificate.subject,
            validity,
            path_length=_path_length(old.certificate),
            name_constraints=_permitted(old.certificate),
        )
        links = link_certificates(old_issuer, Issuer(root, key.private))
        with store.change() as change:
            key.record(change, state)
            succeeded = _succeeded(change, rotation, old, root, Origin.SELF_SIGNED)
            for link in links:
                change.add_certificate(
                    link, state=state.id, profile=CertificateProfile.INTERMEDIATE, origin=Origin.LINK
                )
            return succeeded


def new_self_signed(
    store: PkiStore,
    snapshot: Snapshot,
    rotation: RotationRecord,
    new: NewKey,
    validity: Validity,
    prompt: Prompt | None,
) -> RotationRecord:
    """A new self-signed end certificate, for peers to pin. Raises UserError."""
    old = snapshot.certificate_by_id[rotation.certificate]
    state, profile = owner(snapshot, old), _profile(old)
    with made_key(store.directory, new, _label(state.name, old), prompt) as key:
        names = alternative_names(old.certificate.extensions)
        made = make_self_signed(key.private, old.certificate.subject, names, profile, validity)
        with store.change() as change:
            key.record(change, state)
            return _succeeded(change, rotation, old, made, Origin.SELF_SIGNED)


def new_issued(
    store: PkiStore,
    snapshot: Snapshot,
    rotation: RotationRecord,
    new: NewKey,
    validity: Validity,
    prompt: Prompt | None,
) -> RotationRecord:
    """A certificate by a CA whose key is stored here, valid no longer than that CA. Raises UserError."""
    old = snapshot.certificate_by_id[rotation.certificate]
    state, profile = owner(snapshot, old), _profile(old)
    authority = issuers_here(snapshot, old, validity.not_before)[0]
    end = min(validity.not_after, authority.certificate.not_valid_after_utc)
    with (
        opened_issuer(store.directory, snapshot, authority, prompt) as issuer,
        made_key(store.directory, new, _label(state.name, old), prompt) as key,
    ):
        made = issue(
            issuer,
            key.private.public_key(),
            old.certificate.subject,
            alternative_names(old.certificate.extensions),
            profile,
            Validity(validity.not_before, end),
            crl_url=_crl_url(old.certificate),
            ocsp_url=_ocsp_url(old.certificate),
            name_constraints=_permitted(old.certificate),
            path_length=_path_length(old.certificate),
        )
        must_be_accepted(made, issuer)
        with store.change() as change:
            key.record(change, state)
            return _succeeded(change, rotation, old, made, Origin.ISSUED)


def new_request(
    store: PkiStore, snapshot: Snapshot, rotation: RotationRecord, new: NewKey, prompt: Prompt | None
) -> RotationRecord:
    """A CSR for the State that issued the old one; the rotation waits for the certificate. Raises UserError."""
    old = snapshot.certificate_by_id[rotation.certificate]
    state, profile, issuer = owner(snapshot, old), _profile(old), issuing_state(snapshot, old)
    with made_key(store.directory, new, _label(state.name, old), prompt) as key:
        csr = create_csr(key.private, old.certificate.subject, alternative_names(old.certificate.extensions), profile)
        with store.change() as change:
            key.record(change, state)
            change.add_request(csr, requester=state.id, issuer=issuer.id, profile=profile, status=RequestStatus.MADE)
            return change.rotation(rotation.id)


def _succeeded(
    change: Change, rotation: RotationRecord, old: CertificateRecord, made: x509.Certificate, origin: Origin
) -> RotationRecord:
    """Add the successor `made` of `old`: peers are asked to confirm it from now on."""
    successor = change.add_certificate(made, state=old.state, profile=old.profile, origin=origin, replaces=old.id)
    return change.advance_rotation(rotation.id, RotationStatus.OVERLAP, successor=successor.id)


def _profile(record: CertificateRecord) -> CertificateProfile:
    if record.profile is None:
        raise UserError("The purpose of this certificate is not known: create a new one, and remove this one.")
    return record.profile


def _label(state: str, record: CertificateRecord) -> str:
    return f"{state} {TEXTS[_profile(record)].title}"


def _path_length(certificate: x509.Certificate) -> int | None:
    constraints = extension_of(certificate.extensions, x509.BasicConstraints)
    return None if constraints is None else constraints.path_length


def _permitted(certificate: x509.Certificate) -> tuple[x509.GeneralName, ...]:
    constraints = extension_of(certificate.extensions, x509.NameConstraints)
    return () if constraints is None else tuple(constraints.permitted_subtrees or ())


def _crl_url(certificate: x509.Certificate) -> str:
    points = extension_of(certificate.extensions, x509.CRLDistributionPoints)
    names = [name for point in points or () for name in point.full_name or ()]
    return next((name.value for name in names if isinstance(name, x509.UniformResourceIdentifier)), "")


def _ocsp_url(certificate: x509.Certificate) -> str:
    for access in extension_of(certificate.extensions, x509.AuthorityInformationAccess) or ():
        location = access.access_location
        if access.access_method == AuthorityInformationAccessOID.OCSP and isinstance(
            location, x509.UniformResourceIdentifier
        ):
            return location.value
    return ""
