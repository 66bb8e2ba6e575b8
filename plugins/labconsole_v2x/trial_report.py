"""The report of the whole trial in the chapters of PRESERVE D3.2, and the three answers of its first page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from labconsole.analysis.answers import Answer, AnswerBar
from labconsole.analysis.change import ENOUGH_REPEATS, FEW_REPEATS, ONE_RUN, Judgement, count, origin_words
from labconsole.analysis.columns import RunGroup
from labconsole.analysis.confidence_intervals import centre
from labconsole.analysis.number_format import NO_FIGURE
from labconsole.analysis.published_figures import NOT_PRINTED, published_column, same_scenario
from labconsole.analysis.report_outline import OutlineChapter, ReportOutline, VerdictList
from labconsole.analysis.table_shape import ShapeCell, ShapeColumn, TableShape, fill, fitting_groups
from labconsole.analysis.verdict_lines import VerdictLine, Verdicts, verdict_lines
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.model.series import Origin
from labconsole_v2x.source_tables import ATTACK_TABLES, NEIGHBOUR_TABLES, ONE_CORE_UNIT
from labconsole_v2x.use_case_reference import TABLE_2_17
from labconsole_v2x.use_cases.catalogue import USE_CASES

_CASES = TableShape(
    name=TABLE_2_17,
    title="Table 2.17: functional tests",
    kinds=("v2x.use-cases",),
    reference="PRESERVE D3.2",
    parameters={},
    columns=(
        ShapeColumn("Software", {"backend": "openssl"}),
        ShapeColumn("Token", {"backend": "token"}, NOT_PRINTED),
    ),
    rows=(),
    published=TABLE_2_17,
)
_CODES = tuple(code for code, case in USE_CASES.items() if case.counted)
_HOW = {"openssl": "in software", "token": "with a token"}
_NOT_OF_THE_SCENARIO = ("attack", "attackers", "attack_rate", "duration", "warm_up", "capture")
"""Parameters in which a run without attackers may differ from the one that is compared with it."""
_AMONG = 150
"""Vehicles of the answer on neighbours; its chapter has more and fewer, too."""
_BOX = "nexcom-vtc6201-table42"
_COSTS = ("packet_loss", "latency_mean")
"""What an attacker costs the honest stations: the rows of Table 4.2 behind its first."""


def _answers(groups: Sequence[RunGroup], verdicts: Verdicts, plugins: Plugins) -> tuple[Answer, ...]:
    return (_use_cases(groups, verdicts, plugins), _attackers(groups, plugins), _neighbours(groups, plugins))


def _use_cases(groups: Sequence[RunGroup], verdicts: Verdicts, plugins: Plugins) -> Answer:
    """Which of the 36 codes pass: those that passed in all repeats, for each backend."""
    question = "Which use cases pass?"
    found = [group for group in fill(_CASES, groups, plugins).groups if group is not None]
    if not found:
        return _unanswered(question)
    lines = [line for line in verdict_lines(found, verdicts) if line.name in _CODES]
    how = [_HOW[str(group.parameters["backend"])] for group in found]
    passed = [sum(line.cells[index].result == "pass" for line in lines) for index in range(len(found))]
    of = len(_CODES)
    first, *rest = [f"{number} of {of} {words}" for number, words in zip(passed, how, strict=True)]
    counted = ", ".join((first.replace(f"of {of}", f"of {of} pass", 1), *rest))
    others = [sentence for index, words in enumerate(how) for sentence in _not_passed(lines, index, words)]
    failed = any(cell.result == "fail" for line in lines for cell in line.cells)
    theirs = published_column(plugins, TABLE_2_17)
    published = sum(verdict.result == "pass" for name, verdict in theirs.verdicts.items() if name in _CODES)
    bars = (
        *(AnswerBar(words.capitalize(), number, None, f"{number}") for words, number in zip(how, passed, strict=True)),
        AnswerBar("Published: in software", published, None, f"{published}"),
    )
    return Answer(
        question,
        ". ".join((counted, *others)),
        f"{min(passed)} of {of}",
        Judgement.WORSE if failed else Judgement.BETTER if min(passed) == of else Judgement.NO_CHANGE,
        bars,
        f"{_counted(found, ('passed',))}; published are those of Table 2.17, which lists {len(theirs.verdicts)} codes",
    )


def _not_passed(lines: Sequence[VerdictLine], index: int, how: str) -> Iterator[str]:
    """The codes that failed, and those that were not tested, in one column."""
    failed = [line.name for line in lines if line.cells[index].result == "fail"]
    passed = {line.name for line in lines if line.cells[index].result == "pass"}
    untested = [code for code in _CODES if code not in passed and code not in failed]
    if failed:
        yield f"Failed {how}: {', '.join(failed)}"
    if untested:
        yield f"Not tested {how}: {', '.join(untested)}"


class _UnderAttack(NamedTuple):
    """Runs of one column of Table 4.2."""

    column: ShapeColumn
    group: RunGroup
    loss: ShapeCell
    delay: ShapeCell

    @property
    def origin(self) -> str:
        """ "measured", "simulated"."""
        return origin_words(self.group.origins_of(_COSTS))


def _attackers(groups: Sequence[RunGroup], plugins: Plugins) -> Answer:
    """Benign loss and delay under the attack of Table 4.2 that cost the source most, of those that were run."""
    question = "What does an attacker cost the honest stations?"
    found = [one for one in _under_attack(groups, plugins) if one.loss.value is not None and one.loss.published]
    if not found:
        return _unanswered(question)
    worst = max(found, key=lambda one: one.loss.published.value if one.loss.published is not None else 0.0)
    shown = [one for one in found if one.column.parameters == worst.column.parameters]
    shown.sort(key=lambda one: one.origin != Origin.MEASURED)
    first, theirs = shown[0], worst.loss.published
    assert theirs is not None and first.loss.value is not None
    parameters = first.column.parameters
    attack = str(parameters["attack"]).upper()
    what = f"{attack}, {parameters['attackers']} attackers at {parameters['attack_rate']:g} Hz"
    cost = "; ".join(f"{_cost(one.loss.value, one.delay.value)} {one.origin}{_without(one, groups)}" for one in shown)
    delay = first.delay.published
    published = f"{theirs.printed}, {delay.printed}" if delay is not None else theirs.printed
    bars = (
        *(
            AnswerBar(one.origin.capitalize(), one.loss.value, one.loss.interval, f"{one.loss.value:.1f} %")
            for one in shown
            if one.loss.value is not None
        ),
        AnswerBar("Published", theirs.value, None, theirs.printed),
    )
    timings = [str(one.group.parameters["timing"]) for one in shown if "timing" in one.group.parameters]
    units = (f"simulated: {_unit(timing)}" for timing in timings)
    judgement, reason = _judged([one.group for one in shown], _COSTS)
    return Answer(
        question,
        f"{what}: {cost}; published {published}",
        f"{first.loss.value:.1f} %",
        judgement,
        bars,
        "; ".join(
            (f"loss of benign CAMs and their mean delay, {_counted([one.group for one in shown], _COSTS)}", *units)
        ),
        reason,
    )


def _under_attack(groups: Sequence[RunGroup], plugins: Plugins) -> Iterator[_UnderAttack]:
    (shape,) = ATTACK_TABLES
    filled = fill(shape, groups, plugins)
    cells = zip(*filled.cells[1:], strict=True)
    for column, group, (loss, delay) in zip(filled.shape.columns, filled.groups, cells, strict=True):
        if group is not None:
            yield _UnderAttack(column, group, loss, delay)


def _without(attacked: _UnderAttack, groups: Sequence[RunGroup]) -> str:
    """ " (without attackers 0.0 % lost, 12.3 ms delay)", where runs of the same scenario have none."""
    same = _scenario(attacked.group)
    for group in groups:
        if group.kind == attacked.group.kind and group.parameters.get("attack") == "none" and _scenario(group) == same:
            loss, delay = (_mean(group, metric) for metric in _COSTS)
            return f" (without attackers {_cost(loss, delay)})" if loss is not None else ""
    return ""


def _scenario(group: RunGroup) -> dict[str, object]:
    return {name: value for name, value in group.parameters.items() if name not in _NOT_OF_THE_SCENARIO}


def _mean(group: RunGroup, metric: str) -> float | None:
    values = [run.metrics[metric].value for run in group.used if metric in run.metrics]
    return centre(values) if values else None


def _cost(loss: float | None, delay: float | None) -> str:
    """ "72.1 % lost, 58.9 ms delay": no delay where everything is lost."""
    texts = (f"{value:.1f} {what}" for value, what in ((loss, "% lost"), (delay, "ms delay")) if value is not None)
    return ", ".join(texts)


def _neighbours(groups: Sequence[RunGroup], plugins: Plugins) -> Answer:
    """How many neighbours at 10 Hz keep one core busy, of each unit that was simulated among `_AMONG` vehicles."""
    question = "How many neighbours does one unit serve?"
    shape = next(shape for shape in NEIGHBOUR_TABLES if shape.parameters["senders"] == _AMONG)
    scenario = {**shape.parameters, **ONE_CORE_UNIT}
    fitting = fitting_groups(scenario, groups, plugins.trial(shape.kinds[0]))
    # The first of a unit is the one with most runs.
    units = {str(group.parameters["timing"]): group for group in reversed(fitting)}
    served = {unit: value for unit, group in units.items() if (value := _mean(group, "neighbours_served")) is not None}
    if not served:
        return _unanswered(question)
    order = [str(column.parameters["timing"]) for column in shape.columns]
    # A profile that no column names is the operator's own: that unit comes first.
    names = sorted(served, key=lambda name: order.index(name) if name in order else -1)
    titles = {str(column.parameters["timing"]): column.title for column in reversed(shape.columns)}
    first = names[0]
    sentence = f"{_unit(first)}: {_whole(served[first])} at {scenario['rate']:g} Hz, simulated"
    if _BOX in served and first != _BOX:
        sentence += f". The source's box: {_whole(served[_BOX])}"
    judgement, reason = _judged([units[first]], ("neighbours_served",))
    counted = _counted([units[name] for name in names], ("neighbours_served",))
    return Answer(
        question,
        sentence,
        _whole(served[first]),
        judgement,
        tuple(AnswerBar(titles.get(name, name), served[name], None, _whole(served[name])) for name in names),
        f"what keeps one core busy, rounded down, among {_AMONG} vehicles, {counted}; the channel may carry fewer",
        reason,
    )


def _whole(value: float) -> str:
    return f"{math.floor(value):,}"


def _with_own_units(shape: TableShape, groups: Sequence[RunGroup]) -> TableShape:
    """The table with the units of the operator's timing profiles, which no column names, before the others."""
    known = {column.parameters["timing"] for column in shape.columns}
    own = {
        (str(group.parameters["timing"]), int(group.parameters["receiver_cores"]))
        for group in groups
        if group.kind in shape.kinds
        and same_scenario(shape.parameters, group.parameters)
        and group.parameters["timing"] not in known
    }
    columns = (
        ShapeColumn(
            timing if cores == 1 else f"{timing}, {cores} cores",
            {**ONE_CORE_UNIT, "timing": timing, "receiver_cores": cores},
        )
        for timing, cores in sorted(own)
    )
    return replace(shape, columns=(*columns, *shape.columns))


def _unit(name: str) -> str:
    """The title of a timing profile, or its name where this computer has none."""
    from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS

    try:
        return STACK_TIMINGS.load(name).title
    except UserError:
        return name


def _judged(groups: Sequence[RunGroup], metrics: Sequence[str]) -> tuple[Judgement, str]:
    """Not judged where runs are few, or a figure may not be; with the reason."""
    withheld = [
        run.metrics[name].not_judged
        for group in groups
        for run in group.used
        for name in metrics
        if name in run.metrics and run.metrics[name].not_judged
    ]
    fewest = min(group.repeats for group in groups)
    few = ONE_RUN if fewest == 1 else FEW_REPEATS if fewest < ENOUGH_REPEATS else ""
    reason = withheld[0] if withheld else few
    return (Judgement.NOT_JUDGED, reason) if reason else (Judgement.NO_CHANGE, "")


def _counted(groups: Sequence[RunGroup], metrics: Sequence[str]) -> str:
    """ "1 run, 5 simulated runs", by the origins of these figures."""
    runs: Counter[frozenset[Origin]] = Counter()
    for group in groups:
        runs[group.origins_of(metrics)] += group.repeats
    return ", ".join(count(number, origins) for origins, number in runs.items())


def _unanswered(question: str) -> Answer:
    return Answer(question, "No run of this report answers it", NO_FIGURE, Judgement.NOT_JUDGED, (), "No run")


PRESERVE = ReportOutline(
    title="PRESERVE: the whole trial",
    lead=(
        "Use cases, benchmark, testbed and attacks in the chapters of PRESERVE D3.2 (FOT Trial 2 Results), and beyond "
        "it how many neighbours a unit serves."
    ),
    chapters=(
        OutlineChapter(
            "Use cases",
            "Each code is tested with real packets, certificates and messages, and judged by what was recorded. The "
            "source reports passed or not tested, of software only.",
            ("v2x.use-cases",),
            verdicts=VerdictList(_CASES, {code: case.title for code, case in USE_CASES.items()}),
        ),
        OutlineChapter(
            "Benchmark",
            "Signatures and whole packets, signed and verified on this computer, next to the source's boxes.",
            ("v2x.benchmark",),
            ("preserve-table-3-2",),
        ),
        OutlineChapter(
            "Testbed",
            "Stations at 1 to 100 Hz without attackers. Live ones share one computer; simulated ones have the times "
            "of the source's boxes on a virtual clock.",
            ("v2x.live", "v2x.simulation"),
            (
                "preserve-figure-4-1",
                "preserve-figure-4-1-simulated",
                "preserve-figure-4-2",
                "preserve-figure-4-2-simulated",
                "preserve-figure-4-3",
                "preserve-figure-4-4",
                "preserve-figure-4-5",
                "preserve-figure-4-5-simulated",
                "preserve-packet-sizes",
            ),
        ),
        OutlineChapter(
            "Attacks",
            "5 honest stations at 10 Hz, with 2 or 4 attackers. Live ones share one computer; simulated ones have the "
            "times of a timing profile on a virtual clock.",
            ("v2x.attack", "v2x.simulation"),
            ("preserve-table-4-2",),
        ),
        OutlineChapter(
            "How many neighbours",
            "Beyond the source, all of it simulated: units with other signatures, cores and certificates among 50 to "
            "300 vehicles at 10 Hz.",
            ("v2x.simulation",),
            tuple(shape.name for shape in NEIGHBOUR_TABLES),
            widened=_with_own_units,
        ),
    ),
    answers=_answers,
)
