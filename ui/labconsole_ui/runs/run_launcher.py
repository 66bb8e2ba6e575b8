"""Queues runs: a scenario from a form, or all of a profile; errors become messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QDialog, QWidget

from labconsole.clock import wall_now
from labconsole.engine.queue import QueueState
from labconsole.errors import UserError
from labconsole.model.console_part import TRIAL_ID
from labconsole.model.plugin import Plugins
from labconsole.paths import data_dir
from labconsole.profiles.needed_secrets import needed_secrets
from labconsole.profiles.profile import Profile, Site, campaign_of, load_profile, profile_text, scenarios_text
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunDetail
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_ui.widgets.secret_dialog import SecretDialog
from labconsole_ui.widgets.status_text import utc_time

Secrets = Mapping[str, Secret]


class RunLauncher(QObject):
    """`launched` carries ids of queued runs, whether they run at once, and are compared when done.

    Runs that need a secret are queued once it was read or entered: later than the call, which then returns no ids.
    """

    launched = Signal(list, bool, bool)

    def __init__(self, bridge: QueueBridge, plugins: Plugins, show: Callable[[Message], None], window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._background = Background(self)
        self._bridge = bridge
        self._plugins = plugins
        self._show = show

    def run_profile(self, name: str, *, at_once: bool, compare: bool = False) -> list[int]:
        """Queue all runs of a profile. Returns their ids, none if the profile cannot be used."""
        try:
            profile = load_profile(name, self._plugins)
        except UserError as error:
            self._refuse(str(error))
            return []
        return self.run_campaign(profile, at_once=at_once, compare=compare)

    def run_campaign(self, profile: Profile, *, at_once: bool, compare: bool = False) -> list[int]:
        """Queue all runs of a loaded profile, to be compared when done. Returns ids as `run_scenario`."""
        try:
            return self._submit(campaign_of(profile), at_once, compare)
        except UserError as error:
            self._refuse(str(error))
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
            name,
            title,
            kind,
            scenario.parameters,
            repeats,
            seed=seed,
            thresholds=scenario.thresholds,
            placement=scenario.placement,
            sites=sites,
        )
        return self.run_campaign(
            Profile(name, title, "", kind, text, (scenario,), repeats, seed, sites), at_once=at_once
        )

    def run_together(
        self,
        scenarios: Sequence[NewScenario],
        name: str,
        title: str,
        repeats: int = 1,
        *,
        seed: int = 1,
        sites: tuple[Site, ...] = (),
    ) -> list[int]:
        """Queue scenarios of one kind as one campaign before waiting runs, to be compared when done.

        Returns ids as `run_scenario`.
        """
        text = scenarios_text(name, title, scenarios, repeats, seed=seed, sites=sites)
        kind, all_of_them = scenarios[0].kind, tuple(scenarios)
        campaign = Profile(name, title, "", kind, text, all_of_them, repeats, seed, sites)
        return self.run_campaign(campaign, at_once=True, compare=True)

    def run_again(self, run: RunDetail, changes: Mapping[str, Any]) -> list[int]:
        """Queue the scenario of a run again with some parameters changed. Returns the new run's id, or None."""
        row, sites = run.row, tuple(Site.model_validate(dict(site)) for site in run.sites)
        scenario = NewScenario(row.scenario, row.kind, {**row.parameters, **changes}, run.thresholds, run.placement)
        return self.run_scenario(scenario, row.campaign, at_once=True, sites=sites)

    def repeat(self, run_id: int) -> None:
        """Queue another repeat of a run's scenario."""
        queue = self._bridge.queue
        try:
            with Reader(queue.store.path) as reader:
                row = reader.run(run_id).row
            scenario = NewScenario(row.scenario, row.kind, row.parameters)
            self._with_secrets([scenario], lambda secrets: [queue.repeat(run_id, secrets)])
        except UserError as error:
            self._refuse(str(error))

    def _submit(self, campaign: NewCampaign, at_once: bool, compare: bool) -> list[int]:
        queue = partial(self._queue, campaign, at_once, compare)
        trials = {str(scenario.parameters.get(TRIAL_ID, "")) for scenario in campaign.scenarios} - {""}
        if not trials or not (data_dir() / "agreements").exists():
            return self._with_secrets(campaign.scenarios, queue)

        def at_agreed_time(starts: datetime | None) -> None:
            try:
                self._with_secrets(campaign.scenarios, partial(queue, starts=starts))
            except UserError as error:
                self._refuse(str(error))

        self._background.submit(partial(_agreed_start, trials), at_agreed_time, self._refuse)
        return []

    def _with_secrets(self, scenarios: Sequence[NewScenario], then: Callable[[Secrets], list[int]]) -> list[int]:
        """Call `then` with the secrets that had to be entered: at once if none is needed. Raises UserError."""
        needed = needed_secrets(scenarios, self._plugins)
        if not needed:
            return then({})
        self._background.submit(partial(missing_secrets, needed), partial(self._ask, then), self._refuse)
        return []

    def _ask(self, then: Callable[[Secrets], list[int]], missing: Sequence[SecretRequest]) -> None:
        if not self._window.isVisible():
            return  # closed while the keyring was asked
        if not missing:
            self._continue(then, {})
            return
        dialog = SecretDialog(self._window, missing)
        dialog.finished.connect(partial(self._answered, dialog, then))
        dialog.open()

    def _answered(self, dialog: SecretDialog, then: Callable[[Secrets], list[int]], result: int) -> None:
        secrets = dialog.pop_secrets()
        if result == QDialog.DialogCode.Accepted:
            self._continue(then, secrets)
        else:
            self._show(Message(Tone.INFO, self.tr("Nothing was queued, since no passphrase was given.")))

    def _continue(self, then: Callable[[Secrets], list[int]], secrets: Secrets) -> None:
        try:
            then(secrets)
        except UserError as error:
            self._refuse(str(error))

    def _refuse(self, sentence: str) -> None:
        self._show(Message(Tone.BAD, sentence))

    def _queue(
        self, campaign: NewCampaign, at_once: bool, compare: bool, secrets: Secrets, starts: datetime | None = None
    ) -> list[int]:
        queue = self._bridge.queue
        waiting = sum(item.state is QueueState.WAITING for item in queue.items)
        run_ids = queue.submit(campaign, secrets, first=at_once, starts=starts)
        if starts is not None:
            text = self.tr(
                "Waiting until {time}, as agreed with the other owner. Remove the run from the queue to cancel."
            )
            self._show(Message(Tone.INFO, text.format(time=utc_time(starts))))
        if queue.paused:
            text = self.tr("The queue is paused; it holds {count} run(s) more.").format(count=len(run_ids))
            self._show(Message(Tone.WARNING, text, link=(self.tr("Resume"), queue.resume)))
        elif waiting and not at_once:
            text = self.tr("Added to the queue: {count} run(s), {waiting} waiting before.")
            self._show(Message(Tone.INFO, text.format(count=len(run_ids), waiting=waiting)))
        self.launched.emit(run_ids, at_once and starts is None, compare)
        return run_ids


def _agreed_start(trials: Iterable[str]) -> datetime | None:
    """When the runs of these trials begin as agreed with another owner; None: at once. Raises UserError."""
    from labconsole.agreements.agreement_files import agreed_start  # it needs the certificate layer

    found = [starts for starts in map(agreed_start, trials) if starts is not None and starts > wall_now()]
    return max(found, default=None)
