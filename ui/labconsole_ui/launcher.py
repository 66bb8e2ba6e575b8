"""Puts work into the run queue: a scenario from a form, or a whole profile; what is wrong becomes a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from labconsole.engine.queue import QueueState
from labconsole.plugin import Plugins
from labconsole.profile import Profile, Site, campaign_of, load_profile, profile_text
from labconsole.store.records import NewCampaign, NewScenario, RunDetail
from labconsole.trial import TrialError
from labconsole_ui.bridge import QueueBridge
from labconsole_ui.message_bar import Message, Tone


class Launcher(QObject):
    """`launched` carries the ids of the runs that were queued, and whether they shall run at once."""

    launched = Signal(list, bool)

    def __init__(self, bridge: QueueBridge, plugins: Plugins, show: Callable[[Message], None]) -> None:
        super().__init__(bridge)
        self._bridge = bridge
        self._plugins = plugins
        self._show = show

    def run_profile(self, name: str, *, at_once: bool) -> list[int]:
        """Queue all runs of a profile. Returns their ids, none if the profile cannot be used."""
        try:
            campaign = campaign_of(load_profile(name, self._plugins))
            return self._submit(campaign, at_once)
        except TrialError as error:
            self._show(Message(Tone.BAD, str(error)))
            return []

    def run_scenario(
        self,
        scenario: NewScenario,
        title: str,
        repeats: int = 1,
        *,
        at_once: bool,
        seed: int = 1,
        sites: tuple[Site, ...] = (),
    ) -> list[int]:
        """Queue `repeats` runs of one scenario. Returns their ids, none if the store refuses."""
        name, kind = scenario.name, scenario.kind
        text = profile_text(
            name, title, kind, scenario.parameters, repeats, seed=seed, thresholds=scenario.thresholds, sites=sites
        )
        campaign = campaign_of(Profile(name, title, "", kind, text, (scenario,), repeats, seed, sites))
        try:
            return self._submit(campaign, at_once)
        except TrialError as error:
            self._show(Message(Tone.BAD, str(error)))
            return []

    def run_again(self, run: RunDetail, changes: Mapping[str, Any]) -> list[int]:
        """Queue the scenario of a run again with some parameters changed. Returns the new run's id, if there is one."""
        row, sites = run.row, tuple(Site.model_validate(dict(site)) for site in run.sites)
        scenario = NewScenario(row.scenario, row.kind, {**row.parameters, **changes}, run.thresholds)
        return self.run_scenario(scenario, row.campaign, at_once=True, sites=sites)

    def _submit(self, campaign: NewCampaign, at_once: bool) -> list[int]:
        queue = self._bridge.queue
        waiting = sum(item.state is QueueState.WAITING for item in queue.items)
        run_ids = queue.submit(campaign)
        if at_once:
            for run_id in run_ids:
                queue.move(run_id, -waiting)
        if queue.paused:
            text = self.tr("The queue is paused; it holds {count} run(s) more.").format(count=len(run_ids))
            self._show(Message(Tone.WARNING, text, link=(self.tr("Resume"), queue.resume)))
        elif waiting and not at_once:
            text = self.tr("Added to the queue: {count} run(s), {waiting} waiting before.")
            self._show(Message(Tone.INFO, text.format(count=len(run_ids), waiting=waiting)))
        self.launched.emit(run_ids, at_once)
        return run_ids
