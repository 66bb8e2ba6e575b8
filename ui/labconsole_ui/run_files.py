"""What leaves the database as files, or is checked: runs as CSV, JSON or Parquet, and their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QWidget

from labconsole.report.csv_export import export_runs
from labconsole.store.evidence import Verification, verify
from labconsole_ui.export_menu import ExportFormat
from labconsole_ui.long_jobs import LongJobs, Ticket
from labconsole_ui.message_bar import Message, MessageBar, Tone
from labconsole_ui.services import Services
from labconsole_ui.words import number_ranges


class RunFiles(QObject):
    """Asks for a place, works in the background, and says what became of it."""

    def __init__(self, services: Services, messages: MessageBar, window: QWidget) -> None:
        super().__init__(window)
        self._services = services
        self._messages = messages
        self._window = window
        self._jobs = LongJobs(window, messages.show_message)

    def export(self, chosen: ExportFormat, run_ids: Sequence[int]) -> None:
        """Ask for a place and write runs there."""
        if chosen is ExportFormat.CSV:
            folder = QFileDialog.getExistingDirectory(self._window, self.tr("Folder for the CSV files"))
            if folder:
                self.export_csv_to(run_ids, Path(folder))

    def export_csv_to(self, run_ids: Sequence[int], folder: Path) -> None:
        """Write runs as CSV: their metrics in one file, and a folder for each."""

        def work(ticket: Ticket) -> int:
            with self._services.reader() as reader:
                return len(export_runs(reader, run_ids, folder, self._services.plugins, ticket.part))

        self._jobs.run(
            self.tr("Exporting {runs} as CSV").format(runs=_named(run_ids)),
            work,
            lambda count: self._say_written(self.tr("{0} files written to {1}.").format(count, folder), folder),
        )

    def verify(self, run_ids: Sequence[int]) -> None:
        """Check runs against their evidence."""

        def work(ticket: Ticket) -> list[Verification]:
            results = []
            with self._services.reader() as reader:
                for number, run_id in enumerate(run_ids):
                    ticket.part(number, len(run_ids))
                    results.append(verify(reader, run_id))
            return results

        self._jobs.run(
            self.tr("Checking the evidence of {runs}").format(runs=_named(run_ids)), work, self._say_verified
        )

    def _say_verified(self, results: list[Verification]) -> None:
        faults = [fault for result in results for fault in result.faults]
        if not faults:
            text = self.tr("Verified: nothing has changed since these runs were sealed: {0}.").format(len(results))
            self._messages.show_message(Message(Tone.GOOD, text))
            return
        more = self.tr(" {0} more faults stand in the details.").format(len(faults) - 1) if len(faults) > 1 else ""
        self._messages.show_message(Message(Tone.BAD, faults[0] + more, "\n".join(faults) if more else ""))

    def _say_written(self, sentence: str, place: Path) -> None:
        link = (self.tr("Open"), lambda: open_with_desktop(place))
        self._messages.show_message(Message(Tone.GOOD, sentence, link=link))


def open_with_desktop(path: Path) -> None:
    """Show a file or folder in the program that this desktop has for it."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


def _named(run_ids: Sequence[int]) -> str:
    translate = QCoreApplication.translate
    text = translate("RunFiles", "run {0}") if len(run_ids) == 1 else translate("RunFiles", "runs {0}")
    return text.format(number_ranges(sorted(run_ids)))
