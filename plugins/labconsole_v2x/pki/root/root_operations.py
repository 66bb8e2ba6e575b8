"""`labconsole v2x certify-authority`, `accept-authority`: EA and AA get certificates of a root CA, as operations."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.safe_text import shown
from labconsole_v2x.pki.station_operations import certificates_result

if TYPE_CHECKING:
    from labconsole_v2x.pki.root.authority_requests import AuthorityKind

_FINGERPRINT = re.compile("[0-9a-f]{64}")


class CertifiedAuthority(StrEnum):
    """An authority under a root CA, by the name of its folder in a lab."""

    EA = "ea"
    AA = "aa"

    @property
    def kind(self) -> AuthorityKind:
        """Its task and permissions."""
        from labconsole_v2x.pki.root.authority_requests import AuthorityKind  # imported late, as all of cryptography

        return AuthorityKind[self.name]


_KINDS = {
    CertifiedAuthority.EA.value: "Enrolment authority (EA)",
    CertifiedAuthority.AA.value: "Authorization authority (AA)",
}


class CertifyParameters(Parameters):
    """The authority, and its root CA."""

    lab: HomePath = parameter(
        "Folder of the lab",
        "Folder of the authority's lab; it needs root/certificate.oer, the certificate of the root CA",
        kind="folder",
        positional=True,
        metavar="LAB",
    )
    authority: CertifiedAuthority = parameter(
        "Authority", "Which authority gets a certificate", positional=True, labels=_KINDS, metavar="ea|aa"
    )
    rca: str = parameter("URL of the root CA", "URL of the root CA", metavar="URL", default="http://127.0.0.1:8940/")


class CertifyAuthority(Operation[CertifyParameters]):
    """Gets the first or next certificate of an authority from a root CA."""

    name: ClassVar[str] = "v2x.certify-authority"
    title: ClassVar[str] = "Certify an authority"
    description: ClassVar[str] = (
        "Creates new keys of an EA or AA and gets a certificate for them from its root CA (ETSI TS 102 941). The first "
        "request is granted once the root's operator has accepted its key; the current certificate signs for the next. "
        "Without a grant, the current keys stay in use."
    )
    parameters: ClassVar[type[Parameters]] = CertifyParameters

    def run(self, parameters: CertifyParameters, context: OperationContext) -> Result:
        from labconsole_v2x.inspection.capture_certificates import read_certificate
        from labconsole_v2x.pki.http_transport import checked_url, post
        from labconsole_v2x.pki.key_folders import (
            ROOT,
            certificate_file,
            current_certificate,
            next_keys,
            renewing,
            use_next_keys,
        )
        from labconsole_v2x.pki.root.authority_requests import certified_by_root, fingerprint
        from labconsole_v2x.security.verification import its_now

        lab, name, url = parameters.lab, parameters.authority.value, checked_url(parameters.rca)
        if not certificate_file(lab, ROOT).exists():
            raise UserError(f"{lab} has no root CA: copy the root's certificate to {certificate_file(lab, ROOT)}.")
        root = read_certificate(certificate_file(lab, ROOT))
        with renewing(lab, name):
            current, keys = current_certificate(lab, name), next_keys(lab, name)
            context.say(f"Key: {fingerprint(keys[0].public_key).hex()}")
            certificate = certified_by_root(url, root, parameters.authority.kind, keys, current, post, its_now())
            file = use_next_keys(lab, name, certificate)
        result = certificates_result("Certified", [certificate], (root,), [file])
        next_steps = (
            "Start EA and AA again, which read each other's certificate, and have the lists of the root issued again "
            "(v2x issue-lists)."
        )
        return Result((*result.parts, next_steps), result.data)


class AcceptParameters(Parameters):
    """The key of an authority, and what the root's lists and its certificate say of it."""

    lab: HomePath = parameter(
        "Folder of the lab", "Folder of the root CA's lab", kind="folder", positional=True, metavar="LAB"
    )
    key: str = parameter(
        "Key",
        "Fingerprint of the authority's key, as v2x certify-authority shows it there",
        positional=True,
        metavar="FINGERPRINT",
    )
    authority: CertifiedAuthority = parameter("Authority", "Kind of authority that the key belongs to", labels=_KINDS)
    name: str | None = parameter(
        "Name", "Name in its certificate; not given: Lab EA or Lab AA", default=None, min_length=1, max_length=64
    )
    url: str | None = parameter(
        "URL",
        "Where stations reach it, as the CTL names it; not given: the CTL leaves it out",
        default=None,
        metavar="URL",
    )


class AcceptAuthority(Operation[AcceptParameters]):
    """Has a root CA certify the holder of a key."""

    name: ClassVar[str] = "v2x.accept-authority"
    title: ClassVar[str] = "Accept an authority"
    description: ClassVar[str] = (
        "Has the root CA of a lab grant the request of an EA or AA for its first certificate. Compare the key's "
        "fingerprint with the one that its holder sees. Until then, it may be accepted again with other values."
    )
    parameters: ClassVar[type[Parameters]] = AcceptParameters

    def run(self, parameters: AcceptParameters, context: OperationContext) -> Result:
        from labconsole_v2x.pki.http_transport import checked_url
        from labconsole_v2x.pki.key_folders import has_root_key
        from labconsole_v2x.pki.root.authority_folder import AuthorityFolder
        from labconsole_v2x.pki.root.root_authority import AcceptedAuthority

        lab, given = parameters.lab, parameters.key.strip().lower()
        if not _FINGERPRINT.fullmatch(given):
            raise UserError(f"{shown(parameters.key)} is not the fingerprint of a key: write 64 hexadecimal digits.")
        if not has_root_key(lab):
            raise UserError(f"{lab} has no key of a root CA: run this in the lab of the root.")
        url = checked_url(parameters.url) if parameters.url else ""
        register, key, kind = AuthorityFolder(lab), bytes.fromhex(given), parameters.authority.kind
        known = register.by_key(key)
        if known is not None and known.certificates:
            raise UserError(
                f"{given} has a certificate already: its holder renews it with labconsole v2x certify-authority."
            )
        register.accept(AcceptedAuthority(key, kind, parameters.name or kind.title, url))
        return Result((f"Accepted: {_KINDS[parameters.authority.value]} with the key {given}.",), {"key": given})
