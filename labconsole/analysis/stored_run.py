"""A stored run with the trial that made it, so that the trial can work on its samples again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from labconsole.analysis.busy import MACHINE
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Parameters, Trial
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail
from labconsole.store.samples import StoredSamples

RESOURCES = "resources"
"""Name of the series of CPU and memory that the engine itself records."""


@dataclass(frozen=True)
class StoredRun:
    """A run's record, its samples, and its trial (None if that is not installed here)."""

    detail: RunDetail
    samples: StoredSamples
    trial: Trial[Any] | None

    @property
    def sampled(self) -> bool:
        """Whether the trial's own roles recorded any series."""
        return any(series.name not in (RESOURCES, MACHINE.name) for series in self.detail.series)

    def parameters(self, trial: Trial[Any]) -> Parameters:
        """The run's parameters as the model of its trial. Raises UserError where they do not fit."""
        row = self.detail.row
        try:
            return trial.parameters.of_stored(row.parameters)
        except ValidationError as error:
            raise UserError(
                f"Run {row.id} cannot be drawn: its parameters do not fit the installed version of the trial "
                f"({error.error_count()} differences)."
            ) from error


@contextmanager
def drawing(run_id: int) -> Iterator[None]:
    """Whatever fails inside becomes a UserError: a trial may meet samples and events that it has not recorded itself,
    such as those of a bundle from another version."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # foreign code on foreign data
        what = f"{type(error).__name__}: {error}"
        raise UserError(
            f"Run {run_id} cannot be drawn: its samples are not what its trial expects ({what})."
        ) from error


def open_run(reader: Reader, run_id: int, plugins: Plugins) -> StoredRun:
    """Everything of a run; its samples are read when they are asked for. Raises StoreError if it is not there."""
    detail = reader.run(run_id)
    return StoredRun(detail, reader.samples(run_id), plugins.installed(detail.row.kind))
