"""What a run of step times records: one row for each operation, with its beginning and its end."""

from __future__ import annotations

from enum import IntEnum

from labconsole.model.trial import Column, LiveChannel, Series
from labconsole_keypool.measuring.step_times_parameters import Step


class StepOperation(IntEnum):
    """An operation on keys, as the series `operations` numbers it."""

    GENERATE = 1
    WRAP = 2
    SAVE = 3
    LOAD = 4
    INITIALISE = 5
    UNWRAP = 6
    SIGN = 7


MAIN = {
    Step.GENERATE: StepOperation.GENERATE,
    Step.WRAP_AND_SAVE: StepOperation.WRAP,
    Step.SAVE: StepOperation.SAVE,
    Step.LOAD: StepOperation.LOAD,
    Step.LOAD_AND_UNWRAP: StepOperation.UNWRAP,
    Step.SIGN: StepOperation.SIGN,
    Step.SIGN_WHILE_UNWRAPPING: StepOperation.SIGN,
}
"""The operation by which a step counts its keys."""

OPERATIONS = Series(
    "operations",
    "Operations that were timed, one row each",
    (
        Column("operation", "u1", "", "1 generate, 2 wrap, 3 save, 4 load, 5 initialise, 6 unwrap, 7 sign"),
        Column("thread", "u2", "", "Number of the thread, from 1"),
        Column("keys", "u4", "keys", "Key pairs in it: of a batch that is saved or loaded, several"),
        Column("started", "i8", "ns", "Began"),
        Column("finished", "i8", "ns", "Ended"),
    ),
)

DONE_CHANNEL = LiveChannel("done", "Done", "keys")
"""Key pairs that went through the step; what is done beside it is not counted."""
TIME_CHANNEL = LiveChannel("operation", "One operation", "ns")
