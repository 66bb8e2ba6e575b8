"""The page of agreements: the steps of the owner who proposes a trial, and of the one who accepts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QVBoxLayout

from labconsole.profiles.profile import list_profiles
from labconsole.security.pki.identities import names
from labconsole_ui.form.editors import choice_of
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.file_editor import OpenChoiceEditor
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import ScrollPage
from labconsole_ui.widgets.message_bar import Message, Tone

_PAGE_WIDTH = 1200
_BUTTONS_WIDTH = 230
"""Of the buttons of both owners, so that the explanations are below each other."""
_GAP = 6
"""Above the steps of an owner, in addition to the space between lines."""
_Choices = Mapping[str, tuple[str, ...]]
PROPOSE, SHOW, ACCEPT, CONCLUDE = (f"agreements.{name}" for name in ("propose", "show", "accept", "conclude"))


class AgreementsPage(ScrollPage):
    """Each step is the dialog of an operation; files go from one owner to the other between the steps."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(_PAGE_WIDTH, 28)
        self._context = context
        self._background = Background(self)
        self.buttons: dict[str, QPushButton] = {}
        """The button of each step, by the name of its operation."""
        column = self.column
        column.setSpacing(14)
        title = plain_label(self.tr("Agreements"), self.page)
        title.setFont(context.theme.font(FontRole.TITLE))
        column.addWidget(title)
        column.addWidget(
            self._text(
                self.tr(
                    "Two owners run one trial, each on a console of its own, and agree on it by signed files. Both "
                    "need an identity for message signing, and trust the root of the other one: page Certificates."
                )
            )
        )
        self._add_part(
            column,
            self.tr("You propose"),
            (
                (PROPOSE, self.tr("&Propose a trial ..."), "export", self.tr("Send the proposal to the other owner.")),
                (
                    CONCLUDE,
                    self.tr("Co&nclude an agreement ..."),
                    "good",
                    self.tr("With the acceptance that came back. Your end is then a profile with the agreement's id."),
                ),
            ),
        )
        self._add_part(
            column,
            self.tr("The other owner proposes"),
            (
                (SHOW, self.tr("S&how a proposal ..."), "open", self.tr("Who signed it, and what would run here.")),
                (
                    ACCEPT,
                    self.tr("&Accept a proposal ..."),
                    "certificate",
                    self.tr("Send the acceptance back. Your end is then a profile with the agreement's id."),
                ),
            ),
        )
        column.addSpacing(_GAP)
        column.addWidget(
            self._text(
                self.tr(
                    "Run the profile on both consoles: it waits in the queue for the time that was agreed upon. Then "
                    "export a signed bundle of the run (menu Export of a run), send it with its .p7s file, and import "
                    "the other owner's. “labconsole agent --serve FOLDER --identity NAME” does all this unattended."
                )
            )
        )
        column.addStretch(1)
        set_chapter(self, "how-to/agree-on-a-trial.md")

    def open_step(self, name: str) -> None:
        """Open the dialog of a step, once identities and profiles are read."""
        self._background.submit(_choices, partial(self._open, name), self._refused)

    def _open(self, name: str, choices: _Choices) -> None:
        operation = self._context.plugins.operation(name)
        OperationDialog(self.window(), operation, self._context.theme, {}, _editors(choices)).open()

    def _refused(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))

    def _add_part(self, column: QVBoxLayout, heading: str, steps: tuple[tuple[str, str, str, str], ...]) -> None:
        """Add the steps of one owner: name of the operation, text and icon of its button, explanation."""
        column.addSpacing(_GAP)
        head = plain_label(heading, self.page)
        head.setFont(self._context.theme.font(FontRole.HEADING))
        column.addWidget(head)
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        grid.setColumnMinimumWidth(0, _BUTTONS_WIDTH)
        grid.setColumnStretch(1, 1)
        for row, (name, text, icon, explanation) in enumerate(steps):
            button = self.buttons[name] = QPushButton(text, self.page)
            self._context.theme.bind_icon(button, icon)
            button.clicked.connect(partial(self._clicked, name))
            grid.addWidget(button, row, 0)
            shown = self._text(explanation)
            shown.setMinimumHeight(button.sizeHint().height())  # a row of wrapped text is not as high as its button
            grid.addWidget(shown, row, 1)
        column.addLayout(grid)

    def _clicked(self, name: str, _checked: bool = False) -> None:
        self.open_step(name)

    def _text(self, text: str) -> QLabel:
        label = plain_label(text, self.page)
        label.setWordWrap(True)
        label.setProperty("muted", True)
        return label


def _choices() -> _Choices:
    """The names of this console's identities and profiles. Raises StoreError."""
    profiles = tuple(one.name for one in list_profiles() if not one.error)
    return {"identity": names(), "profile": profiles}


def _editors(choices: _Choices) -> Mapping[str, EditorFactory]:
    """Editors that offer these names, by parameter."""
    profiles = tuple((one, one) for one in choices["profile"])
    return {
        "identity": choice_of(choices["identity"]),
        "profile": lambda spec, parent: OpenChoiceEditor(replace(spec, choices=profiles), parent),
    }
