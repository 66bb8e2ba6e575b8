"""The page of the simulated testbed: the usual panel, with the load that a scenario is for the receiver."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from labconsole.model.trial import Parameters
from labconsole_ui.form.editors import ChoiceEditor
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_v2x.choices import Generation
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters


def make_simulation_panel(context: PanelContext) -> SimulationPanel:
    """The factory that the manifest names."""
    return SimulationPanel(context)


class SimulationPanel(TrialPanel):
    """The usual panel; timing profiles are chosen by name."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, {"timing": ChoiceEditor})
        set_chapter(self, "explanation/v2x-simulation.md")

    def facts(self, parameters: Parameters) -> list[Fact]:
        """What is offered to the receiver, and what its stack serves."""
        assert isinstance(parameters, SimulationParameters)
        tr = QCoreApplication.translate
        most = "" if parameters.generation is Generation.FIXED and not parameters.dcc else "≤ "
        receiver = parameters.stack_timing().receiver
        benign_ms = receiver.service_ms[parameters.security]
        load = parameters.benign_messages * benign_ms
        if parameters.attacking:
            load += parameters.attack_messages * receiver.attack_ms[parameters.attack]
        return [
            Fact(
                tr("SimulationPanel", "Offered to the receiver"),
                tr("SimulationPanel", "{0}{1:,.0f} packets/s").format(
                    most, parameters.benign_messages + parameters.attack_messages
                ),
                tr("SimulationPanel", "{0}{1:,.0f} of benign stations, {2:,.0f} of attackers").format(
                    most, parameters.benign_messages, parameters.attack_messages
                ),
            ),
            Fact(
                tr("SimulationPanel", "Offered load of its stack"),
                f"{most}{load / 10 / parameters.receiver_cores:,.0f} %",
                tr("SimulationPanel", "{0:g} ms for a CAM; room for {1:,} packets").format(benign_ms, receiver.room),
            ),
        ]
