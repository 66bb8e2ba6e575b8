"""The cause behind a cell of the matrix: in a sentence, with the ways that lead on."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole_certificates.panel.labels import day
from labconsole_certificates.panel.trust.matrix_cells import look_of, status_words
from labconsole_certificates.trust.matrix import Cell
from labconsole_ui.icon_label import IconLabel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label


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
        """There is nobody who could trust anybody."""
        self.show_cell(None, "", "")
        self.title.setText(self.tr("Trust needs two States: create your CA, or import another State's bundle."))

    def show_cell(self, cell: Cell | None, truster: str, trusted: str, *, can_withdraw: bool = False) -> None:
        """Show the cause of a cell, or that one should be chosen."""
        self.withdraw_button.setVisible(can_withdraw)
        self._cell, self._pair = cell, (truster, trusted)
        self.exchange_button.setVisible(cell is not None)
        self.certificate_button.setVisible(cell is not None and cell.certificate is not None)
        if cell is None:
            self._icon.show_icon("info", "muted")
            self.title.setText(self.tr("Rows trust, columns are trusted. Choose a cell to see why it is as it is."))
            self.cause.hide()
            return
        meaning, icon = look_of(cell.status)
        self._icon.show_icon(icon, meaning)
        status = status_words()[cell.status]
        self.title.setText(f"{truster} → {trusted}: {status}")
        crl = "" if cell.last_crl is None else self.tr("Newest CRL of {day}.").format(day=day(cell.last_crl))
        self.cause.setText(f"{cell.cause} {crl}".strip())
        self.cause.show()

    def _show_certificate(self) -> None:
        if self._cell is not None and self._cell.certificate is not None:
            self.certificate_wanted.emit(self._cell.certificate)
