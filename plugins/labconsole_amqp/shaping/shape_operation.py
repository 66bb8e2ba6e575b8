"""`labconsole shape-link`: a link that the Linux kernel shapes, as an operation."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole_amqp.shaping.shaped_link import LEAST_RATE
from labconsole_amqp.shaping.tc_commands import (
    BROKER_ADDRESS,
    BROKER_NAMESPACE,
    CLIENT_ADDRESS,
    CLIENT_NAMESPACE,
    LAB_INTERFACE,
    Command,
    Interface,
    OneWay,
    lab_commands,
    lab_undo_commands,
    lines,
    undo_commands,
)

_LOOK_S = 0.1
_DEFAULT_INTERFACE = "eth0"
_INTERFACE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}$"
_NETEM = "The delay needs netem (module sch_netem), which not every kernel has."


class LinkAction(StrEnum):
    """What is done with the commands."""

    COMMANDS = "commands"
    INTERFACE = "interface"
    LAB = "lab"
    REMOVE = "remove"


class LinkEnd(StrEnum):
    """An end of a link."""

    CLIENT = "client"
    BROKER = "broker"


class ShapeLinkParameters(Parameters):
    """The link, and its interfaces."""

    action: LinkAction = parameter(
        "Action",
        "Show the commands for both ends, shape an interface of this computer, set up two network namespaces with a "
        "shaped link between them, or remove what a killed console has left",
        default=LinkAction.COMMANDS,
        positional=True,
        labels={
            "commands": "Show the commands",
            "interface": "Shape an interface of this computer",
            "lab": "Set up a lab on this computer",
            "remove": "Remove leftovers",
        },
    )
    link_rate: float = parameter(
        "Link rate", "Rate to the broker, of IP packets", default=2.0, ge=LEAST_RATE, le=10_000, unit="Mbit/s"
    )
    link_rate_down: float | None = parameter(
        "Rate from the broker",
        "Where it differs from the link rate",
        default=None,
        ge=LEAST_RATE,
        le=10_000,
        unit="Mbit/s",
        empty="As the link rate",
    )
    link_delay: float = parameter(
        "Delay", "Time on the way, each way; needs netem in the kernel", default=0.0, ge=0, le=1_000, unit="ms"
    )
    client_interface: str | None = parameter(
        "Clients' interface",
        "Interface of the clients' computer that leads to the broker",
        default=None,
        pattern=_INTERFACE_NAME,
        metavar="NAME",
        empty=_DEFAULT_INTERFACE,
        shown_if={"action": ["commands", "interface"]},
    )
    broker_interface: str | None = parameter(
        "Broker's interface",
        "Interface of the broker's computer that leads to the clients",
        default=None,
        pattern=_INTERFACE_NAME,
        metavar="NAME",
        empty=_DEFAULT_INTERFACE,
        shown_if={"action": ["commands", "interface"]},
    )
    end: LinkEnd = parameter(
        "This computer",
        "Which end of the link this computer is, where its interface is shaped",
        default=LinkEnd.CLIENT,
        labels={"client": "The clients' end", "broker": "The broker's end"},
        shown_if={"action": "interface"},
    )

    def sends(self, end: LinkEnd) -> OneWay:
        """What an end sends."""
        rate = self.link_rate if end is LinkEnd.CLIENT else self.link_rate_down or self.link_rate
        return OneWay(rate * 1e6, self.link_delay / 1e3)

    def interface(self, end: LinkEnd) -> str | None:
        """The name of an end's interface, where it was given."""
        return self.client_interface if end is LinkEnd.CLIENT else self.broker_interface


class ShapeLink(Operation[ShapeLinkParameters]):
    """Shows the commands that shape a link, or runs them and undoes them when it is cancelled."""

    name: ClassVar[str] = "amqp.shape-link"
    title: ClassVar[str] = "Shape a link"
    description: ClassVar[str] = (
        "Shapes a link in the Linux kernel by tc (tbf): shows the exact commands for both ends, or runs them as root "
        "and undoes them when it is cancelled. A lab is two network namespaces with a shaped link between them."
    )
    parameters: ClassVar[type[Parameters]] = ShapeLinkParameters
    runs_until_cancelled: ClassVar[bool] = True

    def run(self, parameters: ShapeLinkParameters, context: OperationContext) -> Result:
        if parameters.action is LinkAction.COMMANDS:
            return _commands(parameters)
        if reason := _why_not_here():
            shown = Result() if parameters.action is LinkAction.REMOVE else _commands(parameters)
            return Result(shown.parts, shown.data, (*shown.warnings, reason), passed=False)
        from labconsole_amqp.shaping.kernel_link import remove_leftovers  # imported late: Linux alone has what it needs

        removed, used = remove_leftovers()
        notes = [f"{title} was left by a console that was killed, and is removed." for title in removed]
        if parameters.action is LinkAction.REMOVE:
            notes += [f"{title} is in use by another console." for title in used]
            return Result(tuple(notes or ["There is nothing to remove."]), {"removed": removed, "used": used})
        for note in notes:
            context.say(note)
        if parameters.action is LinkAction.LAB:
            return _lab(parameters, context)
        return _interface(parameters, context)


def _lab(parameters: ShapeLinkParameters, context: OperationContext) -> Result:
    """A lab, until the operation is cancelled."""
    from labconsole_amqp.shaping.kernel_link import lab_processes, shaped_lab

    up, down = parameters.sends(LinkEnd.CLIENT), parameters.sends(LinkEnd.BROKER)
    ends = ((CLIENT_NAMESPACE, CLIENT_ADDRESS, up), (BROKER_NAMESPACE, BROKER_ADDRESS, down))
    trial = f"--set broker=external --set host={BROKER_ADDRESS} --set port=5672 --set address=labconsole"
    with shaped_lab(up, down):
        _wait(
            context,
            *(
                f"Namespace {namespace}, address {address}, sends at {_described(one_way, Interface(LAB_INTERFACE))}."
                for namespace, address, one_way in ends
            ),
            f"Broker: ip netns exec {BROKER_NAMESPACE} labconsole broker --host {BROKER_ADDRESS}",
            f"Trial: ip netns exec {CLIENT_NAMESPACE} labconsole run PROFILE {trial} "
            f"--set link_rate={parameters.link_rate:g}",
        )
        left = lab_processes()
    warnings: tuple[str, ...] = ()
    if left:
        pids = ", ".join(map(str, left))
        warnings = (f"Processes still run in the lab, which has no network now: end them (pid {pids}).",)
    return Result(("Removed: the lab on this computer.",), {"processes": list(left)}, warnings)


def _interface(parameters: ShapeLinkParameters, context: OperationContext) -> Result:
    """A shaped interface of this computer, until the operation is cancelled."""
    from labconsole_amqp.shaping.kernel_link import shaped_interface

    name = parameters.interface(parameters.end)
    if name is None:
        raise UserError(f"No interface is named: give --{parameters.end}-interface.")
    one_way = parameters.sends(parameters.end)
    with shaped_interface(name, one_way) as interface:
        _wait(context, f"Interface {name} sends at {_described(one_way, interface)}. Shape the other end, too.")
    return Result((f"Removed: the shaping of {name}.",), {"interface": name})


def _wait(context: OperationContext, *said: str) -> None:
    """Show what was set up, and wait until the operation is cancelled."""
    context.say("\n".join((*said, "Ready until it is cancelled (Ctrl+C, SIGTERM).")))
    while not context.stop_requested:
        time.sleep(_LOOK_S)


def _why_not_here() -> str:
    """Why this console cannot run the commands; empty where it can."""
    if sys.platform != "linux":
        return "Only Linux shapes links by tc: use the built-in shaper of a run (Shaped: By the console)."
    from labconsole_amqp.shaping.kernel_link import has_rights  # imported late: other systems do not have what it needs

    if not has_rights():
        return (
            "Nothing was done, since this needs the rights of root (CAP_NET_ADMIN, CAP_SYS_ADMIN): run it by sudo, or "
            "use the built-in shaper, which needs none."
        )
    return ""


def _commands(parameters: ShapeLinkParameters) -> Result:
    """The commands for both ends of a real link, or for a lab, and those that undo them."""
    warnings = (_NETEM,) if parameters.link_delay else ()
    up, down = parameters.sends(LinkEnd.CLIENT), parameters.sends(LinkEnd.BROKER)
    if parameters.action is LinkAction.LAB:
        parts, data = _listed("On this computer", lab_commands(up, down), lab_undo_commands())
        return Result(parts, {"lab": data}, warnings)
    client, broker = (Interface(parameters.interface(end) or _DEFAULT_INTERFACE) for end in LinkEnd)
    at_client, client_data = _listed(
        f"Clients' computer, {_described(up, client)}", up.commands(client), undo_commands(client)
    )
    at_broker, broker_data = _listed(
        f"Broker's computer, {_described(down, broker)}", down.commands(broker), undo_commands(broker)
    )
    note = f"As root, for Ethernet with an MTU of {client.mtu:,} B."
    return Result((*at_client, *at_broker, note), {"client": client_data, "broker": broker_data}, warnings)


def _listed(
    heading: str, commands: Iterable[Command], undo: Iterable[Command]
) -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """Commands and those that undo them, for a person and for a script."""
    do, end = lines(commands), lines(undo)
    return (f"{heading}:", *do, "To end it:", *end, ""), {"commands": list(do), "undo": list(end)}


def _described(one_way: OneWay, interface: Interface) -> str:
    """What an end sends, in words."""
    delay = f", delay {one_way.delay_s * 1e3:g} ms" if one_way.delay_s else ""
    burst = f"burst {one_way.burst(interface):,} B, latency {one_way.latency_ms:,} ms"
    return f"{one_way.rate / 1e6:g} Mbit/s{delay} ({burst})"
