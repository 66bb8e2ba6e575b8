"""Where the roles of a run are started: on this computer, or on hosts of the operator's cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from labconsole.model.validation_faults import fault_sentence

DEFAULT_PORT = 8786
DEFAULT_SCHEDULER = f"tls://127.0.0.1:{DEFAULT_PORT}"
MOST_LOCAL = 20
_NAMED = 5
"""How many hosts a sentence names."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _host_names(value: Any) -> Any:
    """One name, or several names; raises ValueError for anything else."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("give the name of a host, or a list of names")
    if not isinstance(value, str) and not all(names):
        raise ValueError("a name in the list is empty")
    return value or ""


class RoleRequest(_Strict):
    """What the roles of these names ask of their host; an empty value asks for nothing."""

    role: Annotated[str, Field(description="Names of roles, with * and ?, as in sender-*", min_length=1)] = "*"
    host: Annotated[
        str | tuple[str, ...],
        BeforeValidator(_host_names),
        Field(description="Name of the host, or a list of names, which share the roles"),
    ] = ""
    tag: Annotated[
        str,
        Field(description="A tag of the host, as in obu; or a transport or token that it has: ethernet, token:lab"),
    ] = ""
    cores: Annotated[int, Field(description="Cores that the host has at least", ge=0)] = 0
    interface: Annotated[str, Field(description="A network interface of the host, as in eth1")] = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of its hosts; none where any host will do."""
        return self.host if isinstance(self.host, tuple) else tuple(filter(None, (self.host,)))

    def matches(self, role: str) -> bool:
        """Whether it is for the role of this name."""
        return fnmatchcase(role, self.role)

    def __str__(self) -> str:
        asked = {
            "host": " or ".join(self.hosts),
            "tag": self.tag,
            "cores": self.cores or "",
            "interface": self.interface,
        }
        return ", ".join(f"{name} {value}" for name, value in asked.items() if value) or "any host"


class Placement(_Strict):
    """The hosts of a scenario's runs. Of `roles` the first that matches counts; roles that none matches stay here.

    Several hosts that suit a request share its roles evenly, by cores.
    """

    scheduler: Annotated[str, Field(description="Address of the cluster's scheduler")] = DEFAULT_SCHEDULER
    local: Annotated[
        int,
        Field(
            description="So many hosts, local-1 and so on, are started on this computer for the run, with a scheduler",
            ge=0,
            le=MOST_LOCAL,
        ),
    ] = 0
    samples: Annotated[
        Literal["bring", "stay"],
        Field(
            description="Whether samples are brought after each run, or stay on the hosts until they are collected: "
            "until then the run has no figures, and `labconsole hosts summarise` summarises them where they are"
        ),
    ] = "bring"
    roles: Annotated[tuple[RoleRequest, ...], Field(description="What roles ask of their hosts")] = ()
    lost_console: Annotated[
        Literal["stop", "finish"],
        Field(description="What roles do whose console is lost: stop after 15 s, or finish their work"),
    ] = "stop"

    @model_validator(mode="after")
    def _leaves_samples_on_hosts_that_remain(self) -> Self:
        if self.local and self.samples == "stay":
            raise ValueError("samples cannot stay on local hosts, which end with the run: bring them")
        return self

    def __str__(self) -> str:
        """As lists of parameters show it: `sender-*: tag obu; receiver-*: host host-b`; empty without roles."""
        if not self.roles:
            return ""
        parts = [f"{request.role}: {request}" for request in self.roles]
        parts += [f"{self.local} local hosts" if self.local > 1 else "1 local host"] if self.local else []
        parts += [f"scheduler {self.scheduler}"] if self.scheduler != DEFAULT_SCHEDULER else []
        parts += ["finished without the console"] if self.lost_console == "finish" else []
        parts += ["samples stay"] if self.samples == "stay" else []
        return "; ".join(parts)

    def request(self, role: str) -> RoleRequest | None:
        """The request for a role; None: it stays on this computer."""
        return next((request for request in self.roles if request.matches(role)), None)

    @classmethod
    def of_stored(cls, table: Mapping[str, Any]) -> Placement | None:
        """The placement of a stored scenario; None where all its roles stay on this computer."""
        return cls.model_validate(dict(table)) if table.get("roles") else None

    def stored(self) -> dict[str, Any]:
        """Plain JSON with all values for the store; {} where all roles stay on this computer."""
        return self.model_dump(mode="json") if self.roles else {}


@dataclass(frozen=True)
class HostFacts:
    """What requests ask of a host, and what an operator chooses it by."""

    name: str
    cores: int
    tags: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    """Its transports and tokens, which a request may name as its tag."""
    version: str = ""
    load: float | None = None

    @property
    def offers(self) -> tuple[str, ...]:
        """What a request may name as its tag."""
        return (*self.tags, *self.capabilities)

    def suits(self, request: RoleRequest) -> bool:
        """Whether it has what is asked for."""
        return (
            (not request.host or self.name in request.hosts)
            and (not request.tag or request.tag in self.offers)
            and self.cores >= request.cores
            and (not request.interface or request.interface in self.interfaces)
        )


def fault_of(request: RoleRequest, hosts: Collection[HostFacts]) -> str:
    """Why none of these hosts suits a request, in one sentence; empty where one does."""
    if any(host.suits(request) for host in hosts):
        return ""
    named = [f"{host.name} ({', '.join(host.tags) or 'no tags'}, {host.cores} cores)" for host in hosts]
    others = [f"{len(named) - _NAMED} others"] if len(named) > _NAMED + 1 else named[_NAMED:]
    there = "; ".join([*named[:_NAMED], *others])
    return f"No host suits the roles {request.role} ({request}): there are {there or 'none'}."


def checked_placement(text: str) -> str:
    """The text, which is a stored placement as JSON. Raises ValueError, in one line, for any other text."""
    try:
        Placement.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"hosts of roles: {fault_sentence(error, Placement)}") from error
    return text
