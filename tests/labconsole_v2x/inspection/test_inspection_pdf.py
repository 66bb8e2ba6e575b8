"""The report on an inspection: what an engineer who was not there must know, as PDF/A."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole import __version__
from labconsole.cli.main import main
from labconsole.output.report.document import Callout, Table
from labconsole_v2x.inspection.capture_certificates import CaptureCertificates, identified
from labconsole_v2x.inspection.inspect_operation import InspectCapture
from labconsole_v2x.inspection.inspection_pdf import MOST_ROWS, Source, inspection_document
from labconsole_v2x.inspection.inspector import inspect_capture
from labconsole_v2x.inspection.verdicts import Inspection
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.structures import CAM_PSID, Header
from tests.labconsole_v2x.inspection.road_capture import NOW_US, Vehicle, lab, write_capture


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory, pki: LabPki) -> Path:
    """A folder with a capture in which a packet is spoiled and a signer unknown, and the certificates."""
    folder = tmp_path_factory.mktemp("road")
    vehicle, foreign = Vehicle.of(pki, 42), Vehicle.of(lab(), 9)
    spoiled = vehicle.signed_cam()
    packets = [vehicle.signed_cam(certificate=True)] * 3 + [spoiled[:-1] + bytes((spoiled[-1] ^ 1,))]
    packets += [foreign.signed_cam(certificate=True), Vehicle.of(pki, 3).signed_cam()]
    write_capture(folder / "road.pcapng", *packets)
    (folder / "root.oer").write_bytes(pki.root.octets)
    (folder / "aa.oer").write_bytes(pki.aa.octets)
    return folder


def inspected(path: Path, pki: LabPki) -> Inspection:
    certificates = CaptureCertificates([pki.root])
    certificates.add(pki.aa)
    return inspect_capture(path, certificates)


def said(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run(folder: Path, *words: str | Path) -> int:
    """Exit code of `labconsole v2x inspect` with the folder's capture and certificates."""
    given = [folder / "road.pcapng", "--root", folder / "root.oer", "--issuer", folder / "aa.oer"]
    return main(["v2x", "inspect", *map(str, (*given, *words))])


def test_the_command_writes_a_report_with_all_that_identifies_the_result(
    own_home: Path, road: Path, pki: LabPki, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.pdf"
    assert run(road, "--pdf", path) == 0
    assert "report.pdf (" in (out := capsys.readouterr().out) and "PDF/A-2a)" in out
    assert "<pdfaid:part>2</pdfaid:part>" in said("pdfinfo", "-meta", path)
    text = " ".join(said("pdftotext", "-layout", path, "-").replace("\u200b", "").split())
    capture = (road / "road.pcapng").read_bytes()
    for expected in (
        "Inspection of a V2X capture road.pcapng",
        "6 GeoNetworking packets of 3 stations, 3 of the packets valid (50.0%).",
        f"Size {len(capture):,} octets",
        hashlib.sha256(capture).hexdigest(),
        "2023-11-14 22:13:20.000 to 22:13:20.005 (UTC)",
        f"Trusted roots {identified(pki.root)}",
        f"Lab console {__version__}",
        "valid 3 50.0%",
        "signature invalid 1 16.7%",
        "the signature does not verify with the signer's key",
        "the signer's certificate is not in the capture",
        f"Lab AA ({pki.aa.hashed_id8.hex()}), under Lab root CA",
        "02:00:00:00:00:2a 42 4 CAM 4",
        "Revocation was not checked",
        "repeated packets were not counted",
    ):
        assert expected in text, f"{expected!r} is missing in {text}"


@pytest.fixture
def refusal(
    own_home: Path, road: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Inspects the road's capture with these options, which are refused; returns what is printed, in one line."""
    monkeypatch.setattr(InspectCapture, "isolated", False)  # the start of a process takes most of the time

    def refused(*options: str | Path) -> str:
        assert run(road, *options) == 1
        return " ".join(capsys.readouterr().err.split())

    return refused


def test_no_file_is_replaced_and_nothing_is_inspected_for_it(tmp_path: Path, refusal: Callable[..., str]) -> None:
    path = tmp_path / "precious"
    path.write_text("precious")
    for option in ("--csv", "--pdf", "--npz"):
        said = refusal(option, path)
        assert "precious is there already and stays as it is: choose another name." in said
        assert path.read_text() == "precious"


def test_outputs_that_cannot_be_written_are_refused_before_anything_is_inspected(
    tmp_path: Path, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("precious")
    before = sorted(tmp_path.iterdir())
    assert "out is named for two outputs: give each a file of its own." in refusal("--csv", "out", "--pdf", "out")
    assert "missing does not exist: create it, or choose another." in refusal("--csv", "missing/out.csv")
    assert "file does not exist: create it, or choose another." in refusal("--csv", "new.csv", "--pdf", "file/out.pdf")
    assert sorted(tmp_path.iterdir()) == before


def test_a_report_on_a_broken_or_cancelled_inspection_says_so_first(road: Path, pki: LabPki) -> None:
    inspection = inspected(road / "road.pcapng", pki)
    source = Source.of(road / "road.pcapng", (), 1.0)
    document = inspection_document(inspection, source, ("road.pcapng is broken after packet 6.",))
    first = document.sections[0].blocks[0]
    assert isinstance(first, Callout) and first.sentences == ("road.pcapng is broken after packet 6.",)
    assert next(fact.value for fact in document.cover if fact.name == "Trusted roots") == "none"


def test_valid_packets_before_a_fault_are_not_called_all_of_the_capture(tmp_path: Path, pki: LabPki) -> None:
    path = write_capture(tmp_path / "road.pcapng", *[Vehicle.of(pki, 1).signed_cam(certificate=True)] * 3)

    def lead() -> str:
        return inspection_document(inspected(path, pki), Source.of(path, (), 1.0)).lead

    assert lead() == "3 GeoNetworking packets of 1 station, all of them valid."
    path.write_bytes(path.read_bytes()[:-7])
    assert lead() == "2 GeoNetworking packets of 1 station, all that could be read valid."


def test_long_tables_are_cut_and_say_so(tmp_path: Path, pki: LabPki) -> None:
    vehicle = Vehicle.of(pki, 1)
    stations = [replace(vehicle, number=number % 256) for number in range(MOST_ROWS + 3)]
    path = write_capture(tmp_path / "road.pcapng", *[one.signed_cam(certificate=True) for one in stations])
    document = inspection_document(inspected(path, pki), Source.of(path, (), 1.0))
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    (table,) = (table for table in tables if table.caption.startswith("Stations"))
    assert len(table.rows) == MOST_ROWS
    assert table.notes[-1] == "3 more stations: the JSON output lists them."


def test_a_capture_without_packets_has_a_report_too(tmp_path: Path, pki: LabPki) -> None:
    path = write_capture(tmp_path / "empty.pcapng")
    document = inspection_document(inspected(path, pki), Source.of(path, (), 1.0))
    assert "nothing to judge" in document.lead
    assert not [block for section in document.sections for block in section.blocks if isinstance(block, Table)]


def test_chains_are_counted_by_their_issuers(road: Path, tmp_path: Path, pki: LabPki) -> None:
    known, unknown = inspected(road / "road.pcapng", pki).chains
    assert known.issuers == (identified(pki.aa), identified(pki.root))
    assert (str(known.state), known.reason, known.tickets, known.packets) == ("complete", "", 1, 4)
    assert unknown.issuers == () and str(unknown.state) == "incomplete"
    assert unknown.reason.startswith("issuer ") and (unknown.tickets, unknown.packets) == (1, 1)
    other = Vehicle.of(pki, 8)
    asked = other.signed_cam(header=Header(CAM_PSID, NOW_US, requested_certificate=pki.aa.octets), certificate=True)
    path = write_capture(tmp_path / "road.pcapng", asked, Vehicle.of(pki, 7).signed_cam(certificate=True))
    (chain,) = inspect_capture(path, CaptureCertificates([pki.root])).chains
    assert (chain.tickets, chain.packets) == (2, 2), "the authority is learnt from the capture"
