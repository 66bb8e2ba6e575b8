"""The evidence of a run: its digest, when it was sealed, and a check for changes since."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFormLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from labconsole.store.evidence.checking import Verification, verify
from labconsole.store.reader import Reader
from labconsole.store.records import Evidence
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import IconLabel, busy_bar, plain_label
from labconsole_ui.widgets.status_text import utc_time

DIGEST_GROUP = 8


class EvidencePane(QWidget):
    """Shows the sealed evidence; `verified` carries whether the check found no change."""

    verified = Signal(bool)

    def __init__(self, reader_factory: Callable[[], Reader], run_id: int, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        set_chapter(self, "explanation/evidence.md")
        self._reader_factory = reader_factory
        self._run_id = run_id
        self._theme = theme
        self._background = Background(self)
        self._evidence: Evidence | None = None
        self.setAccessibleName(self.tr("Evidence of the run"))
        self.digest = QLabel(self)
        self.digest.setWordWrap(True)
        self.sealed = QLabel(self)
        for label in (self.digest, self.sealed):
            label.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
        self.verify_button = QPushButton(self.tr("Verif&y"), self)
        theme.bind_icon(self.verify_button, "shield")
        self.verify_button.clicked.connect(self.verify)
        self.copy_button = QPushButton(self.tr("Copy the digest"), self)
        theme.bind_icon(self.copy_button, "copy")
        self.copy_button.clicked.connect(self._copy)
        self.progress = busy_bar(self.tr("Checking the run"), self)
        self.progress.hide()
        self._arrange()

    def show_evidence(self, evidence: Evidence | None) -> None:
        """Show the sealed evidence; None for a run that has not ended."""
        if evidence != self._evidence:
            self._outcome.hide()
        self._evidence = evidence
        if evidence is None:
            self.digest.setText(self.tr("This run is sealed when it ends."))
            self.sealed.setText("–")
        else:
            self.digest.setText(grouped(evidence.digest))
            self.sealed.setText(utc_time(evidence.sealed))
        for button in (self.verify_button, self.copy_button):
            button.setEnabled(evidence is not None)

    def verify(self) -> None:
        """Compute the digest again in the background, and show whether it is the same."""
        self.verify_button.setEnabled(False)
        self.progress.show()
        self._outcome.hide()
        self._background.submit(self._verification, self._show_verification, self._show_failure)

    def _verification(self) -> Verification:
        with self._reader_factory() as reader:
            return verify(reader, self._run_id)

    def _show_verification(self, result: Verification) -> None:
        if result.ok:
            self._show_sentence("good", self.tr("Nothing of this run has changed since it was sealed."))
        else:
            self._show_sentence("bad", "\n".join(result.faults))
        self.verified.emit(result.ok)

    def _show_failure(self, sentence: str) -> None:
        self._show_sentence("bad", sentence)
        self.verified.emit(False)

    def _show_sentence(self, tone: str, sentence: str) -> None:
        self.progress.hide()
        self.verify_button.setEnabled(True)
        self._outcome.setProperty("message", tone)
        self._outcome.style().unpolish(self._outcome)
        self._outcome.style().polish(self._outcome)
        self._outcome_icon.show_icon("good" if tone == "good" else "error", tone)
        self.outcome.setText(sentence)
        self._outcome.show()

    def _copy(self) -> None:
        if self._evidence is not None:
            QGuiApplication.clipboard().setText(self._evidence.digest)

    def _arrange(self) -> None:
        about = QLabel(
            self.tr(
                "One digest covers parameters, samples, events, figures and files. It was computed when the "
                "run ended; if a single byte has changed since, the check finds it."
            ),
            self,
        )
        about.setWordWrap(True)
        about.setProperty("muted", True)
        self._outcome = QFrame(self)
        self._outcome.hide()
        line = QHBoxLayout(self._outcome)
        line.setContentsMargins(10, 6, 10, 6)
        self._outcome_icon = IconLabel(self._theme, "good", 18, "good")
        self.outcome = plain_label("", self._outcome)
        self.outcome.setAccessibleName(self.tr("Outcome of the check"))
        self.outcome.setWordWrap(True)
        self.outcome.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        line.addWidget(self._outcome_icon, 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(self.outcome, 1)
        facts = QFormLayout()
        facts.setSpacing(8)
        facts.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        facts.addRow(self.tr("Digest (SHA-256)"), self.digest)
        facts.addRow(self.tr("Sealed"), self.sealed)
        buttons = QHBoxLayout()
        buttons.addWidget(self.verify_button)
        buttons.addWidget(self.copy_button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 12, 12)
        layout.setSpacing(12)
        layout.addWidget(about)
        layout.addLayout(facts)
        layout.addLayout(buttons)
        layout.addWidget(self.progress)
        layout.addWidget(self._outcome)
        layout.addStretch(1)
        self.show_evidence(None)


def grouped(digest: str) -> str:
    """A digest in groups of eight, which can be compared by eye and break over lines."""
    return " ".join(digest[place : place + DIGEST_GROUP] for place in range(0, len(digest), DIGEST_GROUP))
