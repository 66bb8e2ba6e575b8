"""The case of attacks on the root CA (A-CER-04): on its lists at a station, on the DC, and on its requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from labconsole_v2x.pki.http_transport import (
    AuthorityServer,
    AuthorityUnreachableError,
    ListNotFoundError,
    get,
    post,
)
from labconsole_v2x.pki.lists.published_lists import Kind as ListKind
from labconsole_v2x.pki.lists.published_lists import PublishedLists
from labconsole_v2x.pki.lists.signed_lists import RefusedListError, sign_revocation_list, sign_trust_list
from labconsole_v2x.pki.lists.trust_lists import AaEntry, EaEntry, Entry, RevocationList, TrustList
from labconsole_v2x.pki.request_parts import Content, SubjectAttributes
from labconsole_v2x.pki.root.authority_folder import AuthorityFolder
from labconsole_v2x.pki.root.authority_requests import (
    AuthorityKind,
    attributes_of,
    certificate_request,
    fingerprint,
    rekeying_request,
)
from labconsole_v2x.pki.root.root_authority import AcceptedAuthority
from labconsole_v2x.pki.secured_messages import payload_of, sign_payload
from labconsole_v2x.pki.station_requests import CertifiedKey
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import Certificate, IssuePermission
from labconsole_v2x.use_cases.cases.bench import Bench
from labconsole_v2x.use_cases.cases.packet_cases import send_many
from labconsole_v2x.use_cases.cases.pki_cases import malformed
from labconsole_v2x.use_cases.evidence import Kind
from labconsole_v2x.use_cases.expectations import ACCEPTED

_URL = "http://127.0.0.1/"
_WEEK_S = 7 * 24 * 3600
_FEW = 5
_FLOOD = 200
_OLD_S = 600.0
_ALL = (IssuePermission(None),)
"""Permission to issue certificates for all."""
_LOOPBACK = "127.0.0.1"


class _Lists:
    """Lists of the root CA, right ones and those of an attacker."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.pki = bench.pki
        self.entries: tuple[Entry, ...] = (EaEntry(self.pki.ea, _URL), AaEntry(self.pki.aa, _URL))

    def ctl(
        self,
        sequence: int,
        *,
        key: SoftwareKey | None = None,
        signer: Certificate | None = None,
        valid_s: int = _WEEK_S,
    ) -> bytes:
        """A full CTL, signed by the root unless something else is given."""
        now_us = self.bench.clock()
        values = TrustList(True, sequence, now_us // 1_000_000 + valid_s, self.entries)
        return sign_trust_list(
            values, Content.ROOT_TRUST_LIST, key or self.pki.root_key, signer or self.pki.root, now_us
        )

    def crl(self, *revoked: bytes, key: SoftwareKey | None = None, age_s: int = 0) -> bytes:
        """A CRL of the root, issued `age_s` ago."""
        now_s = self.bench.clock() // 1_000_000 - age_s
        values = RevocationList(now_s, now_s + _WEEK_S, revoked)
        return sign_revocation_list(values, key or self.pki.root_key, self.pki.root, now_s * 1_000_000)


def _attacks_on_root(bench: Bench) -> None:
    receiver = bench.receiver()
    trust = bench.parts.station_trust(receiver.receiver.trust, roots=[bench.pki.root], clock=bench.clock)
    lists, attacker, aa = _Lists(bench), SoftwareKey.generate(), bench.pki.aa
    ctl = partial(_offer, bench, apply=trust.apply_trust_list)
    crl = partial(_offer, bench, apply=trust.apply_revocation_list)
    older_ctl, older_crl = lists.ctl(6), lists.crl(age_s=60)
    bench.clock.advance(1)
    ctl("right lists", octets=lists.ctl(7))
    crl("right lists", octets=lists.crl())
    send_many(bench, "CAM before the revocation", bench.station(), _FEW)
    bench.clock.advance(1)
    ctl("forged CTL", octets=lists.ctl(8, key=attacker))
    crl("forged CRL", octets=lists.crl(aa.hashed_id8, key=attacker))
    ctl("CTL of an AA", octets=lists.ctl(8, key=bench.pki.aa_key, signer=aa))
    ctl("expired CTL", octets=lists.ctl(8, valid_s=-1))
    ctl("older CTL", octets=older_ctl)
    crl("older CRL", octets=older_crl)
    bench.clock.advance(1)
    crl("CRL that revokes the AA", octets=lists.crl(aa.hashed_id8))
    bench.distrusted(receiver, aa)
    send_many(bench, "CAM after the revocation", bench.station(), _FEW)
    _flood(bench, lists)
    _attacks_on_requests(bench)


def _offer(bench: Bench, what: str, apply: Callable[[bytes], object], octets: bytes) -> None:
    """Offer a list to the station, and record what it decides."""
    bench.recorder.add(Kind.MESSAGE, label=what, octets=octets)
    try:
        apply(octets)
        decision = ACCEPTED
    except RefusedListError as error:
        decision = error.reason.value
    bench.decided(f"station: {what}", decision)


def _flood(bench: Bench, lists: _Lists) -> None:
    """A DC gets requests for what is not a list, and then one for the CTL."""
    root = bench.pki.root.hashed_id8
    with TemporaryDirectory() as folder:
        published = PublishedLists(Path(folder))
        published.path(ListKind.CTL, root).write_bytes(lists.ctl(7))
        centre = bench.parts.distribution_centre(published)
        with AuthorityServer(_LOOPBACK, 0, answer_get=centre.answer_get) as server:
            for number in range(_FLOOD):
                path = (f"getctl/{bench.random.randbytes(8).hex()}", "getctl/../../key", f"{number}", "getcrl/%00")
                bench.decided("DC: malformed request", _asked(server.url + path[number % len(path)]))
            bench.decided("DC: right request after the flood", _asked(f"{server.url}getctl/{root.hex()}"))


def _asked(url: str) -> str:
    try:
        get(url)
    except ListNotFoundError:
        return "no such list"
    except AuthorityUnreachableError as error:
        return str(error)
    return "answered"


def _attacks_on_requests(bench: Bench) -> None:
    """An RCA gets requests for certificates: of an accepted EA, and of an attacker with the keys of a revoked AA."""
    pki, clock, kind = bench.pki, bench.clock, AuthorityKind.EA
    key, encryption_key, next_key, other = (SoftwareKey.generate() for _ in range(4))
    revoked = (pki.aa.hashed_id8,)
    decisions: list[str] = []

    def request(of: SoftwareKey = key, attributes: SubjectAttributes = kind.attributes, late_s: float = 0) -> bytes:
        return certificate_request(of, encryption_key, attributes, clock() - round(late_s * 1e6))

    def rekeying(of: SoftwareKey, certificate: Certificate, signed_with: SoftwareKey) -> bytes:
        request_of = request(of, attributes_of(certificate))
        return rekeying_request(request_of, CertifiedKey(certificate, signed_with), clock())

    def attempt(what: str, octets: bytes) -> bytes:
        bench.recorder.add(Kind.MESSAGE, label=f"request to the RCA: {what}", octets=octets)
        decisions.clear()
        response = b""
        with suppress(AuthorityUnreachableError):
            response = post(server.url, octets)
            bench.recorder.add(Kind.MESSAGE, label="response of the RCA", octets=response)
        bench.decided(f"RCA: {what}", decisions[-1] if decisions else "no decision")
        return response

    with TemporaryDirectory() as folder:
        register = AuthorityFolder(Path(folder))
        register.accept(AcceptedAuthority(fingerprint(key.public_key), kind, kind.title))
        of_aa = fingerprint(pki.aa_key.public_key)
        register.accept(AcceptedAuthority(of_aa, AuthorityKind.AA, pki.aa.name, certificates=(pki.aa,)))
        root = CertifiedKey(pki.root, pki.root_key)
        rca = bench.parts.root_authority(
            root, register, lambda: revoked, clock=clock, notify=lambda decision: decisions.append(decision.code)
        )
        with AuthorityServer(_LOOPBACK, 0, rca.answer) as server:
            attempt("key that was not accepted", request(other))
            payload = payload_of(scan_signed_data(request()))
            attempt("wrong proof of possession", sign_payload(payload, other, None, clock()))
            attempt("more permissions", request(attributes=replace(kind.attributes, issue_permissions=_ALL)))
            attempt("old request", request(late_s=_OLD_S))
            attempt("certificate of a revoked AA", rekeying(other, pki.aa, pki.aa_key))
            right = request()
            first = scan_certificate(attempt("right request", right))
            attempt("replayed request", right)
            attempt("next certificate, signed with another key", rekeying(next_key, first, other))
            attempt("right request for the next certificate", rekeying(next_key, first, key))
            attempt("replaced certificate", rekeying(other, first, key))
            for octets in islice(malformed(bench.random, right), _FLOOD):
                attempt("malformed request", octets)
            bench.clock.advance(1)
            attempt("right request after the flood", rekeying(next_key, first, key))


ROOT_CASES: Mapping[str, Callable[[Bench], None]] = {"A-CER-04": _attacks_on_root}
