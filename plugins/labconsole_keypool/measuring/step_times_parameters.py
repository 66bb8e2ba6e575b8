"""The parameters of the step times: which step of the chain, on which token, how often, by how many threads."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated

from pydantic import field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Column, LiveChannel, Parameters
from labconsole.operations.configured_tokens import token_name
from labconsole.profiles.timing_profile import RangeEnd, load_timing, timing_names
from labconsole.security.token.configuration import LAB
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import LABELS, SignTime
from labconsole_keypool.device.emulation import DeviceOperation, Timing
from labconsole_keypool.form_fields import known_sign_time, known_timing, sign_time
from labconsole_keypool.measuring.storage_media import Storage
from labconsole_keypool.measuring.timed_operations import THREAD, operation_series


class Step(StrEnum):
    """A step of the key pool's chain, as sections 2.10.1 to 2.10.5 time them."""

    GENERATE = "generate"
    WRAP_AND_SAVE = "wrap-and-save"
    SAVE = "save"
    LOAD = "load"
    LOAD_AND_UNWRAP = "load-and-unwrap"
    SIGN = "sign"
    SIGN_WHILE_UNWRAPPING = "sign-while-unwrapping"


STEP_LABELS = {
    Step.GENERATE: "Generate key pairs (Table 2-4)",
    Step.WRAP_AND_SAVE: "Generate, wrap and save (Table 2-5)",
    Step.SAVE: "Save wrapped keys (Table 2-6)",
    Step.LOAD: "Load wrapped keys (Table 2-6)",
    Step.LOAD_AND_UNWRAP: "Load and unwrap (Table 2-7)",
    Step.SIGN: "Sign (Tables 2-8 to 2-10)",
    Step.SIGN_WHILE_UNWRAPPING: "Sign while keys are unwrapped (Table 2-11)",
}
_MEDIA = {Storage.DATABASE: "Database: the key store", Storage.FILE: "Flat file"}

_EMULATED_OPERATIONS = {
    Step.GENERATE: (DeviceOperation.GENERATE,),
    Step.WRAP_AND_SAVE: (DeviceOperation.GENERATE, DeviceOperation.WRAP),
    Step.LOAD_AND_UNWRAP: (DeviceOperation.UNWRAP,),
    Step.SIGN: (DeviceOperation.SIGN,),
    Step.SIGN_WHILE_UNWRAPPING: (DeviceOperation.SIGN,),
}
"""Operations of the device for each key; saving and loading are those of the storage."""

_STEP, _TOKEN = "Step", "Token"
_STORING = {"step": ["wrap-and-save", "save", "load", "load-and-unwrap"]}
_SIGNING = {"step": ["sign", "sign-while-unwrapping"]}
_PREPARED = {"step": ["save", "load", "load-and-unwrap", "sign", "sign-while-unwrapping"]}
_EMULATED = {"timing": timing_names}


class StepTimesParameters(Parameters):
    """One step of the chain (`hsm-key-pool-thesis.txt`, section 2.10)."""

    step: Step = parameter(
        "Step",
        "Which step of the key pool's chain is timed",
        default=Step.SIGN,
        group=_STEP,
        labels={step.value: label for step, label in STEP_LABELS.items()},
    )
    keys: int = parameter(
        "Key pairs",
        "Key pairs that go through the step; of a signing step, requests, each with a key of its own",
        default=1000,
        ge=1,
        le=100_000,
        group=_STEP,
        unit="keys",
    )
    threads: int = parameter(
        "Signing threads",
        "Threads that sign, each with a session of its own",
        default=1,
        ge=1,
        le=50,
        group=_STEP,
        shown_if=_SIGNING,
    )
    storage: Storage = parameter(
        "Storage",
        "Where wrapped keys are kept; both in a directory that is removed after the run",
        default=Storage.DATABASE,
        group=_STEP,
        shown_if=_STORING,
        labels={medium.value: label for medium, label in _MEDIA.items()},
    )
    batch: int = parameter(
        "Batch",
        "Key pairs saved or loaded at a time; each batch is on the disk before the next one begins",
        default=1000,
        ge=1,
        le=100_000,
        group=_STEP,
        unit="keys",
        shown_if=_STORING,
    )
    distinct: int = parameter(
        "Different keys",
        "Key pairs generated beforehand; the step takes copies of them in turn, which cost it the same",
        default=10,
        ge=1,
        le=100_000,
        group=_STEP,
        unit="keys",
        shown_if=_PREPARED,
    )

    key_kind: KeyKind = parameter(
        "Kind of keys", "The source has RSA-2048", default=KeyKind.RSA_2048, group=_TOKEN, labels=LABELS["key_kind"]
    )
    token: Annotated[str, token_name(group=_TOKEN)] = LAB
    timing: str = parameter(
        "Emulate a device",
        "Let every operation take as long as this timing profile says; empty: as fast as the token is",
        default="",
        group=_TOKEN,
        choices=lambda: ["", *timing_names()],
    )
    sign: Annotated[str, sign_time(_TOKEN)] = SignTime.MALMO.value
    key_generation: RangeEnd = parameter(
        "Key generation (KG)",
        "Which of the timing profile's times to generate a key pair",
        default=RangeEnd.SHORTEST,
        group=_TOKEN,
        shown_if=_EMULATED,
        labels=LABELS["key_generation"],
    )

    _timing_is_there = field_validator("timing")(known_timing)
    _sign_is_there = field_validator("sign")(known_sign_time)

    @property
    def device_times(self) -> Timing | None:
        """The times of the emulated device; None without one. Raises UserError: no such timing profile."""
        if not self.timing:
            return None
        return Timing(load_timing(self.timing), sign=self.sign, key_generation=self.key_generation)

    @property
    def emulated_seconds(self) -> float:
        """How long the emulated device takes for the step, without its connection's set-up; 0 without a device."""
        timing = self.device_times
        if timing is None:
            return 0.0
        one_ns = sum(
            timing.duration_ns(operation, self.threads) for operation in _EMULATED_OPERATIONS.get(self.step, ())
        )
        at_a_time = self.threads if self.step in (Step.SIGN, Step.SIGN_WHILE_UNWRAPPING) else 1
        return one_ns * self.keys / at_a_time / 1e9


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

OPERATIONS = operation_series(
    "1 generate, 2 wrap, 3 save, 4 load, 5 initialise, 6 unwrap, 7 sign",
    THREAD,
    Column("keys", "u4", "keys", "Key pairs in it: of a batch that is saved or loaded, several"),
)

DONE_CHANNEL = LiveChannel("done", "Done", "keys")
"""Key pairs that went through the step; concurrent unwrapping is not counted."""
