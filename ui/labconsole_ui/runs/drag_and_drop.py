"""Runs that are dragged from one view to another: their ids as JSON, under a media type of our own."""

from __future__ import annotations

import json
from collections.abc import Sequence

from PySide6.QtCore import QMimeData

RUNS_TYPE = "application/x-labconsole-runs"


def encode_runs(run_ids: Sequence[int]) -> QMimeData:
    """What a drag of these runs carries."""
    data = QMimeData()
    data.setData(RUNS_TYPE, json.dumps(list(run_ids)).encode())
    return data


def decode_runs(data: QMimeData) -> list[int]:
    """The ids of the runs that are dragged; none if `data` carries something else."""
    if not data.hasFormat(RUNS_TYPE):
        return []
    try:
        run_ids = json.loads(bytes(data.data(RUNS_TYPE).data()))
    except ValueError:
        return []
    if not isinstance(run_ids, list):
        return []
    return [run_id for run_id in run_ids if isinstance(run_id, int) and not isinstance(run_id, bool)]
