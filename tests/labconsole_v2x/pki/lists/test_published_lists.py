"""Published lists have the next sequence, also after a restart; a station follows them from a distribution centre."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_v2x.pki.http_transport import AuthorityServer, ListNotFoundError, UnknownListError, get
from labconsole_v2x.pki.lists.distribution_centre import DistributionCentre
from labconsole_v2x.pki.lists.published_lists import KEPT_DELTAS, Kind, PublishedLists
from labconsole_v2x.pki.lists.station_trust import refresh
from labconsole_v2x.pki.lists.trust_lists import AaEntry, Entry
from labconsole_v2x.pki.station_requests import CertifiedKey
from labconsole_v2x.security.verification import Reason
from tests.labconsole_v2x.pki.lists.lists_lab import DC_URL, MINUTE_US, ListsLab, ticket_of, verdict
from tests.labconsole_v2x.pki.pki_lab import NOW_US, lab_pki


class Publisher:
    """A lab's lists in a folder, served in the test's process, and what a station asked for."""

    def __init__(self, folder: Path) -> None:
        self.lab = ListsLab()
        self.folder = folder
        self.lists = PublishedLists(folder)
        self.tlm = CertifiedKey(self.lab.pki.tlm, self.lab.pki.tlm_key)
        self.root = CertifiedKey(self.lab.pki.root, self.lab.pki.root_key)
        self.centre = DistributionCentre(self.lists)
        self.asked: list[str] = []

    def publish_all(self, *revoked: bytes) -> None:
        """A minute later, all lists."""
        self.lab.now_us += MINUTE_US
        self.lists.publish_trust_list(Kind.ECTL, self.lab.ectl_entries, self.tlm, self.lab.now_us)
        self.publish(self.lab.ctl_entries)
        self.lists.publish_revocation_list(revoked, self.root, self.lab.now_us)

    def publish(self, entries: tuple[Entry, ...]) -> int:
        """A list of the root; its sequence."""
        return self.lists.publish_trust_list(Kind.CTL, entries, self.root, self.lab.now_us).sequence

    def get(self, url: str) -> bytes:
        """As a station gets it from the distribution centre."""
        path = url.removeprefix(DC_URL)
        self.asked.append(path)
        try:
            return self.centre.answer_get(path)[1]
        except UnknownListError as error:
            raise ListNotFoundError(str(error)) from error

    def refresh(self) -> list[str]:
        """What the station could not fetch or apply."""
        self.asked.clear()
        return [str(one.error) for one in refresh(self.lab.trust, DC_URL, self.get) if one.error is not None]


def test_a_station_follows_full_lists_and_then_deltas(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    lab, signer = publisher.lab, publisher.root.certificate.hashed_id8.hex().upper()
    ticket = ticket_of(lab.pki)
    publisher.publish_all()
    assert publisher.refresh() == [] and verdict(lab, ticket) is Reason.ACCEPTED
    assert publisher.refresh() == []  # nothing new
    lab.now_us += MINUTE_US
    assert publisher.publish(tuple(one for one in lab.ctl_entries if not isinstance(one, AaEntry))) == 1
    assert publisher.refresh() == [] and verdict(lab, ticket) is Reason.REVOKED
    assert f"getctl/{signer}/1" in publisher.asked and f"getctl/{signer}" not in publisher.asked
    publisher.publish_all()
    assert publisher.refresh() == [] and verdict(lab, ticket) is Reason.ACCEPTED
    publisher.publish_all(lab.pki.aa.hashed_id8)
    assert publisher.refresh() == [] and verdict(lab, ticket) is Reason.REVOKED


def test_a_full_list_follows_some_deltas_so_that_what_is_kept_is_bounded(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    lab, root = publisher.lab, publisher.root.certificate.hashed_id8
    publisher.publish_all()
    publisher.refresh()
    for _ in range(20):
        lab.now_us += 1
        publisher.publish(lab.ctl_entries)
        assert publisher.refresh() == [] and lab.trust.deltas(root) <= 8
    again = ListsLab(lab.pki)
    for octets in lab.trust.octets_to_restore():
        again.trust.restore(octets)
    assert again.trust.sequence(root) == lab.trust.sequence(root) == 20
    assert again.trust.authorization_authorities(root) == lab.trust.authorization_authorities(root)


def test_a_station_that_is_far_behind_gets_the_full_list(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    lab, root = publisher.lab, publisher.root.certificate.hashed_id8
    publisher.publish_all()
    publisher.refresh()
    for _ in range(KEPT_DELTAS + 5):
        lab.now_us += 1
        publisher.publish(lab.ctl_entries)
    assert publisher.refresh() == [] and lab.trust.sequence(root) == KEPT_DELTAS + 5
    assert len(list(tmp_path.glob("ctl-*-*.oer"))) == KEPT_DELTAS


def test_sequences_continue_after_a_restart_and_wrap(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    assert [publisher.publish(()) for _ in range(257)] == [*range(256), 0]
    publisher.lists = PublishedLists(tmp_path)
    assert publisher.publish(()) == 1
    # The clock was set back: the next list is still the newer one.
    publisher.lab.trust.apply_trust_list(publisher.lab.ectl())
    octets = publisher.lists.find(Kind.CTL, publisher.root.certificate.hashed_id8)
    assert octets is not None
    publisher.lab.trust.apply_trust_list(octets)
    publisher.lists.publish_trust_list(Kind.CTL, (), publisher.root, NOW_US - MINUTE_US)
    newer = publisher.lists.find(Kind.CTL, publisher.root.certificate.hashed_id8)
    assert newer is not None
    publisher.lab.trust.apply_trust_list(newer)
    publisher.lists.publish_revocation_list((bytes(8),), publisher.root, NOW_US)
    assert publisher.lists.publish_revocation_list((), publisher.root, 5).this_update_s == NOW_US // 1_000_000


def test_revocations_of_two_processes_at_the_same_time_are_both_kept(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    certificates = [bytes((number,)) * 8 for number in range(8)]
    with ThreadPoolExecutor(len(certificates)) as processes:
        for one in certificates:
            lists = PublishedLists(tmp_path)
            processes.submit(lists.publish_revocation_list, [one], publisher.root, NOW_US, keep=True)
    kept = publisher.lists.publish_revocation_list([certificates[0]], publisher.root, NOW_US, keep=True).entries
    assert sorted(kept) == certificates
    assert publisher.lists.publish_revocation_list((), publisher.root, NOW_US).entries == ()


def test_a_list_that_is_not_the_signers_is_not_followed_by_another(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    publisher.publish_all()
    path = publisher.lists.path(Kind.CTL, publisher.root.certificate.hashed_id8)
    for octets in (b"", ListsLab(lab_pki()).ctl()):
        path.write_bytes(octets)
        with pytest.raises(UserError, match="is not a list of Lab root CA"):
            publisher.publish(())
        assert path.read_bytes() == octets


def test_the_paths_of_a_distribution_centre(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    publisher.publish_all()
    publisher.publish_all()
    tlm, root = (one.certificate.hashed_id8.hex() for one in (publisher.tlm, publisher.root))
    answer = publisher.centre.answer_get
    for path, content_type in (
        ("/getectl", "application/x-its-ctl"),
        (f"/getectl/{tlm}", "application/x-its-ctl"),
        (f"/getctl/{root.upper()}", "application/x-its-ctl"),
        (f"getctl/{root}/1/", "application/x-its-ctl"),
        (f"/getcrl/{root}?x=1", "application/x-its-crl"),
    ):
        assert answer(path)[0] == content_type
    assert answer("/getectl") == answer(f"/getectl/{tlm}") != answer(f"/getctl/{root}")
    assert answer(f"/getctl/{root}") != answer(f"/getctl/{root}/1")
    for path in (
        "",
        "/",
        "/getctl",
        "/getcrl/",
        f"/getctl/{tlm}",
        f"/getctl/{root}/0",
        f"/getctl/{root}/01",
        f"/getctl/{root}/256",
        f"/getcrl/{root}/1",
        f"/getctl/{root}/../ctl",
        "/../../etc/passwd",
        "/getctl/" + "0" * 16,
        f"/getctl/{root}\n",
    ):
        with pytest.raises(UnknownListError):
            answer(path)
    PublishedLists(tmp_path).path(Kind.ECTL, bytes(8)).write_bytes(b"another")
    with pytest.raises(UnknownListError, match="name the signer"):
        answer("/getectl")


def test_a_distribution_centre_over_http(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    publisher.publish_all()
    root = publisher.root.certificate.hashed_id8.hex().upper()
    with AuthorityServer("127.0.0.1", 0, answer_get=publisher.centre.answer_get) as server:
        octets = get(f"{server.url}getcrl/{root}")
        assert octets == publisher.centre.answer_get(f"/getcrl/{root}")[1]
        with pytest.raises(ListNotFoundError, match=r"HTTP 404, no such list is published"):
            get(f"{server.url}getctl/{root}/7")
        with pytest.raises(ListNotFoundError, match=r"HTTP 404, the path is not that of a list"):
            get(server.url)
