"""Makes a timing profile of an own device from the runs that timed its steps: `labconsole hsm timing`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from labconsole.cli.database import chosen_runs, open_database
from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.trial import Parameters
from labconsole.profiles.timing_profile import save_timing
from labconsole.store.errors import StoreError
from labconsole_keypool.form_fields import RunDatabase
from labconsole_keypool.measuring.timing_from_runs import METRICS, timing_of_runs


class MakeTimingParameters(Parameters):
    """Which runs become a timing profile, and how it is called."""

    name: Annotated[
        str,
        Field(
            title="Name",
            description="Name of the profile, as scenarios and the planner name it",
            json_schema_extra={"positional": True},
        ),
    ]
    run: Annotated[
        tuple[int, ...],
        Field(
            title="Runs",
            description="Numbers of runs of keypool.step-times",
            min_length=1,
            json_schema_extra={"positional": True},
        ),
    ]
    campaign: Annotated[
        bool, Field(title="Whole campaign", description="The whole campaign that the runs belong to")
    ] = False
    title: Annotated[str, Field(title="Title", description="What the device is called")] = ""
    ram: Annotated[
        int | None,
        Field(
            title="RAM holds",
            description="Key pairs that its RAM holds: runs do not measure it",
            ge=1,
            json_schema_extra={"unit": "keys"},
        ),
    ] = None
    store: Annotated[
        int | None,
        Field(
            title="Store holds", description="Key pairs that its store holds", ge=1, json_schema_extra={"unit": "keys"}
        ),
    ] = None
    replace: Annotated[bool, Field(title="Replace", description="Replace a profile of that name")] = False
    db: RunDatabase = None


class MakeTiming(Operation[MakeTimingParameters]):
    """Makes a timing profile from runs."""

    name: ClassVar[str] = "keypool.timing"
    title: ClassVar[str] = "Make a timing profile"
    description: ClassVar[str] = (
        "Makes a timing profile of your own device from its runs of keypool.step-times; simulations and the planner "
        "can name it then."
    )
    parameters: ClassVar[type[Parameters]] = MakeTimingParameters
    writes: ClassVar[tuple[str, ...]] = ("timing profiles",)

    def run(self, parameters: MakeTimingParameters, context: OperationContext) -> Result:
        name = parameters.name
        with open_database(parameters.db) as reader:
            rows = {run.id: run for run in reader.runs(metrics=METRICS)}
            chosen = chosen_runs(reader, parameters.run, campaign=parameters.campaign)
            missing = next((number for number in chosen if number not in rows), None)
            if missing is not None:
                raise StoreError(f"There is no run {missing} in {reader.path}.")
            profile = timing_of_runs(
                reader, [rows[number] for number in chosen], parameters.title, parameters.ram, parameters.store
            )
        try:
            path = save_timing(name, profile, replace=parameters.replace)
        except OSError as error:
            raise UserError(f"Timing profile {name} cannot be written: {error.strerror or error}.") from error
        return Result((f"The timing profile {name} is in {path}.",), {"timing": name, "file": str(path)})
