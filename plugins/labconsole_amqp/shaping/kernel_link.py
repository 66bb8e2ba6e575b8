"""Links that the Linux kernel shapes: set up by `ip` and `tc`, recorded, and removed, also after a killed console.

What is set up is recorded in a file before the first command, and the file is locked as long as its console runs: a
record without a lock is that of a killed one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from labconsole.errors import UserError
from labconsole_amqp.shaping.tc_commands import (
    BROKER_NAMESPACE,
    CLIENT_NAMESPACE,
    DEFAULT_GSO_SEGMENTS,
    ETHERNET_HEADER,
    HANDLE,
    Command,
    Interface,
    OneWay,
    lab_commands,
    lab_undo_commands,
    lines,
    undo_commands,
)

_RECORDS = Path("/run")
"""Emptied when the computer starts, as the kernel's settings are."""
_RECORD_PREFIX = "labconsole-shaped-"
_NAMESPACES = Path("/run/netns")
_RECORD_OCTETS = 65_536
_TIMEOUT_S = 30
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21


def has_rights() -> bool:
    """Whether this thread may set up interfaces and network namespaces."""
    status = Path("/proc/thread-self/status").read_text()
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return all(effective >> bit & 1 for bit in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))


@contextmanager
def shaped_interface(name: str, one_way: OneWay) -> Iterator[Interface]:
    """Shapes what leaves by an interface of this computer until the block ends. Raises UserError."""
    with _locked(f"interface-{name}") as (record, is_ours):
        if not is_ours:
            raise UserError(f"Another console shapes interface {name}: end that one first.")
        interface = _free_interface(name)
        with _set_up(record, interface, one_way.commands(interface)):
            yield interface


@contextmanager
def shaped_lab(up: OneWay, down: OneWay) -> Iterator[None]:
    """Two network namespaces with a shaped link between them until the block ends. Raises UserError."""
    with _locked("lab") as (record, is_ours):
        if not is_ours:
            raise UserError("Another console has the lab on this computer: end that one first.")
        if _is_left(None):
            undo = "; ".join(lines(lab_undo_commands()))
            raise UserError(
                f"The lab's namespaces exist, and no console has recorded them: remove them first ({undo})."
            )
        with _set_up(record, None, lab_commands(up, down)):
            yield


def remove_leftovers() -> tuple[list[str], list[str]]:
    """Remove what killed consoles have left: its names, and those of what consoles that run use. Raises UserError."""
    removed: list[str] = []
    used: list[str] = []
    for path in sorted(_RECORDS.glob(f"{_RECORD_PREFIX}*")):
        with _locked(path.name.removeprefix(_RECORD_PREFIX)) as (record, is_ours):
            text = os.pread(record, _RECORD_OCTETS, 0)
            if not text:  # nothing was set up yet
                continue
            interface = _recorded(text)
            if is_ours:
                _take_down(record, interface)
            (removed if is_ours else used).append(_title(interface))
    return removed, used


def lab_processes() -> tuple[int, ...]:
    """The processes that run in the lab's namespaces. Raises UserError."""
    names = (CLIENT_NAMESPACE, BROKER_NAMESPACE)
    return tuple(int(pid) for name in names for pid in _output(("ip", "netns", "pids", name)).split())


def _free_interface(name: str) -> Interface:
    """An interface that has no queueing discipline of the operator's. Raises UserError."""
    found = json.loads(_output(("ip", "-d", "-j", "link", "show", "dev", name)))[0]
    if found["link_type"] == "loopback":
        raise UserError(f"{name} is the loopback interface, which carries both directions: set up a lab instead.")
    for qdisc in _root_qdiscs(name):
        if qdisc["handle"] != "0:":  # the kernel's default
            shown = f"{qdisc['kind']} {qdisc['handle']}"
            raise UserError(
                f"{name} has a queueing discipline already, {shown}: remove it first (tc qdisc del dev {name} root)."
            )
    return Interface(
        name,
        mtu=int(found["mtu"]),
        header=ETHERNET_HEADER if found["link_type"] == "ether" else 0,
        gso_segments=int(found.get("gso_max_segs", DEFAULT_GSO_SEGMENTS)),
    )


@contextmanager
def _set_up(record: int, interface: Interface | None, commands: Sequence[Command]) -> Iterator[None]:
    """Run the commands of an interface, or of the lab; undo them at the end."""
    os.pwrite(record, json.dumps(asdict(interface) if interface else None).encode(), 0)
    try:
        for command in commands:
            _output(command)
        yield
    finally:
        _take_down(record, interface)


def _take_down(record: int, interface: Interface | None) -> None:
    """Remove what there is of a shaped interface, or of the lab, and empty its record. Raises UserError."""
    undo, fault = _undo_commands(interface), ""
    for command in undo:
        try:
            _output(command)
        except UserError as error:  # a part that was not set up, or was removed by the operator
            fault = fault or str(error)
    if _is_left(interface):
        raise UserError(f"{_title(interface)} cannot be removed: {fault} Run: {'; '.join(lines(undo))}")
    os.ftruncate(record, 0)


def _undo_commands(interface: Interface | None) -> tuple[Command, ...]:
    return undo_commands(interface) if interface else lab_undo_commands()


def _is_left(interface: Interface | None) -> bool:
    """Whether the kernel shapes the interface, or has the lab."""
    if interface is None:
        return any((_NAMESPACES / name).exists() for name in (CLIENT_NAMESPACE, BROKER_NAMESPACE))
    try:
        return any(qdisc["handle"] == HANDLE for qdisc in _root_qdiscs(interface.name))
    except UserError:  # the interface is gone
        return False


def _title(interface: Interface | None) -> str:
    return f"Interface {interface.name}" if interface else "The lab on this computer"


def _recorded(text: bytes) -> Interface | None:
    """The interface of a record; None: it is the lab's. Raises UserError: it is damaged."""
    try:
        values = json.loads(text or b"null")
        return Interface(**values) if values else None
    except (ValueError, TypeError) as error:
        raise UserError(
            f"A record {_RECORDS / _RECORD_PREFIX}* is damaged: see by `tc qdisc show` and `ip netns` what is left of "
            "a shaped link, undo it, and remove the record."
        ) from error


def _root_qdiscs(name: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(_output(("tc", "-j", "qdisc", "show", "dev", name, "root")) or "[]")
    return found


@contextmanager
def _locked(name: str) -> Iterator[tuple[int, bool]]:
    """A record's file, and whether this process holds its lock until the block ends; removed then if it is empty.

    Raises UserError.
    """
    path = _RECORDS / f"{_RECORD_PREFIX}{name}"
    while True:
        try:
            record = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise UserError(f"{path} cannot be opened ({error.strerror}): run this as root.") from error
        try:
            try:
                fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield record, False
                return
            if not os.fstat(record).st_nlink:  # its owner has removed it meanwhile
                continue
            try:
                yield record, True
            finally:
                if not os.fstat(record).st_size:
                    path.unlink()
            return
        finally:
            os.close(record)


def _output(command: Command) -> str:
    """What a command prints. Raises UserError: it is not installed, or fails."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    program = shutil.which(command[0], path=path)
    if program is None:
        raise UserError(f"The program {command[0]} is not found: install the package iproute2.")
    done = subprocess.run(
        [program, *command[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        start_new_session=True,  # a Ctrl+C is for the console alone, which then undoes its work
        check=False,
    )
    if done.returncode == 0:
        return done.stdout
    reason = " ".join(done.stderr.split())
    if "netem" in command and "kind is unknown" in reason:
        raise UserError(
            "This kernel has no netem (module sch_netem), which a delay needs: set the delay to 0, or use the "
            "built-in shaper."
        )
    raise UserError(f"The kernel refused `{lines([command])[0]}` ({reason}): check it.")
