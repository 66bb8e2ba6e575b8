"""Puts work into the run queue: a scenario from a form, or a whole profile; what is wrong becomes a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from labconsole.engine.queue import QueueState
from labconsole.plugin import Plugins
from labconsole.profile import campaign_of, interleaved, load_profile, profile_text
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.trial import Trial, TrialError
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
        trial: Trial[Any],
        name: str,
        parameters: Mapping[str, Any],
        repeats: int,
        *,
        at_once: bool,
        sites: tuple[Mapping[str, str], ...] = (),
    ) -> list[int]:
        """Queue `repeats` runs of one scenario. Returns their ids, none if the store refuses."""
        campaign = NewCampaign(
            name=name,
            title=trial.title,
            profile_text=profile_text(name, trial.title, trial.kind, parameters, repeats),
            order_seed=1,
            scenarios=(NewScenario(name, trial.kind, parameters),),
            order=interleaved(1, repeats, 1),
            sites=sites,
        )
        try:
            return self._submit(campaign, at_once)
        except TrialError as error:
            self._show(Message(Tone.BAD, str(error)))
            return []

    def _submit(self, campaign: NewCampaign, at_once: bool) -> list[int]:
        queue = self._bridge.queue
        waiting = sum(item.state is QueueState.WAITING for item in queue.items)
        run_ids = queue.submit(campaign)
        if at_once:
            for run_id in run_ids:
                queue.move(run_id, -waiting)
            queue.resume()
        elif waiting or queue.paused:
            text = self.tr("Added to the queue: {count} run(s), {waiting} waiting before.")
            self._show(Message(Tone.INFO, text.format(count=len(run_ids), waiting=waiting)))
        self.launched.emit(run_ids, at_once)
        return run_ids
