"""Creates and signs the trust bundle of a State of this console."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, ClassVar

from cryptography import x509
from pydantic import Field

from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, Result
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord, KeyRecord, Origin, State, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509 import cms
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.export import write_export
from labconsole_certificates.operations.parameter_fields import Days, SavedTo, StateName, UnlockParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.record_lookup import local_state_named
from labconsole_certificates.revocation.crl_renewal import renew_crls
from labconsole_certificates.trust.bundle_checks import joined_links
from labconsole_certificates.trust.bundle_format import BundleContent, encode
from labconsole_certificates.trust.bundle_inspection import inspect_bundle

DAYS = 30
"""Days for which a bundle is current, by default."""


def make_bundle(store: PkiStore, state: str, *, days: int = DAYS, prompt: Prompt | None = None) -> bytes:
    """The next bundle of `state` (a local one), signed with the key of its oldest valid root: DER, CMS.

    Due CRLs are renewed first, if that needs no other passphrase; the others are listed by `expiring_crls`. Most peers
    trust the oldest root; link certificates lead from it to newer ones. The bundle is recorded in the database as the
    State's own. Raises UserError: the State is not local, has no valid root whose key is stored here, or the key cannot
    be opened.
    """
    maker = local_state_named(store.snapshot(), state)
    signer, record = signing_root(store.snapshot(), maker, datetime.now(UTC))
    with opened_key(store.directory, record, prompt) as key:
        renew_crls(store, maker, Issuer(signer.certificate, key))
        made = datetime.now(UTC).replace(microsecond=0)
        content = _content(store.snapshot(), maker, made, made + timedelta(days=days))
        encoded = encode(content)
        data = cms.sign(encoded, signer.certificate, key, at=made)
    with store.change() as change:
        change.add_bundle(
            importer=maker.id,
            subject=maker.id,
            sequence=content.sequence,
            made=content.made,
            next_update=content.next_update,
            sha256=fingerprint(encoded),
            signer=signer.sha256,
            trusted=content.trusted,
        )
    return data


def expiring_crls(content: BundleContent) -> str:
    """A sentence on CRLs in a bundle that have expired or will soon; empty where there are none."""
    sentences = []
    for crl in content.crls:
        until = crl.next_update_utc
        if until is None or until - (until - crl.last_update_utc) / 3 > content.made:
            continue
        name, day = short_name(crl.issuer), f"{until:%Y-%m-%d}"
        what = "expired on" if until < content.made else "is valid only until"
        sentences.append(f"The CRL of {name} in it {what} {day}: publish the next one, and create another bundle then.")
    return " ".join(sentences)


def signing_root(snapshot: Snapshot, state: State, at: datetime) -> tuple[CertificateRecord, KeyRecord]:
    """The root whose key signs the bundles of `state`, and that key. Raises UserError: there is none."""
    for root in reversed(_roots(snapshot, state, at)):
        if root.key is not None:
            return root, snapshot.key_by_id[root.key]
    raise UserError(f"{state.name} has no valid root whose key is in this console: create or import one first.")


def _content(snapshot: Snapshot, state: State, made: datetime, next_update: datetime) -> BundleContent:
    roots = _roots(snapshot, state, made)
    intermediates = _intermediates(snapshot, state, roots, made)
    issuers = {each.id for each in (*roots, *intermediates)}
    own = [each for each in snapshot.bundles if each.importer == each.subject == state.id]
    return BundleContent(
        state=state.name,
        domain=state.domain,
        sequence=max((each.sequence for each in own), default=0) + 1,
        made=made,
        next_update=next_update,
        roots=tuple(each.certificate for each in roots),
        intermediates=tuple(each.certificate for each in intermediates),
        links=_links(snapshot, state, roots, made),
        crls=tuple(each.crl for each in snapshot.newest_crls if each.issuer in issuers),
        trusted=tuple(each.sha256 for each in snapshot.trusted_by(state.id, TrustKind.ROOT)),
    )


def _roots(snapshot: Snapshot, state: State, at: datetime) -> list[CertificateRecord]:
    """The certificates that have not expired, newest first."""
    return [each for each in snapshot.roots_of(state.id) if each.certificate.not_valid_after_utc >= at]


def _intermediates(
    snapshot: Snapshot, state: State, roots: list[CertificateRecord], at: datetime
) -> list[CertificateRecord]:
    candidates = [
        each
        for each in snapshot.certificates
        if each.state == state.id
        and each.profile is CertificateProfile.INTERMEDIATE
        and each.origin is not Origin.LINK
        and _is_valid(each, at)
    ]
    return [each for each in candidates if roots and set(snapshot.chain_of(each)) & set(roots)]


def _links(
    snapshot: Snapshot, state: State, roots: list[CertificateRecord], at: datetime
) -> tuple[x509.Certificate, ...]:
    """Link certificates that lead to or from one of the roots, also from roots that are no longer exported."""
    links = [
        each.certificate
        for each in snapshot.certificates
        if each.origin is Origin.LINK and each.state == state.id and _is_valid(each, at)
    ]
    return joined_links(links, [each.certificate for each in roots])


def _is_valid(record: CertificateRecord, at: datetime) -> bool:
    return record.removed is None and record.revoked is None and record.certificate.not_valid_after_utc >= at


class MakeBundleParameters(UnlockParameters):
    """A trust bundle that is to be signed."""

    state: StateName
    valid_days: Days = DAYS
    file: Annotated[SavedTo, Field(json_schema_extra={"positional": True})]


class MakeBundle(PkiOperation[MakeBundleParameters]):
    """Signs a State's trust bundle."""

    name: ClassVar[str] = "certificates.make-bundle"
    title: ClassVar[str] = "Export a trust bundle"
    description: ClassVar[str] = (
        "Writes one signed file with the State's roots, intermediates, CRLs and link certificates. Other States import "
        "it, and the next ones, to keep their trust up to date."
    )
    parameters: ClassVar[type[Parameters]] = MakeBundleParameters

    def needs(self, parameters: MakeBundleParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        must_be_new_files(parameters.file)
        state = local_state_named(snapshot, parameters.state)
        signer, _key = signing_root(snapshot, state, datetime.now(UTC))
        return key_secrets(directory, snapshot, signer, unlock=parameters.unlock())

    def work(
        self, parameters: MakeBundleParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        data = make_bundle(store, parameters.state, days=parameters.valid_days, prompt=prompt)
        write_export(parameters.file, data)
        content = inspect_bundle(data).content
        warning = expiring_crls(content)
        return Result(
            (
                f"{parameters.file} is trust bundle {content.sequence} of {content.state}: send it to all States that "
                "trust it.",
            ),
            {"state": content.state, "sequence": content.sequence, "file": str(parameters.file)},
            (warning,) if warning else (),
        )
