"""Imports a trust bundle: all that it changes is one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from labconsole.errors import BadInput
from labconsole.model.operation import Confirmation, HomePath, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.change import Change
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import BundleRecord, Item, Origin, State, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.extensions import crl_number, crl_scope
from labconsole.security.x509.fingerprints import fingerprint
from labconsole_certificates.operations.pki_operation import PkiOperation
from labconsole_certificates.operations.record_lookup import local_state_named
from labconsole_certificates.trust import bundle_checks
from labconsole_certificates.trust.bundle_checks import crl_issuer, same_key
from labconsole_certificates.trust.bundle_format import BundleContent
from labconsole_certificates.trust.bundle_inspection import (
    BundleInspection,
    domain_question,
    inspect_bundle,
    must_be_confirmed,
)
from labconsole_certificates.trust.roots_and_pins import ConfirmedFingerprint


@dataclass(frozen=True)
class ImportedBundle:
    """The result of an import."""

    importer: str
    state: str
    sequence: int
    first: bool
    """Whether its fingerprint was typed, because no root of that State was trusted."""
    trusted: tuple[str, ...]
    """SHA-256 (hex) of the roots that are newly trusted."""
    withdrawn: tuple[str, ...]
    """SHA-256 (hex) of roots that the State no longer lists, and that are no longer trusted."""
    warning: str
    """Sentences on a stale bundle, roots that were distrusted before, a missing domain; may be empty."""

    def sentence(self) -> str:
        """The result in words for the operator."""
        changes = [
            f"{_roots(len(self.trusted))} now trusted" if self.trusted else "",
            f"{_roots(len(self.withdrawn))} no longer trusted" if self.withdrawn else "",
        ]
        what = " and ".join(filter(None, changes)) or "whom it trusts is the same as before"
        sentence = f"{self.importer} imported trust bundle {self.sequence} of {self.state}: {what}."
        return f"{sentence} {self.warning}".rstrip()


def import_bundle(
    store: PkiStore,
    importer: str,
    data: bytes,
    confirmed_fingerprint: str = "",
    confirmed_domain: str | None = None,
) -> ImportedBundle:
    """Import the bundle `data` for the local State `importer`: all of it in one transaction, or nothing.

    `confirmed_fingerprint`: the typed fingerprint (groups, blanks and case do not matter), if no root of the State is
    trusted yet. `confirmed_domain`: the domains in the bundle, once the operator has confirmed them
    (`bundle_inspection.domain_question`). Roots that the State no longer lists are no longer trusted; distrusted ones
    are not trusted again for being listed.

    Raises:
        BadInput: it is damaged, signed by an unknown key, not confirmed, goes back in sequence, is from the future, or
            contradicts itself (two certificates with one serial number, what its roots did not issue, names outside its
            State's domain).
        UserError: there is no such local State, or the database cannot be written.
    """
    inspection = inspect_bundle(data)
    at = datetime.now(UTC)
    with store.change() as change:
        snapshot = change.snapshot()
        importing_state = local_state_named(snapshot, importer)
        subject = bundle_checks.subject_of(snapshot, inspection.content)
        first = _check(snapshot, importing_state, subject, inspection, confirmed_fingerprint, at)
        question = domain_question(snapshot, inspection, first=first)
        if question and confirmed_domain != inspection.content.domain:
            raise BadInput(f"{question} The trust bundle is imported only once you have confirmed the domain.")
        return _apply(change, snapshot, importing_state, subject, inspection, first, at)


def _check(
    snapshot: Snapshot, importer: State, subject: State | None, inspection: BundleInspection, typed: str, at: datetime
) -> bool:
    """Apply the checks; whether it is the first bundle, confirmed by a fingerprint. Raises BadInput."""
    content = inspection.content
    if subject == importer:
        raise BadInput(f"This is a trust bundle of {importer.name} itself: hand it to the other States.")
    bundle_checks.check_times(content, inspection.signer, at)
    bundle_checks.check_owners(content, subject, snapshot)
    trusted = bundle_checks.anchors(snapshot, importer, subject, at)
    if trusted:
        distrusted = bundle_checks.distrusted_roots(snapshot, importer, subject)
        bundle_checks.check_signer(
            content, inspection.signer, trusted, [each.crl for each in snapshot.crls], distrusted, at
        )
    if subject is not None:
        newest = bundle_checks.newest_bundle(snapshot, importer, subject)
        if trusted or not _same(newest, inspection):  # after trust was withdrawn the same one may start it again
            bundle_checks.check_sequence(content, inspection.sha256, newest)
    if not trusted:
        bundle_checks.check_confirmed(content, inspection.signer, typed)
    return not trusted


def _apply(
    change: Change,
    snapshot: Snapshot,
    importer: State,
    subject: State | None,
    inspection: BundleInspection,
    first: bool,
    at: datetime,
) -> ImportedBundle:
    content = inspection.content
    if subject is None:
        subject = change.add_state(content.state, content.domain, local=False)
    elif not subject.local and subject.domain != content.domain:
        change.claim_domain(subject.id, content.domain)
    ids = _add_certificates(change, content, subject)
    _add_crls(change, snapshot, content, ids)
    listed = {fingerprint(each) for each in content.roots}
    before = {each.certificate: each for each in bundle_checks.trust_in(snapshot, importer, subject)}
    how = "fingerprint typed" if first else "signed with a root trusted before"
    confirmed = f"bundle {content.sequence}, {how}"
    distrusted = () if first else bundle_checks.distrusted_roots(snapshot, importer, subject)
    stay = {fingerprint(each) for each in content.roots if any(same_key(each, root) for root in distrusted)}
    trusted = [each for each in sorted(listed - stay) if ids[each] not in before]
    for each in trusted:
        change.trust(importer.id, ids[each], TrustKind.ROOT, confirmed)
    withdrawn = []
    for row in before.values():
        record = snapshot.certificate_by_id[row.certificate]
        if record.sha256 not in listed:
            change.withdraw_trust(row.id)
            withdrawn.append(record.sha256)
    if not _same(bundle_checks.newest_bundle(snapshot, importer, subject), inspection):
        change.add_bundle(
            importer=importer.id,
            subject=subject.id,
            sequence=content.sequence,
            made=content.made,
            next_update=content.next_update,
            sha256=inspection.sha256,
            signer=inspection.fingerprint,
            trusted=content.trusted,
        )
    change.hand_over(subject.id, importer.id, Item.BUNDLE, inspection.sha256)
    warnings = []
    if stay:
        roots = "one root" if len(stay) == 1 else f"{len(stay)} roots"
        warnings.append(f"Its trust in {roots} stays withdrawn: trust them by their fingerprints if they are in order.")
    if content.next_update < at:
        until = f"{content.next_update:%Y-%m-%d}"
        warnings.append(f"It should have been followed by a newer one by {until}: ask {content.state} for it.")
    if not content.domain:
        warnings.append(f"{content.state} claims no domain, so that its certificates may have any name.")
    warning = " ".join(warnings)
    return ImportedBundle(
        importer.name, content.state, content.sequence, first, tuple(trusted), tuple(withdrawn), warning
    )


def _same(newest: BundleRecord | None, inspection: BundleInspection) -> bool:
    return newest is not None and newest.sha256 == inspection.sha256


def _add_certificates(change: Change, content: BundleContent, subject: State) -> dict[str, int]:
    """Add what is not known yet; rows' ids by SHA-256 (hex)."""
    groups = (
        (content.roots, CertificateProfile.ROOT, Origin.BUNDLE),
        (content.intermediates, CertificateProfile.INTERMEDIATE, Origin.BUNDLE),
        (content.links, CertificateProfile.INTERMEDIATE, Origin.LINK),
    )
    return {
        fingerprint(each): change.add_certificate(each, state=subject.id, profile=profile, origin=origin).id
        for certificates, profile, origin in groups
        for each in certificates
    }


def _add_crls(change: Change, snapshot: Snapshot, content: BundleContent, ids: dict[str, int]) -> None:
    """Add each CRL that is newer than the known one of its issuer and scope."""
    authorities = (*content.roots, *content.intermediates)
    for crl in content.crls:
        issuer = ids[fingerprint(crl_issuer(crl, authorities))]
        known = [each for each in snapshot.crls if (each.issuer, each.scope) == (issuer, crl_scope(crl))]
        if all((crl_number(crl), crl.last_update_utc) > each.age for each in known):
            change.add_crl(crl, issuer)


def _roots(count: int) -> str:
    return "one root is" if count == 1 else f"{count} roots are"


NO_DOMAIN = "no domain"
"""Typed by the operator to confirm that a State no longer claims a domain."""


class ImportBundleParameters(Parameters):
    """A trust bundle to import."""

    state: str = parameter("State", "State of this console that imports it", min_length=1, positional=True)
    file: HomePath = parameter("File", "Trust bundle of another State", positional=True)
    confirmed: ConfirmedFingerprint = ""
    confirmed_domain: str | None = parameter(
        "Confirmed domain",
        ("Domain that the bundle newly claims, once its State has confirmed it; not given: it is asked for"),
        default=None,
        metavar="DOMAIN",
        terminal_only=True,
    )

    def data(self) -> bytes:
        """The bundle. Raises BadInput: it cannot be read."""
        return parsing.read_file(self.file, "trust bundle")


class ImportBundle(PkiOperation[ImportBundleParameters]):
    """Imports another State's trust bundle."""

    name: ClassVar[str] = "certificates.take-bundle"
    title: ClassVar[str] = "Import a trust bundle"
    description: ClassVar[str] = (
        "A State of this console imports the trust bundle of another one: its roots, CRLs and links. The first bundle "
        "of a State is confirmed by the fingerprint of its root, later ones by their signature."
    )
    parameters: ClassVar[type[Parameters]] = ImportBundleParameters

    def confirmation(self, parameters: ImportBundleParameters) -> Confirmation | None:
        inspection = inspect_bundle(parameters.data())
        content, option = inspection.content, "--confirmed"
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        first = must_be_confirmed(snapshot, parameters.state, inspection)
        question = domain_question(snapshot, inspection, first=first) if parameters.confirmed_domain is None else ""
        if first and not parameters.confirmed:
            claimed = f"which claims the domain {content.domain}" if content.domain else "with any names"
            loss = f"This is the first trust bundle of {content.state}, {claimed}."
            both = f"{question} The fingerprint confirms this, too." if question else ""
            return Confirmation(inspection.fingerprint, f"{loss} {both}".rstrip(), option, fingerprint=True)
        if question:
            return Confirmation(content.domain or NO_DOMAIN, question, f"{option}-domain DOMAIN")
        return None

    def work(
        self, parameters: ImportBundleParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        data, domain = parameters.data(), parameters.confirmed_domain
        inspection = inspect_bundle(data)
        by_fingerprint = not parameters.confirmed and must_be_confirmed(store.snapshot(), parameters.state, inspection)
        if domain is None and context.typed:
            typed = "" if context.typed == NO_DOMAIN else context.typed
            domain = inspection.content.domain if by_fingerprint else typed
        done = import_bundle(
            store, parameters.state, data, context.typed if by_fingerprint else parameters.confirmed, domain
        )
        found: dict[str, Any] = {"state": done.importer, "bundle_of": done.state, "sequence": done.sequence}
        return Result((done.sentence(),), found | {"trusted": done.trusted, "withdrawn": done.withdrawn})
