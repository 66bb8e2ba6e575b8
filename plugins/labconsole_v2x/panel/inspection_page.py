"""The page on which captures are inspected: dropped files, the dialog of the operation, and its kept result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from PySide6.QtCore import Qt, QTemporaryDir
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from labconsole.engine.operation_process import OperationEnd
from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.safe_text import shown
from labconsole.security.secrets import Secret
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import PageBuilder
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.widgets.file_drop_area import FileDropArea
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label, plain_tooltip
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_v2x.inspection.inspect_operation import WRITTEN, InspectCapture, InspectParameters
from labconsole_v2x.panel.inspection_result import InspectionResult
from labconsole_v2x.stations.capture import is_capture

_STATE_KEY = "v2x/inspection"
_WIDEST_NAME = 320
_CAPTURES = "pcap, pcapng, COER (*.pcap *.pcapng *.cap *.oer *.coer *.cert)"


class SortedFiles(NamedTuple):
    """Files by the parameters of the operation that take them, and a sentence for each that none takes."""

    captures: list[Path]
    roots: list[Path]
    issuers: list[Path]
    refused: list[str]


def sort_files(paths: Sequence[Path]) -> SortedFiles:
    """Sort files by their contents: captures, certificates of root CAs, and other certificates."""
    from labconsole_v2x.inspection.capture_certificates import read_certificate  # imported late, on the page's thread

    found = SortedFiles([], [], [], [])
    for path in paths:
        try:
            with path.open("rb") as file:
                if is_capture(file.read(4)):
                    found.captures.append(path)
                    continue
            (found.roots if read_certificate(path).issuer is None else found.issuers).append(path)
        except OSError as error:
            found.refused.append(f"{shown(path.name)} cannot be read ({error.strerror or error}): choose another file.")
        except UserError:
            found.refused.append(
                f"{shown(path.name)} is neither a capture (pcap, pcapng) nor a certificate (COER): choose another file."
            )
    return found


class InspectDialog(OperationDialog):
    """The dialog of the operation, which also writes the rows of the packets for the page, to the new file `rows`."""

    folder: Path
    """Where that file is written."""
    rows = Path()

    def start(self, parameters: Parameters, given: Mapping[str, Secret] | None = None) -> None:
        """Start the operation with another such file, whatever was written before."""
        self.rows = self.folder / f"{token_hex(8)}.npz"
        super().start(parameters.model_copy(update={"npz": self.rows}), given)


class InspectionPage(QWidget):
    """Keeps the result of each capture that was inspected, until the page is closed."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        set_chapter(self, "how-to/inspect-a-capture.md")
        self._context = context
        self._background = Background(self)
        self._ends: dict[str, OperationEnd] = {}
        self._rows: dict[str, Path] = {}
        """The file with the rows of the packets, by capture."""
        self._folder = QTemporaryDir()
        self._dialog: InspectDialog | None = None
        kept = context.state.mapping(_STATE_KEY)
        self._roots, self._issuers = _texts(kept.get("root")), _texts(kept.get("issuer"))
        self._captures = _texts(kept.get("capture"))
        self.building = PageBuilder(self, self.pieces())

    def open_files(self, paths: Sequence[Path]) -> None:
        """Fill in captures and certificates; nothing is inspected by that alone."""
        self.building.finish()
        self._background.submit(partial(sort_files, tuple(paths)), self._fill_in, self._say_bad)

    def inspect(self) -> InspectDialog:
        """Open the dialog of the operation with these files."""
        self.building.finish()
        values: dict[str, Any] = {"root": self._roots, "issuer": self._issuers}
        if self._capture:
            values["capture"] = self._capture
        operation = self._context.plugins.operation(InspectCapture.name)
        self._dialog = InspectDialog(self.window(), operation, self._context.theme, values)
        self._dialog.folder = Path(self._folder.path())
        self._dialog.ended.connect(self._ended)
        self._dialog.open()
        return self._dialog

    # Construction

    def pieces(self) -> Iterator[None]:
        """Build the files' part, then the empty result, then show what was kept."""
        theme = self._context.theme
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        title = plain_label(self.tr("Inspect captures"), self)
        title.setFont(theme.font(FontRole.TITLE))
        text = plain_label(
            self.tr(
                "Judges each GeoNetworking packet of a capture: its signature, certificate chain, security profile and "
                "time."
            ),
            self,
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        self._description = text
        column.addWidget(title)
        column.addWidget(text)
        yield
        self.drop_box = FileDropArea(
            theme,
            self.tr("Drop captures (pcap, pcapng) and certificates of root CAs or authorization authorities (COER)"),
            _CAPTURES,
            self,
        )
        self.drop_box.files.connect(self.open_files)
        column.addWidget(self.drop_box)
        yield
        column.addLayout(self._files_line())
        yield
        self.result = InspectionResult(theme, self)
        yield from self.result.pieces()
        column.addWidget(self.result, 1)
        self._add_captures(self._captures)
        self._show_certificates()
        self._show_capture()

    def _files_line(self) -> QHBoxLayout:
        self.capture_box = QComboBox(self)
        self.capture_box.setAccessibleName(self.tr("Capture"))
        self.capture_box.setPlaceholderText(self.tr("No capture yet"))
        self.capture_box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.capture_box.setMaximumWidth(_WIDEST_NAME)
        self.capture_box.currentIndexChanged.connect(lambda _index: self._show_capture())
        self.certificates = plain_label("", self)
        self.certificates.setProperty("muted", True)
        self.certificates.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)  # it shrinks first
        self.clear_button = QPushButton(self.tr("Clear certificates"), self)
        self.clear_button.clicked.connect(lambda _checked: self._clear_certificates())
        self.inspect_button = QPushButton(self.tr("&Inspect capture …"), self)
        self.inspect_button.setProperty("primary", True)
        self.inspect_button.clicked.connect(lambda _checked: self.inspect())
        line = QHBoxLayout()
        line.setSpacing(10)
        line.addWidget(self.capture_box)
        line.addWidget(self.certificates, 1)
        line.addWidget(self.clear_button)
        line.addWidget(self.inspect_button)
        return line

    # The files

    @property
    def _capture(self) -> str:
        return self.capture_box.currentData() or ""

    def _fill_in(self, found: SortedFiles) -> None:
        for sentence in found.refused:
            self._say_bad(sentence)
        self._roots = _joined(self._roots, found.roots)
        self._issuers = _joined(self._issuers, found.issuers)
        self._show_certificates()
        self._add_captures(list(map(str, found.captures)))

    def _add_captures(self, paths: Sequence[str]) -> None:
        """Offer these captures, the first of them chosen."""
        for path in paths:
            if self.capture_box.findData(path) < 0:
                self.capture_box.addItem(shown(Path(path).name), path)
                self.capture_box.setItemData(
                    self.capture_box.count() - 1, plain_tooltip(path), Qt.ItemDataRole.ToolTipRole
                )
        if paths:
            self.capture_box.setCurrentIndex(self.capture_box.findData(paths[0]))
        self.capture_box.setEnabled(self.capture_box.count() > 0)

    def _clear_certificates(self) -> None:
        self._roots, self._issuers = [], []
        self._show_certificates()

    def _show_certificates(self) -> None:
        groups = ((self.tr("Roots: {names}"), self._roots), (self.tr("Authorities: {names}"), self._issuers))
        said = [text.format(names=", ".join(Path(path).name for path in paths)) for text, paths in groups if paths]
        self.certificates.setText("   ".join(said) or self.tr("No trusted root yet: every chain will be incomplete"))
        self.certificates.setToolTip(plain_tooltip("\n".join((*self._roots, *self._issuers))))
        self.clear_button.setVisible(bool(said))

    def _say_bad(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))

    # The result

    def _ended(self, end: OperationEnd) -> None:
        """Keep the result, and the files that were entered in the dialog."""
        if self._dialog is None or not isinstance(used := self._dialog.form.parameters, InspectParameters):
            return
        capture = str(used.capture)
        self._ends[capture] = end
        self._rows[capture] = self._dialog.rows
        self._roots, self._issuers = list(map(str, used.root)), list(map(str, used.issuer))
        kept = {"capture": [capture], "root": self._roots, "issuer": self._issuers}
        self._context.state.set(_STATE_KEY, kept)
        self._show_certificates()
        self._add_captures([capture])
        self._show_capture()
        if end.passed and end.result is not None:  # the page shows all of it
            self._dialog.accept()
            for part in end.result.parts:
                if isinstance(part, str) and part.startswith(WRITTEN):
                    self._context.show_message(Message(Tone.GOOD, part))

    def _show_capture(self) -> None:
        """Show the result of the chosen capture, or what to do for one."""
        end = self._ends.get(self._capture)
        self.capture_box.setToolTip(plain_tooltip(self._capture))
        self._description.setVisible(end is None)
        if end is not None:
            self.result.show_end(end, Path(self._capture), self._rows[self._capture])
        elif self._capture:
            self.result.show_nothing(self.tr("Not inspected yet.\nClick Inspect capture to judge its packets."))
        else:
            self.result.show_nothing(
                self.tr("No capture inspected yet.\nDrop one above: its stations, findings and packets appear here.")
            )


def _texts(value: object) -> list[str]:
    """The texts of a stored list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _joined(paths: Sequence[str], more: Sequence[Path]) -> list[str]:
    """All paths in their order, each once."""
    return list(dict.fromkeys((*paths, *map(str, more))))
