"""The table of a run's verdicts: the preflight is one line that opens into its checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QModelIndex, QPersistentModelIndex
from PySide6.QtWidgets import QWidget

from labconsole.analysis.verdict_lines import preflight_lines
from labconsole.model.trial import Verdict
from labconsole_ui.tables.folding_table import FoldingTable
from labconsole_ui.tables.record_table import RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.run.result_tables import verdict_fields


class VerdictTable(FoldingTable):
    """Shows verdicts; checks of the preflight that need attention are always shown, the others once it is opened."""

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(name, theme, parent, fit_width=True)
        self._verdicts: tuple[Verdict, ...] = ()
        self._summary: Verdict | None = None
        self._opened = False
        fields = verdict_fields()
        fields[1] = replace(fields[1], icon=self._fold_icon)
        self._rows: RecordModel[Verdict] = RecordModel(fields, theme, self)
        self.setModel(self._rows)

    def show_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Show these verdicts of a run."""
        self._verdicts = tuple(verdicts)
        self._arrange()
        self.fit_columns()

    def toggle_at(self, index: QModelIndex | QPersistentModelIndex) -> bool:
        """Open or close the line of the preflight."""
        if not index.isValid() or self._rows.record(index.row()) is not self._summary:
            return False
        self._opened = not self._opened
        self._arrange()
        self.selectRow(index.row())
        return True

    def _arrange(self) -> None:
        lines = preflight_lines(self._verdicts)
        self._summary = lines.summary if lines.folded else None
        first = () if lines.summary is None else (lines.summary,)
        self._rows.set_records((*first, *lines.open, *(lines.folded if self._opened else ()), *lines.others))

    def _fold_icon(self, verdict: Verdict) -> tuple[str, str] | None:
        if verdict is not self._summary:
            return None
        return ("chevron-down" if self._opened else "chevron-right", "muted")
