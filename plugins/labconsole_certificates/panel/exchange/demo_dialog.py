"""The dialog of the exchange demo: States of a temporary folder exchange and connect, and the matrix fills."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from labconsole.errors import UserError
from labconsole_certificates.demo.demo_states import state_name
from labconsole_certificates.demo.exchange_demo import DemoParameters, DemoResult, play
from labconsole_certificates.exchange.handshake import Handshake
from labconsole_certificates.panel.trust.matrix_grid import TrustGrid
from labconsole_certificates.panel.trust.matrix_painting import GridCell
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label

_WIDTH, _HEIGHT = 980, 620


class _DemoObserver(QObject):
    """Forwards events from the demo's thread to the dialog; ends the demo once cancelled."""

    phase_begun = Signal(str, int)
    stepped = Signal()
    cell_changed = Signal(str, str, object)

    def __init__(self, parameters: DemoParameters) -> None:
        super().__init__()
        self._parameters = parameters
        self.cancelled = threading.Event()

    @contextmanager
    def phase(self, title: str, count: int) -> Iterator[None]:
        self._next_phase()
        self.phase_begun.emit(title, count)
        yield

    def founded(self, name: str) -> None:
        self._next_phase()
        self.stepped.emit()

    def trusted(self, truster: str, trusted: str) -> None:
        self._next_phase()
        self.cell_changed.emit(truster, trusted, None)

    def certified(self, requester: str, issuer: str) -> None:
        self._next_phase()
        self.stepped.emit()

    def proven(self, client: str, server: str, handshake: Handshake) -> None:
        self._next_phase()
        self.cell_changed.emit(client, server, handshake)

    def _next_phase(self) -> None:
        if self.cancelled.is_set():
            raise UserError(self._parameters.cancelled)


class DemoDialog(QDialog):
    """Nothing of it is stored: the States of the operator stay as they are."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Exchange between States: demo"))
        self.resize(_WIDTH, _HEIGHT)
        self._background = Background(self)
        self._audience: _DemoObserver | None = None
        self._names: tuple[str, ...] = ()
        self._cells: dict[tuple[int, int], GridCell] = {}
        self._proven = 0
        text = QLabel(
            self.tr(
                "Each State gets a console and a CA of its own, in a temporary folder. They exchange trust bundles and "
                "CSRs as files, and each connects to each other one by a real TLS handshake."
            ),
            self,
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        self.form = ParameterForm(DemoParameters, theme, parent=self)
        self.start_button = QPushButton(self.tr("St&art"), self)
        self.start_button.setProperty("primary", True)
        self.start_button.setDefault(True)
        self.cancel_button = QPushButton(self.tr("Cancel"), self)
        self.close_button = QPushButton(self.tr("Close"), self)
        self.sentence = plain_label("", self)
        self.sentence.setWordWrap(True)
        self.sentence.setFont(theme.font(FontRole.STRONG))
        self.progress = QProgressBar(self)
        self.progress.setTextVisible(False)
        self.grid = TrustGrid(theme, self)
        self.start_button.clicked.connect(lambda _checked: self.start())
        self.cancel_button.clicked.connect(lambda _checked: self._cancel())
        self.close_button.clicked.connect(self.close)
        self.form.validated.connect(self._entered)
        top = QHBoxLayout()
        top.setSpacing(8)
        for widget in (self.start_button, self.cancel_button):
            top.addWidget(widget)
        top.addStretch(1)
        bottom = QHBoxLayout()
        bottom.addStretch(1)
        bottom.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addWidget(text)
        column.addWidget(self.form)
        column.addLayout(top)
        column.addWidget(self.sentence)
        column.addWidget(self.progress)
        column.addWidget(self.grid, 1)
        column.addLayout(bottom)
        self._show_running(running=False)
        self._entered()

    @property
    def cells(self) -> Mapping[tuple[int, int], GridCell]:
        """The cells of the matrix, by row and column."""
        return self._cells

    def start(self) -> None:
        """Run the demo; a second time from the beginning."""
        self.form.validate()
        parameters = self.form.parameters
        if parameters is None:
            return
        assert isinstance(parameters, DemoParameters)
        self._show_empty(parameters.states)
        audience = self._audience = _DemoObserver(parameters)
        audience.phase_begun.connect(self._begin_phase)
        audience.stepped.connect(self._step)
        audience.cell_changed.connect(self._change_cell)
        self.destroyed.connect(audience.cancelled.set)
        self._show_running(running=True)
        self._background.submit(partial(play, parameters, audience), partial(self._played, parameters), self._ended)

    def done(self, result: int) -> None:
        """Escape and the button end the demo, too."""
        self._cancel()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._cancel()
        super().closeEvent(event)

    def _cancel(self) -> None:
        if self._audience is not None:
            self._audience.cancelled.set()
            self.sentence.setText(self.tr("Cancelling ..."))

    def _entered(self) -> None:
        parameters = self.form.parameters
        self.start_button.setEnabled(parameters is not None and self._audience is None)
        if isinstance(parameters, DemoParameters) and parameters.states != len(self._names):
            self._show_empty(parameters.states)

    def _show_empty(self, count: int) -> None:
        self._names = tuple(state_name(number, count) for number in range(count))
        waiting = self.tr("not yet")
        self._cells = {
            (row, column): GridCell("muted", "waiting", (waiting,), f"{truster} → {trusted}\n{waiting}")
            for row, truster in enumerate(self._names)
            for column, trusted in enumerate(self._names)
            if row != column
        }
        self._proven = 0
        self.sentence.setText(
            self.tr("{count} States, {pairs} connections to prove.").format(count=count, pairs=len(self._cells))
        )
        self.grid.show_matrix(self._names, self._cells)

    def _show_running(self, *, running: bool) -> None:
        self.start_button.setEnabled(not running)
        self.form.setEnabled(not running)
        self.cancel_button.setEnabled(running)
        if not running:
            self._audience = None
            self.progress.setRange(0, 1)
            self.progress.setValue(0)

    def _begin_phase(self, title: str, count: int) -> None:
        self.sentence.setText(title)
        self.progress.setRange(0, count)
        self.progress.setValue(0)

    def _step(self) -> None:
        self.progress.setValue(self.progress.value() + 1)

    def _change_cell(self, row: str, column: str, handshake: Handshake | None) -> None:
        self._step()
        if handshake is None:
            cell = GridCell("warning", "trust", (self.tr("trusted"),), f"{row} → {column}\n{self.tr('trusted')}")
        elif handshake.ok:
            self._proven += 1
            said = (self.tr("proven"), f"{handshake.protocol}, {handshake.duration_ns / 1e6:.1f} ms")
            cell = GridCell("good", "good", said, "\n".join((f"{row} → {column}", *said)))
        else:
            why = f"{handshake.client_report} {handshake.server_report}"
            cell = GridCell("bad", "error", (self.tr("refused"),), f"{row} → {column}\n{why}")
        self._cells[self._names.index(row), self._names.index(column)] = cell
        self.grid.show_matrix(self._names, self._cells)

    def _played(self, parameters: DemoParameters, played: DemoResult) -> None:
        said = self.tr("{proven} of {pairs} connections proven by mutual TLS.")
        faults = played.faults[:1]
        proven = said.format(proven=self._proven, pairs=len(played.handshakes))
        self._ended(" ".join(filter(None, (proven, *faults, parameters.kept))))
        self.progress.setValue(1)

    def _ended(self, sentence: str) -> None:
        self._show_running(running=False)
        self.sentence.setText(sentence)
