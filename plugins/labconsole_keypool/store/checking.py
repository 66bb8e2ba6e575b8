"""Checks whether a key store is as it was written: `labconsole hsm verify-store`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import model_validator

from labconsole.cli.database import RunDatabase
from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result, Tone, TonedText
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.paths import database_path
from labconsole.store.reader import Reader
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import HEAD_EVENT, Head
from labconsole_keypool.store.key_store import store_path
from labconsole_keypool.store.verify_store import verify_store

_SHOWN = 20
_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class VerifyStoreParameters(Parameters):
    """Which key store is checked, and against what."""

    store: str = parameter(
        "Key store",
        "Name of a key store, or path of its file; empty: that of the run, or lab",
        default="",
        positional=True,
        metavar="NAME|PATH",
        empty="That of the run, or lab",
    )
    run: int | None = parameter(
        "Run", "Compare it with the head that this run has noted", default=None, metavar="RUN", empty="None"
    )
    head: str | None = parameter(
        "Head", "Compare it with this head, as this check shows it", default=None, metavar="ROWS:LINK"
    )
    db: RunDatabase = None

    @model_validator(mode="after")
    def _one_head(self) -> Self:
        if self.run is not None and self.head is not None:
            raise ValueError("a run has noted its own head: give the run or the head, not both")
        return self


class VerifyStore(Operation[VerifyStoreParameters]):
    """Checks a key store."""

    name: ClassVar[str] = "keypool.verify-store"
    title: ClassVar[str] = "Check a key store"
    description: ClassVar[str] = (
        "Checks that a key store is as it was written: nothing changed, removed, re-dated or inserted. With the head "
        "that a run has noted, or that you kept, a store cut off or rewritten as a whole is found, too."
    )
    parameters: ClassVar[type[Parameters]] = VerifyStoreParameters

    def run(self, parameters: VerifyStoreParameters, context: OperationContext) -> Result:
        noted = {} if parameters.run is None else _noted(parameters.run, parameters.db)
        path = _path(parameters.store or noted.get("store", "lab"))
        findings = verify_store(path, Head.from_data(noted) if noted else _given_head(parameters.head))
        if findings:
            parts = [
                TonedText(f"{path}: not as it was written", Tone.BAD),
                *(finding.message for finding in findings[:_SHOWN]),
            ]
            if len(findings) > _SHOWN:
                parts.append(f"... and {len(findings) - _SHOWN:,} more")
            messages = [finding.message for finding in findings]
            data = {"key_store": str(path), "as_written": False, "findings": messages}
            return Result(tuple(parts), data, passed=False)
        with KeyReader(path) as reader:
            counts, head = reader.counts(), reader.head()
        text = (
            f"{path}: as it was written ({head.rows:,} rows; keys: {counts.new:,} new, {counts.in_use:,} in use, "
            f"{counts.used:,} used, {counts.invalid:,} invalid)"
        )
        shown = f"{head.rows}:{head.link}"
        keys = {"new": counts.new, "in_use": counts.in_use, "used": counts.used, "invalid": counts.invalid}
        data = {"key_store": str(path), "as_written": True, "findings": [], "head": shown, "keys": keys}
        return Result((text, f"Head {shown}"), data)


def _path(store: str) -> Path:
    """A name without a folder or an ending is that of a store in the data directory."""
    path = Path(store)
    return path if path.suffix or len(path.parts) > 1 else store_path(store)


def _given_head(text: str | None) -> Head | None:
    if text is None:
        return None
    if (found := _HEAD.fullmatch(text)) is None:
        raise UserError(f"{text} is not a head: it is ROWS:LINK, as `labconsole hsm verify-store` prints it.")
    return Head(int(found[1]), found[2])


def _noted(run: int, database: HomePath | None) -> Mapping[str, Any]:
    """What a run has noted of its key store: its name, and the head of its chain. Raises UserError: nothing."""
    with Reader(database or database_path()) as reader:
        noted = [event.data for event in reader.run(run).events if event.name == HEAD_EVENT]
    if not noted:
        raise UserError(f"Run {run} has noted no head of a key store: name a run of the signing service.")
    return noted[-1]
