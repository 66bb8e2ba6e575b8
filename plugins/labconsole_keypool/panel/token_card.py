"""The card of the token: its state, identity and abilities, with buttons to initialise it or add another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPushButton, QWidget

from labconsole.paths import tokens_dir
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole.security.token.configuration import is_lab
from labconsole.security.token.errors import MechanismMissingError
from labconsole.security.token.inspection import Inspection, inspect_token
from labconsole.security.token.mechanisms import KeyKind, choose_mechanism
from labconsole.security.token.named_tokens import find_configuration
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label, plain_tooltip
from labconsole_ui.widgets.secret_dialog import SecretDialog


@dataclass(frozen=True)
class TokenStatus:
    """A token by its name. `inspection` is None for a lab token that does not exist yet.

    `tried`: it was tested with its PIN; before that, the behaviour of its mechanisms is unknown.
    """

    name: str
    pin: str = ""
    """Source of its PIN."""
    inspection: Inspection | None = None
    tried: bool = False

    @property
    def problem(self) -> str:
        """The problem with the token in one sentence; empty if none is known."""
        if self.inspection is None:
            return ""
        if self.inspection.overview is None or self.tried:
            return self.inspection.problem
        return ""

    @property
    def pin_warning(self) -> str:
        """Warning about lost tries of the PIN, as far as the token reports them."""
        overview = None if self.inspection is None else self.inspection.overview
        return "" if overview is None or overview.pin_warning is None else overview.pin_warning

    def wrapping(self, kind: KeyKind) -> str:
        """The mechanism that wraps keys of this kind; empty if the token was not tried, or has none."""
        if self.inspection is None or self.inspection.findings is None:
            return ""
        try:
            mechanism = choose_mechanism(self.inspection.findings.wrapping, kind)
        except MechanismMissingError:
            return ""
        return mechanism.title


def token_status(name: str) -> TokenStatus:
    """Inspect a token without its PIN; creates none. Takes a third of a second. Raises UserError: unknown name."""
    if is_lab(name) and not (tokens_dir() / name).is_dir():
        return TokenStatus(name)
    configuration = find_configuration(name)
    return TokenStatus(name, configuration.pin.describe(), inspect_token(name, configuration, None))


def probe_token(name: str, entered: Secret | None) -> TokenStatus:
    """Log in once and test what a key pool needs; a lab token that does not exist yet is created.

    Takes a second. Raises UserError: the name is unknown, or the PIN has no source.
    """
    configuration = find_configuration(name)
    pin = entered or configuration.pin_request(name).resolve()
    return TokenStatus(name, configuration.pin.describe(), inspect_token(name, configuration, pin), tried=True)


class TokenCard(QFrame):
    """Inspects a token in a background thread; uses its PIN only after a click.

    `initialise_wanted` and `add_wanted` are emitted by their buttons.
    """

    initialise_wanted = Signal()
    add_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._name = ""
        self._status: TokenStatus | None = None
        self._background = Background(self)
        self._icon = IconLabel(theme, "waiting", 20, "muted")
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.STRONG))
        self.state = plain_label("", self)
        self.state.setWordWrap(True)
        self.state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.try_button = self._button(self.tr("&Try it"), self._try, self.tr("Log in once, and try what a pool needs"))
        self.initialise_button = self._button(
            self.tr("Initiali&se …"),
            self.initialise_wanted.emit,
            self.tr("Reinitialise the token: destroys every key in it"),
        )
        self.add_button = self._button(
            self.tr("A&dd token …"), self.add_wanted.emit, self.tr("Add another PKCS#11 token to the console")
        )
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 5, 12, 5)
        line.setSpacing(10)
        line.addWidget(self._icon)
        line.addWidget(self.title)
        line.addWidget(self.state, 1)
        for button in (self.try_button, self.initialise_button, self.add_button):
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)

    @property
    def status(self) -> TokenStatus | None:
        """The status of the token; None while it is being inspected."""
        return self._status

    def show_token(self, name: str) -> None:
        """Inspect the token `name` if it is not the one shown."""
        if name != self._name:
            self._name = name
            self.refresh()

    def refresh(self) -> None:
        """Inspect the token again, without its PIN."""
        if self._name:
            self._wait(self.tr("Inspecting the token ..."))
            self._background.submit(partial(token_status, self._name), self._known, partial(self._unknown, self._name))

    def _try(self) -> None:
        name = self._name

        def missing() -> Sequence[SecretRequest]:
            return missing_secrets([find_configuration(name).pin_request(name)])

        self._wait(self.tr("Testing the token ..."))
        self._background.submit(missing, partial(self._ask, name), partial(self._unknown, name))

    def _ask(self, name: str, missing: Sequence[SecretRequest]) -> None:
        if not missing:
            self._try_with(name, None)
            return
        dialog = SecretDialog(self.window(), missing, self.tr("It is used once, to try the token, and not kept."))
        dialog.finished.connect(partial(self._answered, dialog, name, missing[0].key))
        dialog.open()

    def _answered(self, dialog: SecretDialog, name: str, key: str, result: int) -> None:
        entered = dialog.pop_secrets()
        if result == QDialog.DialogCode.Accepted:
            self._try_with(name, entered[key])
        else:
            self.refresh()

    def _try_with(self, name: str, pin: Secret | None) -> None:
        self._background.submit(partial(probe_token, name, pin), self._known, partial(self._unknown, name))

    def _wait(self, sentence: str) -> None:
        self._status = None
        self.title.setText(self.tr("Token {name}").format(name=self._name))
        self._icon.show_icon("waiting", "muted")
        self.state.setText(sentence)
        self.try_button.setEnabled(False)

    def _unknown(self, name: str, sentence: str) -> None:
        if name == self._name:
            self._show_sentence("error", "bad", sentence)

    def _known(self, status: TokenStatus) -> None:
        if status.name != self._name:
            return  # another token was chosen meanwhile
        self._status = status
        overview = None if status.inspection is None else status.inspection.overview
        if status.problem:
            self._show_sentence("error", "bad", status.problem)
        elif overview is None:
            own = self.tr("Built-in, on SoftHSM2: it is created on first use.")
            self._show_sentence("info", "link", own)
        else:
            if status.pin_warning:
                self._show_sentence(
                    "warning", "warning", self.tr("The token warns: {warning}.").format(warning=status.pin_warning)
                )
            else:
                self._show_sentence("good", "good", self._abilities(status))
            identity = overview.identity
            details = self.tr("{label}, serial number {serial}, {model} of {maker}. PIN source: {pin}.").format(
                label=identity.label,
                serial=identity.serial,
                model=identity.model,
                maker=identity.manufacturer,
                pin=status.pin,
            )
            self.setToolTip(plain_tooltip(details))

    def _abilities(self, status: TokenStatus) -> str:
        if not status.tried:
            return self.tr("Connected. It was not tested yet for what a pool needs.")
        rsa, p256 = status.wrapping(KeyKind.RSA_2048), status.wrapping(KeyKind.P_256)
        if rsa == p256 and rsa:
            return self.tr("Ready. It wraps RSA and P-256 keys by {mechanism}.").format(mechanism=rsa)
        return self.tr("Ready. It wraps RSA keys: {rsa}; P-256 keys: {p256}.").format(
            rsa=rsa or self.tr("no"), p256=p256 or self.tr("no")
        )

    def _show_sentence(self, icon: str, meaning: str, sentence: str) -> None:
        self._icon.show_icon(icon, meaning)
        self.state.setText(sentence)
        self.setToolTip("")
        self.try_button.setEnabled(True)

    def _button(self, text: str, clicked: Callable[[], None], help_text: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setToolTip(help_text)
        button.clicked.connect(lambda: clicked())
        return button
