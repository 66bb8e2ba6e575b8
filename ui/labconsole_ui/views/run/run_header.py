"""The header of a run view: status, scenario, times, reason, caveats, note and tags."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from labconsole.analysis.caveats import caveats
from labconsole.analysis.number_format import format_duration
from labconsole.engine.queue import ShownStatus
from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.runs.run_files import ExportMenu
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.views.run.loaded_run import LoadedRun
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.status_text import local_time, run_status_icon, run_status_text, utc_time


class RunButtons(QWidget):
    """A row of buttons. `export_wanted` carries an `ExportFormat`."""

    compare_wanted = Signal()
    report_wanted = Signal()
    export_wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.compare_button = QPushButton(self.tr("Compare"), self)
        theme.bind_icon(self.compare_button, "compare")
        self.compare_button.clicked.connect(self.compare_wanted)
        self.report_button = QPushButton(self.tr("Report ..."), self)
        theme.bind_icon(self.report_button, "report")
        self.report_button.clicked.connect(self.report_wanted)
        self.export_menu = ExportMenu(theme, self)
        self.export_menu.wanted.connect(self.export_wanted)
        self.export_button = QPushButton(self.tr("Export"), self)
        theme.bind_icon(self.export_button, "export")
        self.export_button.setMenu(self.export_menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        for button in (self.compare_button, self.report_button, self.export_button):
            button.setIconSize(QSize(18, 18))
            row.addWidget(button)

    def update_state(self, *, over: bool, baseline: int | None) -> None:
        """Enable the buttons: export and report need a finished run; `baseline` is the run to compare with."""
        self.report_button.setEnabled(over)
        self.export_button.setEnabled(over)
        self.compare_button.setEnabled(over and baseline is not None)
        self.compare_button.setToolTip(
            self.tr("Compare with the baseline, run {0}").format(baseline)
            if baseline is not None
            else self.tr("Pin another run of this trial as baseline in the history first")
        )


NO_BREAK = "\u00a0"


class RunHeader(QFrame):
    """Shows a run's record; `note_edited` and `tags_edited` carry a text that was typed and confirmed."""

    note_edited = Signal(str)
    tags_edited = Signal(str)

    def __init__(self, theme: Theme, shown: Callable[[RunRow], ShownStatus], parent: QWidget | None = None) -> None:
        """`shown` is the status of a run now."""
        super().__init__(parent)
        self._theme = theme
        self._shown = shown
        self._row: RunRow | None = None
        self.setProperty("card", True)
        self._icon = QLabel(self)
        self.title = plain_label("", self)
        self.title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.facts = plain_label("", self)
        self.facts.setProperty("muted", True)
        self.facts.setWordWrap(True)
        self.note = self._editor(self.tr("Note of this run"), self.tr("Add a note"))
        self.tags = self._editor(self.tr("Tags of this run"), self.tr("Add tags"))
        self.tags.setToolTip(self.tr("Tags with commas between them, such as: night, reference"))
        self.note.editingFinished.connect(self._note_done)
        self.tags.editingFinished.connect(self._tags_done)
        self.buttons = RunButtons(theme, self)
        self.buttons.update_state(over=False, baseline=None)
        self._messages = QVBoxLayout()
        self._messages.setSpacing(4)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._icon)
        head.addWidget(self.title)
        head.addStretch(1)
        for text, editor, width in ((self.tr("&Note"), self.note, 220), (self.tr("&Tags"), self.tags, 150)):
            label = QLabel(text, self)
            label.setBuddy(editor)
            editor.setMinimumWidth(90)
            editor.setMaximumWidth(width)
            head.addWidget(label)
            head.addWidget(editor, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 8, 14, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        second = QHBoxLayout()
        second.setSpacing(12)
        second.addWidget(self.facts, 1)
        second.addWidget(self.buttons, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(second)
        layout.addLayout(self._messages)
        theme.changed.connect(self._apply_theme)
        self._apply_theme()

    def show_run(self, loaded: LoadedRun) -> None:
        """Show the record of a run; texts being typed into note and tags stay."""
        row = loaded.detail.row
        before, self._row = self._row, row
        self.title.setText(self.tr("Run {0}: {1}").format(row.id, row.scenario))
        self.facts.setText("  ·  ".join(fact.replace(" ", NO_BREAK) for fact in self._facts(loaded)))
        if before is None or before.note != row.note:
            self.note.setText(row.note)
            self.note.setCursorPosition(0)
        if before is None or before.tags != row.tags:
            self.tags.setText(", ".join(row.tags))
        self._apply_theme()
        while (item := self._messages.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        if row.reason:
            self._show_sentence(row.reason, "bad" if row.status is RunStatus.FAILED else "warning")
        for failed in row.failed_checks:
            self._show_sentence(self.tr("The figures of this run prove nothing: {0}").format(failed), "bad")
        if not row.status.final:
            self._show_sentence(self.tr("This run is not over. Figures appear here when it has finished."), "info")
        if sentences := caveats(row):
            self._show_sentence("\n".join(sentences), "info")
        self.buttons.update_state(over=row.status.final, baseline=loaded.baseline)

    def messages(self) -> list[str]:
        """The sentences shown below the title."""
        items = [self._messages.itemAt(index) for index in range(self._messages.count())]
        widgets = [item.widget() for item in items if item is not None]
        return [sentence for widget in widgets if widget for sentence in str(widget.property("sentences")).split("\n")]

    def _facts(self, loaded: LoadedRun) -> list[str]:
        row = loaded.detail.row
        facts = [
            run_status_text(row, self._shown(row)),
            loaded.trial.title if loaded.trial is not None else row.kind,
            row.campaign,
        ]
        facts.append(self.tr("repeat {0}").format(row.repeat))
        if row.started is not None:
            facts.append(self.tr("started {0}").format(local_time(row.started)))
            self.facts.setToolTip(utc_time(row.started))
        if row.duration_s is not None:
            facts.append(self.tr("took {0}").format(format_duration(row.duration_s)))
        return facts

    def _show_sentence(self, sentences: str, tone: str) -> None:
        """A box with one sentence per line."""
        frame = QFrame(self)
        frame.setProperty("message", tone)
        frame.setProperty("sentences", sentences)
        lines = sentences.split("\n")
        label = plain_label("\n".join(f"•  {line}" for line in lines) if len(lines) > 1 else sentences, frame)
        label.setFont(self._theme.font(FontRole.CAPTION))
        label.setWordWrap(True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QVBoxLayout(frame)
        layout.setContentsMargins(10, 3, 10, 3)
        layout.addWidget(label)
        self._messages.addWidget(frame)

    def _editor(self, name: str, placeholder: str) -> QLineEdit:
        editor = QLineEdit(self)
        editor.setAccessibleName(name)
        editor.setPlaceholderText(placeholder)
        return editor

    def _note_done(self) -> None:
        if self._row is not None and self.note.text() != self._row.note:
            self.note_edited.emit(self.note.text())

    def _tags_done(self) -> None:
        if self._row is not None and self.tags.text() != ", ".join(self._row.tags):
            self.tags_edited.emit(self.tags.text())

    def _apply_theme(self) -> None:
        self.title.setFont(self._theme.font(FontRole.HEADING))
        if self._row is not None:
            status = self._shown(self._row)
            name, meaning = run_status_icon(self._row, status)
            self._icon.setPixmap(self._theme.pixmap(name, 20, meaning))
            self._icon.setAccessibleName(run_status_text(self._row, status))
            self._icon.setToolTip(run_status_text(self._row, status))
