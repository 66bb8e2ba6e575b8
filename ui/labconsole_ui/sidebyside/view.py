"""The side-by-side view: metrics as rows, scenarios as columns, differences in % of a baseline of one's choice."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.figures import format_difference, format_figure
from labconsole.analysis.side_by_side import MetricLine, ParameterLine, Table, side_by_side
from labconsole.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole.trial import Trial, TrialError
from labconsole_ui.background import Background
from labconsole_ui.message_bar import Message, MessageBar, Tone
from labconsole_ui.runview.records import direction_text
from labconsole_ui.tables import DataTable, Field, RecordModel
from labconsole_ui.theme import FontRole, Theme


@dataclass(frozen=True)
class _Loaded:
    runs: tuple[RunRow, ...]
    trial: Trial[Any] | None


class SideBySideView(QWidget):
    """Compares stored runs; repeats of a scenario make one column, unless they are to stand alone."""

    def __init__(
        self,
        reader_factory: Callable[[], Reader],
        run_ids: Sequence[int],
        plugins: Plugins,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.run_ids = tuple(run_ids)
        self._reader_factory = reader_factory
        self._plugins = plugins
        self._theme = theme
        self._background = Background(self)
        self._loaded: _Loaded | None = None
        self.table_data: Table | None = None
        self._column_of: list[int | None] = []
        self.setAccessibleName(self.tr("Runs side by side"))
        self.messages = MessageBar(theme)
        self._build()
        theme.changed.connect(self._apply_theme)
        self._apply_theme()
        self.reload()

    def reload(self) -> None:
        """Read the runs again, in the background."""
        self._background.submit(self._load, self._take, self._say)

    def _load(self) -> _Loaded:
        with self._reader_factory() as reader:
            known = {run.id: run for run in reader.runs(include_trashed=True)}
        runs = tuple(known[run_id] for run_id in self.run_ids if run_id in known)
        try:
            return _Loaded(runs, self._plugins.trial(runs[0].kind) if runs else None)
        except KeyError:
            return _Loaded(runs, None)

    def _take(self, loaded: _Loaded) -> None:
        self._loaded = loaded
        self._show(0)

    def _say(self, sentence: str) -> None:
        self.messages.show_message(Message(Tone.BAD, sentence))

    # The comparison

    def set_baseline(self, column: int) -> None:
        """Compare with the column `column`, counted from 0."""
        self._show(column)

    def _show(self, baseline: int) -> None:
        if self._loaded is None or not self._loaded.runs:
            self.note.setText(self.tr("None of these runs is in the database any more."))
            return
        grouped = self.group_box.isChecked()
        table = side_by_side(self._loaded.runs, self._loaded.trial, baseline=baseline, grouped=grouped)
        self.table_data = table
        titles = [group.title for group in table.columns]
        self.baseline_box.blockSignals(True)
        self.baseline_box.clear()
        self.baseline_box.addItems(titles)
        self.baseline_box.setCurrentIndex(baseline)
        self.baseline_box.blockSignals(False)
        self._show_parameters(table)
        self._model.set_fields(self._metric_fields(table))
        self._model.set_records(table.metrics)
        self.metrics.fit_columns(widest=260)
        self.note.setText("\n".join([*table.notes, self._interval_note()]))

    def _interval_note(self) -> str:
        return self.tr(
            "Plain differences of means in % of the baseline, with no interval yet: they do not say whether a "
            "difference is more than chance."
        )

    def _show_parameters(self, table: Table) -> None:
        differing = [line for line in table.parameters if line.differs]
        equal = [line for line in table.parameters if not line.differs]
        self.fold_button.setText(self.tr("Equal parameters: {0}").format(len(equal)))
        self.fold_button.setArrowType(
            Qt.ArrowType.DownArrow if self.fold_button.isChecked() else Qt.ArrowType.RightArrow
        )
        lines = differing + (equal if self.fold_button.isChecked() else [])
        self._parameter_model.set_fields(self._parameter_fields(table))
        self._parameter_model.set_records(lines)
        self.parameters.setVisible(bool(lines))
        self.parameters.fit_columns(widest=260)
        self._fit_parameters()
        self.parameters_label.setText(
            self.tr("Parameters that differ") if differing else self.tr("All parameters are equal")
        )

    def _fit_parameters(self) -> None:
        """As high as its rows, up to a third of the view."""
        header = self.parameters.horizontalHeader().sizeHint().height()
        rows = self._parameter_model.rowCount() * self.parameters.verticalHeader().defaultSectionSize()
        self.parameters.setFixedHeight(min(header + rows + 6, max(self.height() // 3, header + 40)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the height between parameters and metrics."""
        super().resizeEvent(event)
        self._fit_parameters()

    def _headings(self, table: Table) -> list[str]:
        headings = []
        for index, group in enumerate(table.columns):
            alone = self.tr("run {0}").format(group.runs[0].id)
            runs = alone if len(group.runs) == 1 else self.tr("{0} repeats").format(group.repeats)
            runs = "" if group.title.endswith(runs) else runs
            baseline = self.tr("baseline") if index == table.baseline else ""
            headings.append(f"{group.title}\n{', '.join(part for part in (runs, baseline) if part)}")
        return headings

    def _parameter_fields(self, table: Table) -> list[Field[ParameterLine]]:
        def column(index: int, heading: str) -> Field[ParameterLine]:
            return Field(heading, lambda line: line.texts[index])

        return [
            Field(
                self.tr("Parameter"),
                lambda line: f"{line.title} [{line.unit}]" if line.unit else line.title,
                tooltip=lambda line: line.name,
            ),
            *(column(index, heading) for index, heading in enumerate(self._headings(table))),
        ]

    def _metric_fields(self, table: Table) -> list[Field[MetricLine]]:
        fields: list[Field[MetricLine]] = [
            Field(self.tr("Metric"), lambda line: line.kind.title, tooltip=lambda line: line.kind.description),
            Field(self.tr("Better"), lambda line: direction_text(line.kind.direction)[:1], tooltip=_better),
        ]
        self._column_of = [None, None]
        for index, heading in enumerate(self._headings(table)):
            fields.append(_value_field(index, heading))
            self._column_of.append(index)
            if index != table.baseline:
                fields.append(_difference_field(index, self.tr("difference")))
                self._column_of.append(index)
        fields.append(Field(self.tr("Remark"), lambda line: line.remark, tone=lambda line: "muted"))
        return fields

    # Export

    def as_tsv(self) -> str:
        """Differing parameters and all metrics as tab-separated text, as shown."""
        parts = [table.as_tsv() for table in (self.parameters, self.metrics) if table.model().rowCount()]
        return "\n".join(parts)

    def as_csv(self) -> str:
        """The metrics as RFC 4180 text with plain numbers: one row a metric, value and difference for each column."""
        if self.table_data is None:
            return ""
        table, text = self.table_data, io.StringIO()
        writer = csv.writer(text)
        head = ["metric", "title", "unit", "direction"]
        for group in table.columns:
            head += [group.title, f"{group.title}: runs", f"{group.title}: difference [%]"]
        writer.writerow([_safe(cell) for cell in [*head, "remark"]])
        for line in table.metrics:
            row: list[object] = [line.kind.name, line.kind.title, line.kind.unit, line.kind.direction.value]
            for cell in line.cells:
                row += [
                    "" if cell.value is None else cell.value,
                    cell.runs,
                    "" if cell.difference is None else cell.difference,
                ]
            writer.writerow([_safe(value) for value in [*row, line.remark]])
        return text.getvalue()

    def export_csv(self, path: Path) -> None:
        """Write the metrics to `path`, in the background."""
        text = self.as_csv()

        def written(_: object) -> None:
            self.messages.show_message(Message(Tone.GOOD, self.tr("{0} written.").format(path)))

        self._background.submit(lambda: _write(path, text), written, self._say)

    def _export_dialog(self) -> None:
        chosen, _ = QFileDialog.getSaveFileName(
            self, self.tr("Export the comparison"), "comparison.csv", self.tr("CSV (*.csv)")
        )
        if chosen:
            self.export_csv(Path(chosen))

    # Building

    def _build(self) -> None:
        self.title = QLabel(self.tr("Side by side"), self)
        self.baseline_box = QComboBox(self)
        self.baseline_box.setAccessibleName(self.tr("Baseline"))
        self.baseline_box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.baseline_box.setMinimumContentsLength(14)
        self.baseline_box.currentIndexChanged.connect(self.set_baseline)
        baseline = QLabel(self.tr("&Baseline"), self)
        baseline.setBuddy(self.baseline_box)
        self.group_box = QCheckBox(self.tr("Mean over &repeats"), self)
        self.group_box.setChecked(True)
        self.group_box.setToolTip(self.tr("Repeats of a scenario as one column, or each run alone"))
        self.group_box.toggled.connect(lambda: self._show(0))
        export = QPushButton(self.tr("Export CSV ..."), self)
        export.clicked.connect(self._export_dialog)
        self._theme.bind_icon(export, "export")
        self.parameters_label = QLabel(self)
        self.parameters = DataTable(self.tr("Parameters that differ"), self._theme, self)
        self._parameter_model: RecordModel[ParameterLine] = RecordModel([], self._theme, self.parameters)
        self.parameters.setModel(self._parameter_model)
        self.fold_button = QToolButton(self)
        self.fold_button.setCheckable(True)
        self.fold_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.fold_button.setArrowType(Qt.ArrowType.RightArrow)
        self.fold_button.setToolTip(self.tr("Show or fold the parameters that are equal in all columns"))
        self.fold_button.toggled.connect(self._fold)
        self.metrics = DataTable(self.tr("Metrics side by side"), self._theme, self)
        self._model: RecordModel[MetricLine] = RecordModel([], self._theme, self.metrics)
        self.metrics.setModel(self._model)
        header = self.metrics.horizontalHeader()
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._column_menu)
        self.note = QLabel(self)
        self.note.setProperty("muted", True)
        self.note.setWordWrap(True)
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self.title)
        head.addStretch(1)
        for widget in (self.group_box, baseline, self.baseline_box, export):
            head.addWidget(widget)
        fold = QHBoxLayout()
        fold.addWidget(self.parameters_label)
        fold.addStretch(1)
        fold.addWidget(self.fold_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        layout.addWidget(self.messages)
        layout.addLayout(head)
        layout.addLayout(fold)
        layout.addWidget(self.parameters)
        layout.addWidget(self.metrics, 1)
        layout.addWidget(self.note)

    def _fold(self) -> None:
        if self.table_data is not None:
            self._show_parameters(self.table_data)

    def _column_menu(self, position: QPoint) -> None:
        column = self.metrics.horizontalHeader().logicalIndexAt(position)
        action = self.baseline_action(column)
        if action is not None:
            menu = QMenu(self)
            menu.addAction(action)
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(self.metrics.horizontalHeader().mapToGlobal(position))

    def baseline_action(self, section: int) -> QAction | None:
        """The action that makes the table's column `section` the baseline, None where that makes no sense."""
        column = self._column_of[section] if 0 <= section < len(self._column_of) else None
        if column is None or self.table_data is None or column == self.table_data.baseline:
            return None
        action = QAction(self.tr("Use as baseline"), self)
        action.triggered.connect(lambda: self.set_baseline(column))
        return action

    def _apply_theme(self) -> None:
        self.title.setFont(self._theme.font(FontRole.HEADING))
        self.parameters_label.setFont(self._theme.font(FontRole.STRONG))


def _better(line: MetricLine) -> str:
    return direction_text(line.kind.direction)


def _value_field(index: int, heading: str) -> Field[MetricLine]:
    return Field(
        heading,
        lambda line: format_figure(line.cells[index].value, line.kind.unit),
        right=True,
        strong=lambda line: True,
    )


def _difference_field(index: int, heading: str) -> Field[MetricLine]:
    return Field(heading, lambda line: format_difference(line.cells[index].difference), right=True)


def _write(path: Path, text: str) -> None:
    """Write the whole file or nothing under its name. Raises TrialError."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise TrialError(f"{path} cannot be written ({error.strerror}): choose another folder.") from error


def _safe(cell: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
