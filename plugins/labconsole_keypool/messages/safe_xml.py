"""Parses untrusted XML: nothing is fetched, no entity expanded, no DOCTYPE or huge document accepted."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeVar

from lxml import etree

from labconsole.errors import UserError


class SignRequestError(UserError):
    """A sign request cannot be served; the message says what is wrong with it and what to do."""


LARGEST_BYTES = 1_000_000
"""A longer document is refused before it is parsed."""

NAMESPACES = {
    "dss": "urn:oasis:names:tc:dss:1.0:core:schema",
    "csig": "http://id.elegnamnden.se/csig/1.0/dss-ext/ns",
    "saci": "http://id.elegnamnden.se/auth-cont/1.0/saci",
    "saml": "urn:oasis:names:tc:SAML:2.0:assertion",
}
"""Prefixes of the paths in this plugin; a document may use others."""

_Choice = TypeVar("_Choice", bound=StrEnum)
_DOCTYPE = b"<!DOCTYPE"


class Element:
    """One element of a document called `what` in messages; paths are those of ElementPath with `NAMESPACES`."""

    __slots__ = ("_node", "_what")

    def __init__(self, node: Any, what: str) -> None:
        self._node = node
        self._what = what

    def is_a(self, name: str) -> bool:
        """Whether it is an element of this name, as in "dss:SignRequest"."""
        prefix, local = name.split(":")
        return bool(self._node.tag == f"{{{NAMESPACES[prefix]}}}{local}")

    def find(self, path: str) -> Element | None:
        """The first element there, None if there is none."""
        found = self._node.find(path, NAMESPACES)
        return None if found is None else Element(found, self._what)

    def need(self, path: str) -> Element:
        """The first element there. Raises SignRequestError naming the path."""
        found = self.find(path)
        if found is None:
            raise SignRequestError(f"The {self._what} has no {_readable(path)}: add it.")
        return found

    def every(self, path: str) -> Iterator[Element]:
        """All elements there, in the order of the document."""
        return (Element(node, self._what) for node in self._node.iterfind(path, NAMESPACES))

    def text(self) -> str:
        """Its text, stripped. Raises SignRequestError: it is empty or has child elements."""
        if len(self._node) or not (text := (self._node.text or "").strip()):
            raise SignRequestError(f"The {self._what}'s {self._name} must hold text alone.")
        return text

    def attribute(self, name: str, default: str | None = None) -> str:
        """The attribute, else `default`. Raises SignRequestError: it is missing where there is no default."""
        value = self._node.get(name, default)
        if value is None:
            raise SignRequestError(f"The {self._what}'s {self._name} has no attribute {name}: add it.")
        return str(value)

    def choice(self, name: str, choices: type[_Choice], default: _Choice | None = None) -> _Choice:
        """The attribute as one of `choices`. Raises SignRequestError: it is not one of them, or is missing."""
        given = self.attribute(name, default)
        try:
            return choices(given)
        except ValueError as error:
            raise SignRequestError(
                f"The {self._what}'s {name} {given[:20]!r} is not known: take one of {', '.join(choices)}."
            ) from error

    def decoded(self) -> bytes:
        """Its text decoded from base64. Raises SignRequestError: it is empty or not base64."""
        try:
            return base64.b64decode("".join(self.text().split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise SignRequestError(f"The {self._what}'s {self._name} is not base64: encode its bytes again.") from error

    def source(self) -> str:
        """The element as a document, with the namespaces in its scope."""
        return str(etree.tostring(self._node, encoding="unicode", with_tail=False))

    @property
    def _name(self) -> str:
        return str(etree.QName(self._node).localname)


def parse(data: bytes, what: str) -> Element:
    """The root of the document `data`, called `what` in messages.

    Raises:
        SignRequestError: it is too long, has a DOCTYPE, or is not XML.
    """
    if len(data) > LARGEST_BYTES:
        raise SignRequestError(
            f"The {what} has {len(data):,} bytes, where {LARGEST_BYTES:,} at most are taken: send less in one."
        )
    if _DOCTYPE in data.replace(b"\0", b""):  # in UTF-16 and UTF-32 as well
        raise SignRequestError(_with_doctype(what))
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        message = error.msg.partition("\n")[0].rpartition(", line ")[0] or error.msg  # what follows cites the document
        line, _ = error.position
        raise SignRequestError(
            f"The {what} is not XML (line {line}: {message[:80]!r}): send a whole document."
        ) from error
    if root.getroottree().docinfo.internalDTD is not None:  # in an encoding that hid it from the search above
        raise SignRequestError(_with_doctype(what))
    return Element(root, what)


def _with_doctype(what: str) -> str:
    return f"The {what} has a DOCTYPE, which may name files and expand without end: send it without one."


def _readable(path: str) -> str:
    return path.rsplit("/", 1)[-1].split(":")[-1]
