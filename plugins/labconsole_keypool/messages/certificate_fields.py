"""The X.509 fields that a sign request asks for in the signer's certificate."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole_keypool.messages import der
from labconsole_keypool.messages.safe_xml import SignRequestError
from labconsole_keypool.messages.sign_request import CertificateType, SignRequest
from labconsole_keypool.messages.signer_attributes import Place, SignerAttribute

AUTHENTICATION_CONTEXT = x509.ObjectIdentifier("1.2.752.201.5.1")
"""AuthenticationContexts (RFC 7773, 2): a sequence of (contextType UTF8String, contextInfo UTF8String OPTIONAL)."""
SUBJECT_DIRECTORY_ATTRIBUTES = x509.ObjectIdentifier("2.5.29.9")
QC_STATEMENTS = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.3")

_SAML_CONTEXT = "http://id.elegnamnden.se/auth-cont/1.0/saci"
"""contextType of a SAMLAuthContext (RFC 7773, 3)."""

_QC_COMPLIANCE = "0.4.0.1862.1.1"
_QC_SSCD = "0.4.0.1862.1.4"
_STATEMENTS = {
    CertificateType.PKC: (),
    CertificateType.QC: (_QC_COMPLIANCE,),
    CertificateType.QC_SSCD: (_QC_COMPLIANCE, _QC_SSCD),
}

_PRINTABLE_NAMES = {
    NameOID.COUNTRY_NAME,
    NameOID.DN_QUALIFIER,
    NameOID.JURISDICTION_COUNTRY_NAME,
    NameOID.SERIAL_NUMBER,
}
_IA5_NAMES = {NameOID.DOMAIN_COMPONENT, NameOID.EMAIL_ADDRESS}
"""Parts of a subject that are PrintableStrings and IA5Strings (RFC 5280, appendix A.1); the others are UTF8Strings."""

_GENERAL_NAMES: dict[str, Callable[[str], x509.GeneralName]] = {
    "1": x509.RFC822Name,
    "2": x509.DNSName,
    "6": x509.UniformResourceIdentifier,
    "8": lambda value: x509.RegisteredID(_identifier(value)),
}
"""By the tag of GeneralName (RFC 5280, 4.2.1.6) that holds a text."""

_Made = TypeVar("_Made")
_DATE_OF_BIRTH = "1.3.6.1.5.5.7.9.1"
_DATE = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")
_PRINTABLE_ATTRIBUTES = {"1.3.6.1.5.5.7.9.3", "1.3.6.1.5.5.7.9.4", "1.3.6.1.5.5.7.9.5"}
"""Gender, country of citizenship, country of residence (RFC 3739, 3.2.2)."""


@dataclass(frozen=True, slots=True)
class CertificateFields:
    """Subject and extensions (each with whether it is critical) that one certificate gets besides those of the CA."""

    subject: x509.Name
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = ()


def fields_of(request: SignRequest) -> CertificateFields:
    """The fields that `request` asks for; none of the extensions is critical.

    Subject (rdn), SubjectAlternativeName (san), SubjectDirectoryAttributes (sda; RFC 5280, 4.2.1.8), qcStatements for
    QC and QC/SSCD (ETSI EN 319 412-5, 4.2.1 and 4.2.2), and the authentication context as it was received (RFC 7773).

    Raises:
        SignRequestError: no attribute of the subject, an attribute that a certificate cannot have, or a value that
            its type does not take.
    """
    subject = [_made(_name_attribute, attribute) for attribute in _at(Place.RDN, request)]
    if not subject:
        raise SignRequestError("The sign request names no signer: give an attribute of Type rdn, such as 2.5.4.3.")
    extensions: list[x509.ExtensionType] = []
    if names := [_made(_general_name, attribute) for attribute in _at(Place.SAN, request)]:
        extensions.append(x509.SubjectAlternativeName(names))
    if attributes := [_made(_directory_attribute, attribute) for attribute in _at(Place.SDA, request)]:
        extensions.append(x509.UnrecognizedExtension(SUBJECT_DIRECTORY_ATTRIBUTES, der.sequence(*attributes)))
    if statements := _STATEMENTS[request.certificate_type]:
        encoded = (der.sequence(der.object_identifier(statement)) for statement in statements)
        extensions.append(x509.UnrecognizedExtension(QC_STATEMENTS, der.sequence(*encoded)))
    if request.context is not None:
        context = der.sequence(der.utf8(_SAML_CONTEXT), der.utf8(request.context))
        extensions.append(x509.UnrecognizedExtension(AUTHENTICATION_CONTEXT, der.sequence(context)))
    return CertificateFields(x509.Name(subject), tuple((extension, False) for extension in extensions))


def plain_fields(number: int) -> CertificateFields:
    """The fields for request `number` of random digests: a name, and no extension."""
    return CertificateFields(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Request {number}")]))


def _at(place: Place, request: SignRequest) -> Iterable[SignerAttribute]:
    return (attribute for attribute in request.attributes if attribute.place is place)


def _made(make: Callable[[SignerAttribute], _Made], attribute: SignerAttribute) -> _Made:
    try:
        return make(attribute)
    except ValueError as error:
        raise SignRequestError(
            f"The sign request's attribute {attribute.reference[:60]!r} ({attribute.place}) cannot be used in a"
            f" certificate: {str(error).rstrip('.')}."
        ) from error


def _name_attribute(attribute: SignerAttribute) -> x509.NameAttribute[str]:
    identifier = _identifier(attribute.reference)
    if identifier in _PRINTABLE_NAMES:
        der.printable(attribute.value)
    if identifier in _IA5_NAMES and not attribute.value.isascii():
        raise ValueError("it has characters that are not ASCII")
    return x509.NameAttribute(identifier, attribute.value)


def _general_name(attribute: SignerAttribute) -> x509.GeneralName:
    if attribute.reference in _GENERAL_NAMES:
        return _GENERAL_NAMES[attribute.reference](attribute.value)
    if attribute.reference.isdecimal():
        raise ValueError(f"its tag is none of {', '.join(_GENERAL_NAMES)}")
    return x509.OtherName(_identifier(attribute.reference), der.utf8(attribute.value))


def _directory_attribute(attribute: SignerAttribute) -> bytes:
    """An Attribute (RFC 5280, appendix A.1) with one value, of the type that RFC 3739 gives it, else a UTF8String."""
    if attribute.reference == _DATE_OF_BIRTH:
        value = _noon(attribute.value)
    elif attribute.reference in _PRINTABLE_ATTRIBUTES:
        value = der.printable(attribute.value)
    else:
        value = der.utf8(attribute.value)
    return der.sequence(der.object_identifier(_identifier(attribute.reference).dotted_string), der.set_of(value))


def _identifier(dotted: str) -> x509.ObjectIdentifier:
    try:
        return x509.ObjectIdentifier(dotted)
    except ValueError as error:
        raise ValueError("it is named by no object identifier, such as 2.5.4.3") from error


def _noon(date: str) -> bytes:
    """Noon of a day, as a date of birth is to be written (RFC 3739, 3.2.2)."""
    found = _DATE.fullmatch(date)
    if found is None:
        raise ValueError("write the date as 1912-12-12")
    return der.generalized_time(f"{''.join(found.groups())}120000Z")
