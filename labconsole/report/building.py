"""Builds a report from the store: which sections a report of a run, a comparison, a campaign has."""

from __future__ import annotations

from collections.abc import Callable

from labconsole.plugin import Plugins
from labconsole.report.document import Document
from labconsole.report.request import ReportRequest
from labconsole.store.reader import Reader

Progress = Callable[[str], None]
"""Told what is being done, in a few words, before it is."""


def build_report(
    reader: Reader, plugins: Plugins, request: ReportRequest, progress: Progress | None = None
) -> Document:
    """Read what the report tells and put it together; takes a while with many samples.

    Raises StoreError for a run that is not there, TrialError for one that is still going, for no runs at all, for a
    baseline that is none of them, and for an unknown published name.
    """
    raise NotImplementedError
