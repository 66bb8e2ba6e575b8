"""The evidence of a run: one SHA-256 over all that the database holds of it, sealed when the run ends.

The digest is the SHA-256 over lines of canonical JSON, each `[section, value, ...]` of the rows as they are stored,
in this order: the format, the run (with its scenario and campaign), its series (with the head of each hash chain),
events, metrics, verdicts, artefacts (with the hash of each), the values that version 4 of the database added, roles
and their files (version 5), attachments (version 6), and the hosts that the scenario asks for (version 7). Values at
their defaults and empty tables of later versions have no line, so that a run that was sealed before them keeps its
digest. The digest leaves out ids, the process that owned the run, notes, tags, trash and baseline: so it stays the
same when a bundle carries the run to another database.

A digest in the same file protects against accident and careless change. A program that rewrites the whole file can
rewrite it too: that is why reports print it and are signed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

from labconsole.clock import wall_now
from labconsole.store.database_file import driver
from labconsole.store.encoding import time_to_text, to_json
from labconsole.store.records import LIVE
from labconsole.store.statements import insert_each

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FORMAT = "labconsole run evidence 1"
_RUN = """
SELECT run.uuid, scenario.kind, scenario.name, scenario.parameters, scenario.thresholds, campaign.name, campaign.title,
       campaign.profile_sha256, campaign.order_seed, campaign.sites, campaign.created, run.repeat, run.position,
       run.seed, run.created, run.started, run.ended, run.status, run.reason, run.provenance, run.warnings
FROM run JOIN scenario ON scenario.id = run.scenario_id JOIN campaign ON campaign.id = scenario.campaign_id
WHERE run.id = ?
"""
_SECTIONS = {
    "run": _RUN,
    "series": 'SELECT name, role, title, origin, "columns", chunks, rows, hex(link) FROM series WHERE run_id = ? '
    "ORDER BY name, role",
    "event": "SELECT role, seq, t_ns, source, level, name, message, data FROM event WHERE run_id = ? "
    "ORDER BY role, seq",
    "metric": "SELECT position, name, value, unit, direction, origin, labels, samples FROM metric WHERE run_id = ? "
    "ORDER BY position",
    "verdict": "SELECT position, name, result, reason, evidence FROM verdict WHERE run_id = ? ORDER BY position",
    "artefact": "SELECT name, media_type, hex(sha256) FROM artefact WHERE run_id = ? ORDER BY name",
    "definitions": "SELECT definitions FROM run WHERE id = ? AND definitions <> 1",
    "not judged": "SELECT position, not_judged FROM metric WHERE run_id = ? AND not_judged <> '' ORDER BY position",
    "uncertainty": "SELECT position, uncertainty FROM metric WHERE run_id = ? AND uncertainty <> 0 ORDER BY position",
    "verdict kind": "SELECT position, kind FROM verdict WHERE run_id = ? AND kind <> 'finding' ORDER BY position",
    "role": "SELECT name, host, clock_domain FROM role WHERE run_id = ? ORDER BY name",
    "role file": "SELECT role, key, name, size, hex(sha256) FROM role_file WHERE run_id = ? ORDER BY role, key",
    "attachment": "SELECT role, name, media_type, chunks, size, hex(link), hex(sha256) FROM attachment "
    "WHERE run_id = ? ORDER BY role, name",
    "placement": "SELECT placement FROM run JOIN scenario ON scenario.id = run.scenario_id "
    "WHERE run.id = ? AND placement <> '{}'",
}


_UNSEALED = "SELECT id FROM run WHERE status NOT IN (?, ?) AND id NOT IN (SELECT run_id FROM evidence)"
_IN_PLACE = "ON CONFLICT (run_id) DO UPDATE SET digest = excluded.digest, sealed = excluded.sealed"


def digest(connection: Connection | sqlite3.Connection, run_id: int) -> bytes:
    """The digest of a run that is there, as the database holds it now: 32 bytes. Reads no samples but their hashes."""
    raw = driver(connection)
    found = hashlib.sha256(f"{to_json([_FORMAT])}\n".encode())
    for section, statement in _SECTIONS.items():
        for row in raw.execute(statement, (run_id,)):
            found.update(f"{to_json([section, *row])}\n".encode())
    return found.digest()


def seal(connection: Connection | sqlite3.Connection, run_ids: Iterable[int]) -> None:
    """Store the digest of these runs, in place of the one that each may have."""
    moment = time_to_text(wall_now())
    rows = [{"run_id": run_id, "digest": digest(connection, run_id), "sealed": moment} for run_id in run_ids]
    insert_each(driver(connection), "evidence", rows, _IN_PLACE)


def seal_unsealed(connection: Connection) -> None:
    """Seal the runs that ended before the database knew evidence: with the moment of this call."""
    seal(connection, [run_id for (run_id,) in driver(connection).execute(_UNSEALED, LIVE).fetchall()])
