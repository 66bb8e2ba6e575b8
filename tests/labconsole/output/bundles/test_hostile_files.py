"""A file that is not a bundle, or was changed, is refused with a sentence and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from labconsole.output.bundle_format import (
    MANIFEST,
    VERSION,
    BundleError,
    RunRows,
    artefact_member,
    attachment_member,
    chunk_bytes,
    run_member,
    series_member,
)
from labconsole.output.bundle_import import import_bundle
from labconsole.store import attachments, chunks
from labconsole.store.run_store import ARTEFACT_LIMIT
from labconsole.store.samples import StoredChunk, series_columns
from tests.helpers.shared_once import copy_database
from tests.labconsole.output.bundles.campaign import counts, digests

Members = dict[str, bytes]


def _first_uuid(members: Members) -> str:
    return str(json.loads(members[MANIFEST])["runs"][0]["uuid"])


def _json(members: Members, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(members[name])
    change(content)
    members[name] = json.dumps(content).encode()


def _run(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], None]:
    return lambda members: _json(members, run_member(_first_uuid(members)), change)


def _manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], None]:
    return lambda members: _json(members, MANIFEST, change)


def _chunks(change: Callable[[bytes], bytes]) -> Callable[[Members], None]:
    def apply(members: Members) -> None:
        name = series_member(_first_uuid(members), 0)
        members[name] = change(members[name])

    return apply


def _attachment(change: Callable[[bytes], bytes], number: int = 0, to: int | None = None) -> Callable[[Members], None]:
    def apply(members: Members) -> None:
        uuid = _first_uuid(members)
        name = attachment_member(uuid, number)
        members[name if to is None else attachment_member(uuid, to)] = change(members[name])

    return apply


def _swapped_attachments(members: Members) -> None:
    one, other = (attachment_member(_first_uuid(members), number) for number in (0, 1))
    members[one], members[other] = members[other], members[one]


def _split(content: bytes) -> list[bytes]:
    """The chunks of a member, each with its header."""
    found = []
    while content:
        size = 56 + int.from_bytes(content[16:24], "little")
        found.append(content[:size])
        content = content[size:]
    return found


def _last_first(content: bytes) -> bytes:
    *before, last = _split(content)
    return b"".join([last, *before])


def _renumbered(content: bytes) -> bytes:
    return b"".join(struct.pack("<Q", number) + chunk[8:] for number, chunk in enumerate(_split(content)))


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def _with(name: str) -> Callable[[Members], None]:
    return lambda members: members.update({name: b"#!"})


def _without(name: Callable[[str], str]) -> Callable[[Members], object]:
    return lambda members: members.pop(name(_first_uuid(members)))


TAMPERED: dict[str, tuple[Callable[[Members], object], str]] = {
    "path upwards": (_with("../../.bashrc"), "does not belong into a bundle: '../../.bashrc'"),
    "absolute path": (_with("/etc/passwd"), "does not belong"),
    "path with drive": (_with("C:\\evil.dll"), "does not belong"),
    "run that is not declared": (_with("runs/x/run.json"), "does not belong"),
    "no manifest": (lambda members: members.pop(MANIFEST), "manifest.json is missing"),
    "no rows": (_without(run_member), "is missing"),
    "no series": (_without(lambda uuid: series_member(uuid, 1)), "is missing"),
    "manifest no JSON": (lambda members: members.update({MANIFEST: b"\xff{"}), "not a bundle of the lab console"),
    "manifest deep": (lambda members: members.update({MANIFEST: b"[" * 100_000}), "not a bundle of the lab console"),
    "other format": (_manifest(lambda m: m.update(format="OCI image")), "not a bundle of the lab console"),
    "newer": (_manifest(lambda m: m.update(version=VERSION + 1)), "newer lab console .* update the console"),
    "hosts changed": (
        _manifest(lambda m: m["campaigns"][0]["scenarios"][0].update(placement="{}")),
        "not as it was sealed",
    ),
    "hosts that are none": (
        _manifest(lambda m: m["campaigns"][0]["scenarios"][0].update(placement='{"local": 99}')),
        "damaged or foreign .*placement: .*hosts of roles: local: input should be less than or equal to 20",
    ),
    "unknown field": (_manifest(lambda m: m.update(hook="rm")), "damaged or foreign .hook"),
    "run twice": (_manifest(lambda m: m["runs"].append(m["runs"][0])), "a run twice"),
    "campaign that is not there": (_manifest(lambda m: m["runs"][0].update(campaign=5)), "scenario of run .* missing"),
    "uuid as path": (_manifest(lambda m: m["runs"][0].update(uuid="../../x")), "damaged or foreign"),
    "profile changed": (
        _manifest(lambda m: m["campaigns"][0]["row"].update(profile_text="other")),
        "not as it was sealed",
    ),
    "parameters changed": (
        _manifest(lambda m: m["campaigns"][0]["scenarios"][0].update(parameters='{"tls":true}')),
        "not as it was sealed",
    ),
    "metric changed": (_run(lambda r: r["metric"][0].update(value=99.0)), "not as it was sealed"),
    "metric infinite": (_run(lambda r: r["metric"][0].update(value=float("inf"))), "damaged or foreign"),
    "event gone": (_run(lambda r: r["event"].pop()), "not as it was sealed"),
    "event twice": (_run(lambda r: r["event"].append(r["event"][0])), "contradicts itself"),
    "event with no object": (_run(lambda r: r["event"][0].update(data="[")), "damaged or foreign"),
    "reason changed": (_run(lambda r: r["run"].update(reason="Fine.")), "not as it was sealed"),
    "live": (_run(lambda r: r["run"].update(status="running")), "status of an ended run"),
    "digest changed": (_run(lambda r: r["evidence"][0].update(digest="0" * 64)), "not as it was sealed"),
    "no evidence": (_run(lambda r: r["evidence"].clear()), "damaged or foreign"),
    "another run's rows": (_run(lambda r: r["run"].update(uuid="0" * 8 + "-0000" * 3 + "-" + "0" * 12)), "of another"),
    "objects as samples": (
        _run(lambda r: r["series"][0].update(columns='[["a","O","",""]]')),
        "not a list of columns",
    ),
    "artefact larger than any may be": (
        lambda members: members.update({artefact_member(_first_uuid(members), "trust.pem"): bytes(ARTEFACT_LIMIT + 1)}),
        "has 1,000,001 bytes, more than the 1,000,000 allowed",
    ),
    "artefact's name a path": (_run(lambda r: r["artefact"][0].update(name="../x")), "name of an artefact"),
    "more rows than there are": (_run(lambda r: r["series"][0].update(rows=2**40)), "does not end as declared"),
    "fewer chunks than there are": (_run(lambda r: r["series"][0].update(chunks=2)), "does not end as declared"),
    "first chunk's header": (_chunks(lambda c: _flipped(c, 0)), "not what it should be"),
    "huge payload declared": (_chunks(lambda c: c[:16] + b"\xff" * 8 + c[24:]), "not what it should be"),
    "huge rows declared": (_chunks(lambda c: c[:8] + b"\xff" * 8 + c[16:]), "not what it should be"),
    "a byte of a payload": (_chunks(lambda c: _flipped(c, 60)), "hash of chunk 0 is wrong"),
    "the last byte": (_chunks(lambda c: _flipped(c, len(c) - 1)), "hash of chunk 2 is wrong"),
    "cut": (_chunks(lambda c: c[:-5]), "hash of chunk 2 is wrong"),
    "cut in a header": (_chunks(lambda c: c[:20]), "3 chunks are declared, 0"),
    "longer": (_chunks(lambda c: c + b"x"), "does not end as declared"),
    "no attachment": (_without(lambda uuid: attachment_member(uuid, 1)), "is missing"),
    "attachment that is not declared": (_run(lambda r: r["attachment"].pop()), "does not belong into a bundle"),
    "attachment twice": (
        lambda members: (
            _run(lambda r: r["attachment"].append(r["attachment"][1]))(members),
            _attachment(lambda c: c, 1, to=2)(members),
        ),
        "contradicts itself",
    ),
    "attachment's name a path": (_run(lambda r: r["attachment"][0].update(name="../x")), "name of an attachment"),
    "attachment's name a folder": (_run(lambda r: r["attachment"][0].update(name="a/b")), "name of an attachment"),
    "attachment's name Windows' path": (
        _run(lambda r: r["attachment"][0].update(name="a\\b")),
        "name of an attachment",
    ),
    "attachment of another role": (_run(lambda r: r["attachment"][0].update(role="x")), "hash of chunk 0 is wrong"),
    "attachment of another type": (
        _run(lambda r: r["attachment"][0].update(media_type="text/html")),
        "hash of chunk 0 is wrong",
    ),
    "attachment longer than declared": (_run(lambda r: r["attachment"][0].update(size=5)), "does not end as declared"),
    "attachment huge": (_run(lambda r: r["attachment"][0].update(size=2**62)), "does not end as declared"),
    "attachment's hash changed": (_run(lambda r: r["attachment"][0].update(sha256="0" * 64)), "does not fit its hash"),
    "cut attachment made complete": (
        _run(lambda r: r["attachment"][1].update(sha256=hashlib.sha256(b"").hexdigest())),
        "does not fit its hash",
    ),
    "complete attachment made cut": (_run(lambda r: r["attachment"][0].update(sha256=None)), "not as it was sealed"),
    "a byte of an attachment": (_attachment(lambda c: _flipped(c, 60_000)), "hash of chunk 0 is wrong"),
    "chunks of an attachment swapped": (_attachment(_last_first), "not what it should be"),
    "chunks of an attachment swapped with their numbers": (
        _attachment(lambda c: _renumbered(_last_first(c))),
        "hash of chunk 0 is wrong",
    ),
    "attachment cut": (_attachment(lambda c: c[:-1]), "hash of chunk 2 is wrong"),
    "attachment without its last chunk": (
        _attachment(lambda c: b"".join(_split(c)[:-1])),
        "3 chunks are declared, 2 are there",
    ),
    "huge piece declared": (_attachment(lambda c: c[:8] + b"\xff" * 8 + c[16:]), "not what it should be"),
    "attachments swapped": (_swapped_attachments, "damaged"),
}


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def written(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in members.items():
            bundle.writestr(name, content)
    return path


@pytest.fixture
def refused(other: Path, another_filled: Path, tmp_path: Path) -> Iterator[Callable[[Path, str], None]]:
    """Checks that a file is refused with a sentence; neither a new database nor anything in one that is there."""

    def check(file: Path, sentence: str) -> None:
        with pytest.raises(BundleError, match=sentence) as caught:
            import_bundle(tmp_path / "new.db", file)
        assert str(caught.value).startswith(f"{file} was not imported, and nothing was changed.")
        with pytest.raises(BundleError):
            import_bundle(other, file)

    copy_database(another_filled, other)
    before, names = counts(other), {path.name for path in tmp_path.iterdir()}
    yield check
    assert counts(other) == before
    assert {path.name for path in tmp_path.iterdir()} <= names | {"bad.lcz"}
    assert len(digests(other)) == 4


def test_a_bundle_that_was_tampered_with_is_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    """All in one test: to copy and verify a database for each takes longer than the refusals."""
    for name, (change, sentence) in TAMPERED.items():
        members = members_of(good)
        change(members)
        try:
            refused(written(tmp_path / "bad.lcz", members), sentence)
        except BaseException as failure:
            failure.add_note(f"The bundle with this fault: {name}")
            raise


def test_payloads_that_hold_no_rows_are_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    """Hashes and digest are all valid, as an attacker could make them: the samples could still not be read."""
    members = members_of(good)
    uuid = _first_uuid(members)
    series = RunRows.model_validate_json(members[run_member(uuid)]).series[0]
    link = chunks.first_link(uuid, series.role, series.name, series_columns(series.columns))
    content = b""
    for seq in range(series.chunks):
        link = chunks.next_link(link, seq, 100, b"no zstd frame")
        content += chunk_bytes(StoredChunk(seq, 100, link, b"no zstd frame"))
    members[series_member(uuid, 0)] = content
    _json(members, run_member(uuid), lambda rows: rows["series"][0].update(link=link.hex()))
    refused(written(tmp_path / "bad.lcz", members), "Chunk 0 of series messages is damaged")


def _hostile_packets(rows: int, lengths: bytes, data: bytes) -> bytes:
    """A payload of `rows` packets with these shuffled lengths, and their ports."""
    return zstandard.ZstdCompressor().compress(lengths + data + bytes(rows))


@pytest.mark.parametrize(
    ("rows", "payload", "sentence"),
    [
        (3, _hostile_packets(3, b"\x05\x05\x05" + bytes(9), b"abc"), "values of 15 bytes are declared, 6 are there"),
        (3, _hostile_packets(3, b"\xff" * 12, b""), "are declared, 3 are there"),
        (3, _hostile_packets(3, b"\x01" * 3 + bytes(9), b"abcdef"), "of which its rows are"),
        (3, _hostile_packets(1, b"", b""), "does not hold 3 rows"),
        (2**20, zstandard.ZstdCompressor().compress(bytes(5 * 2**20)), "not what it should be"),
        (3, zstandard.ZstdCompressor().compress(bytes(65 * 2**20)), "does not hold 3 rows"),
    ],
    ids=["beyond the payload", "huge", "more than its rows", "short", "many rows", "a bomb"],
)
def test_packets_that_do_not_fit_their_lengths_are_refused(
    rows: int, payload: bytes, sentence: str, good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    """Hashes and digest are all valid, as an attacker could make them."""
    members = members_of(good)
    uuid = _first_uuid(members)
    number, series = next(
        (number, one)
        for number, one in enumerate(RunRows.model_validate_json(members[run_member(uuid)]).series)
        if one.name == "packets"
    )
    link = chunks.first_link(uuid, series.role, series.name, series_columns(series.columns))
    link = chunks.next_link(link, 0, rows, payload)
    members[series_member(uuid, number)] = chunk_bytes(StoredChunk(0, rows, link, payload))
    _json(members, run_member(uuid), lambda found: found["series"][number].update(link=link.hex(), rows=rows))
    refused(written(tmp_path / "bad.lcz", members), sentence)


def test_pieces_that_unpack_to_something_else_are_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    """A zstd frame of 65 MiB that says it is one of 100 bytes, with hashes in order."""
    for size, sentence in ((100, "does not hold 100 bytes"), (65 * 2**20, "not what it should be")):
        members = members_of(good)
        uuid = _first_uuid(members)
        file = RunRows.model_validate_json(members[run_member(uuid)]).attachment[0]
        payload = zstandard.ZstdCompressor().compress(bytes(65 * 2**20))
        link = attachments.first_link(uuid, file.role, file.name, file.media_type)
        link = chunks.next_link(link, 0, size, payload)
        members[attachment_member(uuid, 0)] = chunk_bytes(StoredChunk(0, size, link, payload))
        changes = {"link": link.hex(), "size": size, "chunks": 1}
        _json(members, run_member(uuid), lambda found, new=changes: found["attachment"][0].update(new))
        refused(written(tmp_path / "bad.lcz", members), sentence)


def test_files_that_are_not_bundles_are_refused(
    original: Path, good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    bad = tmp_path / "bad.lcz"
    for content in (b"", b"%PDF-1.7", original.read_bytes(), good.read_bytes()[:-100], good.read_bytes()[:10_000]):
        bad.write_bytes(content)
        refused(bad, "damaged or no bundle")
    refused(tmp_path, "It is a pipe, a device or a directory")
    with pytest.raises(BundleError, match="cannot be read"):
        import_bundle(tmp_path / "new.db", tmp_path / "nowhere.lcz")


@pytest.mark.parametrize("number", [60, pytest.param(300, marks=pytest.mark.nightly)])
def test_any_flipped_byte_is_refused_or_meant_nothing(number: int, good: Path, original: Path, tmp_path: Path) -> None:
    """Through the whole file, as a bad disk or link would do it; nightly at more places."""
    content = good.read_bytes()
    places = range(0, len(content), max(1, len(content) // number))
    accepted = 0
    for at in places:
        (tmp_path / "bad.lcz").write_bytes(_flipped(content, at))
        database = tmp_path / f"{at}.db"
        try:
            import_bundle(database, tmp_path / "bad.lcz")
        except BundleError:
            assert not database.exists() or set(counts(database).values()) == {0}
        else:  # a time stamp of a member, say
            accepted += 1
            assert digests(database) == digests(original)
    assert accepted < len(places) / 10


def test_compressed_members_are_refused(good: Path, tmp_path: Path, refused: Callable[[Path, str], None]) -> None:
    with zipfile.ZipFile(tmp_path / "bad.lcz", "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in members_of(good).items():
            bundle.writestr(name, content)
        bundle.writestr("zeros", bytes(50_000_000))
    assert (tmp_path / "bad.lcz").stat().st_size < 200_000
    refused(tmp_path / "bad.lcz", "is compressed")


def test_members_that_share_their_bytes_are_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    members = members_of(good) | {f"zeros-{number}": b"" for number in range(9)}
    with zipfile.ZipFile(written(tmp_path / "bad.lcz", members), "a") as bundle:
        bundle.writestr("zeros", bytes(100_000))
        whole = bundle.getinfo("zeros")
        for number in range(9):
            member = bundle.getinfo(f"zeros-{number}")
            member.header_offset, member.file_size, member.compress_size = whole.header_offset, 100_000, 100_000
    refused(tmp_path / "bad.lcz", "declares more than it has")


def test_a_member_that_is_there_twice_is_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    with (
        zipfile.ZipFile(written(tmp_path / "bad.lcz", members_of(good)), "a") as bundle,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        bundle.writestr(MANIFEST, members_of(good)[MANIFEST])
    refused(tmp_path / "bad.lcz", "more than once")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO])
def test_links_and_folders_are_refused(
    kind: int, good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    with zipfile.ZipFile(written(tmp_path / "bad.lcz", members_of(good)), "a") as bundle:
        member = zipfile.ZipInfo("runs/link")
        member.create_system = 3
        member.external_attr = (kind | 0o777) << 16
        bundle.writestr(member, "/etc")
    refused(tmp_path / "bad.lcz", "not a plain file")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes of this kind")
def test_a_pipe_or_device_is_refused_at_once(tmp_path: Path, refused: Callable[[Path, str], None]) -> None:
    os.mkfifo(tmp_path / "bad.lcz")
    for file in (tmp_path / "bad.lcz", Path("/dev/zero"), tmp_path):
        refused(file, "It is a pipe, a device or a directory")


def test_target_database_is_refused_as_a_bundle(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(original, copy)
    before = hashlib.sha256(copy.read_bytes()).digest()
    with pytest.raises(BundleError, match="the database itself"):
        import_bundle(copy, copy)
    assert hashlib.sha256(copy.read_bytes()).digest() == before
