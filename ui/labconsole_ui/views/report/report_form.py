"""The settings of a report: kind, title, author and place, paper, published columns, and signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.comparison import RunGroup
from labconsole.analysis.published_figures import PublishedColumn, PublishedTable
from labconsole.output.report.pdf import Paper, Sign
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.safe_text import shown_lines
from labconsole.security.key_files import is_encrypted
from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole_ui.runtime.settings import WindowState


@dataclass(frozen=True)
class SigningFiles:
    """The key and the certificates, in PEM; a PKCS#12 file holds both, and `certificates` is None."""

    key: Path
    certificates: Path | None

    def secret_request(self) -> SecretRequest | None:
        """The secret that the key needs, or None. Raises UserError: the file is missing, or open to others."""
        if self.certificates is not None and not is_encrypted(self.key):
            return None
        return SecretRequest("signing", f"the signing key {self.key.name}", SecretSource())

    def sign(self, secret: Secret | None, place: str) -> Sign:
        """The signer of a PDF. Raises UserError for files that do not match, or a wrong passphrase."""
        # pyHanko takes a second to import.
        from labconsole.output.report.signing import SignatureDetails, sign_pdf, signer_from_pem, signer_from_pkcs12

        signer = (
            signer_from_pem(self.key, self.certificates, secret)
            if self.certificates is not None
            else signer_from_pkcs12(self.key, secret)
        )
        return lambda data: sign_pdf(data, signer, SignatureDetails(place=place))


class FileLine(QWidget):
    """A line for a file; `changed` is emitted when another one is named."""

    changed = Signal()

    def __init__(self, title: str, pattern: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._title = title
        self._pattern = pattern
        self.line = QLineEdit(self)
        self.line.setAccessibleName(title)
        self.line.textChanged.connect(self.changed)
        self.browse_button = QPushButton(self.tr("Browse …"), self)
        self.browse_button.setAccessibleName(self.tr("Browse for: {0}").format(title))
        self.browse_button.clicked.connect(self._browse)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.line, 1)
        row.addWidget(self.browse_button)
        self.setFocusProxy(self.line)

    @property
    def path(self) -> Path | None:
        """The file, None if none is named."""
        text = self.line.text().strip()
        return Path(text).expanduser() if text else None

    def _browse(self) -> None:
        start = str(self.path.parent if self.path is not None else Path.home())
        chosen, _ = QFileDialog.getOpenFileName(self, self._title, start, self._pattern)
        if chosen:
            self.line.setText(chosen)


_KEY = "report/{0}"
PKCS12_ENDINGS = (".p12", ".pfx")
PUBLISHED_ROWS = 4
PUBLISHED_ROW = 28


@dataclass(frozen=True)
class ReportChoices:
    """The choices for a report: columns that may be the baseline, and published tables.

    `kind` and `baseline` are requested, or else derived from the runs; `against` are published columns that may be
    the baseline, too. `outlines` are the titles of those that take runs of several trials, by name.
    """

    kind: ReportKind
    baseline: int | str | None
    groups: tuple[RunGroup, ...]
    against: tuple[PublishedColumn, ...]
    tables: tuple[PublishedTable, ...]
    outlines: Mapping[str, str] = field(default_factory=dict)


class ReportForm(QWidget):
    """`changed` is emitted when the report would look different, `signing_changed` for its signature."""

    changed = Signal()
    signing_changed = Signal()

    def __init__(self, request: ReportRequest, state: WindowState, parent: QWidget) -> None:
        super().__init__(parent)
        self._asked = request
        self._state = state
        self.kind_box = QComboBox(self)
        self.kind_box.addItem(self.tr("Comparison of these runs"), ReportKind.COMPARISON)
        self.kind_box.addItem(self.tr("The campaign as a whole"), ReportKind.CAMPAIGN)
        self.title = self._line(self.tr("Title of the report"), request.title, self.tr("From the runs"))
        self.author = self._line(self.tr("Author"), request.author or state.text(_KEY.format("author")), "")
        self.place = self._line(self.tr("Place"), request.place or state.text(_KEY.format("place")), "")
        self.paper_box = QComboBox(self)
        self.paper_box.addItem("A4", Paper.A4)
        self.paper_box.addItem(self.tr("US Letter"), Paper.LETTER)
        self.paper_box.setCurrentIndex(max(0, self.paper_box.findText(state.text(_KEY.format("paper")))))
        self.baseline_box = QComboBox(self)
        self.published = QListWidget(self)
        self.published.setSelectionMode(QListWidget.SelectionMode.NoSelection)
        self.published.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.published.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.published.setAccessibleName(self.tr("Published figures next to the runs"))
        self.sign_box = QCheckBox(self.tr("&Sign the PDF (PAdES)"), self)
        self.key = FileLine(self.tr("Key file"), self.tr("Keys (*.pem *.key *.p12 *.pfx);;All files (*)"), self)
        self.certificates = FileLine(
            self.tr("Certificate file"), self.tr("Certificates (*.pem *.crt *.cer);;All files (*)"), self
        )
        for box in (self.kind_box, self.paper_box, self.baseline_box):
            box.currentIndexChanged.connect(self.changed)
            # A long title is cut short rather than making the form wider than its place.
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for line in (self.title, self.author, self.place):
            line.textChanged.connect(self.changed)
        self.published.itemChanged.connect(lambda _item: self.changed.emit())
        for signal in (self.sign_box.toggled, self.key.changed, self.certificates.changed):
            signal.connect(self._judge_signing)
        self._arrange()
        self._judge_signing()

    def offer(self, choices: ReportChoices) -> None:
        """Offer the choices; the requested ones are chosen."""
        self.blockSignals(True)
        for name, title in choices.outlines.items():
            self.kind_box.addItem(title, f"{ReportKind.OUTLINE}:{name}")
        self.kind_box.setCurrentIndex(self.kind_box.findData(choices.kind))
        self._form.setRowVisible(self.kind_box, len(self._asked.run_ids) > 1)
        for group in choices.groups:
            self.baseline_box.addItem(shown_lines(group.title), group.runs[0].id)
            if any(run.id == choices.baseline for run in group.runs):
                self.baseline_box.setCurrentIndex(self.baseline_box.count() - 1)
        for column in choices.against:
            self.baseline_box.addItem(self.tr("Published: {0}").format(column.title), column.name)
            if column.name == choices.baseline:
                self.baseline_box.setCurrentIndex(self.baseline_box.count() - 1)
        for table in choices.tables:
            item = QListWidgetItem(table.title, self.published)
            item.setData(Qt.ItemDataRole.UserRole, table.name)
            item.setSizeHint(QSize(0, PUBLISHED_ROW))
            item.setToolTip(f"{table.title} ({table.reference})")
            asked = any(name.split("/")[0] == table.name for name in self._asked.published)
            item.setCheckState(Qt.CheckState.Checked if asked else Qt.CheckState.Unchecked)
        self._show_rows(choices)
        self.kind_box.currentIndexChanged.connect(lambda: self._show_rows(choices))
        self.published.setFixedHeight(PUBLISHED_ROW * min(PUBLISHED_ROWS, len(choices.tables)) + 4)
        self.blockSignals(False)

    def request(self) -> ReportRequest:
        """The report as chosen."""
        run_ids, outline = self._asked.run_ids, self._outline
        chosen = ReportKind.OUTLINE if outline else self.kind_box.currentData()
        return ReportRequest(
            run_ids,
            chosen if len(run_ids) > 1 else ReportKind.RUN,
            None if outline else self.baseline_box.currentData(),
            () if outline else self._chosen_published(),
            self.title.text().strip(),
            self.author.text().strip(),
            self.place.text().strip(),
            self._asked.generated,
            outline,
        )

    @property
    def _outline(self) -> str:
        """The name of the chosen outline; empty for another kind of report."""
        kind, _, name = str(self.kind_box.currentData()).partition(":")
        return name if kind == ReportKind.OUTLINE else ""

    @property
    def paper(self) -> Paper:
        """The size of the pages."""
        return Paper(self.paper_box.currentData())

    @property
    def signing(self) -> SigningFiles | None:
        """What to sign with, None if the report is not to be signed. Call it when `ready`."""
        key = self.key.path
        if not self.sign_box.isChecked() or key is None:
            return None
        return SigningFiles(key, None if _holds_certificates(key) else self.certificates.path)

    @property
    def ready(self) -> bool:
        """Whether a signature, if one is wanted, has all that it needs."""
        key = self.key.path
        if not self.sign_box.isChecked():
            return True
        return key is not None and (_holds_certificates(key) or self.certificates.path is not None)

    def remember(self) -> None:
        """Store author, place and paper for the next report. Files and passphrases are not stored."""
        for name, text in (
            ("author", self.author.text()),
            ("place", self.place.text()),
            ("paper", self.paper_box.currentText()),
        ):
            self._state.set(_KEY.format(name), text.strip())

    def _chosen_published(self) -> tuple[str, ...]:
        """The columns of checked tables; of a table that was requested in part, the requested columns."""
        names: list[str] = []
        for item in map(self.published.item, range(self.published.count())):
            if item.checkState() is Qt.CheckState.Checked:
                table = str(item.data(Qt.ItemDataRole.UserRole))
                parts = [name for name in self._asked.published if name.startswith(f"{table}/")]
                names += parts or [table]
        return tuple(names)

    def _show_rows(self, choices: ReportChoices) -> None:
        """Baseline and published figures, but for an outline, which has tables of its own."""
        several = len(choices.groups) + len(choices.against) > 1
        self._form.setRowVisible(self.baseline_box, several and not self._outline)
        self._form.setRowVisible(self._published_box, bool(choices.tables) and not self._outline)

    def _judge_signing(self) -> None:
        signing = self.sign_box.isChecked()
        key = self.key.path
        self._form.setRowVisible(self.key, signing)
        self._form.setRowVisible(self.certificates, signing and (key is None or not _holds_certificates(key)))
        self.signing_changed.emit()

    def _line(self, name: str, text: str, placeholder: str) -> QLineEdit:
        line = QLineEdit(text, self)
        line.setAccessibleName(name)
        line.setPlaceholderText(placeholder)
        return line

    def _arrange(self) -> None:
        self._published_box = QWidget(self)
        column = QVBoxLayout(self._published_box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        caption = QLabel(self.tr("Published figures next to the runs"), self._published_box)
        column.addWidget(caption)
        column.addWidget(self.published)
        self._form = form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setSpacing(8)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
        form.addRow(self.tr("About"), self.kind_box)
        form.addRow(self.tr("&Title"), self.title)
        form.addRow(self.tr("&Author"), self.author)
        form.addRow(self.tr("&Place"), self.place)
        form.addRow(self.tr("Pa&per"), self.paper_box)
        form.addRow(self.tr("&Baseline"), self.baseline_box)
        form.addRow(self._published_box)
        form.addRow(self.sign_box)
        form.addRow(self.tr("&Key file"), self.key)
        form.addRow(self.tr("&Certificate file"), self.certificates)
        for widget in (self.kind_box, self.baseline_box, self._published_box):
            form.setRowVisible(widget, False)


def _holds_certificates(key: object) -> bool:
    return str(key).lower().endswith(PKCS12_ENDINGS)
