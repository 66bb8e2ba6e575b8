"""The question when the database cannot be opened: open its backup, another file, or nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout

from labconsole.errors import UserError
from labconsole.store.backup_files import Backup
from labconsole.store.backups import restored_copy
from labconsole.store.errors import DamagedDatabaseError
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, busy_bar, plain_label

WIDTH = 560


class DatabaseErrorDialog(QDialog):
    """Shows what is wrong with `database`. If accepted, `chosen` is the database to open instead."""

    def __init__(self, database: Path, error: UserError, theme: Theme) -> None:
        super().__init__()
        self.chosen: Path | None = None
        self._database = database
        self._background = Background(self)
        damaged = error if isinstance(error, DamagedDatabaseError) else None
        backup = damaged.backups[0] if damaged is not None and damaged.backups else None
        self.setWindowTitle(self.tr("Lab console"))
        self.setFixedWidth(WIDTH)
        heading = QLabel(self.tr("The database is damaged") if damaged else self.tr("The database cannot be opened"))
        heading.setFont(theme.font(FontRole.HEADING))
        self.sentence = plain_label(self._cause(damaged) if damaged else str(error))
        self.remedy = plain_label(self._remedy(damaged, backup))
        for label in (self.sentence, self.remedy):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.remedy.setProperty("muted", True)
        self.progress = busy_bar(self.tr("Copying the backup"))
        self.progress.hide()
        self.backup_button = QPushButton(self.tr("Continue with the &backup"))
        self.backup_button.setProperty("primary", True)
        self.backup_button.setVisible(backup is not None)
        if backup is not None:
            self.backup_button.clicked.connect(partial(self._restore, backup))
        self.other_button = QPushButton(self.tr("&Choose another file ..."))
        self.other_button.clicked.connect(self._choose)
        self.quit_button = QPushButton(self.tr("&Quit"))
        self.quit_button.clicked.connect(self.reject)
        texts = QVBoxLayout()
        texts.setSpacing(8)
        for widget in (heading, self.sentence, self.remedy, self.progress):
            texts.addWidget(widget)
        line = QHBoxLayout()
        line.setSpacing(16)
        line.addWidget(IconLabel(theme, "error", 32, "bad"), 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(texts, 1)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for button in (self.quit_button, self.other_button, self.backup_button):
            buttons.addWidget(button)
        first = self.backup_button if backup is not None else self.other_button
        first.setDefault(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 20)
        layout.setSpacing(18)
        layout.addLayout(line)
        layout.addLayout(buttons)
        first.setFocus()

    def _cause(self, damaged: DamagedDatabaseError) -> str:
        return self.tr("{path} is damaged: {found}.").format(path=damaged.path, found=damaged.found)

    def _remedy(self, damaged: DamagedDatabaseError | None, backup: Backup | None) -> str:
        if damaged is None:
            return self.tr("The file stays as it is. You can continue with another one.")
        if backup is None:
            return self.tr(
                "The file stays as it is. There is no backup next to it; you can continue with another file."
            )
        text = self.tr(
            "The file stays as it is. Its newest backup is of {time} UTC and holds {runs} runs; it is copied to a new "
            "database, and stays as well."
        )
        return text.format(time=f"{backup.saved:%Y-%m-%d %H:%M}", runs=backup.runs)

    def _restore(self, backup: Backup) -> None:
        for button in (self.backup_button, self.other_button):
            button.setEnabled(False)
        self.progress.show()
        self._background.submit(lambda: restored_copy(self._database, backup), self._continue_with, self._show_failure)

    def _choose(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self,
            self.tr("Open a database"),
            str(self._database.parent),
            self.tr("Databases (*.db *.backup);;All files (*)"),
        )
        if chosen:
            self._continue_with(Path(chosen))

    def _continue_with(self, database: Path) -> None:
        self.chosen = database
        self.accept()

    def _show_failure(self, sentence: str) -> None:
        self.progress.hide()
        self.other_button.setEnabled(True)
        self.sentence.setText(sentence)
