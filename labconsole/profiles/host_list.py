"""Host lists: files that name the hosts of the roles of all scenarios of a profile, for `labconsole run --hosts`.

A file whose name ends with `.toml` has the keys of a profile's table `hosts`, with or without that table's header.
Any other file has a host in each line, after the list `hosts.start` of PRESERVE D3.2 (section 2.2.2), and next to it
the names of roles that it may run, with `*` and `?`; without names it may run all. Hosts of the same names share these
roles evenly. `#` begins a comment.

    obu-1    sender-*
    obu-2    sender-*      # shares the senders with obu-1
    server   broker receiver-*
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.validation_faults import fault_sentence
from labconsole.profiles.profile_file import ProfileError
from labconsole.profiles.profile_texts import hosts_table

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
_ROLES = re.compile(r"\s*\[\[\s*(hosts\s*\.\s*)?roles\s*\]\]")
_ALL = "*"


def read_host_list(path: Path) -> Placement:
    """The placement that a host list asks for. Raises ProfileError, which names the file and the line of a fault."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ProfileError(f"The host list {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"The host list {path} is not a text file: {error}.") from error
    placement = _from_toml(path, text) if path.suffix.lower() == ".toml" else _from_lines(path, text)
    if not placement.roles:
        raise ProfileError(f"The host list {path} names no hosts; give one in each line, or roles in [[roles]].")
    return placement


def save_host_list(path: Path, placement: Placement) -> None:
    """Write a placement as a host list in TOML. Raises ProfileError: it cannot be written."""
    try:
        path.write_text(tomli_w.dumps(hosts_table(placement.stored())), encoding="utf-8")
    except OSError as error:
        raise ProfileError(f"The host list {path} cannot be written: {error.strerror}.") from error


def _from_toml(path: Path, text: str) -> Placement:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"The host list {path} is not valid TOML: {error}.") from error
    table = data["hosts"] if data.keys() == {"hosts"} else data
    try:
        return Placement.model_validate(table)
    except ValidationError as error:
        line = _line_of(text, error.errors(include_url=False)[0]["loc"])
        where = f"{path}, line {line}" if line else str(path)
        raise ProfileError(f"Host list {where}: {fault_sentence(error, Placement)}") from error


def _line_of(text: str, key: tuple[int | str, ...]) -> int | None:
    """The line of a key such as `("roles", 1, "cores")`, or of its table; None where it is not written in lines."""
    if not key:
        return None
    wanted = key[1] if len(key) > 1 else -1
    written = re.compile(rf'\s*\[?\s*"?{re.escape(str(key[-1]))}"?\s*[=\]]')
    table, head = -1, None
    for number, line in enumerate(text.splitlines(), 1):
        if _ROLES.match(line):
            table += 1
            head = number if table == wanted else head
        elif table == wanted and written.match(line):
            return number
    return head


def _from_lines(path: Path, text: str) -> Placement:
    hosts: dict[str, dict[str, int]] = {}
    """For each name of roles its hosts, and the line of each."""
    for number, line in enumerate(text.splitlines(), 1):
        host, *roles = line.partition("#")[0].split() or [""]
        if not host:
            continue
        if not _HOST.fullmatch(host):
            raise ProfileError(
                f"Host list {path}, line {number}: {host!r} cannot be the name of a host, which has letters, digits "
                "and -, 63 at most. The name of a host list in TOML ends with .toml."
            )
        for role in roles or [_ALL]:
            first = hosts.setdefault(role, {}).setdefault(host, number)
            if first != number or roles.count(role) > 1:
                raise ProfileError(
                    f"Host list {path}, line {number}: {host} has the roles {role} already, by line {first}; remove "
                    "one of them."
                )
    ordered = sorted(hosts.items(), key=lambda entry: entry[0] == _ALL)  # what comes after `*` would match no role
    return Placement(roles=tuple(RoleRequest(role=role, host=_names(of_role)) for role, of_role in ordered))


def _names(hosts: dict[str, int]) -> str | tuple[str, ...]:
    """The only name, or all of them."""
    names = tuple(hosts)
    return names[0] if len(names) == 1 else names
