"""The planner in the window: what a peak needs, found in three ways, and the forecast of the next week."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from labconsole.model.field_spec import FieldSpec
from labconsole.store.reader import Reader
from labconsole_keypool.choices import ArrivalPattern
from labconsole_keypool.panel.forecast_card import ForecastCard
from labconsole_keypool.panel.plan_table_view import PlanTableView
from labconsole_keypool.planning.arrival_log import ArrivalLog, arrivals_of_runs, read_log
from labconsole_keypool.planning.forecast import fit
from labconsole_keypool.planning.plan import Plan, make_plan
from labconsole_keypool.planning.plan_measurements import METRICS
from labconsole_keypool.planning.planner_parameters import PlannerParameters
from labconsole_ui.form.editors import ChoiceEditor, Editor
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.panels.trial_panel import PanelContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label

Values = Mapping[str, Any]

_COPIED_FIELDS = ("rate", "timing", "sign", "key_generation", "threads", "queue_limit")
_RATED = (ArrivalPattern.CONSTANT, ArrivalPattern.POISSON)


class PlannerView(QWidget):
    """`values` gives what the form of the scenario holds, `use` puts planned values into it.

    Plans are computed on a separate thread, one at a time; later input is computed after the current plan.
    """

    def __init__(
        self,
        context: PanelContext,
        *,
        values: Callable[[], Values],
        use: Callable[[Values], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        set_chapter(self, "how-to/plan-a-key-pool.md")
        self._database = context.bridge.queue.store.path
        self._values, self._use = values, use
        self._log: ArrivalLog | None = None
        self._plan: Plan | None = None
        self._busy = self._stale = False
        self._begun = self._complete = False
        self._theme = context.theme
        self._finished = context.bridge.finished
        self._background = Background(self)

    def pieces(self) -> Iterator[None]:
        """Build the planner, some parts at a time."""
        theme = self._theme
        self.scenario_button = self._button(self.tr("Take from the &scenario"), self.fill_from_scenario)
        self.import_button = self._button(self.tr("&Import log …"), self._import)
        self.runs_button = self._button(self.tr("&Log of past runs"), self.use_past_runs)
        self.forget_button = self._button(self.tr("For&get log"), self.clear_log)
        self.use_button = self._button(self.tr("Use thes&e values"), self.use_values)
        self.use_button.setEnabled(False)
        self.forget_button.hide()
        theme.bind_icon(self.import_button, "import")
        self.status = self._line()
        self.trouble = self._line()
        self.trouble.setProperty("tone", "bad")
        self.trouble.hide()
        self.form = ParameterForm(PlannerParameters, theme, {"timing": self._timing_editor}, self, in_pieces=True)
        column = self._arrange()
        yield
        yield from self.form.pieces({}, None)
        self.figures = PlanTableView(theme, self)
        self.forecast = ForecastCard(theme, self)
        column.addWidget(self.figures)
        column.addWidget(self.forecast)
        self.form.validated.connect(self._plan_when_seen)
        self._finished.connect(self._run_ended)
        self._complete = True
        if self.isVisible():
            self._begin()

    def showEvent(self, event: QShowEvent) -> None:
        """Start with the values of the scenario; later, compute again with runs that finished meanwhile."""
        super().showEvent(event)
        if self._begun:
            self._plan_when_seen()
        elif self._complete:
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        self.fill_from_scenario()

    @property
    def plan(self) -> Plan | None:
        """The last computed plan."""
        return self._plan

    def fill_from_scenario(self) -> None:
        """Fill the form with the scenario's rate, device and service; the rest keeps its value."""
        scenario = self._values()
        values = {**self.form.values(), **{name: scenario[name] for name in _COPIED_FIELDS if scenario.get(name)}}
        values["queue_limit"] = scenario.get("queue_limit", values["queue_limit"])
        if scenario.get("arrivals") in _RATED and scenario.get("rate"):
            values["duration_s"] = float(scenario["requests"]) / float(scenario["rate"])
        self.form.set_values(values)

    def import_log(self, path: Path) -> None:
        """Forecast from a log of arrivals; a faulty log is reported, and the one before stays."""
        self._use_log(partial(read_log, path))

    def use_past_runs(self) -> None:
        """Forecast from the arrivals of past runs."""
        self._use_log(partial(_log_of_runs, self._database))

    def clear_log(self) -> None:
        """Plan without a forecast again."""
        self._log = None
        self.trouble.hide()
        self.forecast.forget()
        self.forget_button.hide()
        self._plan_when_seen()

    def use_values(self) -> None:
        """Put the pool's size into the form of the scenario."""
        if self._plan is None:
            return
        keys = self._plan.pool_keys
        self._use({"pool_at_start": keys, "pool_limit": max(keys, int(self._values().get("pool_limit") or 0))})

    def _import(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self, self.tr("Import a log of arrivals"), str(Path.home()), self.tr("CSV files (*.csv);;All files (*)")
        )
        if name:
            self.import_log(Path(name))

    def _use_log(self, read: Callable[[], ArrivalLog]) -> None:
        self._background.submit(partial(_checked, read), self._have_log, self._fail)

    def _have_log(self, log: ArrivalLog) -> None:
        self._log = log
        self.forget_button.show()
        self._plan_when_seen()

    def _run_ended(self, _run: int, _status: object) -> None:
        self._plan_when_seen()

    def _plan_when_seen(self) -> None:
        """Work out the plan of what is entered, once for all that is entered until that is done."""
        parameters = self.form.parameters
        if not self.isVisible() or parameters is None:
            return
        if self._busy:
            self._stale = True
            return
        self._busy = True
        self.status.setText(self.tr("Working it out …"))
        assert isinstance(parameters, PlannerParameters)
        self._background.submit(partial(_planned, parameters, self._database, self._log), self._show, self._fail_plan)

    def _show(self, plan: Plan) -> None:
        self._plan = plan
        self.trouble.hide()
        self.figures.show_rows(plan.rows)
        if plan.forecast is not None and plan.generation is not None:
            self.forecast.show_forecast(plan.forecast, plan.generation)
        self.use_button.setEnabled(True)
        self.use_button.setToolTip(self.tr("{keys} keys in the pool").format(keys=f"{plan.pool_keys:,}"))
        self._done()

    def _fail_plan(self, sentence: str) -> None:
        self._fail(sentence)
        self._done()

    def _fail(self, sentence: str) -> None:
        self.trouble.setText(sentence)
        self.trouble.show()

    def _done(self) -> None:
        self._busy = False
        self.status.setText("")
        if self._stale:
            self._stale = False
            self._plan_when_seen()

    def _arrange(self) -> QVBoxLayout:
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.scenario_button, self.import_button, self.runs_button, self.forget_button):
            buttons.addWidget(button)
        buttons.addWidget(self.status, 1)
        buttons.addWidget(self.use_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(buttons)
        column.addWidget(self.trouble)
        column.addWidget(self.form)
        return column

    def _button(self, text: str, clicked: Callable[[], None]) -> QPushButton:
        button = QPushButton(text, self)
        button.clicked.connect(lambda _checked: clicked())
        return button

    def _timing_editor(self, spec: FieldSpec, parent: QWidget) -> Editor:
        choices = ((value, label or self.tr("None: own times")) for value, label in spec.choices)
        return ChoiceEditor(replace(spec, choices=tuple(choices)), parent)

    def _line(self) -> QLabel:
        label = plain_label("", self)
        label.setWordWrap(True)
        label.setProperty("muted", True)
        return label


def _checked(read: Callable[[], ArrivalLog]) -> ArrivalLog:
    """A log that can be forecast from. Raises UserError: it cannot be read, or is too short."""
    log = read()
    fit(log)
    return log


def _planned(parameters: PlannerParameters, database: Path, log: ArrivalLog | None) -> Plan:
    with Reader(database) as reader:
        runs = reader.runs(metrics=METRICS)
    return make_plan(parameters, runs, log)


def _log_of_runs(database: Path) -> ArrivalLog:
    with Reader(database) as reader:
        return arrivals_of_runs(reader)
