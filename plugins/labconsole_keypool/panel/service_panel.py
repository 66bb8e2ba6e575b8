"""The page of the signing service: token, pool and run as they are now; its scenario; the planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QTabBar, QVBoxLayout, QWidget

from labconsole.model.trial import Parameters
from labconsole.store.records import NewScenario
from labconsole_keypool.choices import KeySource
from labconsole_keypool.panel.facts import service_facts
from labconsole_keypool.panel.planner_view import PlannerView
from labconsole_keypool.panel.pool_card import PoolCard
from labconsole_keypool.panel.pool_dialogs import PoolDialogs
from labconsole_keypool.panel.pool_monitor import PoolMonitor
from labconsole_keypool.panel.run_plots import RunPlots
from labconsole_keypool.panel.token_card import TokenCard
from labconsole_keypool.panel.trial_panels import editors
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.widgets.help_chapter import set_chapter

SERVICE, SCENARIO, PLANNER = range(3)
TOKEN_ACTIONS = ("keypool.initialise-token", "keypool.add-token")


def make_panel(context: PanelContext) -> ServicePanel:
    """The factory that the manifest names."""
    return ServicePanel(context)


class ServicePanel(TrialPanel):
    """The usual panel on one of three tabs; the first shows the run in progress, the third plans."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, editors(context.theme))
        set_chapter(self, "reference/key-pool-page.md")

    def pieces(self) -> Iterator[None]:
        """Build the page: the content of the first tab, the form of the second, the planner last."""
        yield from super().pieces()
        self.both_button = QPushButton(self.tr("Run &both and compare"))
        self.both_button.setToolTip(self.tr("Run with the pool and without it, then open the comparison"))
        self.run_bar.add_way(self.both_button, "compare")
        self.pool_actions = PoolDialogs(self.context, self.form.values, self)
        self.watch = PoolMonitor(self.context, self)
        self._connect_service()
        self._follow_form()
        yield
        yield from self.planner.pieces()
        if self.isVisible():
            self._begin_watching()

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The facts of the pool and the load for these parameters."""
        assert isinstance(parameters, ServiceParameters)
        return service_facts(parameters)

    def showEvent(self, event: QShowEvent) -> None:
        """Read token and store while the page is visible."""
        super().showEvent(event)
        if self.building.complete:
            self._begin_watching()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop reading token and store."""
        super().hideEvent(event)
        if self.building.complete:
            self.watch.set_active(False)

    def _begin_watching(self) -> None:
        self.token_card.show_token(self._token())
        self.watch.set_active(True)

    def use_parameters(self, values: Mapping[str, Any]) -> None:
        """Fill the form, and show it."""
        super().use_parameters(values)
        self.building.when_complete(lambda: self.tabs.setCurrentIndex(SCENARIO))

    def run_both(self) -> None:
        """Run the scenario of the form with and without the pool, as one campaign with a comparison at its end."""
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
        """The parameters of the form; None if they are invalid, and the first fault is shown."""
        self.form.validate()
        parameters = self.form.parameters
        if parameters is None:
            self._show_problem()
            return None
        names = {KeySource.POOL: self.tr("With pool"), KeySource.GENERATED: self.tr("Without pool")}
        changed = type(parameters).model_validate({**parameters.model_dump(mode="json"), "keys": source.value})
        return NewScenario(
            names[source],
            self.context.trial.kind,
            changed.model_dump(mode="json"),
            self.presets.thresholds,
            self.presets.placement,
        )

    def _show_problem(self) -> None:
        self.tabs.setCurrentIndex(SCENARIO)
        self.form.show_first_problem()

    # Signals between the parts

    def _connect_service(self) -> None:
        watch, pool = self.watch, self.pool_card
        watch.state.connect(pool.show_state)
        watch.points.connect(self.plots.show_points)
        watch.framed.connect(self.plots.take)
        watch.drawn.connect(self.plots.draw)
        watch.began.connect(self.plots.begin)
        watch.began.connect(pool.picture.reset_levels)
        self.pool_actions.ended.connect(self._action_ended)
        self.form.validated.connect(self._follow_form)
        self.run_bar.problem_clicked.connect(self._show_problem)
        self.both_button.clicked.connect(lambda: self.run_both())

    def _action_ended(self, name: str) -> None:
        self.watch.recount()
        if name in TOKEN_ACTIONS:
            self.token_card.refresh()

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
        """Hide the campaign of a profile that only repeats *Run both*."""
        super()._offer_campaign()
        profile = self.presets.profile
        if profile is not None and [one.parameters["keys"] for one in profile.scenarios] == list(KeySource):
            self.run_bar.show_campaign(0, "")

    def _use_planned(self, values: Mapping[str, Any]) -> None:
        """Put the planned values into the form, keep its other values, and show it."""
        self.use_parameters({**self.form.values(), **values})

    def _token(self) -> str:
        return str(self.form.values()["token"])

    # Building

    def _fill(self, column: QVBoxLayout) -> Iterator[None]:
        theme, page = self.context.theme, column.parentWidget()
        yield from self._add_heading(column)
        self.tabs = QTabBar(page)
        self.tabs.setExpanding(False)
        self.tabs.setAccessibleName(self.tr("Parts of the page"))
        for text in (self.tr("Service"), self.tr("Scenario"), self.tr("Planner")):
            self.tabs.addTab(text)
        column.addWidget(self.tabs)
        self._parts = tuple(QWidget(page) for _tab in range(self.tabs.count()))
        service, scenario, planning = (_column(part) for part in self._parts)
        for part in self._parts:
            column.addWidget(part)
        self.tabs.currentChanged.connect(self._show_part)
        self._show_part(SERVICE)
        self.pool_card = pool = PoolCard(theme, self._parts[SERVICE])
        pool.fill_wanted.connect(self._waiting(lambda: self.pool_actions.fill()))
        pool.purge_wanted.connect(self._waiting(lambda: self.pool_actions.purge()))
        pool.export_wanted.connect(self._waiting(lambda: self.pool_actions.export_shares()))
        pool.load_wanted.connect(self._waiting(lambda: self.pool_actions.load_shares()))
        service.addWidget(self.pool_card)
        yield
        self.token_card = token = TokenCard(theme, self._parts[SERVICE])
        token.initialise_wanted.connect(self._waiting(lambda: self.pool_actions.initialise()))
        token.add_wanted.connect(self._waiting(lambda: self.pool_actions.add_token()))
        service.addWidget(self.token_card)
        yield
        self.plots = RunPlots(theme, self._parts[SERVICE])
        service.addWidget(self.plots)
        yield from self.plots.pieces()
        yield from self._add_form(scenario)
        self.planner = PlannerView(
            self.context, values=self.form.values, use=self._use_planned, parent=self._parts[PLANNER]
        )
        planning.addWidget(self.planner)

    def _waiting(self, open_dialog: Callable[[], object]) -> Callable[[], None]:
        """The slot of a button: a click before the page is complete opens the dialog once it is."""
        return lambda: self.building.when_complete(open_dialog)

    def _show_part(self, shown: int) -> None:
        for number, part in enumerate(self._parts):
            part.setVisible(number == shown)


def _column(part: QWidget) -> QVBoxLayout:
    """A column for a part of the page."""
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return column
