"""`labconsole v2x issue-lists` and `trust`: a lab signs its lists, a station follows them, as operations."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import Parameters, parameter
from labconsole.safe_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from labconsole_v2x.pki.lists.station_trust import Fetched, StationTrust
    from labconsole_v2x.pki.lists.trust_lists import Entry
    from labconsole_v2x.pki.root.root_authority import AcceptedAuthority

_STORED = "trust.json"
_DAY_S = 86_400


class IssueListsParameters(Parameters):
    """The lab, what its lists name, and what its CRL revokes."""

    lab: HomePath = parameter(
        "Folder of the lab", "Folder of the lab's authorities", kind="folder", positional=True, metavar="LAB"
    )
    revoke: tuple[str, ...] = parameter(
        "Revoke",
        "Certificates to add to the CRL: aa or ea of the lab with all that it has had, or a HashedId8 (16 hexadecimal "
        "digits)",
        default=(),
        metavar="AA|EA|HASHEDID8",
    )
    delete: tuple[str, ...] = parameter(
        "Delete", "Entries to leave out: aa and ea of the CTL, root of the ECTL", default=(), metavar="AA|EA|ROOT"
    )
    ea: str = parameter("URL of the EA", "As the CTL names it", metavar="URL", default="http://127.0.0.1:8941/")
    aa: str = parameter("URL of the AA", "As the CTL names it", metavar="URL", default="http://127.0.0.1:8942/")
    dc: str = parameter(
        "URL of the distribution centre", "As ECTL and CTL name it", metavar="URL", default="http://127.0.0.1:8943/"
    )
    days: int = parameter("Valid for", "Time until the next update", default=90, ge=1, le=3650, unit="days")


class IssueLists(Operation[IssueListsParameters]):
    """Signs the lists of a lab: ECTL, CTL and CRL."""

    name: ClassVar[str] = "v2x.issue-lists"
    title: ClassVar[str] = "Issue trust and revocation lists"
    description: ClassVar[str] = (
        "Signs the ECTL of a lab's TLM and the CTL and CRL of its root CA (ETSI TS 102 941), each CTL with the next "
        "sequence and the delta from the one before, and stores them where the distribution centre serves them. What "
        "is revoked stays revoked."
    )
    parameters: ClassVar[type[Parameters]] = IssueListsParameters

    def run(self, parameters: IssueListsParameters, context: OperationContext) -> Result:
        # imported late: the window, which imports this module, does without cryptography
        from labconsole_v2x.pki.http_transport import checked_url
        from labconsole_v2x.pki.key_folders import (
            AA,
            EA,
            LISTS,
            ROOT,
            TLM,
            certificate_file,
            create_lab,
            load_list_signer,
        )
        from labconsole_v2x.pki.lists.published_lists import Kind, PublishedLists
        from labconsole_v2x.pki.lists.trust_lists import AaEntry, CentreEntry, EaEntry, RootEntry, TlmEntry
        from labconsole_v2x.pki.root.authority_folder import AuthorityFolder
        from labconsole_v2x.pki.root.authority_requests import AuthorityKind
        from labconsole_v2x.security.verification import its_now

        lab = parameters.lab
        if not certificate_file(lab, ROOT).exists():
            raise UserError(f"{lab} has no root CA: create it with labconsole v2x authorities {lab}.")
        urls = {EA: checked_url(parameters.ea), AA: checked_url(parameters.aa), TLM: checked_url(parameters.dc)}
        create_lab(lab, its_now() // 1_000_000)  # gives an older lab its TLM
        tlm, root = load_list_signer(lab, TLM), load_list_signer(lab, ROOT)
        register = AuthorityFolder(lab)
        register.adopt_of_lab()
        authorities = tuple(register.authorities())
        to_revoke = [one for given in parameters.revoke for one in _revoked_by(given, authorities)]
        left_out = _left_out(parameters.delete, (EA, AA, ROOT))
        centre = CentreEntry(urls[TLM], (root.certificate.hashed_id8,))
        roots: list[Entry] = [] if ROOT in left_out else [RootEntry(root.certificate)]
        lists, now_us, valid_s = PublishedLists(lab / LISTS), its_now(), parameters.days * _DAY_S
        entries: list[Entry] = []
        for one in authorities:
            name = one.kind.folder
            url = urls[name] if one.own else one.url
            if one.certificate is None or not url or (one.own and name in left_out):
                continue
            if one.kind is AuthorityKind.EA:
                entries.append(EaEntry(one.certificate, url))
            else:  # tickets under its former certificates stay valid: what a list leaves out is distrusted
                valid = (each for each in one.certificates if each.validity.end_s > now_us // 1_000_000)
                entries += [AaEntry(each, url) for each in valid]

        ectl_entries = [*roots, TlmEntry(tlm.certificate, urls[TLM]), centre]
        ectl = lists.publish_trust_list(Kind.ECTL, ectl_entries, tlm, now_us, valid_s)
        ctl = lists.publish_trust_list(Kind.CTL, [*entries, centre], root, now_us, valid_s)
        revoked = lists.publish_revocation_list(dict.fromkeys(to_revoke), root, now_us, valid_s, keep=True).entries

        tlm_id, root_id = tlm.certificate.hashed_id8, root.certificate.hashed_id8
        table = TextTable(
            ("List", "Signer", "Sequence", "Entries", "File"),
            (
                ("ECTL", "TLM", str(ectl.sequence), str(len(ectl.commands)), str(lists.path(Kind.ECTL, tlm_id))),
                ("CTL", "root CA", str(ctl.sequence), str(len(ctl.commands)), str(lists.path(Kind.CTL, root_id))),
                ("CRL", "root CA", "", str(len(revoked)), str(lists.path(Kind.CRL, root_id))),
            ),
        )
        data = {"ectl": ectl.sequence, "ctl": ctl.sequence, "revoked": [one.hex() for one in revoked]}
        return Result((f"Issued, valid for {parameters.days} days; revoked: {len(revoked)}.", table), data)


class TrustParameters(Parameters):
    """The station, its distribution centre, and what it trusts from the beginning."""

    station: HomePath = parameter(
        "Folder of the station",
        "Folder of a registered station, in which the lists are kept",
        kind="folder",
        positional=True,
        metavar="STATION",
    )
    dc: str = parameter(
        "URL of the distribution centre", "Where the lists are", metavar="URL", default="http://127.0.0.1:8943/"
    )
    tlm: HomePath | None = parameter(
        "Trusted TLM", "Certificate of the trust list manager (COER)", default=None, kind="file"
    )
    root: tuple[HomePath, ...] = parameter(
        "Trusted roots", "Certificate of a root CA (COER) to trust without an ECTL", default=(), kind="file"
    )


class FollowLists(Operation[TrustParameters]):
    """Has a station follow the lists of a distribution centre."""

    name: ClassVar[str] = "v2x.trust"
    title: ClassVar[str] = "Follow trust lists"
    description: ClassVar[str] = (
        "Fetches the ECTL of a trusted TLM, and the CTL and CRL of each trusted root, from distribution centres (ETSI "
        "TS 102 941), and shows which roots, EAs and AAs a station trusts then. Lists that are older than those it "
        "has, or wrong, are refused and change nothing."
    )
    parameters: ClassVar[type[Parameters]] = TrustParameters

    def run(self, parameters: TrustParameters, context: OperationContext) -> Result:
        from labconsole_v2x.inspection.capture_certificates import read_certificate
        from labconsole_v2x.pki.http_transport import checked_url, get
        from labconsole_v2x.pki.lists.signed_lists import RefusedListError
        from labconsole_v2x.pki.lists.station_trust import StationTrust, refresh
        from labconsole_v2x.security.trust import TrustStore

        if parameters.tlm is None and not parameters.root:
            raise UserError("Nothing is trusted: choose the certificate of a TLM (--tlm) or of a root CA (--root).")
        if not parameters.station.is_dir():
            raise UserError(f"{parameters.station} is not the folder of a station: register it first (v2x register).")
        tlm = read_certificate(parameters.tlm) if parameters.tlm else None
        trust = StationTrust(TrustStore(), tlm=tlm, roots=[read_certificate(one) for one in parameters.root])
        stored = parameters.station / _STORED
        for octets in _read_stored(stored):
            with suppress(RefusedListError):  # its signer is not trusted any more
                trust.restore(octets)
        results = refresh(trust, checked_url(parameters.dc), get)
        _write_stored(stored, trust.octets_to_restore())
        return _trust_result(trust, results)


def _revoked_by(given: str, authorities: Iterable[AcceptedAuthority]) -> list[bytes]:
    """The HashedId8 that an argument revokes: one, or all certificates of the lab's EA or AA. Raises UserError."""
    own = {one.kind.folder: one for one in authorities if one.own}
    if given.lower() in own:
        return [certificate.hashed_id8 for certificate in own[given.lower()].certificates]
    with suppress(ValueError):
        if len(octets := bytes.fromhex(given)) == 8:
            return [octets]
    raise UserError(f"{shown(given)} is neither aa, ea nor a HashedId8: write 16 hexadecimal digits.")


def _left_out(given: Iterable[str], names: tuple[str, ...]) -> set[str]:
    """The entries to leave out. Raises UserError."""
    left_out = {one.lower() for one in given}
    for other in left_out.difference(names):
        raise UserError(f"{shown(other)} is not an entry of a list: choose {', '.join(names)}.")
    return left_out


def _read_stored(path: Path) -> list[bytes]:
    """The lists that a station has kept. Raises UserError."""
    from labconsole.security.private_files import read_private

    if not path.exists():
        return []
    try:
        return [bytes.fromhex(one) for one in json.loads(read_private(path, "record"))["lists"]]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is broken: remove it, and fetch the lists again.") from error


def _write_stored(path: Path, lists: Iterable[bytes]) -> None:
    """Keep lists. Raises UserError."""
    from labconsole.security.private_files import write_private

    try:
        write_private(path, json.dumps({"lists": [one.hex() for one in lists]}).encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): check the folder.") from error


def _trust_result(trust: StationTrust, results: list[Fetched]) -> Result:
    """What a station trusts, and which lists were not applied."""
    from labconsole_v2x.inspection.capture_certificates import certificate_name
    from labconsole_v2x.pki.http_transport import AuthorityUnreachableError

    rows = []
    for root in trust.roots:
        name, signer = certificate_name(root), root.hashed_id8
        rows.append((name, "root CA", signer.hex(), ""))
        for ea in trust.enrolment_authorities(signer):
            rows.append((f"{certificate_name(ea.certificate)} - {name}", "EA", ea.certificate.hashed_id8.hex(), ea.url))
        for aa in trust.authorization_authorities(signer):
            rows.append((f"{certificate_name(aa.certificate)} - {name}", "AA", aa.certificate.hashed_id8.hex(), aa.url))
    revoked = [one.hex() for root in trust.roots for one in sorted(trust.revoked(root.hashed_id8))]
    failed = [one for one in results if one.error is not None]
    applied = len(results) - len(failed)
    sentences = [f"Lists: {applied} applied, {len(failed)} not; revoked: {', '.join(revoked) or 'none'}."]
    table = TextTable(("Certificate", "Kind", "HashedId8", "URL"), tuple(rows))
    data = {
        "trusted": [{"kind": row[1], "hashed_id8": row[2], "url": row[3]} for row in rows],
        "revoked": revoked,
        "failed": [{"url": one.url, "reason": str(one.error)} for one in failed],
    }
    warnings = tuple(
        str(one.error) if isinstance(one.error, AuthorityUnreachableError) else f"{one.url}: {one.error}"
        for one in failed
    )
    return Result((*sentences, table), data, warnings, passed=not failed)
