"""The cells of the trust matrix as labels, colours and marks, and the card with the cause of one."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole.security.pki.snapshot import Snapshot
from labconsole_certificates.panel.labels import day
from labconsole_certificates.panel.trust.matrix_painting import GridCell
from labconsole_certificates.trust.matrix import Cell, CellStatus, Matrix, matrix
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label

_translate = QCoreApplication.translate

_STYLES = MappingProxyType(
    {
        CellStatus.TRUSTED: ("good", "good"),
        CellStatus.EXPIRING: ("warning", "warning"),
        CellStatus.STALE: ("warning", "history"),
        CellStatus.NOT_YET_VALID: ("warning", "waiting"),
        CellStatus.EXPIRED: ("bad", "error"),
        CellStatus.REVOKED: ("bad", "cancelled"),
        CellStatus.UNTRUSTED: ("muted", "remove"),
        CellStatus.UNKNOWN: ("muted", "help"),
    }
)
"""Colour and mark of each status: marks differ where colours do not."""

_HOLDING = frozenset({CellStatus.TRUSTED, CellStatus.EXPIRING, CellStatus.STALE})


def status_label() -> dict[CellStatus, str]:
    """Label of each status, in a word or two."""
    return {
        CellStatus.TRUSTED: _translate("Trust", "trusted"),
        CellStatus.EXPIRING: _translate("Trust", "expiring"),
        CellStatus.STALE: _translate("Trust", "stale"),
        CellStatus.NOT_YET_VALID: _translate("Trust", "not yet valid"),
        CellStatus.EXPIRED: _translate("Trust", "expired"),
        CellStatus.REVOKED: _translate("Trust", "revoked"),
        CellStatus.UNTRUSTED: _translate("Trust", "untrusted"),
        CellStatus.UNKNOWN: _translate("Trust", "unknown"),
    }


def cell_style(status: CellStatus) -> tuple[str, str]:
    """Colour by meaning, and icon."""
    return _STYLES[status]


class ShownMatrix:
    """A matrix by rows and columns: built in a thread, shown by the grid."""

    def __init__(self, made: Matrix) -> None:
        self.states = made.states
        self.names = [state.name for state in made.states]
        place = {state.id: number for number, state in enumerate(made.states)}
        self.cells = {
            (place[cell.truster], place[cell.trusted]): cell
            for cell in made.cells.values()
            if cell.status is not CellStatus.OWN
        }
        words = status_label()
        self.grid = {
            key: _grid_cell(cell, self.names[key[0]], self.names[key[1]], words) for key, cell in self.cells.items()
        }


def shown_matrix(snapshot: Snapshot, at: datetime) -> ShownMatrix:
    """Build the matrix; takes time with many States."""
    return ShownMatrix(matrix(snapshot, at))


def _grid_cell(cell: Cell, truster: str, trusted: str, words: dict[CellStatus, str]) -> GridCell:
    meaning, icon = _STYLES[cell.status]
    status = words[cell.status]
    texts: tuple[str, ...] = (status,)
    lines = texts
    if cell.until is not None:
        until = _translate("Trust", "until {day}").format(day=day(cell.until))
        crl = (
            _translate("Trust", "CRL of {day}").format(day=day(cell.last_crl))
            if cell.last_crl is not None
            else _translate("Trust", "no CRL known")
        )
        texts = (f"{status}, {until}", crl)
        # For trusted cells, mark and colour show the rest.
        lines = (until if cell.status in _HOLDING else status, crl)
    sentence = "\n".join((f"{truster} → {trusted}", *texts, cell.cause))
    return GridCell(meaning, icon, lines, sentence)


class CauseCard(QFrame):
    """`certificate_wanted` carries the certificate's row, `exchange_wanted` and `withdrawal_wanted` the two States'
    names."""

    certificate_wanted = Signal(int)
    exchange_wanted = Signal(str, str)
    withdrawal_wanted = Signal(str, str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._cell: Cell | None = None
        self._pair = ("", "")
        self._icon = IconLabel(theme, "info", 20, "muted")
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.STRONG))
        self.cause = plain_label("", self)
        self.cause.setWordWrap(True)
        self.cause.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.certificate_button = QPushButton(self.tr("Show the certificate"), self)
        self.certificate_button.clicked.connect(lambda _checked: self._show_certificate())
        self.exchange_button = QPushButton(self.tr("Go to the exchange"), self)
        self.exchange_button.clicked.connect(lambda _checked: self.exchange_wanted.emit(*self._pair))
        self.withdraw_button = QPushButton(self.tr("&Withdraw trust"), self)
        self.withdraw_button.clicked.connect(lambda _checked: self.withdrawal_wanted.emit(*self._pair))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self.title)
        texts.addWidget(self.cause)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 10, 12, 10)
        line.setSpacing(10)
        line.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(texts, 1)
        line.addWidget(self.withdraw_button)
        line.addWidget(self.certificate_button)
        line.addWidget(self.exchange_button)
        self.show_cell(None, "", "")

    def show_none(self) -> None:
        """Show that there are no States."""
        self.show_cell(None, "", "")
        self.title.setText(self.tr("Trust needs two States: create your CA, or import another State's bundle."))

    def show_cell(self, cell: Cell | None, truster: str, trusted: str, *, can_withdraw: bool = False) -> None:
        """Show the cause of a cell, or a hint to choose one."""
        self.withdraw_button.setVisible(can_withdraw)
        self._cell, self._pair = cell, (truster, trusted)
        self.exchange_button.setVisible(cell is not None)
        self.certificate_button.setVisible(cell is not None and cell.certificate is not None)
        if cell is None:
            self._icon.show_icon("info", "muted")
            self.title.setText(self.tr("Rows trust, columns are trusted. Choose a cell to see why it is as it is."))
            self.cause.hide()
            return
        meaning, icon = cell_style(cell.status)
        self._icon.show_icon(icon, meaning)
        status = status_label()[cell.status]
        self.title.setText(f"{truster} → {trusted}: {status}")
        crl = "" if cell.last_crl is None else self.tr("Newest CRL of {day}.").format(day=day(cell.last_crl))
        self.cause.setText(f"{cell.cause} {crl}".strip())
        self.cause.show()

    def _show_certificate(self) -> None:
        if self._cell is not None and self._cell.certificate is not None:
            self.certificate_wanted.emit(self._cell.certificate)
