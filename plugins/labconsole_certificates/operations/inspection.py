"""Shows and compares objects of a file or the database: certificates, CSRs, CRLs, keys, trust bundles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from labconsole.errors import BadInput, UserError
from labconsole.model.operation import Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, CrlRecord, RequestRecord
from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole.security.x509 import cms, parsing
from labconsole.security.x509.cms import SignedMessage
from labconsole.security.x509.fingerprints import short_fingerprint
from labconsole_certificates.describing.comparison import compare
from labconsole_certificates.describing.description import Description, Row
from labconsole_certificates.describing.pki_objects import Describable, describe
from labconsole_certificates.operations.export import Exportable, recorded
from labconsole_certificates.operations.parameter_fields import PasswordParameters
from labconsole_certificates.operations.pki_operation import file_password
from labconsole_certificates.trust.bundle_format import decode


def _is_file(what: str) -> bool:
    return os.path.isfile(what)  # noqa: PTH113 - Path.is_file raises OSError for a name that is too long


def _passwords(names: Sequence[str], source: SecretSource) -> tuple[SecretRequest, ...]:
    """The password of each file among `names` that has one. Raises UserError."""
    return tuple(
        replace(file_password(Path(name), source), key=_key(number))
        for number, name in enumerate(names)
        if _is_file(name) and parsing.kind_of(parsing.read_file(Path(name))).has_password
    )


def _content(
    names: Sequence[str], source: SecretSource, context: OperationContext
) -> tuple[tuple[Describable, ...], ...]:
    """The objects that each of `names` means: all in a file, or one record of the database. Raises UserError."""
    passwords = {
        request.key: request.resolve(partial(_entered, context, request.key)) for request in _passwords(names, source)
    }
    return tuple(
        _in_file(Path(name), passwords.get(_key(number))) if _is_file(name) else (_in_database(name),)
        for number, name in enumerate(names)
    )


def _key(number: int) -> str:
    """The key of the password of the `number`th file."""
    return f"file-password-{number}"


def _entered(context: OperationContext, key: str, purpose: str) -> Secret | None:
    return context.secret(key)


def _in_file(path: Path, password: Secret | None) -> tuple[Describable, ...]:
    data = parsing.read_file(path)
    if parsing.kind_of(data) is parsing.ContentKind.CMS:
        return (cms.read(data),)
    return parsing.read(data, password, f"The file {path.name}")


def _in_database(what: str) -> Describable:
    with PkiReader.open() as reader:
        return _parsed(recorded(reader.snapshot(), what))


def _parsed(thing: Exportable) -> Describable:
    """The certificate, CSR or CRL of a record."""
    match thing:
        case CertificateRecord():
            return thing.certificate
        case RequestRecord():
            return thing.csr
        case CrlRecord():
            return thing.crl


_NAMED = "a certificate's SHA-256, 8 digits of it, PROFILE:STATE, request:NUMBER, or crl:NUMBER"


class ShowParameters(PasswordParameters):
    """What to show."""

    what: str = parameter("What", f"A file, {_NAMED}", positional=True)


class Show(Operation[ShowParameters]):
    """Shows everything of a certificate, CSR, CRL, key or file."""

    name: ClassVar[str] = "certificates.show"
    title: ClassVar[str] = "Show"
    description: ClassVar[str] = "Shows everything of a certificate, CSR, CRL, key, trust bundle or file."
    parameters: ClassVar[type[Parameters]] = ShowParameters

    def secrets(self, parameters: ShowParameters) -> tuple[SecretRequest, ...]:
        return _passwords((parameters.what,), parameters.password())

    def run(self, parameters: ShowParameters, context: OperationContext) -> Result:
        (content,) = _content((parameters.what,), parameters.password(), context)
        lines: list[str] = []
        found = []
        for thing in content:
            bundle, description = _bundle(thing), describe(thing)
            if bundle:
                lines += [*_bundle_lines(bundle), ""]
            lines += _lines(description)
            found.append(_data(description) | ({"bundle": bundle} if bundle else {}))
        return Result(("\n".join(lines),), {"content": found})


class CompareParameters(PasswordParameters):
    """Two objects to compare."""

    left: str = parameter("Left", f"A file, {_NAMED}", positional=True)
    right: str = parameter("Right", "What it is compared with", positional=True)


class Compare(Operation[CompareParameters]):
    """Shows the differences between two certificates, CSRs, CRLs or files."""

    name: ClassVar[str] = "certificates.compare"
    title: ClassVar[str] = "Compare"
    description: ClassVar[str] = "Shows the differences between two certificates, CSRs, CRLs or files."
    parameters: ClassVar[type[Parameters]] = CompareParameters

    def secrets(self, parameters: CompareParameters) -> tuple[SecretRequest, ...]:
        return _passwords((parameters.left, parameters.right), parameters.password())

    def run(self, parameters: CompareParameters, context: OperationContext) -> Result:
        names = (parameters.left, parameters.right)
        left, right = map(_only, names, _content(names, parameters.password(), context))
        comparison = compare(left, right)
        different = [
            (row.section, row.label, *(side.value if side else None for side in (row.left, row.right)))
            for row in comparison.rows
            if not row.same
        ]
        data = {
            "left": comparison.left,
            "right": comparison.right,
            "differences": [
                {"section": section, "label": label, "left": one, "right": other}
                for section, label, one, other in different
            ],
        }
        if not different:
            return Result((f"{comparison.left} and {comparison.right} do not differ.",), data)
        rows = tuple(
            (f"{section}: {label}", "-" if one is None else one, "-" if other is None else other)
            for section, label, one, other in different
        )
        return Result((TextTable(("", comparison.left, comparison.right), rows),), data, passed=False)


def _only(name: str, content: tuple[Describable, ...]) -> Describable:
    if len(content) > 1:
        raise UserError(f"{name} holds {len(content)} things: compare one of each side.")
    return content[0]


def _bundle(thing: Describable) -> dict[str, Any] | None:
    """The description of a signed message as a trust bundle, if it is one."""
    if not isinstance(thing, SignedMessage):
        return None
    try:
        content = decode(thing.content)
    except BadInput:
        return None
    return {
        "state": content.state,
        "domain": str(content.domain),
        "bundle": content.sequence,
        "next_update": f"{content.next_update:%Y-%m-%d %H:%M} UTC",
        "trusted": list(content.trusted),
    }


def _bundle_lines(bundle: dict[str, Any]) -> list[str]:
    state, trusted = bundle["state"], ", ".join(map(short_fingerprint, bundle["trusted"]))
    domain = bundle["domain"] or "no domain"
    return [
        f"Trust bundle {bundle['bundle']} of {state}, {domain}; next by {bundle['next_update']}",
        f"It says that {state} trusts: {trusted or 'no other State'}",
    ]


def _lines(description: Description) -> list[str]:
    lines = [description.title]
    for section in description.sections:
        lines += ["", f"  {section.title}", *(f"    {row.label}: {_value(row)}" for row in section.rows)]
    return lines


def _value(row: Row) -> str:
    text = row.value.replace("\n", "\n      ")
    return f"{text}   (!)" if row.warning else text


def _data(description: Description) -> dict[str, Any]:
    return {
        "title": description.title,
        "sections": [
            {
                "title": section.title,
                "rows": [
                    {"label": row.label, "value": row.value, "warning": bool(row.warning)} for row in section.rows
                ],
            }
            for section in description.sections
        ],
    }
