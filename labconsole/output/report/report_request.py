"""The request for a report: runs, form, published figures and author."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from labconsole.clock import wall_now
from labconsole.errors import UserError
from labconsole.store.reader import Reader


class ReportKind(StrEnum):
    """What a report is about."""

    RUN = "run"
    COMPARISON = "comparison"
    CAMPAIGN = "campaign"
    OUTLINE = "outline"
    """Several trials, by the outline of a plugin."""


@dataclass(frozen=True)
class ReportRequest:
    """A report on `run_ids`, in this order. Texts left empty are filled from the runs.

    `baseline` is one of `run_ids`, whose column is the baseline, or the name of a published column (None: the first
    column), `published` are names of published tables or columns to compare with, `place` is where the trial
    took place. `outline` is the name of the outline of a report of that kind, which has neither baseline nor
    `published`.
    """

    run_ids: tuple[int, ...]
    kind: ReportKind
    baseline: int | str | None = None
    published: tuple[str, ...] = ()
    title: str = ""
    author: str = ""
    place: str = ""
    generated: datetime = field(default_factory=wall_now)
    outline: str = ""


def kind_for(reader: Reader, run_ids: Sequence[int]) -> ReportKind:
    """The default kind of a report on these runs: a run, all runs of a campaign, or a comparison.

    Raises StoreError for a run that is not there.
    """
    if len(set(run_ids)) == 1:
        return ReportKind.RUN
    campaigns = {row.campaign_id for row in reader.comparable(run_ids)}
    whole = len(campaigns) == 1 and set(run_ids) == set(whole_campaign(reader, run_ids))
    return ReportKind.CAMPAIGN if whole else ReportKind.COMPARISON


def whole_campaign(reader: Reader, run_ids: Sequence[int]) -> tuple[int, ...]:
    """All runs of the campaign that these belong to, but those in the trash, in their order.

    Raises StoreError for a run that is not there, UserError for runs of several campaigns.
    """
    campaigns = {row.campaign_id: row.campaign for row in reader.comparable(run_ids)}
    if len(campaigns) != 1:
        titles = ", ".join(campaigns.values())
        raise UserError(f"These runs belong to several campaigns ({titles}): report on one of them at a time.")
    return whole_campaigns(reader, run_ids)


def whole_campaigns(reader: Reader, run_ids: Sequence[int]) -> tuple[int, ...]:
    """All runs of the campaigns that these belong to, but those in the trash, in their order.

    Raises StoreError for a run that is not there.
    """
    campaigns = {row.campaign_id for row in reader.comparable(run_ids)}
    return tuple(sorted(row.id for campaign_id in campaigns for row in reader.runs(campaign_id=campaign_id)))
