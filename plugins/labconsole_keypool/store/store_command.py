"""`labconsole hsm verify-store`: is a key store as it was written?"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.cli.terminal import output
from labconsole.errors import UserError
from labconsole.locations import database_path
from labconsole.store.reader import Reader
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import HEAD_EVENT, Head
from labconsole_keypool.store.key_store import store_path
from labconsole_keypool.store.verify_store import verify_store

_SHOWN = 20
_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


def verify(arguments: argparse.Namespace) -> int:
    """Check a key store and print what was found; exit code 1 if it is not as it was written. Raises UserError."""
    noted = {} if arguments.run is None else _noted(arguments)
    path = _path(arguments.store or noted.get("store", "lab"))
    findings = verify_store(path, Head.from_data(noted) if noted else _given_head(arguments.head))
    console = output()
    if not findings:
        with KeyReader(path) as reader:
            counts, head = reader.counts(), reader.head()
        console.print(
            f"{path}: as it was written ({head.rows:,} rows; keys: {counts.new:,} new, {counts.in_use:,} in use, "
            f"{counts.used:,} used, {counts.invalid:,} invalid)"
        )
        console.print(f"Head {head.rows}:{head.link}", soft_wrap=True)
        return FINISHED
    console.print(f"{path}: not as it was written", style="red")
    for finding in findings[:_SHOWN]:
        console.print(finding.message)
    if len(findings) > _SHOWN:
        console.print(f"... and {len(findings) - _SHOWN:,} more")
    return FAILED


def _path(store: str) -> Path:
    """A name without a folder or an ending is that of a store in the data directory."""
    path = Path(store)
    return path if path.suffix or len(path.parts) > 1 else store_path(store)


def _given_head(text: str | None) -> Head | None:
    if text is None:
        return None
    if (found := _HEAD.fullmatch(text)) is None:
        raise UserError(f"{text} is no head: it is ROWS:LINK, as `labconsole hsm verify-store` prints it.")
    return Head(int(found[1]), found[2])


def _noted(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """What a run has noted of its key store: its name, and the head of its chain. Raises UserError: nothing."""
    with Reader(arguments.db or database_path()) as reader:
        noted = [event.data for event in reader.run(arguments.run).events if event.name == HEAD_EVENT]
    if not noted:
        raise UserError(f"Run {arguments.run} has noted no head of a key store: name a run of the signing service.")
    return noted[-1]
