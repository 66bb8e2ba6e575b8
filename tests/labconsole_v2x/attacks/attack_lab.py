"""Live runs under attack in tests: the real trial, and receivers that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labconsole.engine.launcher import Launcher
from labconsole.model.trial import RoleSpec
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.attack_trial import AttackTrial
from labconsole_v2x.live.station_role import StationRole
from labconsole_v2x.stations.receiving import PacketCheck, UnverifiedCheck
from labconsole_v2x.stations.transmission import Instance
from tests.labconsole_v2x.live.live_lab import UNWATCHED_HZ, LiveLab, Outcome, is_late, steady_run

ATTACK = {"attackers": 2, "attack_rate": 20.0}
"""Further to the three stations of a short run."""


class CredulousReceiver(StationRole):
    """Verifies nothing."""

    def _verified_check(self, instances: Sequence[Instance]) -> PacketCheck:
        return UnverifiedCheck()


class LonelyReceiver(StationRole):
    """Trusts no root."""

    def _trust(self, given: Mapping[str, Any]) -> None:
        super()._trust({**given, "roots": []})


class _Trial(AttackTrial):
    """Its receiver may be another role."""

    kind = "v2x.attack.test"

    def __init__(self, receiver: type[StationRole]) -> None:
        self._receiver = f"{receiver.__module__}:{receiver.__name__}"

    def specs(self, parameters: AttackParameters, seed: int) -> list[RoleSpec]:
        return [
            replace(spec, target=self._receiver) if spec.name == "receiver" else spec
            for spec in super().specs(parameters, seed)
        ]


class AttackLab(LiveLab):
    """One run under attack."""

    trial = _Trial(StationRole)


def run(
    folder: Path,
    receiver: type[StationRole] = StationRole,
    *,
    launcher: Launcher | None = None,
    disturbed: Callable[[Outcome], bool] = is_late,
    **settings: Any,
) -> Outcome:
    """A short run with this receiver, repeated where it was `disturbed`; `folder` is created."""

    class BrokenLab(AttackLab):
        trial = _Trial(receiver)

    def attacked() -> Outcome:
        return BrokenLab(folder, launcher=launcher, live_hz=UNWATCHED_HZ).run(**{**ATTACK, **settings})

    return steady_run(attacked, disturbed)
