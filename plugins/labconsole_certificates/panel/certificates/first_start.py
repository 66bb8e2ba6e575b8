"""The page shown while there are no States: the purpose of certificates, and how to begin."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from labconsole_certificates.panel.drop_area import DropArea
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel
from labconsole_ui.widgets.layouts import ScrollPage

_WIDTH = 760


class FirstStart(ScrollPage):
    """`create_wanted` and `import_wanted` are emitted by their buttons; files go to the drop box."""

    create_wanted = Signal()
    import_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(_WIDTH, 28, parent)
        self.column.setSpacing(14)
        title = QLabel(self.tr("Every State its own CA"), self.page)
        title.setFont(theme.font(FontRole.TITLE))
        text = QLabel(
            self.tr(
                "States trust each other without a common authority: each issues certificates with its own CA, takes "
                "the other's certificate signing request, and exports its root. Begin with the CA of your State; "
                "for a lab of two, create one for each."
            ),
            self.page,
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        text.setFont(theme.font(FontRole.LEAD))
        self.column.addWidget(title)
        self.column.addWidget(text)
        self.create_button = self._card(
            theme,
            "authority",
            self.tr("Create your CA"),
            self.tr("A State with a new root: its key is kept encrypted here, or in a PKCS#11 token"),
            primary=True,
        )
        self.create_button.clicked.connect(lambda _checked: self.create_wanted.emit())
        self.import_button = self._card(
            theme,
            "import",
            self.tr("Import a CA"),
            self.tr("One that was created elsewhere: certificate and key as PEM, DER or PKCS#12"),
            primary=False,
        )
        self.import_button.clicked.connect(lambda _checked: self.import_wanted.emit())
        self.drop_box = DropArea(theme, self.tr("Or drop any certificate, CSR, CRL, key or bundle to inspect it"), self)
        self.column.addWidget(self.drop_box)
        self.column.addStretch(1)

    def _card(self, theme: Theme, icon: str, title: str, meaning: str, *, primary: bool) -> QPushButton:
        card = QFrame(self.page)
        card.setProperty("card", True)
        line = QHBoxLayout(card)
        line.setContentsMargins(18, 14, 18, 14)
        line.setSpacing(16)
        line.addWidget(IconLabel(theme, icon, 32, "link"))
        texts = QVBoxLayout()
        texts.setSpacing(3)
        heading = QLabel(title, card)
        heading.setFont(theme.font(FontRole.STRONG))
        said = QLabel(meaning, card)
        said.setWordWrap(True)
        said.setProperty("muted", True)
        texts.addWidget(heading)
        texts.addWidget(said)
        line.addLayout(texts, 1)
        button = QPushButton(self.tr("{title} …").format(title=title), card)
        button.setProperty("primary", primary)
        line.addWidget(button)
        self.column.addWidget(card)
        return button
