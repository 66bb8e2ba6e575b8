"""The matrix in the words and colours of the window."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType

from PySide6.QtCore import QCoreApplication

from labconsole.security.pki.snapshot import Snapshot
from labconsole_certificates.panel.labels import day
from labconsole_certificates.panel.trust.matrix_painting import GridCell
from labconsole_certificates.trust.matrix import Cell, CellStatus, Matrix, matrix

_translate = QCoreApplication.translate

_LOOKS = MappingProxyType(
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


def status_words() -> dict[CellStatus, str]:
    """Each status in a word or two."""
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


def look_of(status: CellStatus) -> tuple[str, str]:
    """Colour by meaning, and icon."""
    return _LOOKS[status]


class ShownMatrix:
    """A matrix by rows and columns: made on a thread, shown by the grid."""

    def __init__(self, made: Matrix) -> None:
        self.states = made.states
        self.names = [state.name for state in made.states]
        place = {state.id: number for number, state in enumerate(made.states)}
        self.cells = {
            (place[cell.truster], place[cell.trusted]): cell
            for cell in made.cells.values()
            if cell.status is not CellStatus.OWN
        }
        words = status_words()
        self.grid = {
            key: _grid_cell(cell, self.names[key[0]], self.names[key[1]], words) for key, cell in self.cells.items()
        }


def shown_matrix(snapshot: Snapshot, at: datetime) -> ShownMatrix:
    """Work out the matrix; takes time with many States."""
    return ShownMatrix(matrix(snapshot, at))


def _grid_cell(cell: Cell, truster: str, trusted: str, words: dict[CellStatus, str]) -> GridCell:
    meaning, icon = _LOOKS[cell.status]
    status = words[cell.status]
    told: tuple[str, ...] = (status,)
    lines = told
    if cell.until is not None:
        until = _translate("Trust", "until {day}").format(day=day(cell.until))
        crl = (
            _translate("Trust", "CRL of {day}").format(day=day(cell.last_crl))
            if cell.last_crl is not None
            else _translate("Trust", "no CRL known")
        )
        told = (f"{status}, {until}", crl)
        # Of what holds, mark and colour say the rest.
        lines = (until if cell.status in _HOLDING else status, crl)
    sentence = "\n".join((f"{truster} → {trusted}", *told, cell.cause))
    return GridCell(meaning, icon, lines, sentence)
