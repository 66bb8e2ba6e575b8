"""The one import place for plugin authors: what it gives, what it costs, and what type checkers see of it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from labconsole import api

SOURCE = Path(api.__file__)


def for_type_checkers() -> dict[str, set[str]]:
    """Module -> names that it gives, in the block that only type checkers read."""
    [block] = [
        node
        for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    found: dict[str, set[str]] = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom) and statement.module is not None
        [name] = statement.names
        assert name.asname == name.name, f"{name.name} is not exported explicitly"
        found.setdefault(statement.module, set()).add(name.name)
    return found


def test_type_checkers_see_the_names_that_there_are() -> None:
    assert for_type_checkers() == {module: set(names.split()) for module, names in api.PLACES.items()}


def test_each_name_is_that_of_its_module() -> None:
    for module, names in api.PLACES.items():
        for name in names.split():
            assert getattr(api, name) is getattr(import_module(module), name)
    names = [name for names in api.PLACES.values() for name in names.split()]
    assert sorted(names) == dir(api) and len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["Trail", "numpy", "import_modul"])
def test_unknown_name_raises_import_error(name: str) -> None:
    with pytest.raises(ImportError, match=name):
        exec(f"from labconsole.api import {name}")
    assert not hasattr(api, name)


@pytest.mark.parametrize(
    ("names", "absent"),
    [("Plugin, PluginPage, UserError, now_ns", ("numpy", "pydantic", "sqlalchemy")), ("Trial, Role", ("sqlalchemy",))],
)
def test_a_name_costs_no_more_than_its_own_module(names: str, absent: tuple[str, ...]) -> None:
    code = f"import sys; from labconsole.api import {names}; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_promised_names_are_exported() -> None:
    promised = """
        Trial Parameters Role RoleContext RunContext RoleSpec RoleHandle Series Column Metric MetricKind Direction
        Origin Verdict VerdictKind Event Level Evaluation Curve Distribution DerivedTable LiveChannel Question
        ServiceLevel Samples Plugin PluginPage Operation Command UserError now_ns TableShape DatabaseKind
        Secret SecretRequest
    """
    assert set(promised.split()) <= set(dir(api))
