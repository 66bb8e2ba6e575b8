"""Agreements of this console as files of its data directory, and the signed statements of imported bundles.

`ID.proposal.pem` is the proposal as it was signed, here or elsewhere; `ID.own.toml` the scenario that this console
runs; `ID.acceptance.pem` the acceptance, which makes it an agreement; `ID.served.json` how far an agent has served it;
`UUID.results.pem` the statement of the bundle in which a run came.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from labconsole.agreements.documents import Acceptance, Proposal, received
from labconsole.errors import BadInput, UserError
from labconsole.paths import agreements_dir
from labconsole.profiles.profile import save_profile
from labconsole.security.pki.signing_identities import Signer
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.private_files import write_private
from labconsole.security.x509 import cms
from labconsole.security.x509.parsing import read_file

_ID = re.compile(r"[0-9a-f]{16}")
_UUID = re.compile(r"[0-9a-f-]{36}")


class Served(BaseModel):
    """How far an agent has served an agreement: kept before each step that must not be repeated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    begun: str = ""
    """When it began the run, in UTC; empty: it has not."""
    sent: str = ""
    """Uuid of the run whose signed bundle it has exported."""
    merged: str = ""
    """Uuid of the other console's run that is merged with this console's."""


def keep_proposal(id: str, signed: bytes, scenario: str) -> None:
    """Keep a proposal of this console, and what this console would run (the text of a profile). Raises UserError."""
    _write(_path(id, "own.toml"), scenario.encode())
    _write(_path(id, "proposal.pem"), signed)


def kept_proposal(id: str) -> bytes:
    """The proposal of this console with this id, as it was signed. Raises UserError: there is none."""
    path = _path(id, "proposal.pem")
    if not path.exists() or not _path(id, "own.toml").exists():
        raise UserError(f"This console has proposed no agreement {id}: conclude it on the console that did.")
    return read_file(path, "proposal")


def refuse_agreed(id: str) -> None:
    """Raises UserError: there is an agreement with this id already."""
    if _path(id, "acceptance.pem").exists():
        raise UserError(f"There is an agreement {id} on this console already, and its scenario is the profile {id}.")


def keep_agreement(id: str, proposal: bytes, acceptance: bytes, scenario: str) -> Path:
    """Keep an agreement, and save what this console runs as the profile `id`; returns the profile's path.

    Raises UserError: there is one with this id, or it cannot be written.
    """
    refuse_agreed(id)
    profile = save_profile(id, scenario)
    _write(_path(id, "proposal.pem"), proposal)
    _write(_path(id, "acceptance.pem"), acceptance)
    return profile


def own_scenario(id: str) -> str:
    """The text of the profile that the proposer's console runs. Raises UserError."""
    return read_file(_path(id, "own.toml"), "scenario").decode()


def agreed_proposal(id: str) -> Proposal | None:
    """The proposal of the agreement `id` of this console; None where there is none. Raises UserError: it is damaged."""
    if not _ID.fullmatch(id) or not _path(id, "acceptance.pem").exists():
        return None
    try:
        return Proposal.model_validate(json.loads(cms.verify(read_file(_path(id, "proposal.pem"))).content))
    except (BadInput, ValueError) as error:
        raise UserError(f"The agreement {id} on this console is damaged: agree on the trial again.") from error


def agreed_start(id: str) -> datetime | None:
    """When the agreement `id` begins; None where there is none, or it has no time. Raises UserError: it is damaged."""
    proposal = agreed_proposal(id)
    return None if proposal is None else proposal.starts


def agreed_ids() -> tuple[str, ...]:
    """The ids of all agreements of this console, sorted."""
    names = (path.name.partition(".")[0] for path in agreements_dir().glob("*.acceptance.pem"))
    return tuple(sorted(name for name in names if _ID.fullmatch(name)))


def proposed_here(id: str) -> bool:
    """Whether this console proposed the agreement `id`; otherwise it has accepted it."""
    return _path(id, "own.toml").exists()


def other_signer(id: str, snapshot: Snapshot) -> Signer:
    """Who signed the other console's part of the agreement `id`, judged now. Raises UserError."""
    if proposed_here(id):
        return received(read_file(_path(id, "acceptance.pem"), "acceptance"), Acceptance, snapshot).signer
    return received(read_file(_path(id, "proposal.pem"), "proposal"), Proposal, snapshot).signer


def served(id: str) -> Served:
    """How far an agent has served the agreement `id`. Raises UserError: that file is damaged."""
    path = _path(id, "served.json")
    try:
        return Served.model_validate_json(path.read_bytes()) if path.exists() else Served()
    except (OSError, ValidationError) as error:
        raise UserError(f"{path} is damaged, so that no agent serves it: run it by `labconsole run {id}`.") from error


def keep_served(id: str, state: Served) -> None:
    """Keep how far an agent has served the agreement `id`. Raises UserError."""
    _write(_path(id, "served.json"), state.model_dump_json().encode())


def keep_results(uuid: str, signed: bytes) -> None:
    """Keep the signed statement of the bundle in which a run came. Raises UserError."""
    _write(agreements_dir() / f"{_checked_uuid(uuid)}.results.pem", signed)


def kept_results(uuid: str) -> bytes | None:
    """The signed statement of the bundle in which a run came; None without one. Raises UserError."""
    path = agreements_dir() / f"{_checked_uuid(uuid)}.results.pem"
    return read_file(path, "statement of results") if path.exists() else None


def _checked_uuid(uuid: str) -> str:
    if not _UUID.fullmatch(uuid):
        raise BadInput(f"{uuid!r:.60} is not the uuid of a run.")
    return uuid


def _path(id: str, ending: str) -> Path:
    """A file of the agreement `id`. Raises BadInput for an id that is not one: it comes from outside."""
    if not _ID.fullmatch(id):
        raise BadInput(f"{id!r:.40} is not the id of an agreement, which has 16 hexadecimal digits.")
    return agreements_dir() / f"{id}.{ending}"


def _write(path: Path, data: bytes) -> None:
    try:
        write_private(path, data)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror or error}): check the disk.") from error
