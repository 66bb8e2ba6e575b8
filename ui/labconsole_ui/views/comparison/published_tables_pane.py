"""The source's own tables, filled with measured values next to the printed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from PySide6.QtWidgets import QComboBox, QTextBrowser, QVBoxLayout, QWidget

from labconsole.analysis.number_format import Scale, row_scale
from labconsole.analysis.table_shape import FilledTable, ShapeCell
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.column_header import Heading
from labconsole_ui.views.comparison.comparison_rows import CellText, Row, Section, interval_text
from labconsole_ui.views.comparison.scenario_table import ScenarioTable
from labconsole_ui.widgets.help_chapter import set_chapter

NOTES_HEIGHT = 84


class PublishedTablesPane(QWidget):
    """Shows one table, chosen in a box where the runs fill several."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        set_chapter(self, "how-to/compare-runs.md#fill-the-sources-own-tables")
        self._theme = theme
        self._tables: tuple[FilledTable, ...] = ()
        self.box = QComboBox(self)
        self.box.setAccessibleName(self.tr("Table of the source"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(24)
        self.box.currentIndexChanged.connect(self._show_chosen)
        self.about = QTextBrowser(self)
        self.about.setAccessibleName(self.tr("Notes on the table"))
        self.about.setMaximumHeight(NOTES_HEIGHT)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 8, 0, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self.box)
        self._column.addWidget(self.about)
        self.set_tables(())

    @cached_property
    def table(self) -> ScenarioTable:
        """The rows and columns of the source: created when runs fill a table, since that takes 6 ms."""
        table = ScenarioTable(self.tr("Table of the source"), self._theme, self)
        self._column.insertWidget(1, table, 1)
        return table

    def set_tables(self, tables: Sequence[FilledTable]) -> None:
        """Show these tables; the chosen one stays chosen."""
        self._tables = tuple(tables)
        chosen = self.box.currentData()
        self.box.blockSignals(True)
        self.box.clear()
        for table in tables:
            self.box.addItem(table.shape.title, table.shape.name)
        self.box.setCurrentIndex(max(0, self.box.findData(chosen)))
        self.box.blockSignals(False)
        self.box.setVisible(bool(tables))
        self._show_chosen(self.box.currentIndex())

    def _show_chosen(self, index: int) -> None:
        if not 0 <= index < len(self._tables):
            self.about.setPlainText(self.tr("These runs fill no table of a source."))
            return
        filled = self._tables[index]
        headings = [
            Heading(
                column.title,
                self.tr("runs: {0}").format(max((row[place].runs for row in filled.cells), default=0)),
                help=filled.shape.reference,
            )
            for place, column in enumerate(filled.shape.columns)
        ]
        rows = [
            Row(Section.METRICS, row.title, metric=row.metric, cells=tuple(self._texts(cells)))
            for row, cells in zip(filled.shape.rows, filled.cells, strict=True)
        ]
        self.table.show_rows(headings, rows)
        self.about.setPlainText("\n".join([filled.shape.reference, *filled.notes]))

    def _texts(self, cells: Sequence[ShapeCell]) -> Iterator[CellText]:
        """The cells of a row, in one readable unit."""
        scale = row_scale((cell.value for cell in cells), cells[0].unit)
        return (self._text(cell, scale) for cell in cells)

    def _text(self, cell: ShapeCell, scale: Scale) -> CellText:
        details = [] if cell.interval is None else [interval_text(cell.interval, scale)]
        mark = ""
        if cell.published is not None:
            details.append(self.tr("published: {0}").format(cell.published.printed))
            if cell.holds is not None:
                mark = self.tr("✓ within") if cell.holds else self.tr("✗ outside")
        return CellText(
            scale.figure(cell.value, cell.uncertainty),
            "\n".join(details),
            mark,
            help="\n".join([*details, cell.published.reference] if cell.published is not None else details),
        )
