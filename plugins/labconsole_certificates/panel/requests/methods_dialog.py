"""The ways to a certificate, side by side: the source's preference, and its warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from labconsole_certificates.operations import no_csr, self_signed
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label
from labconsole_ui.widgets.layouts import fit_height

_WIDTH = 720


@dataclass(frozen=True)
class Method:
    """A way to a certificate. `warning` is empty for the one that the source prefers; `begin` goes that way."""

    key: str
    title: str
    meaning: str
    warning: str
    icon: str
    begin: Callable[[], object]


class MethodsDialog(QDialog):
    """Offers the methods; a chosen one begins when the dialog has closed."""

    def __init__(self, theme: Theme, methods: tuple[Method, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("How shall the certificate be created?"))
        self.setMinimumWidth(_WIDTH)
        self.buttons: dict[str, QPushButton] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 16)
        column.setSpacing(10)
        column.setAlignment(Qt.AlignmentFlag.AlignTop)
        for method in methods:
            column.addWidget(self._card(theme, method))

    def showEvent(self, event: QShowEvent) -> None:
        """As high as the texts need, which is known from now on."""
        super().showEvent(event)
        fit_height(self)

    def texts(self) -> list[str]:
        """The whole text of the dialog, as it is read."""
        return [label.text() for label in self.findChildren(QLabel) if label.text()]

    def _card(self, theme: Theme, method: Method) -> QFrame:
        card = QFrame(self)
        card.setProperty("message", "warning" if method.warning else "good")
        title = plain_label(method.title, card)
        title.setFont(theme.font(FontRole.HEADING))
        texts = QVBoxLayout()
        texts.setSpacing(4)
        texts.addWidget(title)
        for text, tone in ((method.meaning, None), (method.warning, "warning")):
            if text:
                label = plain_label(text, card)
                label.setWordWrap(True)
                label.setProperty("tone", tone)
                texts.addWidget(label)
        texts.addStretch(1)
        button = QPushButton(self.tr("Continue …"), card)
        button.setProperty("primary", not method.warning)
        button.setAccessibleName(method.title)
        button.clicked.connect(lambda _checked: self._begin(method))
        self.buttons[method.key] = button
        line = QHBoxLayout(card)
        line.setContentsMargins(14, 12, 14, 12)
        line.setSpacing(12)
        line.addWidget(IconLabel(theme, method.icon, 24, "warning" if method.warning else "good"))
        line.addLayout(texts, 1)
        line.addWidget(button)
        return card

    def _begin(self, method: Method) -> None:
        self.accept()
        method.begin()


def methods(
    translate: Callable[[str], str],
    csr: Callable[[], object],
    without_csr: Callable[[], object],
    pinned: Callable[[], object],
) -> tuple[Method, ...]:
    """The three methods, with the source's warnings."""
    return (
        Method(
            "csr",
            translate("With a CSR (preferred)"),
            translate(
                "The client creates its key pair here and sends a certificate signing request to the other State, "
                "whose CA certifies it. The private key never leaves its country of origin."
            ),
            "",
            "shield",
            csr,
        ),
        Method(
            "no-csr",
            translate("Without a CSR"),
            translate("The server creates key and certificate for the client, and sends one PKCS#12 file."),
            no_csr.WARNING,
            "key",
            without_csr,
        ),
        Method(
            "self-signed",
            translate("Self-signed, pinned by its fingerprint"),
            translate("The end certificate signs itself; each peer trusts exactly this one."),
            self_signed.WARNING,
            "pin",
            pinned,
        ),
    )
