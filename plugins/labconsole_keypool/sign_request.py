"""Reads OASIS DSS / Swedish csig sign requests, which come from strangers, and makes those that loads are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from labconsole.security.token.terms import KeyKind
from labconsole_keypool.signature_algorithms import ECDSA_SHA256, SignatureAlgorithm

LARGEST_BYTES = 1_000_000
"""A request over this length is refused before it is looked at."""


class Form(StrEnum):
    """Where a request keeps what goes beyond DSS."""

    SOURCE = "source"
    """Directly under OptionalInputs, as in the source's Appendix A."""
    CSIG = "csig"
    """In a SignRequestExtension, as in csig 1.0."""


class CertificateType(StrEnum):
    """What kind of certificate is asked for (csig 1.0, CertRequestProperties)."""

    PKC = "PKC"
    """Not qualified."""
    QC = "QC"
    """Qualified."""
    QC_SSCD = "QC/SSCD"
    """Qualified, its key in a secure signature creation device."""


class Place(StrEnum):
    """Where in a certificate an attribute of the signer goes (csig 1.0; RFC 7773, 3.1.3)."""

    RDN = "rdn"
    """A part of the subject; named by its object identifier."""
    SAN = "san"
    """An alternative name; named by its GeneralName's tag number, or the object identifier of an otherName."""
    SDA = "sda"
    """A subject directory attribute; named by its object identifier."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of the signer, and where in the certificate it goes."""

    place: Place
    reference: str
    value: str
    friendly_name: str = ""


@dataclass(frozen=True, slots=True)
class SignTask:
    """One thing to be signed: `to_be_signed` is hashed and signed as it is."""

    id: str
    signature_type: str
    to_be_signed: bytes


@dataclass(frozen=True, slots=True)
class SignRequest:
    """A sign request that can be served."""

    request_id: str
    profile: str
    form: Form
    requester: str
    algorithm: SignatureAlgorithm
    certificate_type: CertificateType
    attributes: tuple[Attribute, ...]
    context: str | None
    """The received SAMLAuthContext element as XML, self-contained; None where the request has none."""
    tasks: tuple[SignTask, ...]

    @property
    def key_kind(self) -> KeyKind:
        """The kind of key that the algorithm takes; of RSA keys, the pool's smallest (`SignatureAlgorithm.serves`)."""
        return self.algorithm.key_kind


def parse(data: bytes) -> SignRequest:
    """Read a sign request. Fetches nothing, expands no entity; 0.1 ms for one of 2 kB.

    Raises:
        SignRequestError: too long, has a DOCTYPE, is no XML, lacks an element, asks for what there is not.
    """
    raise NotImplementedError


def sample(
    number: int = 0,
    *,
    algorithm: SignatureAlgorithm = ECDSA_SHA256,
    tasks: int | Sequence[bytes] = 1,
    form: Form = Form.SOURCE,
    certificate_type: CertificateType = CertificateType.QC_SSCD,
) -> bytes:
    """A valid sign request, the same for the same arguments, of an invented signer; another `number`, another one.

    `tasks` is how many there are, or what each has to be signed. Takes 0.02 ms.
    """
    raise NotImplementedError
