"""The planner's table in the window; a chosen row shows how its figure is derived."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QItemSelection, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QVBoxLayout, QWidget

from labconsole_keypool.planning.plan import PlanRow, cell_text, disagreement, figure_text
from labconsole_keypool.planning.planner_parameters import Cell
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label

_COLUMN_WIDTHS = (290, 200, 200)


class PlanTableView(QFrame):
    """Formula, simulation and measurement of each figure; under them the derivation of the chosen one."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self.table = DataTable(self.tr("Planned figures"), theme, self)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        fields = [
            Field[PlanRow](self.tr("Figure"), lambda row: row.title),
            Field[PlanRow](
                self.tr("Formula"),
                lambda row: figure_text(row.formula.value, row.formula.unit),
                strong=lambda row: True,
            ),
            self._cell_field(self.tr("Simulation"), lambda row: row.simulation),
            self._cell_field(self.tr("Measurement"), lambda row: row.measurement),
        ]
        self.model = RecordModel(fields, theme, self)
        self.table.setModel(self.model)
        self.table.selectionModel().selectionChanged.connect(self._choose)
        self.disagreement = plain_label("", self)
        self.disagreement.setWordWrap(True)
        self.disagreement.hide()
        self.derivation = plain_label(self.tr("Choose a row to see how its figure is derived."), self)
        self.derivation.setWordWrap(True)
        self.derivation.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.derivation.setFont(theme.font(FontRole.TABLE))
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 12)
        column.setSpacing(8)
        column.addWidget(self.table)
        inset = QVBoxLayout()
        inset.setContentsMargins(16, 0, 16, 0)
        inset.setSpacing(8)
        inset.addWidget(self.disagreement)
        inset.addWidget(self.derivation)
        column.addLayout(inset)

    def show_rows(self, rows: tuple[PlanRow, ...]) -> None:
        """Show these rows instead of the ones before; the same one stays chosen."""
        chosen = self._chosen()
        text = disagreement(rows)
        self.disagreement.setText(text)
        self.disagreement.setVisible(bool(text))
        self.model.set_records(rows)
        for column, width in enumerate(_COLUMN_WIDTHS):
            self.table.setColumnWidth(column, width)
        height = self.table.verticalHeader().defaultSectionSize() * len(rows)
        self.table.setFixedHeight(height + self.table.horizontalHeader().sizeHint().height() + 4)
        for place, row in enumerate(rows):
            if chosen is not None and row.name == chosen.name:
                self.table.selectRow(place)

    def _chosen(self) -> PlanRow | None:
        rows = self.table.selectionModel().selectedRows()
        return self.model.record(rows[0].row()) if rows else None

    def _choose(self, _now: QItemSelection, _before: QItemSelection) -> None:
        row = self._chosen()
        if row is None:
            return
        lines = [*row.formula.steps]
        for title, cell in ((self.tr("Simulation"), row.simulation), (self.tr("Measurement"), row.measurement)):
            figure = "" if cell.value is None else f"{figure_text(cell.value, row.formula.unit)}, "
            lines.append(f"{title}: {figure}{cell.note}")
        self.derivation.setText("\n".join(lines))

    @staticmethod
    def _cell_field(title: str, cell: Callable[[PlanRow], Cell]) -> Field[PlanRow]:
        """A figure, or in grey why there is none."""
        return Field(
            title,
            lambda row: cell_text(cell(row), row.formula.unit),
            tooltip=lambda row: cell(row).note,
            tone=lambda row: "muted" if cell(row).value is None else None,
        )
