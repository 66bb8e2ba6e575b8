"""A timing profile of the operator's own device, from the runs of `keypool.step-times` that timed its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from labconsole.cli.database import RunDatabase, chosen_runs, open_database
from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.profiles.timing_profile import (
    Capacity,
    Duration,
    DurationRange,
    KeyGeneration,
    Quantile,
    ThreadDuration,
    ThreadDurations,
    TimingProfile,
    save_timing,
)
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow, RunStatus
from labconsole_keypool.choices import SignTime
from labconsole_keypool.measuring.step_times_parameters import OPERATIONS, Step, StepOperation
from labconsole_keypool.measuring.timed_operations import durations_ns, read_operations, select

KIND = "keypool.step-times"
METRICS = ("time_per_key", "unwrap_per_key")
NORMAL = "normal"
"""Name of the measured time to sign."""

_PARTS = (0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)
_ENOUGH = 20
"""Operations behind a distribution."""
_NEEDED = {
    Step.GENERATE: "generate key pairs",
    Step.WRAP_AND_SAVE: "generate, wrap and save",
    Step.LOAD_AND_UNWRAP: "load and unwrap",
    Step.SIGN: "sign with one thread",
}


def timing_from_runs(
    reader: Reader, runs: Sequence[RunRow], title: str, ram: int | None, store: int | None
) -> TimingProfile:
    """The times of the device that `runs` measured; of several runs of a step the newest.

    Args:
        runs: With the metrics `METRICS`.
        title: "" for one that names the token and the kind of keys.
        ram: Key pairs that the device's RAM holds; None: as the source's device. A run does not measure it.
        store: The same of its store.

    Raises:
        UserError: a run is of another kind, not finished, emulated or of another token or kind of keys; or a sentence
            for each step that none of them timed.
        StoreError: the database is damaged.
    """
    _check(runs)
    steps = _by_step(runs)
    missing = [label for step, label in _NEEDED.items() if (step, 1) not in steps]
    if missing:
        raise UserError(
            "No timing profile was created. "
            + " ".join(f"No run times the step '{label}': run {KIND} with it." for label in missing)
        )
    generate, wrap, unwrap, sign = (steps[step, 1] for step in _NEEDED)
    while_unwrapping = steps.get((Step.SIGN_WHILE_UNWRAPPING, 1))
    generation_ms, wrap_ms = (_mean_ms(reader, generate, StepOperation.GENERATE), _wrap_ms(reader, wrap))
    first = runs[0].parameters
    signing = {NORMAL: _duration(reader, sign, StepOperation.SIGN)}
    if while_unwrapping is not None:
        signing[SignTime.WHILE_UNWRAPPING.value] = _duration(reader, while_unwrapping, StepOperation.SIGN)
    by_threads = sorted((threads, run) for (step, threads), run in steps.items() if step is Step.SIGN)
    return TimingProfile(
        title=title or f"Token {first['token']}, {first['key_kind']}, measured {date.today():%Y-%m-%d}",
        key_generation=KeyGeneration(
            shortest_ms=generation_ms,
            longest_ms=generation_ms,
            reference=_reference(generate),
            distribution=_distribution(_times_ms(reader, generate, StepOperation.GENERATE)),
        ),
        wrap=DurationRange(shortest_ms=wrap_ms, longest_ms=wrap_ms, reference=_reference(wrap)),
        unwrap=Duration(ms=_metric(unwrap, "time_per_key"), reference=_reference(unwrap)),
        sign=signing,
        sign_by_threads=ThreadDurations(
            rows=tuple(ThreadDuration(threads=threads, ms=_metric(run, "time_per_key")) for threads, run in by_threads),
            reference="; ".join(_reference(run) for _, run in by_threads),
        ),
        ram=_capacity(ram, 12_033),
        store=_capacity(store, 20_000),
    )


def _check(runs: Sequence[RunRow]) -> None:
    for run in runs:
        if run.kind != KIND or run.status is not RunStatus.FINISHED:
            raise UserError(f"Run {run.id} is not a finished run of {KIND}: name runs that are.")
        if run.parameters.get("timing"):
            raise UserError(f"Run {run.id} is of an emulated device: name runs that measured a token.")
    devices = {(run.parameters["token"], run.parameters["key_kind"]) for run in runs}
    if len(devices) > 1:
        named = ", ".join(sorted(f"{token} with {kind} keys" for token, kind in devices))
        raise UserError(f"These runs are of different devices ({named}): name those of one token and kind of keys.")


def _by_step(runs: Sequence[RunRow]) -> Mapping[tuple[Step, int], RunRow]:
    """The newest run of each step, by the number of its threads; 1 where a step has none."""

    def key(run: RunRow) -> tuple[Step, int]:
        step = Step(run.parameters["step"])
        return step, int(run.parameters["threads"]) if step is Step.SIGN else 1

    return {key(run): run for run in sorted(runs, key=lambda run: run.id)}


def _metric(run: RunRow, name: str) -> float:
    if name not in run.metrics:
        raise UserError(f"Run {run.id} has no figure {name}: it did no operation of its step; leave it out.")
    return run.metrics[name].value


def _times_ms(reader: Reader, run: RunRow, *operations: StepOperation) -> NDArray[np.float64]:
    """The durations of these operations of a run, ms."""
    recorded = read_operations(reader.samples(run.id), OPERATIONS)
    return durations_ns(select(recorded, np.isin(recorded["operation"], operations))) / 1e6


def _mean_ms(reader: Reader, run: RunRow, operation: StepOperation) -> float:
    return float(_required_times(run, _times_ms(reader, run, operation)).mean())


def _wrap_ms(reader: Reader, run: RunRow) -> float:
    """Time to wrap and save a key, without its generation, ms."""
    both = _required_times(run, _times_ms(reader, run, StepOperation.WRAP, StepOperation.SAVE))
    keys = len(_times_ms(reader, run, StepOperation.WRAP))
    return float(both.sum()) / max(1, keys)


def _duration(reader: Reader, run: RunRow, operation: StepOperation) -> Duration:
    times_ms = _required_times(run, _times_ms(reader, run, operation))
    return Duration(ms=float(times_ms.mean()), reference=_reference(run), distribution=_distribution(times_ms))


def _required_times(run: RunRow, times_ms: NDArray[np.float64]) -> NDArray[np.float64]:
    if not len(times_ms):
        raise UserError(f"Run {run.id} did no operation of its step: leave it out.")
    return times_ms


def _distribution(times_ms: NDArray[np.float64]) -> tuple[Quantile, ...]:
    if len(times_ms) < _ENOUGH:
        return ()
    return tuple(
        Quantile(part=part, ms=float(ms)) for part, ms in zip(_PARTS, np.quantile(times_ms, _PARTS), strict=True)
    )


def _reference(run: RunRow) -> str:
    threads = int(run.parameters["threads"])
    how = f", {threads} threads" if run.parameters["step"] == Step.SIGN and threads > 1 else ""
    return f"Run {run.id}: {run.parameters['step']}, {int(run.parameters['keys']):,} keys{how}"


def _capacity(entered: int | None, assumed: int) -> Capacity:
    if entered is None:
        return Capacity(key_pairs=assumed, reference="Assumed: as the source's device; a run does not measure it")
    return Capacity(key_pairs=entered, reference="Entered")


class CreateTimingProfileParameters(Parameters):
    """The runs of a timing profile, and its name."""

    name: str = parameter("Name", "Name of the profile, as scenarios and the planner name it", positional=True)
    run: tuple[int, ...] = parameter("Runs", "Numbers of runs of keypool.step-times", min_length=1, positional=True)
    campaign: bool = parameter("Whole campaign", "The whole campaign that the runs belong to", default=False)
    title: str = parameter("Title", "What the device is called", default="")
    ram: int | None = parameter(
        "RAM holds", "Key pairs that its RAM holds: runs do not measure it", default=None, ge=1, unit="keys"
    )
    store: int | None = parameter("Store holds", "Key pairs that its store holds", default=None, ge=1, unit="keys")
    replace: bool = parameter("Replace", "Replace a profile of that name", default=False)
    db: RunDatabase = None


class CreateTimingProfile(Operation[CreateTimingProfileParameters]):
    """Creates a timing profile from runs."""

    name: ClassVar[str] = "keypool.timing"
    title: ClassVar[str] = "Create a timing profile"
    description: ClassVar[str] = (
        "Creates a timing profile of your own device from its runs of keypool.step-times; simulations and the planner "
        "can name it then."
    )
    parameters: ClassVar[type[Parameters]] = CreateTimingProfileParameters
    writes: ClassVar[tuple[str, ...]] = ("timing profiles",)

    def run(self, parameters: CreateTimingProfileParameters, context: OperationContext) -> Result:
        name = parameters.name
        with open_database(parameters.db) as reader:
            rows = {run.id: run for run in reader.runs(metrics=METRICS)}
            chosen = chosen_runs(reader, parameters.run, campaign=parameters.campaign)
            missing = next((number for number in chosen if number not in rows), None)
            if missing is not None:
                raise StoreError(f"There is no run {missing} in {reader.path}.")
            profile = timing_from_runs(
                reader, [rows[number] for number in chosen], parameters.title, parameters.ram, parameters.store
            )
        path = save_timing(name, profile, replace=parameters.replace)
        return Result((f"The timing profile {name} is in {path}.",), {"timing": name, "file": str(path)})
