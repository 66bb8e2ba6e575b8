"""The panel of the key pool's simulation: with or without a pool, and what the device can do before anything is run."""

from __future__ import annotations

from labconsole.model.trial import Parameters
from labconsole_keypool.panel.editors import editors
from labconsole_keypool.panel.facts import simulation_facts
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel


def make_panel(context: PanelContext) -> KeypoolPanel:
    """The factory that the manifest names."""
    return KeypoolPanel(context)


class KeypoolPanel(TrialPanel):
    """The usual panel; where keys come from is chosen between two cards."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, editors(context.theme))

    def facts(self, parameters: Parameters) -> list[Fact]:
        """What the device can sign with and without keys, how many there are, and when the last request comes."""
        assert isinstance(parameters, SimulationParameters)
        return simulation_facts(parameters)
