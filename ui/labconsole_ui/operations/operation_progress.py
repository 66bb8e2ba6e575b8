"""The progress of an operation: its status, bar and time left, and its result."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QProgressBar, QVBoxLayout, QWidget

from labconsole.analysis.number_format import format_duration
from labconsole.engine.operation_process import OperationEnd, OperationProcess, OperationProgress, Outcome
from labconsole.model.operation import TextTable
from labconsole.security.secrets import Secret
from labconsole_ui.operations.result_parts import ResultParts
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, busy_bar, plain_label, plain_tooltip

_STEPS = 1000
_SHOWN_LINES = 8
_ENDS = {
    Outcome.DONE: ("good", "good"),
    Outcome.CANCELLED: ("cancelled", "muted"),
    Outcome.FAILED: ("error", "bad"),
}


class OperationProgressView(QWidget):
    """Shows one operation at a time."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._log: list[str] = []
        self.status = plain_label("", self)
        self.status.setWordWrap(True)
        self.bar: QProgressBar = busy_bar(self.tr("Progress"), self)
        self.count = plain_label("", self)
        self.count.setProperty("muted", True)
        self.warning = plain_label("", self)
        self.warning.setWordWrap(True)
        self.warning.setProperty("tone", "bad")
        self._icon = IconLabel(theme, "good", 20, "good")
        self.sentence = plain_label("", self)
        self.sentence.setWordWrap(True)
        self.sentence.setFont(theme.font(FontRole.STRONG))
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._end = QWidget(self)
        end = QHBoxLayout(self._end)
        end.setContentsMargins(0, 0, 0, 0)
        end.setSpacing(10)
        end.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        end.addWidget(self.sentence, 1)
        self.parts = ResultParts(theme, self)
        self._secrets = _ResultSecrets(theme, self)
        self.setFocusProxy(self._secrets)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        for widget in (self.status, self.bar, self.count, self.warning, self._end, self.parts, self._secrets):
            column.addWidget(widget)

    def begin(self) -> None:
        """Clear the view for the next operation."""
        self._log = []
        self._secrets.clear()
        self.parts.show_parts(())
        self.bar.setRange(0, 0)
        self.count.setText("")
        for widget in (self.status, self.bar, self.count):
            widget.show()
        self.warning.hide()
        self._end.hide()

    @property
    def shows_secrets(self) -> bool:
        """Whether secrets are shown, which are shown once."""
        return not self._secrets.isHidden()

    def forget_secrets(self) -> None:
        """Remove the secrets that were shown."""
        self._secrets.clear()

    def show_status(self, sentence: str) -> None:
        """Show what is being done now."""
        self.status.setText(sentence)

    def show_warning(self, sentence: str) -> None:
        """Show a warning until the operation ends."""
        self.warning.setText(sentence)
        self.warning.show()

    def follow(self, process: OperationProcess) -> None:
        """Show new status, progress and secrets of `process`."""
        self._log += process.take_log()
        if process.said and not process.cancelled:
            self.show_status(process.said)
        if process.progress is not None:
            self._show_progress(process.progress)
        for title, secret in process.take_handed_over():
            self._secrets.add(title, secret)

    def finish(self, end: OperationEnd) -> None:
        """Show how it ended and its result; of a process that died, the end of its log is the tooltip."""
        refused = end.outcome is Outcome.DONE and not end.passed
        icon, meaning = _ENDS[Outcome.FAILED if refused else end.outcome]
        self._icon.show_icon(icon, meaning)
        warnings = () if end.result is None else end.result.warnings
        sentence, parts = self._sentence_and_parts(end)
        self.sentence.setText("\n".join((sentence, *warnings)))
        self.parts.show_parts(parts)
        words = "\n".join(self._log[-_SHOWN_LINES:]) if end.outcome is Outcome.FAILED else ""
        self.sentence.setToolTip(plain_tooltip(words))
        for widget in (self.status, self.bar, self.count, self.warning):
            widget.hide()
        self._end.show()

    def _sentence_and_parts(self, end: OperationEnd) -> tuple[str, Sequence[str | TextTable]]:
        """The sentence next to the icon, and the parts below it: all from the first table on."""
        parts = () if end.result is None else end.result.parts
        tables = [at for at, part in enumerate(parts) if isinstance(part, TextTable)]
        if not tables:
            return end.sentence, ()
        if texts := [part for part in parts[: tables[0]] if isinstance(part, str)]:
            return "\n".join(texts).strip(), parts[tables[0] :]
        return self.tr("Done.") if end.passed else self.tr("Done: not passed."), parts

    def _show_progress(self, progress: OperationProgress) -> None:
        done, total = progress.done, progress.total
        self.bar.setRange(0, _STEPS if total else 0)
        self.bar.setValue(_STEPS * done // total if total else 0)
        text = self.tr("{done} of {total}").format(done=f"{done:,}", total=f"{total:,}")
        if progress.eta_s is not None and done < total:
            left = self.tr("about {duration} left").format(duration=format_duration(progress.eta_s))
            text = f"{text}  ·  {left}"
        self.count.setText(text)


class _ResultSecrets(QFrame):
    """Secrets that are stored nowhere else, shown until the dialog is closed."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("message", "warning")
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        line = QHBoxLayout()
        line.addWidget(IconLabel(theme, "warning", 18, "warning"), 0, Qt.AlignmentFlag.AlignTop)
        note = plain_label(self.tr("Write this down now: it is shown once, and kept nowhere."), self)
        note.setWordWrap(True)
        line.addWidget(note, 1)
        column.addLayout(line)
        self._text = QPlainTextEdit(self)
        self._text.setReadOnly(True)
        self._text.setUndoRedoEnabled(False)
        self._text.setAccessibleName(note.text())
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._text.setMinimumHeight(190)
        column.addWidget(self._text)
        self.setFocusProxy(self._text)
        self.hide()

    def add(self, title: str, secret: Secret) -> None:
        """Show another secret."""
        before = self._text.toPlainText()
        self._text.setPlainText(f"{before}\n\n{title}\n{secret.reveal()}".strip())
        self.show()

    def clear(self) -> None:
        """Remove the secrets and hide the box."""
        self._text.clear()
        self.hide()
