"""The preset row of a panel: a scenario of a profile fills the form; the form becomes a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QInputDialog, QLabel, QMenu, QMessageBox, QToolButton, QWidget

from labconsole.errors import UserError
from labconsole.model.placement import Placement
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.profiles.host_list import read_host_list
from labconsole.profiles.profile import (
    Profile,
    ProfileError,
    ProfileInfo,
    Site,
    list_profiles,
    load_profile,
    profile_text,
    save_profile,
    with_edits,
)
from labconsole.safe_text import shown_lines
from labconsole.store.records import NewScenario
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.placement.hosts_button import HostsButton
from labconsole_ui.placement.placement_dialog import PlacementDialog
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import FontRole, Theme


class PresetRow(QWidget):
    """`chosen` carries the parameters of a scenario that the operator picked; `failed` a sentence."""

    chosen = Signal(object)
    failed = Signal(str)
    saved = Signal(str)
    placed = Signal()
    """Other hosts were chosen."""

    def __init__(self, trial: Trial[Any], plugins: Plugins, theme: Theme, state: WindowState, parent: QWidget) -> None:
        super().__init__(parent)
        self._trial = trial
        self._plugins = plugins
        self._theme = theme
        self._state = state
        self._current: Mapping[str, Any] = {}
        self._repeats = 1
        self._hosts: frozenset[str] = frozenset()
        self._placement: Mapping[str, Any] = {}
        """The hosts without a preset."""
        self.profile: Profile | None = None
        self.scenario: NewScenario | None = None
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(8)
        self.profile_combo = WheelIgnoringComboBox()
        self.profile_combo.setAccessibleName(self.tr("Profile"))
        self.profile_combo.setMinimumWidth(150)
        self.profile_combo.setSizeAdjustPolicy(WheelIgnoringComboBox.SizeAdjustPolicy.AdjustToContents)
        self.scenario_combo = WheelIgnoringComboBox()
        self.scenario_combo.setAccessibleName(self.tr("Scenario of the profile"))
        self.scenario_combo.setMinimumWidth(150)
        self.scenario_combo.setSizeAdjustPolicy(WheelIgnoringComboBox.SizeAdjustPolicy.AdjustToContents)
        label = QLabel(self.tr("&Preset"))
        label.setBuddy(self.profile_combo)
        self.modified_label = QLabel(self.tr("modified"))
        self.modified_label.setProperty("tone", "warning")
        self.modified_label.setFont(theme.font(FontRole.CAPTION))
        self.modified_label.setToolTip(self.tr("The form differs from the preset."))
        policy = self.modified_label.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.modified_label.setSizePolicy(policy)
        self.modified_label.hide()
        self._line.addWidget(label)
        self._line.addWidget(self.profile_combo)
        self._line.addWidget(self.scenario_combo)
        self._line.addWidget(self.modified_label)
        self._line.addStretch(1)
        self.save_button = self._button(theme, "save", self.tr("Save as profile…"), self.save)
        self.copy_button = self._button(theme, "copy", self.tr("Copy parameters"), None)
        self.copy_menu = QMenu(self.copy_button)
        self.copy_menu.addAction(self.tr("Copy as TOML"), lambda: self._copy(self._toml()))
        self.copy_menu.addAction(self.tr("Copy as JSON"), lambda: self._copy(json.dumps(self._current, indent=2)))
        self.copy_button.setMenu(self.copy_menu)
        self.copy_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.hosts_button = HostsButton(theme, self.place_roles, self)
        self.hosts_button.file_chosen.connect(self.take_hosts)
        self._line.addWidget(self.hosts_button)
        self.hosts_button.setVisible(trial.on_hosts)
        self.load_profiles()
        self.profile_combo.activated.connect(self._choose_profile)
        self.scenario_combo.activated.connect(self._choose_scenario)

    def load_profiles(self, select: str = "") -> None:
        """Read the list of profiles again, and choose `select` without touching the form."""
        wanted = select or self.profile_name
        self.profile_combo.clear()
        self.profile_combo.addItem(self.tr("None"), "")
        mine = [info for info in list_profiles() if info.kind == self._trial.kind or info.error]
        for info in mine:
            self.profile_combo.addItem(shown_lines(_entry(info)), info.name)
            row = self.profile_combo.count() - 1
            tip = info.error or info.description
            self.profile_combo.setItemData(row, tip, Qt.ItemDataRole.ToolTipRole)
        self._select_profile(wanted)

    def offers(self, profile: str) -> bool:
        """Whether the list has this profile, which is then one of the trial."""
        return self.profile_combo.findData(profile) > 0

    @property
    def profile_name(self) -> str:
        """The name of the chosen profile, or an empty text."""
        return self.profile.name if self.profile else ""

    @property
    def scenario_name(self) -> str:
        """The name for runs of the form as it is now."""
        if self.scenario is None:
            return self._trial.title
        if self.modified_label.isHidden():
            return self.scenario.name
        return self.tr("{scenario} (modified)").format(scenario=self.scenario.name)

    def remember(self, profile: str, scenario: str) -> None:
        """Choose profile and scenario by name without touching the form; unknown names are ignored."""
        self._select_profile(profile)
        if self.profile is not None:
            names = [entry.name for entry in self.profile.scenarios]
            if scenario in names:
                self.scenario_combo.setCurrentIndex(names.index(scenario))
                self.scenario = self.profile.scenarios[names.index(scenario)]

    @property
    def edits(self) -> dict[str, Any]:
        """The parameters in which the form differs from the preset."""
        preset = self.scenario.parameters if self.scenario else self._current
        return {name: value for name, value in self._current.items() if value != preset.get(name)}

    def campaign(self) -> Profile | None:
        """The chosen profile with the form's edits, if it has more than one run.

        Raises ProfileError: a scenario cannot run with them.
        """
        if self.profile is None or self.profile.runs < 2:
            return None
        title = self.tr("{scenario} (modified)").format(scenario=self.profile.title)
        return with_edits(self.profile, title, self.edits, self.sites, self._trial)

    @property
    def thresholds(self) -> Mapping[str, Mapping[str, float]]:
        """The bounds that the preset sets to metrics."""
        return self.scenario.thresholds if self.scenario else {}

    @property
    def placement(self) -> Mapping[str, Any]:
        """The hosts that the preset or the last host list asks for, as `NewScenario` has them."""
        return self.scenario.placement if self.scenario else self._placement

    def place_roles(self) -> PlacementDialog | None:
        """Open the dialog that places the roles of the form on hosts; None: they are not known."""
        trial = self._trial
        try:
            names = trial.role_names(trial.parameters.model_validate(self._current))
        except UserError as error:
            self.failed.emit(str(error))
            return None
        placement = Placement.of_stored(self.placement) or Placement()
        dialog = PlacementDialog(names, placement, self._plugins, self._theme, self._state, self.window())
        dialog.used.connect(self.place)
        dialog.open()
        return dialog

    def take_hosts(self, file: Path | None) -> None:
        """Let the roles of all scenarios run where a host list says; None: on this computer."""
        try:
            self.place(read_host_list(file) if file is not None else Placement())
        except ProfileError as error:
            self.failed.emit(str(error))

    def place(self, placement: Placement) -> None:
        """Let the roles of all scenarios run there."""
        if self.profile is not None and self.scenario is not None:
            index = self.profile.scenarios.index(self.scenario)
            try:
                self.profile = load_profile(self.profile_name, self._plugins, hosts=placement)
            except ProfileError as error:
                self.failed.emit(str(error))
                return
            self.scenario = self.profile.scenarios[index]
        self._placement = placement.stored()
        self.placed.emit()

    @property
    def seed(self) -> int:
        """The seed of the preset."""
        return self.profile.seed if self.profile else 1

    @property
    def sites(self) -> tuple[Site, ...]:
        """The preset's sites, as long as the form names the same hosts as the preset."""
        if self.profile is None or self.scenario is None:
            return ()
        preset = self.scenario.parameters
        return self.profile.sites if all(self._current.get(name) == preset.get(name) for name in self._hosts) else ()

    def compare_with(self, parameters: Mapping[str, Any] | None, repeats: int, hosts: frozenset[str]) -> None:
        """Show whether the form (None: with errors) differs from the preset; `hosts` determine the sites."""
        if parameters is not None:
            self._current = parameters
        self._repeats = repeats
        self._hosts = hosts
        self.save_button.setEnabled(parameters is not None)
        self.copy_button.setEnabled(parameters is not None)
        self.hosts_button.place_action.setEnabled(parameters is not None)
        same = self.scenario is None or (parameters is not None and dict(self.scenario.parameters) == dict(parameters))
        self.modified_label.setVisible(not same)

    def save(self) -> None:
        """Ask for a name and save the form as a profile of the operator."""
        name, agreed = QInputDialog.getText(
            self,
            self.tr("Save as profile"),
            self.tr("Name of the profile (small letters, digits, dashes):"),
            text=f"{self.profile_name}-2" if self.profile_name else "",
        )
        if agreed and name.strip():
            self.save_as(name.strip())

    def save_as(self, name: str) -> None:
        """Save the form as the operator's profile `name`; asks before it replaces one."""
        text = profile_text(
            name,
            self._trial.title,
            self._trial.kind,
            self._current,
            self._repeats,
            seed=self.seed,
            thresholds=self.thresholds,
            placement=self.placement,
            sites=self.sites,
        )
        try:
            try:
                save_profile(name, text)
            except ProfileError as error:
                if name not in {info.name for info in list_profiles() if not info.builtin} or not self.confirm(error):
                    raise
                save_profile(name, text, replace=True)
        except ProfileError as error:
            self.failed.emit(str(error))
            return
        self.load_profiles(name)
        self.compare_with(self._current, self._repeats, self._hosts)
        self.saved.emit(name)

    def confirm(self, error: ProfileError) -> bool:
        """Ask whether the profile that is there shall be replaced."""
        answer = QMessageBox.question(self, self.tr("Replace the profile?"), str(error))
        return answer is QMessageBox.StandardButton.Yes

    def _button(self, theme: Theme, icon: str, text: str, action: Any) -> QToolButton:
        button = QToolButton()
        theme.bind_icon(button, icon)
        button.setToolTip(text)
        button.setAccessibleName(text)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if action is not None:
            button.clicked.connect(action)
        self._line.addWidget(button)
        return button

    def _select_profile(self, name: str) -> None:
        """Show profile `name` and its scenarios; none if it is missing or cannot be used."""
        self.profile = None
        self.scenario = None
        self._placement = {}
        self.scenario_combo.clear()
        index = self.profile_combo.findData(name)
        self.profile_combo.setCurrentIndex(max(index, 0))
        if index > 0:
            try:
                self.profile = load_profile(name, self._plugins)
            except ProfileError as error:
                self.failed.emit(str(error))
                self.profile_combo.setCurrentIndex(0)
        if self.profile is not None:
            self.scenario_combo.addItems([shown_lines(scenario.name) for scenario in self.profile.scenarios])
            self.scenario = self.profile.scenarios[0]
        self.scenario_combo.setEnabled(self.scenario_combo.count() > 1)

    def _choose_profile(self, index: int) -> None:
        self._select_profile(str(self.profile_combo.itemData(index)))
        self.chosen.emit(self.scenario)

    def _choose_scenario(self, index: int) -> None:
        if self.profile is not None:
            self.scenario = self.profile.scenarios[index]
            self.chosen.emit(self.scenario)

    def _toml(self) -> str:
        return tomli_w.dumps({key: value for key, value in self._current.items() if value is not None})

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)


def _entry(info: ProfileInfo) -> str:
    return f"{info.title}  ⚠" if info.error else info.title
