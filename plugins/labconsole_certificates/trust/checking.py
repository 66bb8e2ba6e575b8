"""Checks that a bundle holds together: everything in it comes from the roots in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cryptography import x509

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.names import name_as_text, short_name
from labconsole.security.x509.signatures import crl_signed_by, issued_by
from labconsole_certificates.trust.bundle_format import BundleContent

_NEW = "ask its State for a new one."


def check_content(content: BundleContent, signer: x509.Certificate) -> None:
    """Check that `content`, signed by `signer`, holds together by itself.

    Its signer is one of its roots; roots are CAs signed by themselves; intermediates and CRLs come from CAs in it;
    link certificates join its roots with other keys, under the same name (RFC 9810, 4.4): what certifies another name
    is a CA below a root, and speaks for nobody but itself. No two certificates have one issuer and serial number.

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
    while newly:  # each link is held against each certificate once at most
        found = [link for link in remaining if any(_joined(link, each) for each in newly)]
        remaining = [link for link in remaining if link not in found]
        joined += found
        newly = found
    return tuple(joined)


def check_serials(certificates: Iterable[x509.Certificate]) -> None:
    """Check that no two of them are different but have the same issuer and serial number (RFC 5280, 4.1.2.2)."""
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
