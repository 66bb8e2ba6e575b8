"""Payload files: exact sizes, well-formed content, and one sentence for each unusable file."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_amqp.wire.payload import load_payload

FIXM = {"fx": "http://www.fixm.aero/flight/4.2", "fb": "http://www.fixm.aero/base/4.2"}


@pytest.mark.parametrize(("name", "size"), [("small", 11), ("fpl-tac", 237), ("fpl-fixm", 42_708)])
def test_built_in_payloads_have_the_sizes_of_the_source(name: str, size: int) -> None:
    payload = load_payload(name)
    assert len(payload.data) == size
    assert payload.name == name


def test_tac_payload_is_an_icao_filed_flight_plan() -> None:
    """Field by field as ICAO Doc 4444, appendix 3: items 3, 7-8, 9-10, 13, 15, 16 and 18."""
    text = load_payload("fpl-tac").data.decode("ascii")
    fields = text.removeprefix("(").removesuffix(")").replace("\n", "").split("-")
    patterns = (
        "FPL",
        "[A-Z0-9]{1,7}",
        "[IVYZ][SNGMX]",
        r"\d{0,2}[A-Z][A-Z0-9]{1,3}/[LMHJ]",
        "[A-Z0-9]+/[A-Z0-9]+",
        r"[A-Z]{4}([01]\d|2[0-3])[0-5]\d",
        r"N\d{4}F\d{3}( DCT| [A-Z]{3,5}| [A-Z]\d{1,3})+",
        r"[A-Z]{4}\d{4}( [A-Z]{4}){0,2}",
        "(([A-Z]{3,4})/[A-Z0-9 ]+)+",
    )
    assert len(fields) == len(patterns)
    for field, pattern in zip(fields, patterns, strict=True):
        assert re.fullmatch(pattern, field), field
    assert text[0] == "(" and text[-1] == ")"


def test_fixm_payload_is_a_filed_route_flown_in_order() -> None:
    root = ElementTree.fromstring(load_payload("fpl-fixm").data)
    elements = root.findall(".//fx:filed/fx:element", FIXM)
    assert len(elements) > 25
    assert [int(element.attrib["seqNum"]) for element in elements] == list(range(len(elements)))
    distances = [float(element.findtext("fx:alongRouteDistance", "", FIXM)) for element in elements]
    assert distances == sorted(set(distances))
    assert len({element.findtext(".//fb:pos", "", FIXM) for element in elements}) == len(elements)
    ends = (
        root.findtext(".//fx:departure//fb:locationIndicator", "", FIXM),
        root.findtext(".//fx:destinationAerodrome/fb:locationIndicator", "", FIXM),
    )
    reference = "fx:elementStartPoint/fb:aerodromeReferencePoint/fb:locationIndicator"
    assert ends == (elements[0].findtext(reference, "", FIXM), elements[-1].findtext(reference, "", FIXM))


def test_an_operators_file_is_read_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    file.write_bytes("Kuala Lumpur → 新加坡\r\n".encode())
    assert load_payload(str(file)).data == file.read_bytes()


def test_binary_payload_only_where_the_body_is_encrypted(tmp_path: Path) -> None:
    file = tmp_path / "binary"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        load_payload(str(file))
    assert len(load_payload(str(file), as_string=False).data) == 3


def test_unusable_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    long = tmp_path / ("x" * 300)
    for choice, reason in (
        (tmp_path / "none", "no payload"),
        (tmp_path, "not a regular file"),
        (empty, "is empty"),
        (long, "cannot be read"),
    ):
        with pytest.raises(UserError, match=reason) as caught:
            load_payload(str(choice))
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
