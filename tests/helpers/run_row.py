"""Runs as a store's reader hands them out, without any store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from labconsole.model.metrics import Metric
from labconsole.store.records import RunRow, RunStatus

MOMENT = datetime(2025, 5, 20, tzinfo=UTC)


def finished_run(
    number: int, kind: str, parameters: Mapping[str, Any], metrics: Mapping[str, Metric], **changes: Any
) -> RunRow:
    """Run `number`, finished: the first repeat of the first campaign, unless `changes` says otherwise."""
    row = RunRow(
        id=number,
        uuid=str(number),
        campaign_id=1,
        campaign="Campaign 1",
        profile="demo",
        scenario="Scenario 1",
        kind=kind,
        parameters=parameters,
        repeat=1,
        position=number,
        status=RunStatus.FINISHED,
        reason="",
        seed=1,
        created=MOMENT,
        started=MOMENT,
        ended=MOMENT,
        owner=None,
        tags=(),
        note="",
        trashed=False,
        metrics=metrics,
    )
    return replace(row, **changes)
