"""Describes extensions of certificates, CSRs and CRLs (RFC 5280, 4.2 and 5.2), each in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cryptography import x509

from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.names import general_name_as_text, name_as_text, shown
from labconsole_certificates.describing.description import (
    Row,
    Section,
    first_lines,
    first_rows,
    hex_lines,
    moment,
    serial_text,
)
from labconsole_certificates.describing.oid_names import ACCESSES, EXTENSIONS, KEY_USAGES, PURPOSES, REASONS

_FIXED_WIDTH = (x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier, x509.UnrecognizedExtension)
_HIDDEN = "<U+"


def extensions_section(extensions: Iterable[x509.Extension[x509.ExtensionType]], title: str = "Extensions") -> Section:
    """One row per extension; critical ones are marked."""
    return Section(title, first_rows(map(_row, extensions)) or (Row("Extensions", "none"),))


def _row(extension: x509.Extension[x509.ExtensionType]) -> Row:
    label = EXTENSIONS.get(extension.oid, f"OID {extension.oid.dotted_string}")
    value = first_lines(_lines(extension.value)) or "empty"
    return Row(
        f"{label} (critical)" if extension.critical else label,
        value,
        fixed_width=isinstance(extension.value, _FIXED_WIDTH),
        warning=_HIDDEN in value,
    )


def _lines(value: x509.ExtensionType) -> Iterator[str]:
    match value:
        case x509.BasicConstraints():
            yield "certification authority" if value.ca else "end certificate"
            if value.path_length is not None:
                yield f"CAs below it: {value.path_length} at most"
        case x509.KeyUsage():
            yield from _key_usages(value)
        case x509.ExtendedKeyUsage():
            yield from (PURPOSES.get(oid, f"OID {oid.dotted_string}") for oid in value)
        case x509.SubjectAlternativeName() | x509.IssuerAlternativeName() | x509.CertificateIssuer():
            yield from map(general_name_as_text, value)
        case x509.NameConstraints():
            yield from (f"permitted: {general_name_as_text(name)}" for name in value.permitted_subtrees or ())
            yield from (f"excluded: {general_name_as_text(name)}" for name in value.excluded_subtrees or ())
        case x509.SubjectKeyIdentifier():
            yield grouped(value.digest.hex())
        case x509.AuthorityKeyIdentifier():
            yield from _authority_key(value)
        case x509.CRLDistributionPoints() | x509.FreshestCRL():
            for point in value:
                yield from _distribution_point(point)
        case x509.AuthorityInformationAccess() | x509.SubjectInformationAccess():
            for access in value:
                method = ACCESSES.get(access.access_method, f"OID {access.access_method.dotted_string}")
                yield f"{method}: {general_name_as_text(access.access_location)}"
        case x509.CertificatePolicies():
            yield from (f"OID {policy.policy_identifier.dotted_string}" for policy in value)
        case x509.IssuingDistributionPoint():
            yield from _issuing_point(value)
        case _:
            yield from _plain_lines(value)


def _plain_lines(value: x509.ExtensionType) -> Iterator[str]:
    """The lines of extensions with one value or two."""
    match value:
        case x509.PolicyConstraints():
            if value.require_explicit_policy is not None:
                yield f"explicit policy required after {value.require_explicit_policy} certificates"
            if value.inhibit_policy_mapping is not None:
                yield f"no policy mapping after {value.inhibit_policy_mapping} certificates"
        case x509.InhibitAnyPolicy():
            yield f"after {value.skip_certs} certificates"
        case x509.OCSPNoCheck():
            yield "this responder's certificate is not asked for"
        case x509.CRLNumber() | x509.DeltaCRLIndicator():
            yield str(value.crl_number)
        case x509.CRLReason():
            yield REASONS[value.reason]
        case x509.InvalidityDate():
            yield moment(value.invalidity_date_utc)
        case x509.UnrecognizedExtension():
            yield hex_lines(value.value)
        case _:
            yield shown(repr(value))


def _key_usages(value: x509.KeyUsage) -> Iterator[str]:
    yield from (words for attribute, words in KEY_USAGES if getattr(value, attribute))
    if value.key_agreement and value.encipher_only:
        yield "encipher only"
    if value.key_agreement and value.decipher_only:
        yield "decipher only"


def _authority_key(value: x509.AuthorityKeyIdentifier) -> Iterator[str]:
    if value.key_identifier is not None:
        yield grouped(value.key_identifier.hex())
    yield from (f"issuer {general_name_as_text(name)}" for name in value.authority_cert_issuer or ())
    if value.authority_cert_serial_number is not None:
        yield f"serial number {serial_text(value.authority_cert_serial_number)}"


def _distribution_point(point: x509.DistributionPoint) -> Iterator[str]:
    yield from map(general_name_as_text, point.full_name or ())
    if point.relative_name is not None:
        yield f"relative name {name_as_text(x509.Name([point.relative_name]))}"
    yield from (f"CRL issuer {general_name_as_text(name)}" for name in point.crl_issuer or ())
    if point.reasons:
        yield f"for the reasons {', '.join(sorted(REASONS[reason] for reason in point.reasons))}"


def _issuing_point(value: x509.IssuingDistributionPoint) -> Iterator[str]:
    yield from map(general_name_as_text, value.full_name or ())
    if value.relative_name is not None:
        yield f"relative name {name_as_text(x509.Name([value.relative_name]))}"
    if value.only_contains_user_certs:
        yield "end certificates only"
    if value.only_contains_ca_certs:
        yield "CA certificates only"
    if value.only_contains_attribute_certs:
        yield "attribute certificates only"
    if value.indirect_crl:
        yield "of several issuers (indirect CRL)"
    if value.only_some_reasons:
        yield f"only the reasons {', '.join(sorted(REASONS[reason] for reason in value.only_some_reasons))}"
