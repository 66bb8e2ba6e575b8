"""The placement that is being edited: roles go to hosts, tags or this computer, each step can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import psutil
from pydantic import ValidationError
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from labconsole import __version__
from labconsole.hosts.agent.capabilities import capabilities
from labconsole.hosts.samples.collected import LOCAL
from labconsole.model.placement import HostFacts, Placement, RoleRequest, fault_of
from labconsole.model.placement_edits import grouped, kept_here, placed
from labconsole.model.validation_faults import fault_sentence


class TargetKind(Enum):
    """What roles are placed on."""

    HERE = "here"
    HOST = "host"
    TAG = "tag"


@dataclass(frozen=True)
class Target:
    """A host or tag by its name, or this computer."""

    kind: TargetKind
    name: str = ""


HERE = Target(TargetKind.HERE)


class Placing(QObject):
    """`changed` is emitted when placement or hosts are others; `said` carries a sentence, and whether it refuses."""

    changed = Signal()
    said = Signal(str, bool)

    def __init__(self, names: Sequence[str], placement: Placement, parent: QObject) -> None:
        super().__init__(parent)
        self.names = tuple(names)
        self.groups = grouped(names)
        self.placement = placement
        self._samples = placement.samples
        self.stack = QUndoStack(self)
        self._listed: tuple[HostFacts, ...] | None = None

    @property
    def hosts(self) -> tuple[HostFacts, ...] | None:
        """The hosts that roles can be placed on; None: they are not known."""
        return _local_hosts(self.placement.local) if self.placement.local else self._listed

    @property
    def tags(self) -> list[str]:
        """The tags of these hosts, and those that roles are placed on."""
        found = {tag for host in self.hosts or () for tag in host.tags}
        return sorted(found | {request.tag for request in self.placement.roles if request.tag})

    @property
    def fault(self) -> str:
        """Why the placement cannot be used; empty where it can."""
        return next(filter(None, map(self._fault_of_local, self.placement.roles)), "")

    def roles_of(self, request: RoleRequest) -> list[str]:
        """The roles of the trial for which a request counts."""
        return [name for name in self.names if self.placement.request(name) is request]

    def list_hosts(self, hosts: Sequence[HostFacts] | None) -> None:
        """Show these hosts of the scheduler; None: they are not known."""
        self._listed = None if hosts is None else tuple(hosts)
        self.changed.emit()

    def place(self, roles: Sequence[str], target: Target, *, shared: bool = False) -> bool:
        """Place roles, by name or pattern; `shared`: on this host next to those that they are placed on already.

        False: it is refused, which is reported.
        """
        found = self.placement
        requests = []
        for role in roles:
            if target.kind is TargetKind.HERE:
                found = kept_here(found, role, self.names)
                continue
            request = self._request(role, target, shared=shared)
            if fault := self._fault(request, target):
                self.said.emit(fault, True)
                return False
            found = placed(found, request, self.names)
            requests.append(request)
        if target.kind is TargetKind.HERE:
            text = self.tr("{roles}: this computer").format(roles=", ".join(roles))
        else:
            text = "; ".join(f"{request.role}: {request}" for request in requests)
        self._do(found, text)
        return True

    def require(self, index: int, **values: Any) -> None:
        """Change cores or interface that a request asks for."""
        before = self.placement.roles[index]
        try:
            request = RoleRequest.model_validate({**before.model_dump(), **values})
        except ValidationError as error:
            self._refuse(fault_sentence(error, RoleRequest))
            return
        if self.hosts is not None and (fault := fault_of(request, self.hosts)):
            self._refuse(fault)
            return
        roles = (*self.placement.roles[:index], request, *self.placement.roles[index + 1 :])
        self._do(self.placement.model_copy(update={"roles": roles}), f"{request.role}: {request}")

    def use_hosts_of(self, *, scheduler: str | None = None, local: int = 0) -> None:
        """Choose so many hosts on this computer, or those of a scheduler."""
        if scheduler is None:  # samples cannot stay on hosts that end with the run
            values = {"local": local, "samples": "bring"}
        else:
            values = {"local": 0, "scheduler": scheduler, "samples": self._samples}
        self.placement = self.placement.model_copy(update=values)
        self.changed.emit()

    def take(self, placement: Placement, text: str) -> None:
        """Edit another placement, as a file has it."""
        self._samples = placement.samples
        self._do(placement, text)

    def _request(self, role: str, target: Target, *, shared: bool) -> RoleRequest:
        """The request of a role or pattern for this target, with what its roles ask for already.

        Where these differ: with the most cores, and with an interface that is the only one.
        """
        mine = RoleRequest(role=role)
        asked = [request for name in self.names if mine.matches(name) and (request := self.placement.request(name))]
        interfaces = {request.interface for request in asked if request.interface}
        needs = {
            "cores": max((request.cores for request in asked), default=0),
            "interface": interfaces.pop() if len(interfaces) == 1 else "",
        }
        if target.kind is TargetKind.TAG:
            return mine.model_copy(update={**needs, "tag": target.name})
        before = [host for request in asked for host in request.hosts] if shared else []
        hosts = tuple(dict.fromkeys((*before, target.name)))
        return mine.model_copy(update={**needs, "host": hosts if len(hosts) > 1 else target.name})

    def _fault(self, request: RoleRequest, target: Target) -> str:
        """Why a request cannot be placed there."""
        for host in self.hosts or ():
            if target == Target(TargetKind.HOST, host.name) and host.version != __version__:
                return self.tr(
                    "{host} has version {version} of the console and this one has {own}: install the same version "
                    "on both, and start the agent again."
                ).format(host=host.name, version=host.version, own=__version__)
        return fault_of(request, self.hosts) if self.hosts is not None else ""

    def _fault_of_local(self, request: RoleRequest) -> str:
        return fault_of(request, _local_hosts(self.placement.local)) if self.placement.local else ""

    def _refuse(self, sentence: str) -> None:
        """Show why an edit was refused, and what was before."""
        self.changed.emit()
        self.said.emit(sentence, True)

    def _do(self, placement: Placement, text: str) -> None:
        """Change the placement, so that it can be undone."""
        before = self.placement

        def show(what: Placement, sentence: str) -> None:
            self.placement = what
            self.changed.emit()
            self.said.emit(sentence, False)

        undone = self.tr("Undone: {step}").format(step=text)
        self.stack.push(_Step(text, lambda: show(placement, text), lambda: show(before, undone)))


class _Step(QUndoCommand):
    """One change of the placement."""

    def __init__(self, text: str, do: Callable[[], None], undo: Callable[[], None]) -> None:
        super().__init__(text)
        self._do, self._undo = do, undo

    def redo(self) -> None:
        self._do()

    def undo(self) -> None:
        self._undo()


def _local_hosts(count: int) -> tuple[HostFacts, ...]:
    """The hosts that a run starts on this computer."""
    cores = psutil.cpu_count() or 1
    facts = (cores, (), tuple(psutil.net_if_addrs()), tuple(capabilities()), __version__)
    return tuple(HostFacts(f"{LOCAL}{number + 1}", *facts) for number in range(count))


def targets(placing: Placing) -> Iterator[Target]:
    """What roles can be placed on: this computer, the hosts, then the tags."""
    yield HERE
    known = {host.name for host in placing.hosts or ()}
    named = {name for request in placing.placement.roles for name in request.hosts}
    for name in (*sorted(known), *sorted(named - known)):
        yield Target(TargetKind.HOST, name)
    for tag in placing.tags:
        yield Target(TargetKind.TAG, tag)
