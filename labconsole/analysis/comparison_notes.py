"""Notes on a whole comparison: columns left out, caveats, and the method of its figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from labconsole.analysis.caveats import above_link_rate, link_bound, link_share
from labconsole.analysis.columns import Column, RunGroup, share_a_trial
from labconsole.model.series import Origin
from labconsole.store.records import RunStatus

MARK = "*"
"""The mark behind a figure of another origin than the figures that it is compared with."""
UNCERTAINTY = "± is how uncertain the clocks are between which a figure was measured."
"""The sentence on figures with an uncertainty."""


def notes(columns: Sequence[Column], judged: int, apart: Collection[int] = ()) -> tuple[str, ...]:
    """One sentence each; `judged` is the number of cells over which Holm's correction goes, `apart` are the columns
    that cannot be compared with the baseline."""
    groups = [column for column in columns if isinstance(column, RunGroup)]
    sentences = []
    if not share_a_trial(columns):
        sentences.append("Runs of different trials: only the metrics they share are shown.")
    if apart:
        titles = "; ".join(columns[index].title for index in sorted(apart))
        sentences.append(f"No difference from the baseline, which was asked to do something else: {titles}.")
    for group in groups:
        sentences += [
            f"Run {run.id} ({run.status.value}) is left out of the figures of {group.title}."
            for run in group.runs
            if run not in group.used
        ]
        sentences += [
            f"Run {run.id} of {group.title} is {run.status.value}: its figures cover what was sampled until then."
            for run in group.used
            if run.status is not RunStatus.FINISHED
        ]
        sentences += [f"Run {run.id} of {group.title} is in the trash." for run in group.used if run.trashed]
        if bound := list(filter(link_bound, group.used)):
            sentences.append(f"{group.title} is link-bound ({link_share(bound)}): its figures show the link.")
        if beyond := list(filter(above_link_rate, group.used)):
            sentences.append(f"{group.title} took {link_share(beyond)}: the link has another rate than was stated.")
    sentences += _warnings(groups)
    alone = [group for group in groups if group.repeats == 1]
    if alone:
        sentences.append(f"One run: no interval ({named(alone, groups)}).")
    if any(figure.uncertainty for group in groups for run in group.used for figure in run.metrics.values()):
        sentences.append(UNCERTAINTY)
    if any(group.repeats > 1 for group in groups):
        sentences.append(_method(judged))
    return tuple(sentences)


def origin_note(origins: Collection[Origin]) -> str:
    """The sentence on the cells with a mark, whose figures are of these `origins`; empty without any."""
    if not origins:
        return ""
    whose = ", ".join(
        "published by the source, from other computers, brokers and links" if origin is Origin.PUBLISHED else origin
        for origin in sorted(origins)
    )
    return f"{MARK} {whose[0].upper()}{whose[1:]}: a ratio to such a figure is shown, and never judged."


def ours_text(origin: str) -> str:
    """What "ours" is next to a published figure, by the `origin` of our figures."""
    return f"ours: what was {origin} for the same scenario, against the published figure"


def named(those: Sequence[RunGroup], groups: Sequence[RunGroup]) -> str:
    """The titles of `those` among all measured columns."""
    if len(those) == len(groups) > 1:
        return "all columns"
    return "; ".join(group.title for group in those)


def _warnings(groups: Sequence[RunGroup]) -> list[str]:
    """Every warning of the runs once, with the columns that it is on."""
    warned: dict[str, list[RunGroup]] = {}
    for group in groups:
        for warning in dict.fromkeys(warning for run in group.used for warning in run.warnings):
            warned.setdefault(warning, []).append(group)
    if len(groups) == 1:
        return list(warned)
    return [f"{warning.removesuffix('.')} ({named(those, groups)})." for warning, those in warned.items()]


def _method(judged: int) -> str:
    how = (
        "Values are geometric means over runs (means where a figure is not positive); intervals are at 95 %, of ratios "
        "by Welch on the logarithms"
    )
    if not judged:
        return f"{how}; nothing in the table is judged."
    over = f"the table's {judged} comparisons" if judged > 1 else "the table's one comparison"
    return f"{how}; judgements with Holm's correction over {over}."
