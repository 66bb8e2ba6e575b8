"""The page of live attacks: that of the live trial, with what attackers offer to a receiver."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_number
from labconsole.model.trial import Parameters
from labconsole_ui.panels.trial_panel import Fact, PanelContext
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.panel.live_panel import LivePanel


def make_attack_panel(context: PanelContext) -> AttackPanel:
    """The factory that the manifest names."""
    return AttackPanel(context)


class AttackPanel(LivePanel):
    """The live trial's tabs; attackers are stations of the list and the map, with the highest numbers."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        set_chapter(self, "explanation/v2x-attacks.md")

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The load of attackers and their share, then the facts of the live trial."""
        assert isinstance(parameters, AttackParameters)
        tr = QCoreApplication.translate
        offered = parameters.messages_on_air
        attacks = Fact(
            tr("AttackPanel", "Attackers"),
            tr("AttackPanel", "{0} packets/s").format(format_number(parameters.attack_messages)),
            tr("AttackPanel", "{0:.2f} % of what a receiver hears is benign: {1} of {2} packets a second").format(
                100 * parameters.most_messages / offered,
                format_number(parameters.most_messages),
                format_number(offered),
            ),
        )
        return [attacks, *super().facts(parameters)]
