"""Timing profiles of stations: how long their stacks take for a packet, and how many packets find room in them.

They are TOML files in `profiles/v2x-timing/` of the console, or of the operator's data directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from labconsole.profiles.timing_files import TimingFiles
from labconsole_v2x.choices import Attack
from labconsole_v2x.stations.sending import SecurityMode

_Time = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Room = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SenderTiming(_Strict):
    """The sending side: each instance has one packet at a time in its stack, its station one queue for the medium."""

    service_ms: _Time
    room: _Room
    """Packets in an instance's stack, and packets of a station that wait for the medium; further ones are lost."""


class ReceiverTiming(_Strict):
    """The receiving side of a station: one packet at a time."""

    room: _Room
    """Packets in the stack, the one in service included; further ones are lost."""
    service_ms: Mapping[SecurityMode, _Time]
    """A packet of a benign station, by configuration."""
    attack_ms: Mapping[Attack, _Time] = {}
    """A packet of an attacker, until it is rejected, by attack."""


class StackTiming(_Strict):
    """How long the stacks of stations take, and the rows of a source from which that is known."""

    title: Annotated[str, Field(description="the stations, and what sets this profile apart")]
    reference: Annotated[str, Field(description="where its values come from")]
    fitted_to: Annotated[
        tuple[str, ...], Field(description="the published columns to which values were fitted; all others are held out")
    ] = ()
    jitter_ms: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="ms by which a packet is generated late, at most")
    ]
    sender: Annotated[SenderTiming, Field(description="service_ms and room of the sending stack")]
    receiver: Annotated[
        ReceiverTiming, Field(description="room, and the tables service_ms and attack_ms of the receiving stack")
    ]

    def missing(self, security: SecurityMode, attack: Attack) -> str:
        """What this profile does not have of a scenario, as a part of a sentence; empty if it has all."""
        if security not in self.receiver.service_ms:
            return f"receiver.service_ms.{security.value}"
        if attack not in (Attack.NONE, Attack.IMPLAUSIBLE_CONTENT, *self.receiver.attack_ms):
            return f"receiver.attack_ms.{attack.value}"
        return ""

    def attack_ms(self, security: SecurityMode, attack: Attack) -> float:
        """The receiver's time for a packet of an attacker, which this profile has.

        One with implausible content is verified and decoded as that of a benign station, unless the profile has a time.
        """
        times = self.receiver.attack_ms
        return times[attack] if attack in times else self.receiver.service_ms[security]


STACK_TIMINGS = TimingFiles("v2x-timing", StackTiming, own=("title", "reference", "fitted_to"))
