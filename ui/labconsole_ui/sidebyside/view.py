"""The side-by-side view: metrics as rows, scenarios as columns, differences in % of a baseline of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.side_by_side import Table, side_by_side
from labconsole.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole.trial import Trial, TrialError
from labconsole_ui.background import Background
from labconsole_ui.message_bar import Message, MessageBar, Tone
from labconsole_ui.sidebyside.rows import csv_text, rows_of, shared_remark
from labconsole_ui.sidebyside.table import ComparisonTable
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
        self._unfolded = False
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
        self._fill(table)
        remark = shared_remark(table)
        notes = [self.tr("All figures: {0}.").format(remark)] if remark else []
        self.note.setText("\n".join([*table.notes, " ".join([*notes, self._interval_note()])]))

    def _interval_note(self) -> str:
        return self.tr(
            "Plain differences of means in % of the baseline, with no interval yet: they do not say whether a "
            "difference is more than chance."
        )

    def _fill(self, table: Table) -> None:
        rows = rows_of(table, unfolded=self._unfolded)
        self.table.show_comparison(table, self._headings(table), rows, unfolded=self._unfolded)

    def _fold(self) -> None:
        if self.table_data is not None:
            self._unfolded = not self._unfolded
            place = self.table.verticalScrollBar().value()
            self._fill(self.table_data)
            self.table.verticalScrollBar().setValue(place)

    def _headings(self, table: Table) -> list[str]:
        headings = []
        for index, group in enumerate(table.columns):
            alone = self.tr("run {0}").format(group.runs[0].id)
            runs = alone if len(group.runs) == 1 else self.tr("{0} repeats").format(group.repeats)
            runs = "" if group.title.endswith(runs) else runs
            baseline = self.tr("baseline") if index == table.baseline else ""
            headings.append(f"{group.title}\n{', '.join(part for part in (runs, baseline) if part)}")
        return headings

    # Export

    def as_tsv(self) -> str:
        """The table as tab-separated text, as shown; values and differences in columns of their own."""
        return self.table.as_tsv()

    def as_csv(self) -> str:
        """The metrics as RFC 4180 text with plain numbers."""
        return csv_text(self.table_data) if self.table_data is not None else ""

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
        self.table = ComparisonTable(self.tr("Runs side by side"), self._theme, self)
        self.table.fold_toggled.connect(self._fold)
        header = self.table.horizontalHeader()
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 16, 8)
        layout.setSpacing(6)
        layout.addWidget(self.messages)
        layout.addLayout(head)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.note)

    def _column_menu(self, position: QPoint) -> None:
        column = self.table.horizontalHeader().logicalIndexAt(position)
        action = self.baseline_action(column)
        if action is not None:
            menu = QMenu(self)
            menu.addAction(action)
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(self.table.horizontalHeader().mapToGlobal(position))

    def baseline_action(self, section: int) -> QAction | None:
        """The action that makes the table's column `section` the baseline, None where that makes no sense."""
        column = self.table.value_column(section)
        if column is None or self.table_data is None or column == self.table_data.baseline:
            return None
        action = QAction(self.tr("Use as baseline"), self)
        action.triggered.connect(lambda: self.set_baseline(column))
        return action

    def _apply_theme(self) -> None:
        self.title.setFont(self._theme.font(FontRole.HEADING))


def _write(path: Path, text: str) -> None:
    """Write the whole file or nothing under its name. Raises TrialError."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise TrialError(f"{path} cannot be written ({error.strerror}): choose another folder.") from error
