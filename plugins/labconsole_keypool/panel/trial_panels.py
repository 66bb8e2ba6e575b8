"""The panels of the simulation and of the measuring trials, and the editors that all forms of the key pool share."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QWidget

from labconsole.analysis.number_format import format_duration
from labconsole.model.field_spec import FieldSpec
from labconsole.model.trial import Parameters
from labconsole.profiles.timing_profile import load_timing
from labconsole_keypool.choices import KeySource
from labconsole_keypool.measuring.step_times_parameters import StepTimesParameters
from labconsole_keypool.panel.facts import simulation_facts
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_ui.form.editors import ChoiceEditor, Editor
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.segmented_editor import Segment, SegmentedEditor
from labconsole_ui.form.token_editor import TokenEditor
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.help_chapter import set_chapter

_ICONS = {KeySource.POOL: "database", KeySource.GENERATED: "key"}

_translate = QCoreApplication.translate


def make_simulation_panel(context: PanelContext) -> SimulationPanel:
    """The factory that the manifest names."""
    return SimulationPanel(context)


def make_measuring_panel(context: PanelContext) -> MeasuringPanel:
    """The factory that the manifest names."""
    return MeasuringPanel(context)


class SimulationPanel(TrialPanel):
    """The panel of the simulation: where keys come from is chosen between two cards."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, editors(context.theme))
        set_chapter(self, "explanation/key-pool-simulation.md")

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The device's rates with and without keys, its keys, and the time of the last request."""
        assert isinstance(parameters, SimulationParameters)
        return simulation_facts(parameters)


class MeasuringPanel(TrialPanel):
    """The panel of step times and of the device benchmark: tokens and timing profiles are chosen by name."""

    def __init__(self, context: PanelContext) -> None:
        of_pool = editors(context.theme)
        super().__init__(context, {name: of_pool[name] for name in ("token", "timing")})
        set_chapter(self, "explanation/key-pool-steps.md")

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The duration of the step on the emulated device, where one is emulated."""
        if not isinstance(parameters, StepTimesParameters) or not (seconds := parameters.emulated_seconds):
            return []
        return [
            Fact(
                _translate("MeasuringPanel", "The device takes"),
                format_duration(seconds),
                _translate(
                    "MeasuringPanel", "All operations of the step by the timing profile, without its connection"
                ),
            )
        ]


def editors(theme: Theme) -> dict[str, EditorFactory]:
    """The editors that the key pool's forms share, by parameter: where keys come from, which device, which token."""

    def keys(spec: FieldSpec, parent: QWidget) -> Editor:
        return SegmentedEditor(spec, parent, _segments(), theme)

    return {"keys": keys, "timing": _timing_editor, "token": TokenEditor}


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


def _timing_editor(spec: FieldSpec, parent: QWidget) -> Editor:
    """A list of the profiles that come with the console; the tooltip of each names its device."""
    names = [value for value, _label in spec.choices]
    none = _translate("KeypoolPanel", "None: as fast as the token is")
    editor = ChoiceEditor(replace(spec, choices=tuple((name, name or none) for name in names)), parent)
    for place, name in enumerate(names):
        title = load_timing(name).title if name else none
        editor.combo.setItemData(place, title, Qt.ItemDataRole.ToolTipRole)
    return editor
