"""The page of use cases: a check list that fills itself while a run is in progress, and the scenario."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import ceil
from typing import Any

from PySide6.QtCore import QCoreApplication, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QTabBar, QVBoxLayout, QWidget

from labconsole.errors import UserError
from labconsole.model.trial import Parameters
from labconsole_ui.form.token_editor import TokenEditor
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.layouts import ScrollPage
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_ui.widgets.status_text import duration
from labconsole_v2x.panel.use_cases.use_case_cards import COUNTED, CaseDetails, SummaryCard
from labconsole_v2x.panel.use_cases.use_case_list import UseCaseList
from labconsole_v2x.panel.use_cases.use_case_monitor import RunResults, UseCaseMonitor
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.use_case_reference import reported_results
from labconsole_v2x.use_cases.catalogue import CODES
from labconsole_v2x.use_cases.use_case_parameters import ALL, UseCaseParameters

CHECK_LIST, SCENARIO = range(2)
_COLUMNS_KEY, _SPLIT_KEY = "v2x.use-cases/columns", "v2x.use-cases/split"
_LEAST_HEIGHT, _EDGE = 330, 16
_SHARES = (690, 350)
_START_S = 2.0
_CASE_S = 0.2
_LONG_S = {"F-SIG-03": 3.2, "A-SIG-04": 2.8, "F-CON-01": 1.2, "A-CON-01": 2.8, "A-PSN-01": 1.0, "A-CER-05": 0.7}
"""Measured on an AMD EPYC, 2 cores: cases that send for a while, or very many packets."""


def make_use_case_panel(context: PanelContext) -> UseCasePanel:
    """The factory that the manifest names."""
    return UseCasePanel(context)


class UseCasePanel(TrialPanel):
    """The usual panel on the second of two tabs; the check marks of the first are its parameter `cases`."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, {"token": TokenEditor})
        set_chapter(self, "explanation/v2x-use-cases.md")

    def pieces(self) -> Iterator[None]:
        """Build the page."""
        self.monitor = UseCaseMonitor(self.context, self)
        self._running = False
        yield from super().pieces()
        self.monitor.changed.connect(self._show_results)
        self._show_results(self.monitor.shown)
        self.run_bar.problem_clicked.connect(lambda: self.tabs.setCurrentIndex(SCENARIO))
        self._fit_height()
        if self.isVisible():
            self.monitor.read_newest()

    def facts(self, parameters: Parameters) -> list[Fact]:
        """How many cases, how long they take, and where the stations' keys are."""
        assert isinstance(parameters, UseCaseParameters)
        tr = QCoreApplication.translate
        codes = parameters.selected
        counted = sum(code in COUNTED for code in codes)
        software, token = tr("UseCasePanel", "in software"), tr("UseCasePanel", "in token {0}")
        keys = token.format(parameters.token) if parameters.backend is Backend.TOKEN else software
        return [
            Fact(
                tr("UseCasePanel", "Use cases"),
                tr("UseCasePanel", "{0} of {1}, and {2} functions").format(counted, len(COUNTED), len(codes) - counted),
                tr("UseCasePanel", "The codes of Tables 2.6 to 2.17, and the underlying functions of section 2.3.1"),
            ),
            Fact(
                tr("UseCasePanel", "A run takes about"),
                duration(expected_seconds(codes)),
                tr("UseCasePanel", "Two cases send packets for two seconds each; the others take as long as they need"),
            ),
            Fact(
                tr("UseCasePanel", "Keys of stations"),
                keys,
                tr(
                    "UseCasePanel",
                    "A token creates them, signs and verifies; authorities' and encryption keys are in software",
                ),
            ),
        ]

    def use_parameters(self, values: Mapping[str, Any]) -> None:
        """Fill the form, and show it."""
        super().use_parameters(values)
        self.building.when_complete(lambda: self.tabs.setCurrentIndex(SCENARIO))

    def run_failed(self) -> None:
        """Run the cases again that failed in the run that is shown."""
        self._choose(self.monitor.shown.failed)
        self.run()

    def showEvent(self, event: QShowEvent) -> None:
        """Read the newest verdicts."""
        super().showEvent(event)
        if self.building.complete:
            self.monitor.read_newest()

    def hideEvent(self, event: QHideEvent) -> None:
        """Store the widths."""
        super().hideEvent(event)
        if self.building.complete:
            self.context.state.set(_COLUMNS_KEY, self.list.header().saveState())
            self.context.state.set(_SPLIT_KEY, self.split.saveState())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let the list fill the window."""
        super().resizeEvent(event)
        if self.building.complete:
            self._fit_height()

    # Check marks and results

    def _form_validated(self) -> None:
        super()._form_validated()
        if isinstance(self.form.parameters, UseCaseParameters):
            self.list.check(self.form.parameters.selected)

    def _choose(self, codes: Collection[str]) -> None:
        """Enter these codes as the parameter `cases`; none are a problem that the form reports."""
        self.list.check(codes)
        text = ALL if len(codes) == len(CODES) else ", ".join(code for code in CODES if code in codes)
        self.form.set_values({**self.form.values(), "cases": text})

    def _show_results(self, shown: RunResults) -> None:
        if shown.running and not self._running:
            self._scroll_to_list()
        self._running = shown.running
        self.summary.show_results(shown)
        self.list.show_results(shown)
        self.details.show_results(shown)
        self.failed_button.setEnabled(bool(shown.failed) and not shown.running)
        self.open_run_button.setEnabled(shown.run_id is not None)

    def _open_run(self) -> None:
        if self.monitor.shown.run_id is not None:
            self.context.open_run(self.monitor.shown.run_id)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.list.as_tsv(everything=True))
        self.context.show_message(Message(Tone.GOOD, self.tr("The list of use cases is on the clipboard.")))

    # Building

    def _fill(self, column: QVBoxLayout) -> Iterator[None]:
        page = column.parentWidget()
        yield from self._add_heading(column)
        self.tabs = QTabBar(page)
        self.tabs.setExpanding(False)
        self.tabs.setAccessibleName(self.tr("Parts of the page"))
        for text in (self.tr("Check list"), self.tr("Scenario")):
            self.tabs.addTab(text)
        column.addWidget(self.tabs)
        self._parts = tuple(QWidget(page) for _tab in range(self.tabs.count()))
        columns = [QVBoxLayout(part) for part in self._parts]
        for part, inner in zip(self._parts, columns, strict=True):
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(8)
            column.addWidget(part)
        self.tabs.currentChanged.connect(self._show_part)
        self._show_part(CHECK_LIST)
        yield
        yield from self._add_list(columns[CHECK_LIST])
        yield from self._add_form(columns[SCENARIO])

    def _add_list(self, column: QVBoxLayout) -> Iterator[None]:
        theme, page = self.context.theme, self._parts[CHECK_LIST]
        source = self._reported()
        self.summary = SummaryCard(theme, page)
        column.addWidget(self.summary)
        column.addLayout(self._buttons(page))
        yield
        self.split = QSplitter(Qt.Orientation.Horizontal, page)
        self.split.setChildrenCollapsible(False)
        self.list = UseCaseList(theme, source, self.split)
        self.list.restore_columns(self.context.state.blob(_COLUMNS_KEY))
        self.list.checked_changed.connect(lambda: self._choose(self.list.checked))
        yield
        self.details = CaseDetails(theme, source, self.split)
        self.list.chosen.connect(self.details.show_case)
        self.split.setSizes(list(_SHARES))
        self.split.restoreState(self.context.state.blob(_SPLIT_KEY))
        self.split.setFixedHeight(_LEAST_HEIGHT)
        column.addWidget(self.split)
        yield

    def _buttons(self, page: QWidget) -> QHBoxLayout:
        theme, line = self.context.theme, QHBoxLayout()
        line.setSpacing(8)
        self.all_button = QPushButton(self.tr("Chec&k all"), page)
        self.all_button.clicked.connect(lambda _checked: self._choose(CODES))
        self.none_button = QPushButton(self.tr("Check n&one"), page)
        self.none_button.clicked.connect(lambda _checked: self._choose(()))
        self.failed_button = QPushButton(self.tr("Run fa&iled again"), page)
        theme.bind_icon(self.failed_button, "repeat")
        self.failed_button.setToolTip(self.tr("Run the cases that failed in the run that is shown"))
        self.failed_button.clicked.connect(lambda _checked: self.run_failed())
        self.open_run_button = QPushButton(self.tr("Open ru&n"), page)
        self.open_run_button.setToolTip(self.tr("Its verdicts, figures and evidence, to save"))
        self.open_run_button.clicked.connect(lambda _checked: self._open_run())
        self.copy_button = QPushButton(self.tr("Cop&y list"), page)
        theme.bind_icon(self.copy_button, "copy")
        self.copy_button.setToolTip(self.tr("Copy all cases with their results, as tab-separated text"))
        self.copy_button.clicked.connect(lambda _checked: self._copy())
        for button in (self.all_button, self.none_button, self.failed_button):
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(self.open_run_button)
        line.addWidget(self.copy_button)
        return line

    def _reported(self) -> Mapping[str, str]:
        """What Table 2.17 reports, by code; nothing, with a message, where the file cannot be read."""
        try:
            return reported_results(self.context.plugins)
        except UserError as error:
            self.context.show_message(Message(Tone.BAD, str(error)))
            return {}

    def _show_part(self, shown: int) -> None:
        for number, part in enumerate(self._parts):
            part.setVisible(number == shown)

    def _fit_height(self) -> None:
        """The list takes what the window leaves; once the layout has its places."""
        QTimer.singleShot(0, self.split, self._set_height)

    def _set_height(self) -> None:
        if self.split.isVisible():
            height = self._area.viewport().height() - self._place(self.split) - _EDGE
            self.split.setFixedHeight(max(_LEAST_HEIGHT, height))

    def _scroll_to_list(self) -> None:
        """The panes of a run in progress cover the lower half of a small window: counts and list are scrolled up."""
        hidden = self._place(self.split) + self.split.height() > self._area.viewport().height()
        if self.split.isVisible() and hidden:
            self._area.verticalScrollBar().setValue(self._place(self.summary) - _EDGE)

    @property
    def _area(self) -> ScrollPage:
        area = self.findChild(ScrollPage)
        assert isinstance(area, ScrollPage)
        return area

    def _place(self, widget: QWidget) -> int:
        """Where a widget begins in the scrolled content, px from its top."""
        content = self._area.widget()
        assert content is not None
        return widget.mapTo(content, QPoint(0, 0)).y()


def expected_seconds(codes: Collection[str]) -> float:
    """How long a run of these cases takes, about, in steps of 5 s."""
    return 5.0 * ceil((_START_S + sum(_LONG_S.get(code, _CASE_S) for code in codes)) / 5)
