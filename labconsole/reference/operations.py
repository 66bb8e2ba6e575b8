"""The reference page of all operations, from their definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labconsole.model.operation import Operation
from labconsole.model.plugin import OperationEntry, Plugin, load_dotted
from labconsole.reference.markdown import code, page, sentence, table
from labconsole.reference.parameters import parameter_tables


def operations_page(plugins: tuple[Plugin, ...]) -> str:
    """A table of operations for each plugin, and the parameters of those that have no command."""
    return page(
        "# Operations",
        "An operation is work that is not a trial. The window shows it as a dialog; `labconsole action NAME --set "
        "KEY=VALUE` runs it on the terminal, and most have a command of their own, whose page has the parameters.",
        *(part for plugin in plugins if plugin.operations for part in _of(plugin)),
    )


def _of(plugin: Plugin) -> Iterator[str]:
    known = {name: (entry, load_dotted(entry.target)) for name, entry in plugin.operations.items()}
    yield f"## {plugin.title}"
    yield table(
        ("Operation", "Title", "Command", "What it does", "Changes"),
        (_row(name, entry, operation) for name, (entry, operation) in known.items()),
    )
    for name, (entry, operation) in known.items():
        if not entry.command:
            yield f"### {name}"
            yield sentence(operation.description)
            yield parameter_tables(operation.parameters).replace("### ", "#### ")


def _row(name: str, entry: OperationEntry, operation: type[Operation[Any]]) -> tuple[str, ...]:
    group, _, command = entry.command.rpartition(" ")
    page_name = f"commands-{group}.md" if group else "commands.md"
    anchor = entry.command.replace(" ", "-")
    link = f"[{entry.command}]({page_name}#{anchor})" if command else f"[parameters](#{name.replace('.', '')})"
    return code(name), operation.title, link, sentence(operation.description), ", ".join(operation.writes)
