"""The page of the signing service: token, pool and run as they are now; its scenario; the planner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QTabBar, QVBoxLayout, QWidget

from labconsole.store.records import NewScenario
from labconsole.trial import Parameters
from labconsole_keypool.choices import KeySource
from labconsole_keypool.live.service_parameters import ServiceParameters
from labconsole_keypool.panel.editors import editors
from labconsole_keypool.panel.facts import service_facts
from labconsole_keypool.panel.planner_view import PlannerView
from labconsole_keypool.panel.pool_actions import PoolActions
from labconsole_keypool.panel.pool_card import PoolCard
from labconsole_keypool.panel.pool_watch import PoolWatch
from labconsole_keypool.panel.run_plots import RunPlots
from labconsole_keypool.panel.token_card import TokenCard
from labconsole_ui.panel import Fact, PanelContext, TrialPanel
from labconsole_ui.theme import FontRole

SERVICE, SCENARIO, PLANNER = range(3)
TOKEN_ACTIONS = ("keypool.initialise-token", "keypool.add-token")


def make_panel(context: PanelContext) -> ServicePanel:
    """The factory that the manifest names."""
    return ServicePanel(context)


class ServicePanel(TrialPanel):
    """The usual panel on one of three tabs; the first shows what goes on, the third plans."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, editors(context.theme))
        self.both_button = QPushButton(self.tr("Run &both and compare"))
        self.both_button.setToolTip(self.tr("Run with the pool and without it, then open the comparison"))
        self.run_bar.add_way(self.both_button, "compare")
        self.pool_actions = PoolActions(context, self.form.values, self)
        self.watch = PoolWatch(context, self)
        self._connect_service()
        self._follow_form()

    def facts(self, parameters: Parameters) -> list[Fact]:
        """What the pool means for these parameters."""
        assert isinstance(parameters, ServiceParameters)
        return service_facts(parameters)

    def showEvent(self, event: QShowEvent) -> None:
        """Look at token and store while somebody looks at the page."""
        super().showEvent(event)
        self.token_card.show_token(self._token())
        self.watch.set_active(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Nobody looks."""
        super().hideEvent(event)
        self.watch.set_active(False)

    def use_parameters(self, values: Mapping[str, Any]) -> None:
        """Fill the form, and show it."""
        super().use_parameters(values)
        self.tabs.setCurrentIndex(SCENARIO)

    def run_both(self) -> None:
        """Run what the form holds with the pool and without, as one campaign; both are compared when they are done."""
        scenarios = [scenario for source in KeySource if (scenario := self._scenario(source)) is not None]
        if len(scenarios) == len(KeySource):
            self.context.launcher.run_together(
                scenarios,
                "with-and-without-pool",
                self.tr("With and without pool"),
                self.run_bar.repeats_box.value(),
                seed=self.presets.seed,
            )

    def _scenario(self, source: KeySource) -> NewScenario | None:
        """What the form holds, with keys from there; where it is wrong, None, and the first fault is shown."""
        self.form.judge()
        parameters = self.form.parameters
        if parameters is None:
            self._show_problem()
            return None
        names = {KeySource.POOL: self.tr("With pool"), KeySource.GENERATED: self.tr("Without pool")}
        changed = type(parameters).model_validate({**parameters.model_dump(mode="json"), "keys": source.value})
        return NewScenario(
            names[source], self.context.trial.kind, changed.model_dump(mode="json"), self.presets.thresholds
        )

    def _show_problem(self) -> None:
        self.tabs.setCurrentIndex(SCENARIO)
        self.form.show_first_problem()

    # What the parts tell one another

    def _connect_service(self) -> None:
        watch, pool, actions = self.watch, self.pool_card, self.pool_actions
        watch.state.connect(pool.show_state)
        watch.points.connect(self.plots.show_points)
        watch.framed.connect(self.plots.take)
        watch.drawn.connect(self.plots.draw)
        watch.began.connect(self.plots.begin)
        watch.began.connect(pool.picture.forget_levels)
        pool.fill_wanted.connect(lambda: actions.fill())
        pool.purge_wanted.connect(lambda: actions.purge())
        pool.export_wanted.connect(lambda: actions.export_shares())
        pool.load_wanted.connect(lambda: actions.load_shares())
        self.token_card.initialise_wanted.connect(lambda: actions.initialise())
        self.token_card.add_wanted.connect(lambda: actions.add_token())
        actions.ended.connect(self._action_ended)
        self.form.judged.connect(self._follow_form)
        self.run_bar.problem_clicked.connect(self._show_problem)
        self.both_button.clicked.connect(lambda: self.run_both())

    def _action_ended(self, name: str) -> None:
        self.watch.count_again()
        if name in TOKEN_ACTIONS:
            self.token_card.look_again()

    def _follow_form(self) -> None:
        parameters = self.form.parameters
        if isinstance(parameters, ServiceParameters):
            pool = parameters.keys is KeySource.POOL
            run = self.tr("&Run with pool") if pool else self.tr("&Run without pool")
            self.run_bar.run_button.setText(run)
            self.pool_card.picture.set_pool(parameters.key_store, parameters.low_water if pool else None)
            self.watch.watch_store(parameters.key_store)
            if self.isVisible():
                self.token_card.show_token(parameters.token)

    def _offer_campaign(self) -> None:
        """A campaign of the same scenario with the pool and without is what *Run both* does: it is offered once."""
        super()._offer_campaign()
        profile = self.presets.profile
        if profile is not None and [one.parameters["keys"] for one in profile.scenarios] == list(KeySource):
            self.run_bar.show_campaign(0, "")

    def _use_planned(self, values: Mapping[str, Any]) -> None:
        """Put what was planned into the form, beside what stands there, and show it."""
        self.use_parameters({**self.form.values(), **values})

    def _token(self) -> str:
        return str(self.form.values()["token"])

    # Building

    def _fill(self, column: QVBoxLayout) -> None:
        theme, page = self.context.theme, self.form.parentWidget()
        assert page is not None
        column.setSpacing(8)
        title = QLabel(self.context.trial.title)
        title.setFont(theme.font(FontRole.TITLE))
        description = QLabel(self.context.trial.description)
        description.setProperty("muted", True)
        description.setWordWrap(True)
        heading = QHBoxLayout()
        heading.setSpacing(14)
        heading.addWidget(title)
        heading.addWidget(description, 1)
        self.tabs = QTabBar(page)
        self.tabs.setExpanding(False)
        self.tabs.setAccessibleName(self.tr("Parts of the page"))
        for text in (self.tr("Service"), self.tr("Scenario"), self.tr("Planner")):
            self.tabs.addTab(text)
        self.pool_card = PoolCard(theme, page)
        self.token_card = TokenCard(theme, page)
        self.plots = RunPlots(theme, page)
        service, _ = _part(page, self.pool_card, self.token_card, self.plots)
        scenario, inner = _part(page, self.form, self.facts_card)
        inner.addLayout(self._warnings)
        inner.addWidget(self.sites)
        self.planner = PlannerView(self.context, values=self.form.values, use=self._use_planned, parent=page)
        self._parts = (service, scenario, self.planner)
        column.addLayout(heading)
        column.addWidget(self.presets)
        column.addWidget(self.tabs)
        for part in self._parts:
            column.addWidget(part)
        column.addStretch(1)
        self.tabs.currentChanged.connect(self._show_part)
        self._show_part(SERVICE)

    def _show_part(self, shown: int) -> None:
        for number, part in enumerate(self._parts):
            part.setVisible(number == shown)


def _part(page: QWidget, *widgets: QWidget) -> tuple[QWidget, QVBoxLayout]:
    """A part of the page with these widgets beneath one another."""
    part = QWidget(page)
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    for widget in widgets:
        column.addWidget(widget)
    return part, column
