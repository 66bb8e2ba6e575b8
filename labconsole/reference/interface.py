"""The reference page of the plugin interface: everything that `labconsole.api` offers, from its own docstrings."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any

from labconsole import api
from labconsole.reference.markdown import code, page, table

_TOPICS = {
    "Plugin": "Plugin OperationEntry PluginPage API_VERSION Command Check",
    "Trial": "Trial Parameters STORED MetricKind Question Ranking ServiceLevel TrialCommand Direction "
    "ConsolePart TRIAL_ID",
    "Run": "RunContext RoleSpec RoleHandle LiveFrame REMEDY",
    "Role": "Role RoleContext SeriesWriter Attachment",
    "Samples": "Series Column BYTES LiveChannel LiveKind Event Level Origin",
    "Evaluation": "Samples Evaluation Metric Verdict VerdictKind Curve Distribution DerivedTable FULL_SPEED LINK_RATE "
    "LINK_USE OFFERED_RATE",
    "Operation": "Operation OperationContext Result TextTable Confirmation",
}
"""Headings of the page -> the names below each; all others come last."""


def interface_page() -> str:
    """All names of the interface, by topic."""
    places = {name: module for module, names in api.PLACES.items() for name in names.split()}
    named = [name for names in _TOPICS.values() for name in names.split()]
    topics = {**_TOPICS, "More": " ".join(sorted(places.keys() - set(named)))}
    return page(
        "# Plugin interface",
        f"Version {api.API_VERSION}. {inspect.cleandoc(api.__doc__ or '')}",
        *(
            part
            for title, names in topics.items()
            for part in (f"## {title}", *(text for name in names.split() for text in _entry(name, places[name])))
        ),
    )


def _entry(name: str, module: str) -> Iterator[str]:
    found = getattr(import_module(module), name)
    yield f"### {name}"
    if inspect.isclass(found):
        yield inspect.cleandoc(found.__doc__ or "")
        yield table(("Attribute", "Type", "Meaning"), _attributes(found))
        yield table(("Method", "What it does"), _methods(found))
    elif inspect.isfunction(found):
        yield f"{code(name + _signature(found))}: {_summary(found)}"
    else:
        value = f"{code(repr(found))}. " if isinstance(found, (str, int)) else ""
        yield f"{value}{_documented(import_module(module), name)}"


def _attributes(owner: type) -> Iterator[tuple[str, str, str]]:
    if issubclass(owner, Enum):
        texts = _attribute_texts(owner)
        for member in owner:
            yield code(member.name), code(repr(member.value)), texts.get(member.name, ("", ""))[1]
        return
    for name, (kind, text) in _attribute_texts(owner).items():
        if not name.startswith("_"):
            yield code(name), code(kind), text


def _attribute_texts(owner: type) -> dict[str, tuple[str, str]]:
    """Attribute -> its type and the text below it, as the source has them."""
    (body,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(body, ast.ClassDef)
    return _texts(body.body)


def _documented(module: Any, name: str) -> str:
    return _texts(ast.parse(inspect.getsource(module)).body).get(name, ("", ""))[1]


def _texts(statements: list[ast.stmt]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    name = ""
    for statement in statements:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            kind = ast.unparse(statement.annotation)
            found[name] = kind.removeprefix("ClassVar[").removesuffix("]") if kind.startswith("ClassVar[") else kind, ""
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            found[name] = "", ""
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and name:
            found[name] = found[name][0], inspect.cleandoc(str(statement.value.value))
            name = ""
        else:
            name = ""
    return found


def _methods(owner: type) -> Iterator[tuple[str, str]]:
    for name, method in vars(owner).items():
        function = method.__func__ if isinstance(method, (classmethod, staticmethod)) else method
        if name.startswith("_"):
            continue
        if isinstance(function, property):
            yield code(name), _summary(function.fget)
        elif inspect.isfunction(function):
            yield code(f"{name}{_signature(function)}"), _summary(function)


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    return str(signature.replace(parameters=parameters)).replace("'", "").removesuffix(" -> None")


def _summary(function: Any) -> str:
    return inspect.cleandoc(function.__doc__ or "")
