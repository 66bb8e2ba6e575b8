"""The live values of a run in its worker: what roles report, checked against the trial's channels, as one frame."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from labconsole.engine.protocol import ChannelFrame, RoleValues
from labconsole.engine.role_handle import RoleChild
from labconsole.errors import UserError
from labconsole.model.trial import LiveChannel, LiveKind


class LiveValues:
    """Puts together what the roles of a run have reported last."""

    def __init__(self, declared: Collection[LiveChannel]) -> None:
        self._declared = {channel.name: channel for channel in declared}
        self._by_role = [channel.name for channel in declared if channel.by_role]
        self._gauges = [channel.name for channel in declared if channel.kind is LiveKind.GAUGE]
        self._states = [channel.name for channel in declared if channel.kind is LiveKind.STATE]

    def check(self, name: str, kind: LiveKind) -> None:
        """Raise UserError unless the trial declares this channel, and as one of this kind."""
        channel = self._declared.get(name)
        if channel is None:
            raise UserError(f"The live channel {name} is not declared: add it to `live` of the trial.")
        if channel.kind is not kind:
            raise UserError(
                f"The live channel {name} is declared as a {channel.kind} and reported as a {kind}: change one of them."
            )

    def check_all(self, roles: Sequence[RoleChild]) -> None:
        """Raise UserError where a role reports what the trial does not declare."""
        reported = sorted({named for role in roles for named in _reported(role)})
        for name, kind in reported:
            self.check(name, kind)

    def totals(self, roles: Sequence[RoleChild]) -> dict[str, ChannelFrame]:
        """Counts and observations of all roles together, by channel."""
        reported: dict[str, list[ChannelFrame]] = {}
        for role in roles:
            for name, frame in role.channels.items():
                reported.setdefault(name, []).append(frame)
        return {name: first.plus(*others) for name, (first, *others) in reported.items()}

    def by_role(self, roles: Sequence[RoleChild]) -> RoleValues:
        """The values of each role, of the channels that are declared so."""
        return RoleValues(
            {
                name: {role.name: role.channels[name].count for role in roles if name in role.channels}
                for name in self._by_role
            },
            {name: {role.name: role.gauges[name] for role in roles if name in role.gauges} for name in self._gauges},
            {name: {role.name: role.states[name] for role in roles if name in role.states} for name in self._states},
        )


def _reported(role: RoleChild) -> Iterator[tuple[str, LiveKind]]:
    for names, kind in ((role.channels, LiveKind.TOTAL), (role.gauges, LiveKind.GAUGE), (role.states, LiveKind.STATE)):
        for name in names:
            yield name, kind
