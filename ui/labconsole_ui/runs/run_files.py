"""Export of runs to files, import of bundles, and checks of evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QMimeData, QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from labconsole.errors import UserError
from labconsole.output.bundle_import import import_bundle
from labconsole.output.bundle_writer import write_bundle
from labconsole.output.csv_export import export_runs
from labconsole.output.parquet import export_parquet
from labconsole.output.run_json import export_json
from labconsole.store.evidence.checking import Verification, verify
from labconsole.store.reader import Reader
from labconsole_ui.form.editors import choice_of
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.desktop import open_with_desktop
from labconsole_ui.runtime.long_jobs import CancelledError, Job, LongJobs
from labconsole_ui.runtime.services import Services
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.message_bar import Message, MessageBar, Tone
from labconsole_ui.widgets.status_text import number_ranges

if TYPE_CHECKING:
    from labconsole.security.pki.signing_identities import Signer


class ExportFormat(StrEnum):
    """The formats of exported runs."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    BUNDLE = "bundle"
    SIGNED_BUNDLE = "signed bundle"


class ExportMenu(QMenu):
    """`wanted` carries the chosen `ExportFormat`. Parquet needs an extra of the installation, and says so."""

    wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setTitle(self.tr("Export"))
        self.setToolTipsVisible(True)
        theme.bind_icon(self, "export")
        titles = {
            ExportFormat.CSV: self.tr("CSV: a file for each table ..."),
            ExportFormat.JSON: self.tr("JSON: a file for each run ..."),
            ExportFormat.PARQUET: self.tr("Parquet: the samples ..."),
            ExportFormat.BUNDLE: self.tr("Bundle for another console (.lcz) ..."),
            ExportFormat.SIGNED_BUNDLE: self.tr("Signed bundle for another owner (.lcz, .p7s) ..."),
        }
        self.by_format: dict[ExportFormat, QAction] = {}
        for chosen, title in titles.items():
            action = self.by_format[chosen] = self.addAction(title)
            action.triggered.connect(lambda _checked=False, chosen=chosen: self.wanted.emit(chosen))
        if find_spec("pyarrow") is None:
            parquet = self.by_format[ExportFormat.PARQUET]
            parquet.setEnabled(False)
            parquet.setText(self.tr("Parquet (needs pyarrow, which is not installed)"))
            parquet.setToolTip(self.tr("Install the extra: pip install 'labconsole[parquet]'"))


BUNDLE_SUFFIX = ".lcz"


@dataclass
class Imported:
    """The result of an import: new runs, number of existing runs, reasons of refused bundles, signers of the others."""

    run_ids: list[int] = field(default_factory=list)
    skipped: int = 0
    refused: list[str] = field(default_factory=list)
    signers: list[Signer] = field(default_factory=list)


class RunFiles(QObject):
    """Asks for a file or folder, works in the background, and shows the result.

    `imported` is emitted when runs were imported; `compare_wanted` and `open_wanted` carry runs to be shown.
    """

    imported = Signal()
    compare_wanted = Signal(list)
    open_wanted = Signal(list)

    def __init__(self, services: Services, messages: MessageBar, window: QWidget) -> None:
        super().__init__(window)
        self._services = services
        self._messages = messages
        self._window = window
        self._background = Background(self)
        self._jobs = LongJobs(window, messages.show_message)

    def export(self, chosen: ExportFormat, run_ids: Sequence[int]) -> None:
        """Ask for a file (bundle) or a folder (other formats), and write runs there."""
        bundle = Path.home() / f"{_named(run_ids).replace(' ', '-').replace(',', '')}{BUNDLE_SUFFIX}"
        if chosen is ExportFormat.SIGNED_BUNDLE:
            self._background.submit(_identities, partial(self._ask_signer, run_ids, bundle), self._show_refused)
            return
        if chosen is ExportFormat.BUNDLE:
            place, _ = QFileDialog.getSaveFileName(
                self._window, self.tr("Save the runs as bundle"), str(bundle), self._bundles()
            )
        else:
            place = QFileDialog.getExistingDirectory(self._window, self.tr("Folder for the files"))
        if place:
            self.export_to(chosen, run_ids, Path(place))

    def _ask_signer(self, run_ids: Sequence[int], bundle: Path, identities: Sequence[str]) -> None:
        """Open the dialog in which an identity for the signature and a file are chosen."""
        if not identities:
            self._show_refused(self.tr("No identity can sign a bundle: name one on the page Certificates."))
            return
        values = {"run": list(run_ids), "file": str(bundle), "db": str(self._services.database)}
        operation, editors = self._services.plugins.operation("runs.bundle"), {"sign": choice_of(identities)}
        OperationDialog(self._window, operation, self._services.theme, values, editors).open()

    def _show_refused(self, sentence: str) -> None:
        self._messages.show_message(Message(Tone.BAD, sentence))

    def export_to(self, chosen: ExportFormat, run_ids: Sequence[int], place: Path) -> None:
        """Write runs to `place`: complete files, or none."""

        def csv(reader: Reader, job: Job) -> list[Path]:
            return export_runs(reader, run_ids, place, self._services.plugins, job.part)

        def json(reader: Reader, _ticket: Job) -> list[Path]:
            return export_json(reader, run_ids, place / f"run-{run_ids[0]}.json" if len(run_ids) == 1 else place)

        def parquet(reader: Reader, job: Job) -> list[Path]:
            return export_parquet(reader, run_ids, place, self._services.plugins, job.part)

        def bundle(reader: Reader, job: Job) -> list[Path]:
            path = place if place.suffix == BUNDLE_SUFFIX else place.with_name(f"{place.name}{BUNDLE_SUFFIX}")
            write_bundle(reader, run_ids, path, job.share)
            return [path]

        writers: dict[ExportFormat, Callable[[Reader, Job], list[Path]]] = {
            ExportFormat.CSV: csv,
            ExportFormat.JSON: json,
            ExportFormat.PARQUET: parquet,
            ExportFormat.BUNDLE: bundle,
        }

        def work(job: Job) -> list[Path]:
            with self._services.reader() as reader:
                return writers[chosen](reader, job)

        self._jobs.run(
            self.tr("Exporting {runs}").format(runs=_named(run_ids)),
            work,
            lambda files: self._show_written(files, place),
        )

    def ask_import(self) -> None:
        """Ask for a bundle and import its runs."""
        place, _ = QFileDialog.getOpenFileName(self._window, self.tr("Import runs"), str(Path.home()), self._bundles())
        if place:
            self.import_bundles([Path(place)])

    def import_bundles(self, files: Sequence[Path]) -> None:
        """Import the runs of bundles: all of a bundle, or none with the reason."""
        name = files[0].name if len(files) == 1 else self.tr("{0} bundles").format(len(files))

        def work(job: Job) -> Imported:
            def report_progress(before: int, share: float) -> None:
                job.share((before + share) / len(files))

            imported = Imported()
            for number, file in enumerate(files):
                report_progress(number, 0.0)
                try:
                    result = import_bundle(self._services.database, file, partial(report_progress, number))
                except CancelledError:
                    raise
                except UserError as error:
                    imported.refused.append(str(error))
                else:
                    imported.run_ids.extend(result.imported)
                    imported.skipped += len(result.skipped)
                    imported.signers += [result.signer] if result.signer is not None else []
            return imported

        self._jobs.run(self.tr("Importing {name}").format(name=name), work, self._show_imported)

    def verify(self, run_ids: Sequence[int]) -> None:
        """Check runs against their evidence."""

        def work(job: Job) -> list[Verification]:
            results = []
            with self._services.reader() as reader:
                for number, run_id in enumerate(run_ids):
                    job.part(number, len(run_ids))
                    results.append(verify(reader, run_id))
            return results

        self._jobs.run(
            self.tr("Checking the evidence of {runs}").format(runs=_named(run_ids)), work, self._show_verified
        )

    def _show_verified(self, results: list[Verification]) -> None:
        faults = [fault for result in results for fault in result.faults]
        if not faults:
            text = self.tr("Verified: nothing has changed since these runs were sealed: {0}.").format(len(results))
            self._messages.show_message(Message(Tone.GOOD, text))
        else:
            self._show_faults(faults)

    def _show_faults(self, faults: Sequence[str]) -> None:
        more = self.tr(" {0} more faults are in the details.").format(len(faults) - 1) if len(faults) > 1 else ""
        self._messages.show_message(Message(Tone.BAD, faults[0] + more, "\n".join(faults) if more else ""))

    def _show_written(self, files: list[Path], place: Path) -> None:
        text = self.tr("Written: {0}.").format(files[0])
        if len(files) > 1:
            text = self.tr("{0} files written to {1}.").format(len(files), place)
        link = (self.tr("Open the folder"), lambda: open_with_desktop(place if place.is_dir() else place.parent))
        self._messages.show_message(Message(Tone.GOOD, text, link=link))

    def _show_imported(self, result: Imported) -> None:
        self.imported.emit()
        if result.refused:
            self._show_faults(result.refused)
        run_ids = result.run_ids
        skipped = self.tr("Runs that this database had already: {0}.").format(result.skipped)
        if not run_ids:
            if result.skipped:
                self._messages.show_message(Message(Tone.INFO, self.tr("Nothing new: {0}").format(skipped)))
            return
        text = self.tr("Imported: {runs}, with evidence verified.").format(runs=_named(run_ids))
        link = (
            (self.tr("Show"), lambda: self.open_wanted.emit(run_ids))
            if len(run_ids) == 1
            else (self.tr("Compare"), lambda: self.compare_wanted.emit(run_ids))
        )
        sentence = f"{text} {skipped}" if result.skipped else text
        signed = "\n".join(dict.fromkeys(signer.sentence for signer in result.signers))
        tone = Tone.GOOD if all(signer.trusted for signer in result.signers) else Tone.WARNING
        if signed:
            names = ", ".join(dict.fromkeys(signer.title for signer in result.signers))
            sentence += self.tr(" Signed by {0}.").format(names)
            if tone is Tone.WARNING:
                sentence += self.tr(" A signer is not trusted here: the details have the reason.")
        self._messages.show_message(Message(tone, sentence, signed, link=link))

    def _bundles(self) -> str:
        return self.tr("Bundles of runs (*{0})").format(BUNDLE_SUFFIX)


def bundles_in(data: QMimeData) -> list[Path]:
    """The bundles among the dragged files."""
    files = (Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile())
    return [file for file in files if file.suffix.lower() == BUNDLE_SUFFIX]


def _named(run_ids: Sequence[int]) -> str:
    translate = QCoreApplication.translate
    text = translate("RunFiles", "run {0}") if len(run_ids) == 1 else translate("RunFiles", "runs {0}")
    return text.format(number_ranges(sorted(run_ids)))


def _identities() -> tuple[str, ...]:
    """The names of this console's identities. Raises StoreError."""
    from labconsole.security.pki.identities import names  # the window starts without the certificate layer

    return names()
