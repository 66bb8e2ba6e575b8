"""Where the roles of a run are started: on this computer, or on hosts of the operator's cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_PORT = 8786
DEFAULT_SCHEDULER = f"tls://127.0.0.1:{DEFAULT_PORT}"
MOST_LOCAL = 20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RoleRequest(_Strict):
    """What the roles of these names ask of their host; an empty value asks for nothing."""

    role: Annotated[str, Field(description="Names of roles, with * and ?, as in sender-*", min_length=1)] = "*"
    host: Annotated[str, Field(description="Name of the host")] = ""
    tag: Annotated[str, Field(description="A tag of the host, as in obu")] = ""
    cores: Annotated[int, Field(description="Cores that the host has at least", ge=0)] = 0
    interface: Annotated[str, Field(description="A network interface of the host, as in eth1")] = ""

    def matches(self, role: str) -> bool:
        """Whether it is for the role of this name."""
        return fnmatchcase(role, self.role)

    def suits(self, host: str, tags: Sequence[str], cores: int, interfaces: Sequence[str]) -> bool:
        """Whether a host of this name has what is asked for."""
        return (
            self.host in ("", host)
            and (not self.tag or self.tag in tags)
            and cores >= self.cores
            and (not self.interface or self.interface in interfaces)
        )

    def __str__(self) -> str:
        asked = {"host": self.host, "tag": self.tag, "cores": self.cores or "", "interface": self.interface}
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
    roles: Annotated[tuple[RoleRequest, ...], Field(description="What roles ask of their hosts")] = ()

    def request(self, role: str) -> RoleRequest | None:
        """The request for a role; None: it stays on this computer."""
        return next((request for request in self.roles if request.matches(role)), None)

    @classmethod
    def of_stored(cls, table: Mapping[str, Any]) -> Placement | None:
        """The placement of a stored scenario; None where all its roles stay on this computer."""
        return cls.model_validate(dict(table)) if table.get("roles") else None
