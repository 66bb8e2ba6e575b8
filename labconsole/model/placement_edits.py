"""Edits of a placement: roles are placed on hosts, or stay on this computer, so that the first match counts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from labconsole.model.placement import Placement, RoleRequest

_NUMBERS = re.compile(r"(-\d+)+")


def role_pattern(name: str) -> str:
    """The pattern of all roles that differ in their numbers only: `sender-*`; a name without a number is its own."""
    return _NUMBERS.sub("-*", name)


def grouped(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The names by their patterns, in their order."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(role_pattern(name), []).append(name)
    return {pattern: tuple(members) for pattern, members in groups.items()}


def placed(placement: Placement, request: RoleRequest, names: Collection[str]) -> Placement:
    """The placement with this request, which counts for all its roles among `names`.

    Requests that it leaves without a role are dropped; wider ones come after it.
    """
    own = {name for name in names if request.matches(name)}
    roles: list[RoleRequest] = []
    place = None
    for other in placement.roles:
        others = {name for name in names if other.matches(name)}
        if other.role == request.role or (others and others <= own):
            continue
        if place is None and others & own:
            place = len(roles)
        roles.append(other)
    roles.insert(len(roles) if place is None else place, request)
    return placement.model_copy(update={"roles": tuple(roles)})


def kept_here(placement: Placement, role: str, names: Collection[str]) -> Placement:
    """The placement without hosts for the roles of this name or pattern: they stay on this computer.

    A wider request becomes one for each of the other roles among `names` for which it counts.
    """
    mine = RoleRequest(role=role)

    def others(request: RoleRequest) -> Iterator[RoleRequest]:
        kept = [name for name in names if placement.request(name) is request and not mine.matches(name)]
        if request.role == role:
            return
        if not any(mine.matches(name) for name in names if request.matches(name)):
            yield request
        else:
            yield from (request.model_copy(update={"role": name}) for name in kept)

    return placement.model_copy(
        update={"roles": tuple(other for request in placement.roles for other in others(request))}
    )
