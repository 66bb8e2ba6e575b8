"""The scenario of an agreement: chosen from a profile of this console, with its times, and saved as a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from labconsole.agreements.review import ConsoleRun, console_run
from labconsole.clock import wall_now
from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import Profile, load_profile, override
from labconsole.profiles.profile_texts import profile_text
from labconsole.security.pki.reader import PkiReader
from labconsole.store.records import NewScenario

DAYS = 7
"""Days for which a proposal without a start time is valid."""
_LONGEST_TITLE = 200


@dataclass(frozen=True)
class ChosenScenario:
    """A scenario of a profile of this console."""

    title: str
    run: ConsoleRun
    scenario: NewScenario
    """With the thresholds and hosts of this console, which an agreement leaves to it."""

    def profile(self, id: str) -> str:
        """The text of the profile `id` with it."""
        found = self.scenario
        return profile_text(
            id,
            self.title,
            self.run.trial.kind,
            self.run.values,
            thresholds=found.thresholds,
            placement=found.placement,
        )


def chosen_scenario(profile: str, scenario: str, settings: Sequence[str], fixed: Mapping[str, Any]) -> ChosenScenario:
    """A scenario of a profile, with `KEY=VALUE` settings and `fixed` parameters.

    `scenario` may be empty where there is only one. Raises UserError.
    """
    plugins = Plugins.discover()
    loaded = load_profile(profile, plugins, dict(_pairs(settings)))
    chosen = _scenario(loaded, scenario)
    title = loaded.title if len(loaded.scenarios) == 1 else f"{loaded.title}: {chosen.name}"
    run = console_run(plugins.trial(loaded.kind), {**chosen.parameters, **fixed})
    return ChosenScenario(title[:_LONGEST_TITLE], run, chosen)


def settings_of(settings: Sequence[str], model: type[Parameters]) -> dict[str, Any]:
    """The values of `KEY=VALUE` settings, as a profile would have them."""
    return {key: override(text, key, model) for key, text in _pairs(settings)}


def proposal_times(starts: datetime | None, valid_until: datetime | None) -> tuple[datetime | None, datetime]:
    """When a trial begins, and until when its proposal is valid: until it begins, else `DAYS`, where that is not given.

    Raises UserError: a time is in the past, or the proposal would be valid after the trial has begun.
    """
    now = wall_now().replace(microsecond=0)
    until = valid_until or starts or now + timedelta(days=DAYS)
    for title, moment in (("Begins", starts), ("Valid until", until)):
        if moment is not None and moment <= now:
            raise UserError(f"{title} is {moment:%Y-%m-%d %H:%M:%S} UTC, which is in the past: choose a later time.")
    if starts is not None and until > starts:
        raise UserError("The proposal would be valid after the trial has begun: choose an earlier time, or give none.")
    return starts, until


def require_other_state(name: str) -> None:
    """Raises UserError: there is no State of this name, or it is of this console; an empty name is any State."""
    if not name:
        return
    with PkiReader.open() as reader:
        known = [state.name for state in reader.snapshot().states if not state.local]
    if name not in known:
        raise UserError(f"{name} is not a State of another console: choose one of {', '.join(known) or 'none yet'}.")


def profile_of(id: str, title: str, run: ConsoleRun) -> str:
    """The text of the profile `id` with what this console runs."""
    return profile_text(id, title, run.trial.kind, run.values)


def _pairs(settings: Sequence[str]) -> list[tuple[str, str]]:
    split = (one.partition("=") for one in settings)
    return [(key.strip(), text.strip()) for key, _, text in split]


def _scenario(profile: Profile, name: str) -> NewScenario:
    names = ", ".join(one.name for one in profile.scenarios)
    if not name and len(profile.scenarios) > 1:
        raise UserError(f"The profile {profile.name} has several scenarios: choose one of {names}.")
    found = [one for one in profile.scenarios if not name or one.name == name]
    if not found:
        raise UserError(f"The profile {profile.name} has no scenario {name}: choose one of {names}.")
    return found[0]
