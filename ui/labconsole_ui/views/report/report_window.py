"""The report window: settings at the left, a preview of the pages at the right, and saving as PDF."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QImage
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.comparison import group_repeats
from labconsole.analysis.published_figures import published_columns, published_tables
from labconsole.analysis.report_outline import report_outlines
from labconsole.errors import UserError
from labconsole.output.report.document import Document
from labconsole.output.report.pdf import Paper, PdfResult, preview_pages, write_pdf
from labconsole.output.report.report_request import ReportRequest, kind_for
from labconsole.security.secrets import Secret
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.desktop import open_with_desktop
from labconsole_ui.runtime.long_jobs import Job, LongJobs
from labconsole_ui.runtime.services import Services
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.views.report.page_preview import PagesView
from labconsole_ui.views.report.report_form import ReportChoices, ReportForm, SigningFiles
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.message_bar import Message, MessageBar, Tone
from labconsole_ui.widgets.secret_dialog import SecretDialog
from labconsole_ui.widgets.status_text import number_ranges

PREVIEW_PPI = 130.0
SHARPEST = 1.5
"""Most pixels per point of the preview: more costs memory, and seconds."""
IDLE_MS = 500
"""Time without changes before the pages are set again."""
FORM_WIDTH = 320


class ReportWindow(QDialog):
    """A report of runs or a campaign. The passphrase of a signing key is asked for and not stored."""

    def __init__(self, services: Services, request: ReportRequest, parent: QWidget) -> None:
        super().__init__(parent)
        set_chapter(self, "how-to/make-a-report.md")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._services = services
        self._asked = request
        self._background = Background(self)
        self._wanted = 0
        self._folder = Path.home()
        runs = number_ranges(sorted(request.run_ids))
        one = len(request.run_ids) == 1
        self._name = self.tr("Report of run {0}").format(runs) if one else self.tr("Report of runs {0}").format(runs)
        self.setWindowTitle(self._name)
        self.resize(QSize(1120, 780).boundedTo(self.screen().availableSize() * 0.95))
        self.messages = MessageBar(services.theme)
        self._jobs = LongJobs(self, self.messages.show_message)
        self.form = ReportForm(request, services.state, self)
        self.pages = PagesView(services.theme, self)
        self.save_button = QPushButton(self.tr("Save &PDF ..."), self)
        self.save_button.setProperty("primary", True)
        services.theme.bind_icon(self.save_button, "save", "on_accent")
        self.save_button.clicked.connect(self._ask_place)
        self.close_button = QPushButton(self.tr("Close"), self)
        self.close_button.clicked.connect(self.close)
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(IDLE_MS)
        self._quiet.timeout.connect(self.refresh)
        self._arrange()
        self.save_button.setEnabled(False)
        self.form.title.setFocus()
        self._background.submit(self._choices, self._offer, self._refuse)

    # Preview

    def refresh(self) -> None:
        """Set the pages again, in the background; a later request replaces it."""
        self._wanted += 1
        number, request, paper = self._wanted, self.form.request(), self.form.paper
        ppi = PREVIEW_PPI * min(self.devicePixelRatioF(), SHARPEST)
        self.pages.set_busy(True)
        self._background.submit(
            lambda: self._images(request, paper, ppi) if number == self._wanted else [],
            lambda images: self._show_pages(images) if number == self._wanted else None,
            lambda sentence: self._refuse(sentence) if number == self._wanted else None,
        )

    def _choices(self) -> ReportChoices:
        """The choices that the runs allow. Raises UserError."""
        services, run_ids = self._services, self._asked.run_ids
        with services.reader() as reader:
            runs = reader.comparable(run_ids)
            kind = kind_for(reader, run_ids)
        pinned = next((run.id for run in runs if run.pinned), None)
        kinds = {run.kind for run in runs}
        tables = tuple(table for table in published_tables(services.plugins) if not kinds.isdisjoint(table.kinds))
        baseline = self._asked.baseline or pinned
        names = (*self._asked.published, *((baseline,) if isinstance(baseline, str) else ()))
        columns = {column.name: column for name in names for column in published_columns(services.plugins, name)}
        outlines = report_outlines(services.plugins, kinds) if len(kinds) > 1 else {}
        titles = {name: outline.title for name, outline in outlines.items()}
        return ReportChoices(kind, baseline, group_repeats(runs), tuple(columns.values()), tables, titles)

    def _offer(self, choices: ReportChoices) -> None:
        self.form.offer(choices)
        self.form.changed.connect(self._quiet.start)
        self.form.signing_changed.connect(self._judge)
        self.refresh()

    def _document(self, request: ReportRequest, progress: Callable[[str], None] | None = None) -> Document:
        # A tenth of a second to import, here on the thread.
        from labconsole.output.report.report_builder import build_report

        with self._services.reader() as reader:
            return build_report(reader, self._services.plugins, request, progress)

    def _images(self, request: ReportRequest, paper: Paper, ppi: float) -> list[QImage]:
        document = self._document(request)
        # Without the format Qt would ask its SVG reader as well. That one connects a signal, and so waits for a lock of
        # Qt while it holds the interpreter, while the window's thread may hold that lock and wait for the interpreter.
        pages = preview_pages(document, paper, ppi)
        return [QImage.fromData(page, "PNG") for page in pages]  # type: ignore[arg-type]  # the stub says bytes

    def _show_pages(self, images: list[QImage]) -> None:
        self.pages.set_busy(False)
        self.pages.show_pages(images)
        self._judge()

    def _refuse(self, sentence: str) -> None:
        self.pages.set_busy(False)
        self.pages.show_pages([])
        self.pages.show_status(sentence)
        self._judge()

    def _judge(self) -> None:
        self.save_button.setEnabled(bool(self.pages.pages) and self.form.ready)
        self.save_button.setToolTip("" if self.form.ready else self.tr("Name key and certificate, or do not sign."))

    # Saving

    def _ask_place(self) -> None:
        name = f"{self._name.lower().replace(' ', '-').replace(',', '')}.pdf"
        chosen, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save the report"), str(self._folder / name), self.tr("PDF files (*.pdf)")
        )
        if chosen:
            path = Path(chosen)
            self._folder = path.parent
            self.save_to(path if path.suffix.lower() == ".pdf" else path.with_name(f"{path.name}.pdf"))

    def save_to(self, path: Path) -> None:
        """Write the PDF in the background, after the passphrase was entered if one is needed."""
        self.form.remember()
        signing = self.form.signing
        try:
            request = signing.secret_request() if signing is not None else None
        except UserError as error:
            self.messages.show_message(Message(Tone.BAD, str(error)))
            return
        if request is None:
            self._write(path, signing, None)
            return
        dialog = SecretDialog(self, [request], self.tr("It is used for this signature and not kept."))
        dialog.accepted.connect(lambda: self._write(path, signing, dialog.pop_secrets()[request.key]))
        dialog.open()

    def _write(self, path: Path, signing: SigningFiles | None, secret: Secret | None) -> None:
        request, paper = self.form.request(), self.form.paper

        def work(job: Job) -> PdfResult:
            sign = signing.sign(secret, request.place) if signing is not None else None
            document = self._document(request, job.step)
            job.step(self.tr("Setting the pages"))

            def last(pdf: bytes) -> bytes:
                job.step(self.tr("Writing the file"))  # what was cancelled while pages were set is not written
                return sign(pdf) if sign is not None else pdf

            return write_pdf(document, path, paper, last)

        self._jobs.run(
            self.tr("Creating the report"), work, lambda result: self._show_saved(result, signing is not None)
        )

    def _show_saved(self, result: PdfResult, signed: bool) -> None:
        text = self.tr("Signed and saved: {0} ({1} pages).") if signed else self.tr("Saved: {0} ({1} pages).")
        sentence = " ".join([text.format(result.path, result.pages), *result.remarks])
        link: tuple[str, Callable[[], None]] = (self.tr("Open"), lambda: open_with_desktop(result.path))
        self.messages.show_message(Message(Tone.WARNING if result.remarks else Tone.GOOD, sentence, link=link))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ignore it while the PDF is written: that is cancelled in its own dialog."""
        if self._jobs.dialogs:
            event.ignore()
            self.messages.show_message(
                Message(Tone.INFO, self.tr("The PDF is still being created: wait, or cancel it."))
            )

    def reject(self) -> None:
        """Close on Escape as the button does."""
        self.close()

    # Building

    def _arrange(self) -> None:
        heading = QLabel(self._name, self)
        heading.setFont(self._services.theme.font(FontRole.HEADING))
        heading.setWordWrap(True)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        holder = QWidget()
        inside = QVBoxLayout(holder)
        inside.setContentsMargins(0, 0, 10, 0)
        inside.addWidget(self.form)
        inside.addStretch(1)
        area.setWidget(holder)
        buttons = QHBoxLayout()
        buttons.addWidget(self.save_button, 1)
        buttons.addWidget(self.close_button)
        left = QVBoxLayout()
        left.setSpacing(12)
        left.addWidget(heading)
        left.addWidget(area, 1)
        left.addLayout(buttons)
        side = QWidget(self)
        side.setFixedWidth(FORM_WIDTH)
        side.setLayout(left)
        left.setContentsMargins(0, 0, 0, 0)
        card = QFrame(self)
        card.setProperty("card", True)
        inner = QVBoxLayout(card)
        inner.setContentsMargins(1, 1, 1, 1)
        inner.addWidget(self.pages)
        columns = QHBoxLayout()
        columns.setSpacing(16)
        columns.addWidget(side)
        columns.addWidget(card, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 16, 16, 16)
        layout.addWidget(self.messages)
        layout.addLayout(columns, 1)
