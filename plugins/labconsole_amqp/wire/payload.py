"""Payloads: the three files that come with the console, and any file of the operator's."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from labconsole.errors import UserError
from labconsole.paths import resource

BUILT_IN = {"small": "small.txt", "fpl-tac": "fpl-tac.txt", "fpl-fixm": "fpl-fixm.xml"}
"""The source's payloads by name: 11 bytes of dummy data, a flight plan in TAC format (237 bytes), in FIXM (42,708)."""

PAYLOAD_FILE = "payload"
"""The key under which sender and receiver ask for the operator's file."""


@dataclass(frozen=True)
class Payload:
    """What is sent in every message of a run; `name` is the built-in name or the path of the file."""

    name: str
    data: bytes


def payload_file(choice: str) -> Path | None:
    """The operator's file that `choice` names; None for a built-in payload."""
    return None if choice in BUILT_IN else Path(choice).expanduser()


def payload_path(choice: str) -> Path:
    """The file that `choice` names, built-in or the operator's."""
    return payload_file(choice) or resource("payloads", BUILT_IN[choice])


def load_payload(choice: str, *, as_string: bool = True, copy: Path | None = None) -> Payload:
    """Load a built-in payload by name, or the file at path `choice`, from its `copy` if a run has one.

    With `as_string` (Tests 1-3, whose body is an AMQP string) the payload must be UTF-8 text.

    Raises:
        UserError: missing, unreadable, empty, or not UTF-8 where it must be.
    """
    path = copy or payload_path(choice)
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        data = path.read_bytes() if regular else b""
    except FileNotFoundError as error:
        names = ", ".join(BUILT_IN)
        raise UserError(f"There is no payload {choice}: name an existing file or one of {names}.") from error
    except OSError as error:
        raise UserError(f"The payload {path} cannot be read ({error.strerror}): check its name.") from error
    if not regular:
        raise UserError(f"The payload {path} is not a regular file: name a file.")
    if not data:
        raise UserError(f"The payload {path} is empty: name a file with something in it.")
    if as_string:
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise UserError(
                f"The payload {path} is not UTF-8 text (byte {error.start}), which the body of Tests 1 to 3 must be: "
                "convert it or use Test 4."
            ) from error
    return Payload(choice, data)
