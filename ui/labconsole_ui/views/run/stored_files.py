"""The files kept with a run, artefacts and attachments, to read or save."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.number_format import format_figure
from labconsole.output.export_file import complete_file
from labconsole.store.reader import Reader
from labconsole.store.records import StoredArtefact, StoredAttachment
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.long_jobs import Job, LongJobs
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label

TEXT_TYPES = ("text/", "application/json", "application/xml", "application/x-pem-file", "application/pem")
LARGEST_TEXT = 1_000_000
"""Largest text (bytes) that is shown."""

StoredFile = StoredArtefact | StoredAttachment


class StoredFilesPane(QWidget):
    """A table of files with buttons to read and to save one; errors are shown below."""

    def __init__(self, reader_factory: Callable[[], Reader], run_id: int, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        set_chapter(self, "explanation/evidence.md#attachments")
        self._reader_factory = reader_factory
        self._run_id = run_id
        self._background = Background(self)
        self.jobs = LongJobs(self, lambda message: self.status.setText(message.sentence))
        self.table = DataTable(self.tr("Artefacts of the run"), theme, self)
        self.model: RecordModel[StoredFile] = RecordModel(artefact_fields(), theme, self.table)
        self.table.setModel(self.model)
        self.table.doubleClicked.connect(self._read)
        self.table.selectionModel().selectionChanged.connect(self._judge)
        self.read_button = QPushButton(self.tr("&Read"), self)
        self.read_button.clicked.connect(self._read)
        self.save_button = QPushButton(self.tr("&Save as ..."), self)
        theme.bind_icon(self.save_button, "save")
        self.save_button.clicked.connect(self._save)
        self.status = plain_label("", self)
        self.status.setWordWrap(True)
        self.status.setProperty("muted", True)
        buttons = QHBoxLayout()
        buttons.addWidget(self.read_button)
        buttons.addWidget(self.save_button)
        buttons.addWidget(self.status, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.table, 1)
        layout.addLayout(buttons)
        self._judge()

    def show_files(self, files: Sequence[StoredFile]) -> None:
        """Show these files."""
        self.model.set_records(files)
        self.table.fit_columns(widest=260)
        self._judge()

    def save_to(self, file: StoredFile, path: Path) -> None:
        """Write a file as it is stored, completely or not at all; a large one can be cancelled."""

        def work(job: Job) -> None:
            written = 0
            with complete_file(path) as partial, partial.open("xb") as target, closing(self._content(file)) as parts:
                for part in parts:
                    target.write(part)
                    written += len(part)
                    job.part(written, file.size)

        self.jobs.run(
            self.tr("Saving {0}").format(file.name),
            work,
            lambda _: self.status.setText(self.tr("Saved: {0}").format(path)),
        )

    def _chosen(self) -> StoredFile | None:
        rows = self.table.selectionModel().selectedRows()
        return self.model.record(rows[0].row()) if len(rows) == 1 else None

    def _judge(self) -> None:
        chosen = self._chosen()
        self.read_button.setEnabled(chosen is not None and is_text(chosen))
        self.save_button.setEnabled(chosen is not None)

    def _read(self) -> None:
        chosen = self._chosen()
        if chosen is not None and is_text(chosen):
            self._background.submit(
                lambda: b"".join(self._content(chosen)).decode("utf-8", errors="replace"),
                lambda text: TextViewer(chosen.name, text, self).show(),
                self.status.setText,
            )

    def _save(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            return
        name, _ = QFileDialog.getSaveFileName(self, self.tr("Save the file"), Path(chosen.name).name)
        if name:
            self.save_to(chosen, Path(name))

    def _content(self, file: StoredFile) -> Generator[bytes, None, None]:
        with self._reader_factory() as reader:
            if isinstance(file, StoredAttachment):
                yield from reader.attachments(self._run_id).content(file.role, file.name)
            else:
                yield reader.artefact(self._run_id, file.name)


class TextViewer(QDialog):
    """A window with a text to read and copy."""

    def __init__(self, title: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.resize(720, 520)
        self.view = QPlainTextEdit(text, self)
        self.view.setReadOnly(True)
        self.view.setTabChangesFocus(True)
        self.view.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.view.setAccessibleName(self.tr("Text of {0}").format(title))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.view, 1)
        layout.addWidget(buttons)


def is_text(file: StoredFile) -> bool:
    """Whether a file is a text, and not too long to be shown."""
    return file.media_type.startswith(TEXT_TYPES) and file.size <= LARGEST_TEXT


def artefact_fields() -> list[Field[StoredFile]]:
    """The columns of the table of files."""
    translate = QCoreApplication.translate
    return [
        Field(translate("RunView", "Name"), lambda file: file.name, strong=lambda file: True),
        Field(translate("RunView", "Type"), lambda file: file.media_type),
        Field(
            translate("RunView", "Size"),
            lambda file: format_figure(file.size, "B"),
            sort=lambda file: file.size,
            right=True,
        ),
        Field(translate("RunView", "From"), _source),
        Field(translate("RunView", "State"), _state),
        Field(translate("RunView", "SHA-256"), lambda file: file.sha256 or ""),
    ]


def _source(file: StoredFile) -> str:
    """The process that stored a file: the worker, if the trial itself did."""
    return file.role if isinstance(file, StoredAttachment) else "worker"


def _state(file: StoredFile) -> str:
    translate = QCoreApplication.translate
    return translate("RunView", "cut") if file.sha256 is None else translate("RunView", "complete")
