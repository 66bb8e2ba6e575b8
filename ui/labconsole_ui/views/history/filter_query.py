"""The query language of the history: words, fields (`status:`, `tag:`, `kind:`, `run:` ...), days.

Days are local, written as in the table: `after:2026-11-01` (then or later), `before:2026-11` (earlier), `on:2026-11`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labconsole.analysis.parameter_texts import value_text
from labconsole.store.records import RunRow

_TERM = re.compile(r'(?:(\w+):)?(?:"([^"]*)"?|(\S+))')


@dataclass(frozen=True)
class Term:
    """One condition: `text` in the field, or anywhere if the field is empty. All are in lower case."""

    field: str
    text: str


def parse(query: str) -> tuple[Term, ...]:
    """The terms of a query; quotes join words, an unknown field is a word, `status:` alone is ignored."""
    terms = []
    for field, quoted, plain in _TERM.findall(query.casefold()):
        text = quoted or plain
        if field in _FIELDS:
            terms.append(Term(field, text))
        elif text.removesuffix(":") not in _FIELDS:
            terms.append(Term("", f"{field}:{text}" if field else text))
    return tuple(term for term in terms if term.text)


def searchable(run: RunRow) -> str:
    """All texts of a run in which words are searched, in lower case."""
    parameters = " ".join(f"{name} {value_text(value)}" for name, value in run.parameters.items())
    parts = (
        str(run.id),
        run.status.value,
        run.kind,
        run.profile,
        run.campaign,
        run.scenario,
        run.reason,
        run.note,
        *run.tags,
        parameters,
        run.hosts,
    )
    return "\n".join(parts).casefold()


def accepts(terms: tuple[Term, ...], run: RunRow, haystack: str) -> bool:
    """Whether the run fulfils all terms; `haystack` is its `searchable` text."""
    return all(_FIELDS[term.field](run, term.text) if term.field else term.text in haystack for term in terms)


def day(run: RunRow) -> str:
    """The local day on which a run started, or was queued if it has not: `2026-11-05`."""
    return (run.started or run.created).astimezone().date().isoformat()


_FIELDS: Mapping[str, Callable[[RunRow, str], bool]] = {
    "status": lambda run, text: run.status.value.startswith(text),
    "tag": lambda run, text: any(tag.casefold().startswith(text) for tag in run.tags),
    "kind": lambda run, text: text in run.kind.casefold(),
    "profile": lambda run, text: text in run.profile.casefold(),
    "scenario": lambda run, text: text in run.scenario.casefold(),
    "note": lambda run, text: text in run.note.casefold(),
    "after": lambda run, text: day(run) >= text,
    "before": lambda run, text: day(run) < text,
    "on": lambda run, text: day(run).startswith(text),
    "run": lambda run, text: str(run.id) == text,
}
