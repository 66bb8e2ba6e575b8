"""The dialogs behind the page's buttons: fill, purge, initialise, add a token, export and load wrapper keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from labconsole.model.field_spec import FieldSpec
from labconsole.security.secrets import Secret
from labconsole_keypool.panel.share_editor import ShareEditor
from labconsole_ui.form.editors import Editor
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.token_editor import TokenEditor
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.trial_panel import PanelContext

_SAME = ("token", "key_store", "key_kind", "keys_per_wrapper")
"""Parameters that the form of an operation copies from the scenario."""


class PoolDialogs(QObject):
    """Opens dialogs; `ended` carries the name of an operation that has ended, with or without success."""

    ended = Signal(str)

    def __init__(self, context: PanelContext, values: Callable[[], Mapping[str, Any]], page: QWidget) -> None:
        """`values` are those of the scenario's form."""
        super().__init__(page)
        self._context = context
        self._values = values
        self._page = page

    def fill(self) -> OperationDialog:
        """Open the dialog that fills the pool."""
        return self._open("keypool.fill")

    def purge(self) -> OperationDialog:
        """Open the dialog that makes every waiting key invalid."""
        return self._open("keypool.purge")

    def initialise(self) -> OperationDialog:
        """Open the dialog that reinitialises the token."""
        return self._open("keypool.initialise-token")

    def add_token(self) -> OperationDialog:
        """Open the dialog that adds a token."""
        return self._open("keypool.add-token", {}, but={"token"})

    def export_shares(self) -> OperationDialog:
        """Open the dialog that exports wrapper keys with shares."""
        return self._open("keypool.export-shares")

    def load_shares(self) -> OperationDialog:
        """Open the dialog that collects shares and loads wrapper keys into a token."""
        made: list[ShareEditor] = []

        def shares(spec: FieldSpec, parent: QWidget) -> Editor:
            made.append(ShareEditor(spec, parent, self._context.theme))
            return made[-1]

        def given() -> Mapping[str, Secret] | None:
            return made[-1].secrets() if made else None

        return self._open("keypool.load-shares", {"token": TokenEditor, "share_files": shares}, given, but={"token"})

    def _open(
        self,
        name: str,
        editors: Mapping[str, EditorFactory] | None = None,
        given: Callable[[], Mapping[str, Secret] | None] = dict,
        but: frozenset[str] | set[str] = frozenset(),
    ) -> OperationDialog:
        """The dialog, filled with the values of the scenario, `but` for these parameters."""
        operation = self._context.plugins.operation(name)
        scenario = self._values()
        same = {key: scenario[key] for key in _SAME if key in scenario and key not in but}
        values = {**operation.parameters().model_dump(mode="json"), **same}
        own = {"token": TokenEditor} if editors is None else editors
        dialog = OperationDialog(self._page.window(), operation, self._context.theme, values, own, given)
        dialog.ended.connect(lambda _end: self.ended.emit(name))
        dialog.open()
        return dialog
