"""A trial's panel: what plugins build on, and the default one made from the trial's description alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from labconsole.analysis.parameter_texts import describe_parameters
from labconsole.model.field_spec import FieldSpec
from labconsole.model.placement import Placement
from labconsole.model.plugin import Plugin, Plugins
from labconsole.model.trial import Parameters, Trial
from labconsole.profiles.profile import Profile, ProfileError
from labconsole.reference.trials import trial_page_name
from labconsole.store.records import NewScenario
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.panels.presets import PresetRow
from labconsole_ui.panels.run_bar import RunBar
from labconsole_ui.panels.sites_table import SitesTable
from labconsole_ui.runs.run_launcher import RunLauncher
from labconsole_ui.runtime.incremental import PageBuilder
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import IconLabel
from labconsole_ui.widgets.layouts import ScrollPage
from labconsole_ui.widgets.message_bar import Message, Tone

COLUMN_WIDTH = 1120


@dataclass(frozen=True)
class PanelContext:
    """What a panel gets from the window: the trial, and what it can use of the window."""

    trial: Trial[Any]
    plugin: Plugin
    plugins: Plugins
    bridge: QueueBridge
    launcher: RunLauncher
    theme: Theme
    state: WindowState
    open_run: Callable[[int], None]
    show_message: Callable[[Message], None]


@dataclass(frozen=True)
class Fact:
    """A fact about the parameters that is shown before the run: name, value, and meaning."""

    name: str
    value: str
    meaning: str = ""


class TrialPanel(QWidget):
    """Title, presets, form, facts, warnings, sites, run bar; a plugin may replace editors and add facts."""

    presets: PresetRow
    form: ParameterForm
    facts_card: _FactsCard
    sites: SitesTable
    run_bar: RunBar

    def __init__(self, context: PanelContext, editors: Mapping[str, EditorFactory] | None = None) -> None:
        """The panel opens as an empty frame; the rest is built when `building` is complete."""
        super().__init__()
        set_chapter(self, trial_page_name(context.trial.kind))
        self.context = context
        self._editors = editors
        self._kept = context.state.mapping(self._state_key())
        for keys, action in (("Ctrl+Return", self.run), ("Ctrl+Shift+Return", self.add)):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(action)
        self.building = PageBuilder(self, self.pieces())

    def pieces(self) -> Iterator[None]:
        """Build the panel from the top down, the order of the Tab key; a plugin's panel adds its own."""
        area = ScrollPage(COLUMN_WIDTH, 16, self)
        content = QVBoxLayout()
        content.setSpacing(8)
        area.column.addLayout(content)
        area.column.addStretch(1)  # first, so that what is built does not move
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(area, 1)
        yield from self._fill(content)
        line = QFrame()
        line.setFrameShape(QFrame.Shape.HLine)
        line.setForegroundRole(self.palette().ColorRole.Mid)
        line.setFrameShadow(QFrame.Shadow.Plain)
        self.run_bar = RunBar(self.context.bridge, self.context.theme, COLUMN_WIDTH, self)
        if isinstance(self._kept.get("repeats"), int):
            self.run_bar.repeats_box.setValue(self._kept["repeats"])
        column.addWidget(line)
        column.addWidget(self.run_bar)
        self._connect()
        self._form_validated()

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The facts that a plugin's panel shows about the parameters before the run."""
        return []

    def use_parameters(self, values: Mapping[str, Any]) -> None:
        """Fill the form with the parameters of an earlier run, once it is complete."""
        self.building.when_complete(lambda: self.form.set_values(values))

    def run(self) -> None:
        """Run the parameters of the form before waiting runs."""
        self._launch(at_once=True)

    def add(self) -> None:
        """Run the parameters of the form after waiting runs."""
        self._launch(at_once=False)

    def run_campaign(self) -> None:
        """Queue all runs of the chosen profile, with the edits of the form."""
        self.building.finish()
        self.form.validate()
        if self.form.parameters is None:
            self.form.show_first_problem()
            return
        try:
            campaign = self.presets.campaign()
        except ProfileError:
            return  # the line above the buttons shows the reason
        if campaign is not None:
            self.context.launcher.run_campaign(campaign, at_once=True)

    def _launch(self, at_once: bool) -> None:
        self.building.finish()
        self.form.validate()
        parameters = self.form.parameters
        if parameters is None:
            self.form.show_first_problem()
            return
        trial, presets = self.context.trial, self.presets
        values = parameters.model_dump(mode="json")
        self.context.launcher.run_scenario(
            NewScenario(presets.scenario_name, trial.kind, values, presets.thresholds, presets.placement),
            trial.title,
            self.run_bar.repeats_box.value(),
            at_once=at_once,
            seed=presets.seed,
            sites=presets.sites,
        )

    def _fill(self, column: QVBoxLayout) -> Iterator[None]:
        """Build the scrolled content, in pieces."""
        yield from self._add_heading(column)
        yield from self._add_form(column)

    def _add_heading(self, column: QVBoxLayout) -> Iterator[None]:
        """Title, description and presets, with the preset that was chosen last."""
        title = QLabel(self.context.trial.title)
        title.setFont(self.context.theme.font(FontRole.TITLE))
        description = QLabel(self.context.trial.description)
        description.setProperty("muted", True)
        description.setWordWrap(True)
        heading = QHBoxLayout()
        heading.setSpacing(14)
        heading.addWidget(title)
        heading.addWidget(description, 1)
        column.addLayout(heading)
        yield
        context = self.context
        self.presets = PresetRow(context.trial, context.plugins, context.theme, context.state, column.parentWidget())
        self.presets.chosen.connect(self._preset_chosen)
        self.presets.placed.connect(lambda: self.form.validate())  # the form is built later
        self.presets.failed.connect(lambda text: self.context.show_message(Message(Tone.BAD, text)))
        yield
        first = next(filter(self.presets.offers, self.context.plugin.profiles), "")
        profile = str(self._kept.get("profile", "")) if self._kept else first
        self.presets.remember(profile, str(self._kept.get("scenario", "")))
        column.addWidget(self.presets)
        yield

    def _add_form(self, column: QVBoxLayout) -> Iterator[None]:
        """Form, facts, warnings and sites."""
        theme, page = self.context.theme, column.parentWidget()
        self.form = ParameterForm(self.context.trial.parameters, theme, self._editors, page, in_pieces=True)
        column.addWidget(self.form)
        preset = self.presets.scenario.parameters if self.presets.scenario is not None else None
        kept = self._kept.get("values") if self._kept else preset
        yield from self.form.pieces(kept if isinstance(kept, Mapping) else {}, preset)
        yield
        self.facts_card = _FactsCard(theme, page)
        self._warnings = QVBoxLayout()
        self.sites = SitesTable(theme, page)
        column.addWidget(self.facts_card)
        column.addLayout(self._warnings)
        column.addWidget(self.sites)
        yield

    def _connect(self) -> None:
        self.form.validated.connect(self._form_validated)
        self.form.field_focused.connect(self._show_help)
        self.presets.saved.connect(
            lambda name: self.context.show_message(
                Message(Tone.GOOD, self.tr("Saved as profile {name}.").format(name=name))
            )
        )
        self.run_bar.run.connect(self.run)
        self.run_bar.add.connect(self.add)
        self.run_bar.campaign.connect(self.run_campaign)
        self.run_bar.problem_clicked.connect(self.form.show_first_problem)
        self.run_bar.repeats_changed.connect(self._form_validated)

    def _preset_chosen(self, scenario: NewScenario | None) -> None:
        self.building.finish()
        self.form.set_base(scenario.parameters if scenario is not None else None)
        if scenario is not None:
            self.form.set_values(scenario.parameters)
        self._form_validated()

    def _show_help(self, spec: FieldSpec) -> None:
        unit = f" {spec.unit}" if spec.unit and spec.bounds else ""
        bounds = f"  ({spec.bounds}{unit})" if spec.bounds else ""
        self.run_bar.help_label.setText(f"{spec.title}: {spec.description}{bounds}")

    def _form_validated(self) -> None:
        parameters = self.form.parameters
        problems = self.form.problems
        self.run_bar.show_problem(problems[0] if problems else "")
        plain = None if parameters is None else parameters.model_dump(mode="json")
        self.presets.compare_with(plain, self.run_bar.repeats_box.value(), self.form.host_names)
        self._offer_campaign()
        self.sites.show_sites([_site(site.model_dump(exclude_none=True)) for site in self.presets.sites])
        # Parameters that are refused have no facts: those of the last valid ones would be read as theirs.
        self.facts_card.show_facts([] if parameters is None else self.facts(parameters))
        self._show_warnings(() if parameters is None else self._caveats(parameters))
        self._remember()

    def _caveats(self, parameters: Parameters) -> tuple[str, ...]:
        """What a reader of the figures must know, and where roles run that do not run here."""
        trial, placement = self.context.trial, Placement.of_stored(self.presets.placement)
        placed = () if placement is None else (self.tr("Roles run on hosts. {hosts}.").format(hosts=placement),)
        local = trial.local_warnings(parameters) if placement is None or placement.local else ()
        return (*placed, *trial.warnings(parameters), *local)

    def _offer_campaign(self) -> None:
        """Show in the line above the buttons what the campaign would run, and with which edits."""
        profile = self.presets.profile
        if profile is None:
            self.run_bar.show_campaign(0, "")
            return
        try:
            self.presets.campaign()
        except ProfileError as error:
            fault = self.tr("The campaign cannot run with these changes. {reason}").format(reason=error)
            self.run_bar.show_campaign(profile.runs, "", fault)
        else:
            self.run_bar.show_campaign(profile.runs, campaign_plan(profile, self.presets.edits, self.context.trial))

    def _show_warnings(self, sentences: tuple[str, ...]) -> None:
        while self._warnings.count():
            item = self._warnings.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for sentence in sentences:
            note = QWidget()
            line = QHBoxLayout(note)
            line.setContentsMargins(4, 0, 0, 0)
            line.setSpacing(10)
            line.addWidget(IconLabel(self.context.theme, "warning", 16, "warning"), 0, Qt.AlignmentFlag.AlignTop)
            text = QLabel(sentence)
            text.setWordWrap(True)
            line.addWidget(text, 1)
            self._warnings.addWidget(note)
            note.show()  # at once: the page gets its height before the rows above are laid out

    def _state_key(self) -> str:
        return f"form/{self.context.trial.kind}"

    def _remember(self) -> None:
        scenario = self.presets.scenario
        self.context.state.set(
            self._state_key(),
            {
                "values": self.form.values(),
                "profile": self.presets.profile_name,
                "scenario": scenario.name if scenario else "",
                "repeats": self.run_bar.repeats_box.value(),
            },
        )


def campaign_plan(profile: Profile, edits: Mapping[str, Any], trial: Trial[Any]) -> str:
    """The plan of a campaign in one line: scenarios, repeats, edits, and parameters of scenarios."""
    tr = QCoreApplication.translate
    text = tr("Campaign", "Campaign: {scenarios} scenarios × {repeats} = {runs} runs.")
    parts = [text.format(scenarios=len(profile.scenarios), repeats=profile.repeats, runs=profile.runs)]
    named = {value.name.partition(".")[0]: value for value in describe_parameters(edits, trial.parameters)}
    everywhere = [name for name in edits if not any(name in own for own in profile.own)]
    nowhere = [name for name in edits if all(name in own for own in profile.own)]
    partly = [name for name in edits if name not in everywhere and name not in nowhere]
    for names, wording in (
        (everywhere, tr("Campaign", "Your changes apply to all of them: {changes}.")),
        (partly, tr("Campaign", "Applied where a scenario does not set it itself: {changes}.")),
    ):
        changes = "; ".join(f"{named[name].title}: {named[name].text}" for name in names)
        parts += [wording.format(changes=changes)] if names else []
    if nowhere:
        titles = ", ".join(named[name].title for name in nowhere)
        parts.append(tr("Campaign", "Each scenario keeps its own: {titles}.").format(titles=titles))
    return " ".join(parts)


class _FactsCard(QFrame):
    """Facts side by side, each with a muted caption and a bold value."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(18, 12, 18, 12)
        self._grid.setHorizontalSpacing(32)
        self._grid.setVerticalSpacing(2)
        self.hide()

    def show_facts(self, facts: list[Fact]) -> None:
        """Show these facts; without any the card is hidden."""
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for column, fact in enumerate(facts):
            caption = QLabel(fact.name)
            caption.setProperty("muted", True)
            caption.setFont(self._theme.font(FontRole.CAPTION))
            value = QLabel(fact.value)
            value.setFont(self._theme.font(FontRole.HEADING))
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            for label in (caption, value):
                label.setToolTip(fact.meaning)
            self._grid.addWidget(caption, 0, column)
            self._grid.addWidget(value, 1, column)
        self._grid.setColumnStretch(len(facts), 1)
        self.setVisible(bool(facts))


def _site(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value != ""}
