"""Checks of a bundle: consistent in itself, signed by its State, newer than the last, without names of others."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.security.pki.records import BundleRecord, CertificateRecord, State, TrustKind, TrustRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.fingerprints import fingerprint, grouped, typed_matches
from labconsole.security.x509.names import name_as_text, short_name
from labconsole.security.x509.signatures import crl_signed_by, issued_by
from labconsole_certificates.trust.bundle_format import BundleContent

_NEW = "ask its State for a new one."


def check_content(content: BundleContent, signer: x509.Certificate) -> None:
    """Check that `content`, signed by `signer`, is consistent in itself.

    Its signer is one of its roots; roots are CAs signed by themselves; intermediates and CRLs come from CAs in it;
    link certificates join its roots with other keys, under the same name (RFC 9810, 4.4): what certifies another name
    is a CA below a root. No two certificates have the same issuer and serial number.

    Raises BadInput.
    """
    if signer not in content.roots:
        raise BadInput(f"The trust bundle is not signed with one of the roots that it brings: {_NEW}")
    check_serials(content.certificates)
    for root in content.roots:
        _check_authority(root)
        if not issued_by(root, root):
            raise BadInput(f"The root {short_name(root)} in the trust bundle is not signed by itself: {_NEW}")
    authorities = (*content.roots, *content.intermediates)
    for intermediate in content.intermediates:
        _check_authority(intermediate)
        if not any(issued_by(intermediate, each) for each in authorities if each != intermediate):
            raise BadInput(f"{short_name(intermediate)} in the trust bundle was not issued by its roots: {_NEW}")
    for link in content.links:
        _check_authority(link)
    if len(joined_links(content.links, content.roots)) != len(content.links):
        raise BadInput(f"A link certificate in the trust bundle belongs to none of its roots: {_NEW}")
    for link in content.links:
        if link.subject != link.issuer:
            raise BadInput(
                f"{short_name(link)} in the trust bundle is not a link certificate, which has one name twice: {_NEW}"
            )
    for crl in content.crls:
        crl_issuer(crl, authorities)


def joined_links(links: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Those of `links` that lead to or from one of `roots`, over other links too: a State may have had many roots."""
    remaining, newly = list(links), list(roots)
    joined: list[x509.Certificate] = []
    while newly:  # each link is compared with each certificate at most once
        found = [link for link in remaining if any(_joined(link, each) for each in newly)]
        remaining = [link for link in remaining if link not in found]
        joined += found
        newly = found
    return tuple(joined)


def check_serials(certificates: Iterable[x509.Certificate]) -> None:
    """Check that no two different certificates have the same issuer and serial number (RFC 5280, 4.1.2.2)."""
    seen: dict[tuple[x509.Name, int], x509.Certificate] = {}
    for each in certificates:
        if seen.setdefault((each.issuer, each.serial_number), each) != each:
            raise BadInput(
                f"Two different certificates of {name_as_text(each.issuer)} have the serial number "
                f"{each.serial_number:X}: one of them is forged or a mistake; ask its State before you take either."
            )


def crl_issuer(crl: x509.CertificateRevocationList, authorities: Sequence[x509.Certificate]) -> x509.Certificate:
    """The one of `authorities` whose key signed the CRL. Raises BadInput: none."""
    for authority in authorities:
        if crl_signed_by(crl, authority):
            return authority
    raise BadInput(f"A CRL in the trust bundle was not signed by the CAs in it: {_NEW}")


def same_key(one: x509.Certificate, other: x509.Certificate) -> bool:
    """Whether both certify the same public key."""
    return one.public_key() == other.public_key()


def _joined(one: x509.Certificate, other: x509.Certificate) -> bool:
    return same_key(one, other) or issued_by(one, other) or issued_by(other, one)


def _check_authority(certificate: x509.Certificate) -> None:
    if not is_ca(certificate):
        raise BadInput(f"{short_name(certificate)} in the trust bundle is not a CA's certificate: {_NEW}")


_SKEW = timedelta(minutes=5)
"""Tolerance for a State's clock that is ahead of ours."""


def subject_of(snapshot: Snapshot, content: BundleContent) -> State | None:
    """The State that the bundle names, if it is known; case is ignored."""
    name = _folded(content.state)
    return next((each for each in snapshot.states if _folded(each.name) == name), None)


def trust_in(snapshot: Snapshot, importer: State, subject: State | None) -> tuple[TrustRecord, ...]:
    """The trust of `importer` in roots of `subject` that was not withdrawn."""
    if subject is None:
        return ()
    theirs = {each.id for each in snapshot.certificates if each.state == subject.id}
    return tuple(
        each
        for each in snapshot.trust
        if each.state == importer.id
        and each.kind is TrustKind.ROOT
        and each.withdrawn is None
        and each.certificate in theirs
    )


def anchors(snapshot: Snapshot, importer: State, subject: State | None, at: datetime) -> tuple[x509.Certificate, ...]:
    """The roots of `subject` that `importer` trusts and that are valid at `at`: a bundle's signer needs one of them."""
    records = [snapshot.certificate_by_id[each.certificate] for each in trust_in(snapshot, importer, subject)]
    return tuple(each.certificate for each in records if each.revoked is None and _is_valid(each.certificate, at))


def distrusted_roots(snapshot: Snapshot, importer: State, subject: State | None) -> tuple[x509.Certificate, ...]:
    """The roots of `subject` that `importer` has distrusted, without trusting another one with the same key."""
    if subject is None:
        return ()
    keys = {snapshot.certificate_by_id[row.certificate].name_and_key for row in trust_in(snapshot, importer, subject)}
    withdrawn = {
        row.certificate
        for row in snapshot.trust
        if row.state == importer.id and row.kind is TrustKind.ROOT and row.withdrawn is not None
    }
    records = [each for each in snapshot.certificates if each.id in withdrawn and each.state == subject.id]
    return tuple(each.certificate for each in records if each.name_and_key not in keys)


def check_times(content: BundleContent, signer: x509.Certificate, at: datetime) -> None:
    """Check that the bundle is not from the future at `at`, and that its signer is valid then. Raises BadInput."""
    if content.made > at + _SKEW:
        raise BadInput(
            f"The trust bundle of {content.state} was created at {content.made:%Y-%m-%d %H:%M} UTC, which is yet to "
            "come: check the clock of this computer, else ask its State."
        )
    if at < signer.not_valid_before_utc:
        raise BadInput(
            f"The root {short_name(signer)} is not valid before {signer.not_valid_before_utc:%Y-%m-%d %H:%M} UTC: "
            "check the clock of this computer, else wait."
        )
    if at > signer.not_valid_after_utc:
        raise BadInput(
            f"The root {short_name(signer)} that signed the trust bundle expired on "
            f"{signer.not_valid_after_utc:%Y-%m-%d}: ask {content.state} for one that is signed with its new root."
        )


def newest_bundle(snapshot: Snapshot, importer: State, subject: State) -> BundleRecord | None:
    """The bundle of `subject` with the highest sequence number that `importer` has imported."""
    taken = [each for each in snapshot.bundles if (each.importer, each.subject) == (importer.id, subject.id)]
    return max(taken, key=lambda each: each.sequence, default=None)


def check_sequence(content: BundleContent, digest: str, newest: BundleRecord | None) -> None:
    """Check that the bundle whose content has this SHA-256 (hex) comes after `newest`. Raises BadInput."""
    if newest is None or content.sequence > newest.sequence:
        return
    if content.sequence < newest.sequence:
        raise BadInput(
            f"This is trust bundle {content.sequence} of {content.state}, and {newest.sequence} was imported already: "
            "ask for the newest one, and why you were given an old one."
        )
    if digest != newest.sha256:
        raise BadInput(
            f"Another trust bundle {content.sequence} of {content.state} was imported already: two with one number "
            "are a mistake or a forgery; ask its State."
        )
    raise BadInput(f"Trust bundle {content.sequence} of {content.state} was imported already: there is nothing to do.")


def check_confirmed(content: BundleContent, signer: x509.Certificate, typed: str) -> None:
    """Check that the signer's fingerprint was typed. Raises BadInput."""
    if not typed.strip():
        raise BadInput(
            f"This is the first trust bundle of {content.state}: have its fingerprint read to you by a person there "
            "whom you know, and type it."
        )
    if not typed_matches(fingerprint(signer), typed):
        raise BadInput(
            f"The fingerprint that was typed is not that of the root that signed the bundle of {content.state} "
            f"({grouped(fingerprint(signer))[:14]} ...): type it again, and if it still differs, trust nothing of it."
        )


def check_signer(
    content: BundleContent,
    signer: x509.Certificate,
    trusted: Sequence[x509.Certificate],
    known: Sequence[x509.CertificateRevocationList],
    gone: Sequence[x509.Certificate],
    at: datetime,
) -> None:
    """Check that `signer` has the key of one of the roots `trusted`, or that link certificates lead from one to it.

    A link that is revoked, by a CRL in the bundle or among those `known`, does not count; nor does one back to the key
    of a distrusted root (`gone`): the old key, which the new one has certified, may be in other hands by then.
    Raises BadInput.
    """
    crls = (*content.crls, *known)
    remaining = [
        each for each in content.links if _is_valid(each, at) and not any(same_key(each, root) for root in gone)
    ]
    reached: list[x509.Certificate] = []
    newly = list(trusted)
    while newly:  # each link is compared with each certificate at most once
        reached += newly
        found = [link for link in remaining if any(_leads(each, link, crls) for each in newly)]
        remaining = [link for link in remaining if link not in found]
        newly = found
    if not any(same_key(signer, each) for each in reached):
        raise BadInput(
            f"The trust bundle of {content.state} is signed by {short_name(signer)}, an unknown issuer: no root of "
            f"{content.state} that is trusted here leads to it. Take nothing of it, and ask {content.state}."
        )


def check_owners(content: BundleContent, subject: State | None, snapshot: Snapshot) -> None:
    """Check that nothing in the bundle is known as another State's, nor has the name of a CA of another State.

    CRLs are found by the name of their CA (RFC 5280, 5.1.2.3): of two CAs of one name, one could revoke what the other
    issued. The same key under the same name is the same CA. Raises BadInput.
    """
    foreign = [each for each in snapshot.certificates if each.state is not None and each.profile in AUTHORITIES]
    foreign = [each for each in foreign if subject is None or each.state != subject.id]
    owners = {each.sha256: each for each in foreign}
    namesakes = {each.certificate.subject: each for each in foreign if each.removed is None}
    for each in (*content.roots, *content.intermediates):
        record = owners.get(fingerprint(each))
        if record is not None:
            raise BadInput(
                f"{short_name(each)} in the trust bundle of {content.state} is known as that of "
                f"{_owner(snapshot, record)}: take nothing of it, and ask both."
            )
        record = namesakes.get(each.subject)
        if record is not None and not same_key(record.certificate, each):
            raise BadInput(
                f"{short_name(each)} in the trust bundle of {content.state} has the name of a CA of "
                f"{_owner(snapshot, record)}: take nothing of it, and ask both."
            )


def _owner(snapshot: Snapshot, record: CertificateRecord) -> str:
    return "an unknown State" if record.state is None else snapshot.state_by_id[record.state].name


def _folded(name: str) -> str:
    """The name without differences of letter width, case, and number of blanks."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _is_valid(certificate: x509.Certificate, at: datetime) -> bool:
    return certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc


def _leads(issuer: x509.Certificate, link: x509.Certificate, crls: Sequence[x509.CertificateRevocationList]) -> bool:
    """Whether `issuer` issued `link`, and has not revoked it."""
    return issued_by(link, issuer) and not any(
        crl.get_revoked_certificate_by_serial_number(link.serial_number) is not None and crl_signed_by(crl, issuer)
        for crl in crls
    )
