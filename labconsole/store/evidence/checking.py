"""Checking a run against its evidence (`labconsole.store.evidence.sealing`): the changes since it was sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from labconsole.store import schema
from labconsole.store.encoding import sha256_hex
from labconsole.store.errors import StoreError
from labconsole.store.evidence.sealing import digest
from labconsole.store.reader import Reader
from labconsole.store.records import LIVE
from labconsole.store.samples import StoredSamples


@dataclass(frozen=True)
class Verification:
    """The result of a check of a run against its evidence. Digests are in hexadecimal."""

    digest_stored: str | None
    """None for a run that is not sealed: it has not ended yet."""
    digest_now: str
    sealed: datetime | None
    faults: tuple[str, ...]
    """The faults, one sentence each; empty when nothing has changed."""

    @property
    def ok(self) -> bool:
        """Whether the run is sealed and nothing of it has changed since."""
        return not self.faults


def as_sealed(reader: Reader, run_id: int) -> bool:
    """Whether a run's digest is the one that was sealed. Samples are not read: `verify` does that too.

    Raises StoreError if the database cannot be read.
    """
    evidence = reader.evidence(run_id)
    with reader.snapshot() as connection:
        return evidence is not None and evidence.digest == digest(connection, run_id).hex()


def verify(reader: Reader, run_id: int) -> Verification:
    """Compare a run with its evidence: every chunk's hash from its payload, every file's, and the digest.

    Raises StoreError if there is no such run, or the database cannot be read.
    """
    samples = reader.samples(run_id)
    evidence = reader.evidence(run_id)
    with reader.snapshot() as connection:
        now = digest(connection, run_id).hex()
        faults = [*_unsealed(connection, run_id)] if evidence is None else []
        if evidence is not None and evidence.digest != now:
            faults.append(
                f"Run {run_id} is not as it was sealed: its parameters, figures, events or files were changed."
            )
        faults += _wrong_descriptions(connection, run_id)
        series = connection.execute(select(schema.series).where(schema.series.c.run_id == run_id)).all()
        attached = connection.execute(select(schema.attachment).where(schema.attachment.c.run_id == run_id)).all()
    for row in series:
        faults += _wrong_chunks(reader, samples, row)
    for row in attached:
        faults += _wrong_attachment(reader, run_id, row)
    return Verification(
        evidence.digest if evidence else None, now, evidence.sealed if evidence else None, tuple(faults)
    )


def _unsealed(connection: Connection, run_id: int) -> Iterator[str]:
    status = connection.execute(select(schema.run.c.status).where(schema.run.c.id == run_id)).scalar_one()
    live = status in LIVE
    yield f"Run {run_id} has no evidence: " + (
        f"it is {status}, and sealed when it ends." if live else "it was removed."
    )


def _wrong_descriptions(connection: Connection, run_id: int) -> Iterator[str]:
    """One sentence for each text or artefact that does not fit its hash."""
    run, scenario, campaign = schema.run, schema.scenario, schema.campaign
    row = connection.execute(
        select(scenario.c.parameters, scenario.c.parameters_sha256, campaign.c.profile_text, campaign.c.profile_sha256)
        .select_from(run.join(scenario).join(campaign))
        .where(run.c.id == run_id)
    ).first()
    if row is not None and sha256_hex(row.parameters) != row.parameters_sha256:
        yield f"The parameters of run {run_id} do not fit their hash."
    if row is not None and sha256_hex(row.profile_text) != row.profile_sha256:
        yield f"The profile of run {run_id} does not fit its hash."
    for artefact in connection.execute(select(schema.artefact).where(schema.artefact.c.run_id == run_id)):
        if hashlib.sha256(artefact.content).digest() != artefact.sha256:
            yield f"Artefact {artefact.name} of run {run_id} does not fit its hash."


def _wrong_chunks(reader: Reader, samples: StoredSamples, series: Row[Any]) -> Iterator[str]:
    """The faults of the chunks of a series: the first that does not fit the hash chain, and those too many."""
    stored = schema.chunk.c
    with reader.snapshot() as connection:
        count = connection.execute(select(func.count()).where(stored.series_id == series.id)).scalar_one()
    if count != series.chunks:
        yield f"Series {series.name} from {series.role} has {count} chunks, not {series.chunks}."
    try:
        for _ in samples.chunks(series.name, series.role):
            pass
    except StoreError as error:
        yield str(error)


def _wrong_attachment(reader: Reader, run_id: int, attachment: Row[Any]) -> Iterator[str]:
    """The faults of an attachment: the first chunk that does not fit the hash chain, and those too many."""
    stored = schema.attachment_chunk.c
    with reader.snapshot() as connection:
        count = connection.execute(select(func.count()).where(stored.attachment_id == attachment.id)).scalar_one()
    if count != attachment.chunks:
        yield f"Attachment {attachment.name} from {attachment.role} has {count} chunks, not {attachment.chunks}."
    try:
        for _ in reader.attachments(run_id).content(attachment.role, attachment.name):
            pass
    except StoreError as error:
        yield str(error)
