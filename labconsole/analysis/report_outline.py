"""An outline of a report on several trials: chapters with the tables of a source, and the answers of its first page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from labconsole.analysis.answers import Answer
from labconsole.analysis.columns import RunGroup
from labconsole.analysis.table_shape import TableShape, table_shapes
from labconsole.analysis.verdict_lines import Verdicts
from labconsole.errors import UserError
from labconsole.model.plugin import Plugin, Plugins, load_dotted
from labconsole.model.validation_faults import nearest

OutlineAnswers = Callable[[Sequence[RunGroup], Verdicts, Plugins], tuple[Answer, ...]]
"""The answers of the first page from the groups of repeats of all chapters, and the verdicts of their runs."""


@dataclass(frozen=True)
class VerdictList:
    """Verdicts as one compact table with a row for each of `titles`, which are by the verdicts' names.

    `shape` has no rows: its columns say which runs are shown, and `published` whose verdicts are next to them.
    """

    shape: TableShape
    titles: Mapping[str, str]


@dataclass(frozen=True)
class OutlineChapter:
    """A chapter on runs of the trials `kinds`: its verdicts, and those of its tables (names of `TableShape`) that runs
    fill. `introduction` is a sentence or two.

    `widened` adds columns to a table that only the runs can name: of a timing profile of the operator's, say.
    """

    title: str
    introduction: str
    kinds: tuple[str, ...]
    shapes: tuple[str, ...] = ()
    verdicts: VerdictList | None = None
    widened: Callable[[TableShape, Sequence[RunGroup]], TableShape] | None = None

    def tables(self, groups: Sequence[RunGroup], plugins: Plugins) -> tuple[TableShape, ...]:
        """Its tables, in its order, as wide as the runs ask for."""
        brought = {shape.name: shape for kind in self.kinds for shape in table_shapes(plugins, kind)}
        shapes = tuple(brought[name] for name in self.shapes)
        return shapes if self.widened is None else tuple(self.widened(shape, groups) for shape in shapes)


@dataclass(frozen=True)
class ReportOutline:
    """A report as its source has it; a plugin's manifest names it in `outlines`."""

    title: str
    lead: str
    chapters: tuple[OutlineChapter, ...]
    answers: OutlineAnswers

    @property
    def kinds(self) -> tuple[str, ...]:
        """The trials whose runs it takes."""
        return tuple(dict.fromkeys(kind for chapter in self.chapters for kind in chapter.kinds))


def report_outline(plugins: Plugins, name: str) -> ReportOutline:
    """The outline `name` of a plugin. Raises UserError where there is none of that name, or it is broken."""
    for plugin in plugins.found:
        if name in plugin.outlines:
            return _loaded(plugin, name, plugins)
    known = [name for plugin in plugins.found for name in plugin.outlines]
    raise UserError(f"There is no report outline {name}{nearest(name, known)}")


def report_outlines(plugins: Plugins, kinds: Collection[str]) -> dict[str, ReportOutline]:
    """The outlines that take runs of all the trials `kinds`, by name; a broken one is logged and left out."""
    found = {}
    for plugin in plugins.found:
        for name in plugin.outlines:
            try:
                outline = _loaded(plugin, name, plugins)
            except UserError as error:
                logging.getLogger(__name__).warning("%s", error)
                continue
            if set(kinds) <= set(outline.kinds):
                found[name] = outline
    return found


def _loaded(plugin: Plugin, name: str, plugins: Plugins) -> ReportOutline:
    try:
        outline = load_dotted(plugin.outlines[name])
        if not isinstance(outline, ReportOutline):
            raise TypeError(f"{plugin.outlines[name]} is not a ReportOutline, but {type(outline).__name__}")
        faults = list(_faults(outline, plugins))
    except Exception as error:
        raise UserError(_broken(plugin, name, f"{type(error).__name__}: {error}")) from error
    if faults:
        raise UserError(_broken(plugin, name, faults[0]))
    return outline


def _broken(plugin: Plugin, name: str, fault: str) -> str:
    return f"The report outline {name} of the plugin {plugin.name} is broken ({fault}): repair or remove the plugin."


def _faults(outline: ReportOutline, plugins: Plugins) -> Iterator[str]:
    kinds = set(plugins.kinds())
    for chapter in outline.chapters:
        shapes = {shape.name for kind in chapter.kinds for shape in table_shapes(plugins, kind)}
        for what, named, known in (("trial", chapter.kinds, kinds), ("table", chapter.shapes, shapes)):
            yield from (f"chapter {chapter.title}: no {what} is called {name}" for name in named if name not in known)
