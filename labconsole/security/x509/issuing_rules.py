"""What an issuer refuses to certify, since no path validation (RFC 5280, 6.1) would accept it. All raise BadInput."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509

from labconsole.security.x509.alternative_names import malformed
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.key_types import PublicKey, problem_of
from labconsole.security.x509.name_constraints import outside_limits
from labconsole.security.x509.names import general_name_as_text, name_as_text, short_name
from labconsole.security.x509.validity import CLOCK_SKEW, Validity

MALFORMED = "is not a valid host, address, mail address or URI"


def check_path(issuer: x509.Certificate, subject: x509.Name, path_length: int | None) -> None:
    """Refuse another CA below `issuer` where there is no room; its own name under another key takes no room (6.1.4)."""
    check_ca_subject(subject)
    allowed = ca_constraints(issuer).path_length
    if allowed is None or subject == issuer.subject:
        return
    if allowed == 0:
        raise BadInput("This CA signs end certificates only (path length 0): choose one that may have CAs below it.")
    if path_length is not None and path_length >= allowed:
        raise BadInput(f"Below this CA, the path length can be at most {allowed - 1}: choose a smaller one.")


def check_limits(
    subject: x509.Name, names: Sequence[x509.GeneralName], authorities: Sequence[x509.Certificate]
) -> None:
    """Refuse names outside the limits of the issuer and those above it."""
    outside = outside_limits(subject, names, authorities)
    if outside is not None:
        name, authority = outside
        raise BadInput(
            f"{general_name_as_text(name)} is outside the names that {short_name(authority)} may certify: "
            "choose a name within them, or another CA."
        )


def check_key(public_key: PublicKey) -> None:
    """Refuse a weak key."""
    problem = problem_of(public_key)
    if problem:
        raise BadInput(problem)


def check_ca_subject(subject: x509.Name) -> None:
    """Refuse a CA without a name (4.1.2.6)."""
    if not subject.rdns:
        raise BadInput("A CA needs a subject: name it, as in CN=State A Root,C=SG.")


def check_names(profile: CertificateProfile, names: Sequence[x509.GeneralName]) -> None:
    """Refuse a TLS server without alternative names, for its clients look there only (RFC 9525); and malformed ones."""
    odd = malformed(names)
    if odd is not None:
        raise BadInput(f"{general_name_as_text(odd)} {MALFORMED}: choose another name.")
    if profile is CertificateProfile.TLS_SERVER and not names:
        raise BadInput("A TLS server needs its host name as an alternative name, as in broker.example: add it.")


def ca_constraints(certificate: x509.Certificate) -> x509.BasicConstraints:
    """The basicConstraints of a CA; refuse to take another for one."""
    constraints = extension_of(certificate.extensions, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise BadInput(f"{name_as_text(certificate.subject)} is not a CA, so it issues nothing: choose a CA.")
    return constraints


def within(issuer: x509.Certificate, validity: Validity) -> Validity:
    """`validity`, cut at the issuer's end if it ends up to an hour later; refuse more."""
    end = issuer.not_valid_after_utc
    if validity.not_after > end + CLOCK_SKEW:
        raise BadInput(f"The CA's own certificate ends on {end:%Y-%m-%d}: choose an end before that.")
    return Validity(validity.not_before, min(validity.not_after, end))
