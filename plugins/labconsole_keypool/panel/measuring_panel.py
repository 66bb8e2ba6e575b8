"""The panels of step times and device benchmark: the usual one; tokens and timing profiles are chosen by name."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_duration
from labconsole.model.trial import Parameters
from labconsole_keypool.measuring.step_times_parameters import StepTimesParameters
from labconsole_keypool.panel.editors import editors
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel

_translate = QCoreApplication.translate


def make_panel(context: PanelContext) -> MeasuringPanel:
    """The factory that the manifest names."""
    return MeasuringPanel(context)


class MeasuringPanel(TrialPanel):
    """The usual panel; of an emulated device it tells how long the step will take."""

    def __init__(self, context: PanelContext) -> None:
        of_pool = editors(context.theme)
        super().__init__(context, {name: of_pool[name] for name in ("token", "timing")})

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The device's own time for the step, where one is emulated."""
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
