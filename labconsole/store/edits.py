"""Changes of runs by the operator: notes, tags, the baseline, and the trash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import delete, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from labconsole.clock import wall_now
from labconsole.store import schema
from labconsole.store.encoding import time_to_text
from labconsole.store.errors import StoreError
from labconsole.store.records import LIVE
from labconsole.store.run_store import Store


def set_note(store: Store, run_id: int, text: str) -> None:
    """Set the note of a run; an empty text removes it. Raises StoreError."""
    with store.writer.transaction() as connection:
        store.require_runs(connection, [run_id])
        connection.execute(delete(schema.note).where(schema.note.c.run_id == run_id))
        if text.strip():
            connection.execute(insert(schema.note).values(run_id=run_id, text=text, changed=time_to_text(wall_now())))


def set_tags(store: Store, run_id: int, tags: Iterable[str]) -> None:
    """Set the tags of a run in place of those it had; blank ones are left out. Raises StoreError."""
    names = sorted({tag.strip() for tag in tags} - {""})
    with store.writer.transaction() as connection:
        store.require_runs(connection, [run_id])
        connection.execute(delete(schema.tag).where(schema.tag.c.run_id == run_id))
        if names:
            connection.execute(insert(schema.tag), [{"run_id": run_id, "name": name} for name in names])


def pin_baseline(store: Store, run_id: int) -> None:
    """Make a run the baseline of its kind of trial, in place of another; a live one is refused. Raises StoreError."""
    run, scenario = schema.run, schema.scenario
    with store.writer.transaction() as connection:
        status = store.require_runs(connection, [run_id])[run_id]
        if not status.final:
            raise StoreError(f"Run {run_id} is {status}: wait for its end before making it a baseline.")
        kind = connection.execute(select(scenario.c.kind).join(run).where(run.c.id == run_id)).scalar_one()
        connection.execute(delete(schema.baseline).where(schema.baseline.c.kind == kind))
        connection.execute(insert(schema.baseline).values(kind=kind, run_id=run_id))


def unpin_baseline(store: Store, kind: str) -> None:
    """Let a kind of trial have no baseline. Raises StoreError."""
    with store.writer.transaction() as connection:
        connection.execute(delete(schema.baseline).where(schema.baseline.c.kind == kind))


def trash(store: Store, run_ids: Sequence[int]) -> None:
    """Put runs into the trash; live ones are refused. Raises StoreError, with none of them trashed."""
    with store.writer.transaction() as connection:
        for run_id, status in store.require_runs(connection, run_ids).items():
            if not status.final:
                raise StoreError(f"Run {run_id} is {status}: cancel it or wait for its end before deleting it.")
        if run_ids:
            moment = time_to_text(wall_now())
            statement = upsert(schema.trash).on_conflict_do_nothing(index_elements=[schema.trash.c.run_id])
            connection.execute(statement, [{"run_id": run_id, "trashed": moment} for run_id in run_ids])


def restore(store: Store, run_ids: Sequence[int]) -> None:
    """Take runs out of the trash. Raises StoreError."""
    with store.writer.transaction() as connection:
        store.require_runs(connection, run_ids)
        connection.execute(delete(schema.trash).where(schema.trash.c.run_id.in_(run_ids)))


def purge_trash(store: Store) -> int:
    """Delete the runs in the trash, only while no run is live; returns the number of runs. Raises StoreError.

    The file becomes smaller where that is worth the time: about 9 s for 1 GB that stays.
    """
    run, scenario, campaign = schema.run, schema.scenario, schema.campaign
    with store.writer.transaction(durable=True) as connection:
        live = connection.execute(select(run.c.id).where(run.c.status.in_(LIVE)).limit(1)).scalar()
        if live is not None:
            raise StoreError(f"Run {live} is queued or running: empty the trash when no run is in progress.")
        purged = connection.execute(delete(run).where(run.c.id.in_(select(schema.trash.c.run_id)))).rowcount
        connection.execute(delete(scenario).where(scenario.c.id.not_in(select(run.c.scenario_id))))
        connection.execute(delete(campaign).where(campaign.c.id.not_in(select(scenario.c.campaign_id))))
    try:
        store.writer.reclaim(unless="SELECT 1 FROM run WHERE status IN ('queued', 'running')")
    except StoreError as error:
        raise StoreError(f"The trash was emptied, but its space was not given back to the disk: {error}") from error
    return purged
