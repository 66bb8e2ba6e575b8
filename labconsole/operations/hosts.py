"""Hosts of a console: enrol one, serve as scheduler, list what is there."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator

from labconsole.analysis.number_format import format_figure
from labconsole.errors import UserError
from labconsole.hosts.installed import require_dask
from labconsole.model.operation import HomePath, Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.placement import DEFAULT_PORT, DEFAULT_SCHEDULER
from labconsole.security.private_files import write_private

if TYPE_CHECKING:
    from labconsole.hosts.cluster import Host


def _matching(pattern: str, sentence: str) -> AfterValidator:
    def checked(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(sentence)
        return text

    return AfterValidator(checked)


_HOST = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*"
SchedulerAddress = Annotated[
    str,
    _matching(
        r"tls://([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}",
        "the address of a scheduler is of the form tls://192.0.2.10:8786",
    ),
]
OwnAddress = Annotated[
    str, _matching(f"({_HOST})?", "give a host name or an IP address of this computer, without a port")
]
HostName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9-]{0,62}",
        "the name of a host has letters, digits and -, 63 at most, and does not begin with -",
    ),
]


def scheduler_field(group: str = "") -> Any:
    """The field of the address at which a cluster's scheduler listens."""
    return parameter(
        "Scheduler",
        "Address of the cluster's scheduler, as `labconsole scheduler` prints it",
        default=DEFAULT_SCHEDULER,
        metavar="ADDRESS",
        group=group,
    )


class EnrolParameters(Parameters):
    """Which host is enrolled."""

    host: HostName = parameter(
        "Name",
        "What the console calls the host",
        default="host-1",
        positional=True,
        required=True,
        metavar="NAME",
    )
    file: HomePath | None = parameter(
        "File",
        "Enrolment to be written; not given: NAME.pem in the folder that the console was started in",
        default=None,
        metavar="FILE",
        kind="new-file",
    )


class EnrolHost(Operation[EnrolParameters]):
    """Makes what a host needs to join."""

    name: ClassVar[str] = "hosts.enrol"
    title: ClassVar[str] = "Enrol a host"
    description: ClassVar[str] = (
        "Makes one file with which a host joins this console's cluster: its certificate, the cluster's CA, and its key "
        "under a passphrase that is shown once. Carry the file to the host, and give the passphrase by another way. "
        "Anyone who has both can run code on every host of the cluster: so a cluster has one owner."
    )
    parameters: ClassVar[type[Parameters]] = EnrolParameters
    writes: ClassVar[tuple[str, ...]] = ("certificates", "keys")

    def run(self, parameters: EnrolParameters, context: OperationContext) -> Result:
        from labconsole.hosts.cluster_certificates import enrol

        path = (parameters.file or Path(f"{parameters.host}.pem")).absolute()
        if path.exists():
            raise UserError(f"{path} exists already: name another file, or remove it first.")
        if not os.access(path.parent, os.W_OK):  # before a certificate is made whose key would be lost
            raise UserError(f"{path.parent} is not a folder that you can write to: choose another place.")
        enrolment = enrol(parameters.host)
        try:
            write_private(path, enrolment.pem)
        except OSError as error:
            raise UserError(f"{path} cannot be written ({error.strerror}): choose another place.") from error
        context.hand_over(f"Passphrase of the enrolment of {parameters.host}", enrolment.passphrase)
        until = enrolment.certificate.not_valid_after_utc
        sentence = (
            f"{parameters.host} is enrolled until {until:%Y-%m-%d}: carry {path} to it, and start there `labconsole "
            f"agent {path.name} --scheduler ADDRESS`."
        )
        return Result((sentence,), {"host": parameters.host, "file": str(path), "until": until.isoformat()})


class SchedulerParameters(Parameters):
    """Where the scheduler listens."""

    host: OwnAddress = parameter(
        "Address", "Address to listen on; hosts elsewhere need one that they reach", default="127.0.0.1", min_length=1
    )
    port: int = parameter(
        "Port", "Port to listen on; 0: any free port", default=DEFAULT_PORT, ge=0, le=65_535, kind="port"
    )


class RunScheduler(Operation[SchedulerParameters]):
    """The scheduler of this console's cluster."""

    name: ClassVar[str] = "hosts.scheduler"
    title: ClassVar[str] = "Scheduler of the hosts"
    description: ClassVar[str] = (
        "Brings the hosts of this console together until it is stopped: agents and consoles connect to it by TLS, with "
        "certificates of this console's cluster alone."
    )
    parameters: ClassVar[type[Parameters]] = SchedulerParameters
    runs_until_cancelled: ClassVar[bool] = True

    def run(self, parameters: SchedulerParameters, context: OperationContext) -> str:
        require_dask()
        from labconsole.hosts.cluster_certificates import console_files
        from labconsole.hosts.cluster_tls import Member
        from labconsole.hosts.serving import serve_scheduler

        serve_scheduler(Member.of_console(console_files()), parameters.host, parameters.port, context)
        return "The scheduler was stopped; agents wait until it is back."


class ListParameters(Parameters):
    """Whose hosts are listed."""

    scheduler: SchedulerAddress = scheduler_field()


class ListHosts(Operation[ListParameters]):
    """Lists the hosts."""

    name: ClassVar[str] = "hosts.list"
    title: ClassVar[str] = "Hosts"
    description: ClassVar[str] = (
        "Lists the hosts of the cluster: version, tags, what roles can use there (raw Ethernet, tokens), load, free "
        "disk, the roles that run there, and by how much the clock of each differs from that of this computer, with "
        "the uncertainty of that."
    )
    parameters: ClassVar[type[Parameters]] = ListParameters
    isolated: ClassVar[bool] = True

    def run(self, parameters: ListParameters, context: OperationContext) -> Result:
        require_dask()
        from labconsole.hosts.cluster import Cluster

        hosts: list[Host] = []
        warnings: list[str] = []
        with Cluster.of_console(parameters.scheduler) as cluster:
            names = sorted(cluster.addresses())
            for name in names:
                try:
                    hosts.append(cluster.host(name))
                    hosts[-1].require_this_version()
                except UserError as error:  # the others are listed
                    warnings.append(str(error))
        if not names:
            return Result(("No host has joined: enrol one, and start its agent.",), {"hosts": []})
        table = TextTable(_HEADINGS, tuple(map(_row, hosts)))
        return Result((table,) if hosts else (), {"hosts": [_data(host) for host in hosts]}, tuple(warnings))


_HEADINGS = (
    "Host",
    "Version",
    "Tags",
    "Can use",
    "Cores",
    "Load",
    "Free disk",
    "Roles",
    "Clock offset",
    "Uncertainty",
)


def _row(host: Host) -> tuple[str, ...]:
    return (
        host.name,
        host.version,
        ", ".join(host.described["tags"]),
        ", ".join(host.described.get("capabilities", ())),
        f"{host.described['cores']}",
        f"{host.described['load_average_before'][0]:.2f}",
        format_figure(host.described["free_bytes"], "B"),
        _runs(host),
        format_figure(host.offset.offset_ns, "ns"),
        f"± {format_figure(host.offset.uncertainty_ns, 'ns')}",
    )


def _runs(host: Host) -> str:
    """The roles in progress on a host, and of how many runs it has samples that no console has brought."""
    running = [role for roles in host.described["running"].values() for role in roles]
    left = [run for run in host.described["held"] if run not in host.described["running"]]
    return "; ".join(filter(None, [", ".join(running), f"samples of {len(left)} runs" if left else ""]))


def _data(host: Host) -> dict[str, Any]:
    return {
        **asdict(host.facts),
        "address": host.address,
        "free_bytes": host.described["free_bytes"],
        "running": host.described["running"],
        "held": host.described["held"],
        "clock_domain": host.described["clock_domain"],
        "clock_offset_ns": host.offset.offset_ns,
        "clock_uncertainty_ns": host.offset.uncertainty_ns,
    }
