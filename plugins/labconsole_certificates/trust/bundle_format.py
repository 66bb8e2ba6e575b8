"""The content of a trust bundle, inside its CMS: DER of the structure below, encoded and strictly decoded.

    TrustBundle ::= SEQUENCE {
        kind           UTF8String,             -- "labconsole trust bundle"
        version        INTEGER,                -- 1
        state          UTF8String,
        domain         UTF8String,             -- DNS domains of its hosts, a blank between them, or empty
        sequence       INTEGER (1..2^53),      -- each bundle of a State has a higher one
        thisUpdate     GeneralizedTime,
        nextUpdate     GeneralizedTime,
        roots          SEQUENCE OF OCTET STRING,   -- each the DER of a Certificate (RFC 5280, 4.1)
        intermediates  SEQUENCE OF OCTET STRING,
        links          SEQUENCE OF OCTET STRING,   -- old with new, new with old (RFC 9810, 4.4)
        crls           SEQUENCE OF OCTET STRING,   -- each the DER of a CertificateList (RFC 5280, 5.1)
        trusted        SEQUENCE OF OCTET STRING }  -- SHA-256 of the roots that the State trusts

The bundle contains the DER of its certificates and CRLs byte by byte, and nothing else decodes to the same content:
what is read is encoded again and must be the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from asn1crypto import core
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.pki.domains import LONGEST, domains_from_text
from labconsole.security.x509 import parsing

LAST_SEQUENCE = 2**53
_KIND = "labconsole trust bundle"
_VERSION = 1
_LONGEST_NAME = 64
_MOST = {"roots": 16, "intermediates": 32, "links": 32, "crls": 48, "trusted": 1000}
_DIGEST_SIZE = 32
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Earliest time of a bundle; Python's datetime lacks the year 0 of GeneralizedTime."""


class _Items(core.SequenceOf):  # type: ignore[misc]  # asn1crypto brings no types
    _child_spec = core.OctetString


class _TrustBundle(core.Sequence):  # type: ignore[misc]
    _fields = [  # noqa: RUF012  # asn1crypto reads it so
        ("kind", core.UTF8String),
        ("version", core.Integer),
        ("state", core.UTF8String),
        ("domain", core.UTF8String),
        ("sequence", core.Integer),
        ("this_update", core.GeneralizedTime),
        ("next_update", core.GeneralizedTime),
        ("roots", _Items),
        ("intermediates", _Items),
        ("links", _Items),
        ("crls", _Items),
        ("trusted", _Items),
    ]


@dataclass(frozen=True)
class BundleContent:
    """The content of a bundle. Times are aware, UTC, in whole seconds; `trusted` is SHA-256 in hex."""

    state: str
    domain: str
    sequence: int
    made: datetime
    next_update: datetime
    roots: tuple[x509.Certificate, ...]
    intermediates: tuple[x509.Certificate, ...]
    links: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...]
    trusted: tuple[str, ...]

    @property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """All its certificates."""
        return (*self.roots, *self.intermediates, *self.links)


def encode(content: BundleContent) -> bytes:
    """DER of `content`."""
    return _encoded(
        _TrustBundle(
            {
                "kind": _KIND,
                "version": _VERSION,
                "state": content.state,
                "domain": content.domain,
                "sequence": content.sequence,
                "this_update": content.made,
                "next_update": content.next_update,
                "roots": _ders(content.roots),
                "intermediates": _ders(content.intermediates),
                "links": _ders(content.links),
                "crls": _ders(content.crls),
                "trusted": [bytes.fromhex(each) for each in content.trusted],
            }
        )
    )


def decode(der: bytes) -> BundleContent:
    """The content with this DER. Raises BadInput: it is malformed, or larger than a bundle may be."""
    bundle = _parsed(der)
    _check_limits(bundle)
    content = BundleContent(
        state=bundle["state"].native,
        domain=domains_from_text(bundle["domain"].native),
        sequence=bundle["sequence"].native,
        made=bundle["this_update"].native,
        next_update=bundle["next_update"].native,
        roots=_certificates(bundle, "roots"),
        intermediates=_certificates(bundle, "intermediates"),
        links=_certificates(bundle, "links"),
        crls=tuple(parsing.read_crl(each.native, "A CRL in the trust bundle") for each in bundle["crls"]),
        trusted=tuple(each.native.hex() for each in bundle["trusted"]),
    )
    if content.next_update <= content.made:
        raise BadInput("The trust bundle ends before it begins: ask its State for a new one.")
    return content


def _parsed(der: bytes) -> _TrustBundle:
    try:
        bundle: _TrustBundle = _TrustBundle.load(der, strict=True)
        same = _encoded(bundle) == der
        header = (bundle["kind"].native, bundle["version"].native)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        # asn1crypto parses on access, and reports what is malformed by any of these.
        raise BadInput("This signed file is not a trust bundle: choose one that a State has exported.") from error
    if header[0] != _KIND or not same:
        raise BadInput("This signed file is not a trust bundle: choose one that a State has exported.")
    if header[1] != _VERSION:
        raise BadInput(
            f"This trust bundle is not of version {_VERSION}, the only one that this console reads: update the console."
        )
    return bundle


def _check_limits(bundle: _TrustBundle) -> None:
    for field, most in _MOST.items():
        if len(bundle[field]) > most:
            raise BadInput(
                f"The trust bundle holds {len(bundle[field])} {field}, more than {most}: ask for a smaller one."
            )
    if not 1 <= bundle["sequence"].native <= LAST_SEQUENCE:
        raise BadInput("The sequence number of the trust bundle is out of bounds: ask its State for a new one.")
    state, domain = bundle["state"].native, bundle["domain"].native
    fits = len(state) <= _LONGEST_NAME and len(domain) <= LONGEST
    if not state.strip() or not (state + domain).isprintable() or not fits:
        raise BadInput("The trust bundle names no State that could be shown: ask its State for a new one.")
    times = (bundle["this_update"].native, bundle["next_update"].native)
    if not all(isinstance(time, datetime) and time >= _EARLIEST for time in times):
        raise BadInput("The times in the trust bundle are none that a clock shows: ask its State for a new one.")
    if any(len(each.native) != _DIGEST_SIZE for each in bundle["trusted"]):
        raise BadInput("A fingerprint in the trust bundle is not one of SHA-256: ask its State for a new one.")
    if not len(bundle["roots"]):
        raise BadInput("The trust bundle holds no root: ask its State for a new one.")


def _certificates(bundle: _TrustBundle, field: str) -> tuple[x509.Certificate, ...]:
    return tuple(
        parsing.read_certificate(each.native, f"One of the {field} in the trust bundle") for each in bundle[field]
    )


def _encoded(bundle: _TrustBundle) -> bytes:
    der: bytes = bundle.dump(force=True)
    return der


def _ders(items: Iterable[x509.Certificate | x509.CertificateRevocationList]) -> list[bytes]:
    return [each.public_bytes(Encoding.DER) for each in items]
