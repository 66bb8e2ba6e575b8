"""ETSI's ASN.1 modules of CAM and DENM, compiled when first needed, and the error of messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from labconsole import paths

MessageName = Literal["CAM", "DENM"]
Release = Literal[1, 2]

_MODULES: dict[Release, tuple[str, ...]] = {
    1: ("EN302637-2v141-CAM", "EN302637-3v131-DENM", "TS102894-2v131-CDD"),
    2: ("TS103900v231-CAM", "TS103831v231-DENM", "TS102894-2v241-CDD"),
}


class MessageError(Exception):
    """A message that cannot be decoded, or values that no message can have; the text is the reason."""


@cache
def compiled(release: Release) -> Any:
    """Return the asn1tools specification of a release, compiled once per process. Enumerations are whole numbers.

    That takes 0.06 s for Release 1 and 0.15 s for Release 2, and the import of asn1tools 0.2 s: a station calls this
    before it is ready, so that its first message does not wait.
    """
    import asn1tools  # imported late: most processes that import messages decode none with it

    # Parsing takes ten times as long as compiling, in each process of stations that starts.
    modules = ast.literal_eval(_parsed_file(release).read_text("utf-8"))
    return asn1tools.compile_dict(modules, "uper", numeric_enums=True)


def parsed(release: Release) -> dict[str, Any]:
    """Return asn1tools' dictionaries of the modules of a release, parsed from their texts; takes a second."""
    import asn1tools

    # asn1tools takes the name of a default value for the value itself.
    modules: dict[str, Any] = asn1tools.parse_string(_text(release).replace("DEFAULT defaultValidity", "DEFAULT 600"))
    return modules


def _parsed_file(release: Release) -> Path:
    return paths.resource("asn1") / f"release-{release}.parsed"


def _text(release: Release) -> str:
    # The texts of Release 2 have single octets that are not UTF-8; all are in comments.
    texts = (paths.resource("asn1", f"{name}.asn").read_text("utf-8", errors="replace") for name in _MODULES[release])
    return "\n".join(texts)


_COMPONENT = re.compile(r"^\s+([a-z][\w-]*)\s+([A-Z][\w-]*)", re.MULTILINE)
_NAMES = re.compile(r"([\w-]+)\s*(?:::=)?\s*(?:INTEGER|ENUMERATED|BIT STRING)\s*\{([^}]*)\}")
_NAME = re.compile(r"([\w-]+)\s*\((-?\d+)\)")


@cache
def value_names(release: Release = 1) -> Mapping[str, Mapping[int, str]]:
    """Return the names that the modules give to values (or bits) of a component, such as 2 "unavailable"."""
    text = re.sub("--.*", "", _text(release))
    of_type = {name: {int(value): word for word, value in _NAME.findall(names)} for name, names in _NAMES.findall(text)}
    of_component = {name: of_type[kind] for name, kind in _COMPONENT.findall(text) if kind in of_type}
    return of_type | of_component


def encode_values(message: MessageName, values: dict[str, Any], release: Release = 1) -> bytes:
    """Return the UPER octets of a message given as asn1tools' dictionaries.

    Raises:
        MessageError: a component is missing or cannot be encoded.
    """
    try:
        return bytes(compiled(release).encode(message, values))
    except _codec_errors() as error:
        raise MessageError(f"{message} cannot be encoded: {error}") from error


def decode_values(message: MessageName, octets: bytes, release: Release = 1) -> dict[str, Any]:
    """Return all components of a message as asn1tools' dictionaries; unknown extensions are skipped.

    Raises:
        MessageError: the octets are not exactly one such message.
    """
    from asn1tools.codecs import ErrorWithLocation
    from asn1tools.codecs.uper import Decoder

    try:
        content = compiled(release).types[message].type
        decoder = Decoder(bytearray(octets))
        try:
            values: dict[str, Any] = content.decode(decoder)
        except ErrorWithLocation as error:
            error.add_location(content)
            raise
    except _codec_errors() as error:
        raise MessageError(f"{message} is malformed: {error}") from error
    if decoder.number_of_bits >= 8:  # asn1tools' `decode` says nothing of what it has not read
        raise MessageError(f"{message} is followed by further octets")
    return values


def _codec_errors() -> tuple[type[Exception], ...]:
    """What asn1tools raises of malformed octets and of values that do not fit; RuntimeError includes RecursionError."""
    import asn1tools

    return (asn1tools.Error, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def main() -> None:
    """Write the parsed modules of each release next to their texts."""
    for release in _MODULES:
        content = repr(parsed(release)).replace("}, ", "},\n")  # in lines, for version control
        _parsed_file(release).write_text(f"{content}\n", "utf-8")


if __name__ == "__main__":
    main()
