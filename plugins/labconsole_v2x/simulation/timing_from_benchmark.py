"""A timing profile of the operator's own computer, from a run of `v2x.benchmark` on it."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from labconsole.cli.database import RunDatabase, open_database
from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.paths import profiles_dir
from labconsole.profiles.profile import save_profile
from labconsole.store.errors import StoreError
from labconsole.store.records import RunRow, RunStatus
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.choices import BACKENDS, CURVE_TITLES, Attack
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS, ReceiverTiming, SenderTiming, StackTiming
from labconsole_v2x.stations.sending import SecurityMode

KIND = "v2x.benchmark"
METRICS = ("sign_time", "verify_time", "verify_decoded_time", "parse_hash_time")
NEIGHBOURS = "v2x-neighbours"
_CORES = (1, 2, 4, 8)
_US = "parse_hash_time"
"""The only one in us: the others are in ms."""


def timing_from_benchmark(run: RunRow, title: str, room: int) -> StackTiming:
    """The times of the computer that `run` measured, with the console's order of checks: cheap ones first.

    An invalid signature takes a verification; of an attacker's packet with another fault, headers are read. It has full
    security only: the benchmark does not time packets that are not verified.

    Args:
        run: With the metrics `METRICS`.
        title: "" for one that names backend and curve.
        room: Packets that find room in the receiver, the one in service included.

    Raises:
        UserError: it is not a finished run of the benchmark, or without one of these times.
    """
    if run.kind != KIND or run.status is not RunStatus.FINISHED:
        raise UserError(f"Run {run.id} is not a finished run of {KIND}: name one that is.")
    missing = [name for name in METRICS if name not in run.metrics]
    if missing:
        raise UserError(f"Run {run.id} has no figure {missing[0]}: run {KIND} again.")
    ms = {name: run.metrics[name].value * (1e-3 if name == _US else 1) for name in METRICS}
    measured = BenchmarkParameters.model_validate(run.parameters)
    what = f"{BACKENDS[measured.backend.value]}, {CURVE_TITLES[measured.curve.value]}"
    cheap = dict.fromkeys((Attack.NO_SIGNATURE, Attack.OLD_TIMESTAMP, Attack.EXPIRED_CERTIFICATE), ms[_US])
    return StackTiming(
        title=title or f"{what}, measured {date.today():%Y-%m-%d}",
        reference=f"Run {run.id} of {KIND}: {what}; one core, nothing else at work",
        jitter_ms=0,
        sender=SenderTiming(service_ms=ms["sign_time"], room=room),
        receiver=ReceiverTiming(
            room=room,
            service_ms={SecurityMode.FULL: ms["verify_decoded_time"]},
            attack_ms={Attack.INVALID_SIGNATURE: ms["verify_time"], **cheap},
        ),
    )


def neighbours_with(timing: str) -> str:
    """The profile `v2x-neighbours`, with units of this timing profile on 1 to 8 cores before the others."""
    given = (profiles_dir() / f"{NEIGHBOURS}.toml").read_text(encoding="utf-8")
    head, table, others = given.partition("[[scenarios]]")
    own = (
        f'{table}\nname = "{timing}{"" if cores == 1 else f", {cores} cores"}"\n'
        f'parameters = {{ timing = "{timing}", receiver_cores = {cores} }}\n\n'
        for cores in _CORES
    )
    return f"{head}{''.join(own)}{table}{others}"


class CreateStackTimingParameters(Parameters):
    """The run of a timing profile, and its name."""

    name: str = parameter("Name", "Name of the profile, as scenarios name it", positional=True)
    run: int = parameter("Run", f"Number of a run of {KIND}", ge=1, positional=True)
    title: str = parameter("Title", "What the computer is called", default="")
    room: int = parameter(
        "Room",
        "Packets that find room in the receiver, the one in service included; the queue of live stations by default",
        default=10_000,
        ge=1,
        unit="packets",
    )
    campaign: bool = parameter(
        "Campaign",
        f"Write the profile {NEIGHBOURS}-NAME, too, which has this computer next to the units of {NEIGHBOURS}",
        default=False,
    )
    replace: bool = parameter("Replace", "Replace profiles of these names", default=False)
    db: RunDatabase = None


class CreateStackTiming(Operation[CreateStackTimingParameters]):
    """Creates a timing profile from a run of the benchmark."""

    name: ClassVar[str] = "v2x.timing"
    title: ClassVar[str] = "Create a timing profile of this computer"
    description: ClassVar[str] = (
        "Creates a timing profile from a run of v2x.benchmark: simulated stations then take the times of the computer "
        "that it measured."
    )
    parameters: ClassVar[type[Parameters]] = CreateStackTimingParameters
    writes: ClassVar[tuple[str, ...]] = ("timing profiles",)

    def run(self, parameters: CreateStackTimingParameters, context: OperationContext) -> Result:
        with open_database(parameters.db) as reader:
            run = next((run for run in reader.runs(metrics=METRICS) if run.id == parameters.run), None)
            if run is None:
                raise StoreError(f"There is no run {parameters.run} in {reader.path}.")
        profile = timing_from_benchmark(run, parameters.title, parameters.room)
        path = STACK_TIMINGS.save(parameters.name, profile, replace=parameters.replace)
        sentences, data = [f"The timing profile {parameters.name} is in {path}."], {"file": str(path)}
        if parameters.campaign:
            campaign = f"{NEIGHBOURS}-{parameters.name}"
            save_profile(campaign, neighbours_with(parameters.name), replace=parameters.replace)
            sentences.append(f"Next to other units: labconsole run {campaign}")
            data["campaign"] = campaign
        return Result(tuple(sentences), {"timing": parameters.name, **data})
