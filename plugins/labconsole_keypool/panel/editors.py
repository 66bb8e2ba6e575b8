"""Editors that the key pool's forms have in common: where keys come from, which device, which token."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QCoreApplication, Qt

from labconsole.model.field_spec import FieldSpec
from labconsole.profiles.timing_profile import load_timing
from labconsole_keypool.choices import KeySource
from labconsole_ui.form.editors import ChoiceEditor, Editor
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.segmented_editor import Segment, SegmentedEditor
from labconsole_ui.form.token_editor import token_editor
from labconsole_ui.theme.theme import Theme

_ICONS = {KeySource.POOL: "database", KeySource.GENERATED: "key"}

_translate = QCoreApplication.translate


def editors(theme: Theme) -> dict[str, EditorFactory]:
    """The editors by their parameters."""

    def keys(spec: FieldSpec) -> Editor:
        return SegmentedEditor(spec, _segments(), theme)

    return {"keys": keys, "timing": _timing_editor, "token": token_editor}


def _segments() -> list[Segment]:
    return [
        Segment(
            KeySource.POOL.value,
            _translate("KeypoolPanel", "With pool"),
            _translate("KeypoolPanel", "Keys made ahead of time"),
            _translate(
                "KeypoolPanel",
                "Key pairs are generated in idle time, wrapped, kept outside, and loaded back into the token.",
            ),
            _ICONS[KeySource.POOL],
        ),
        Segment(
            KeySource.GENERATED.value,
            _translate("KeypoolPanel", "Without pool"),
            _translate("KeypoolPanel", "A key generated for each request"),
            _translate("KeypoolPanel", "What an HSM does by itself: slow for RSA keys."),
            _ICONS[KeySource.GENERATED],
        ),
    ]


def _timing_editor(spec: FieldSpec) -> Editor:
    """A list of the profiles that come with the console; the device stands in the tooltip of each."""
    names = [value for value, _label in spec.choices]
    none = _translate("KeypoolPanel", "None: as fast as the token is")
    editor = ChoiceEditor(replace(spec, choices=tuple((name, name or none) for name in names)))
    for place, name in enumerate(names):
        title = load_timing(name).title if name else none
        editor.combo.setItemData(place, title, Qt.ItemDataRole.ToolTipRole)
    return editor
