"""The trial `keypool.step-times`: how long each step of the key pool's chain takes on a token (section 2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from labconsole.model.trial import (
    Curve,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    Samples,
    Series,
)
from labconsole_keypool.measuring import step_times_evaluation as evaluation
from labconsole_keypool.measuring.step_times_evaluation import METRICS
from labconsole_keypool.measuring.step_times_parameters import (
    DONE_CHANNEL,
    OPERATIONS,
    STEP_LABELS,
    Step,
    StepTimesParameters,
)
from labconsole_keypool.measuring.storage_media import Storage
from labconsole_keypool.measuring.timed_operations import TIME_CHANNEL
from labconsole_keypool.trials.contrast import difference
from labconsole_keypool.trials.timed_trial import Measurement, TimedTrial

_READY_S = 3600.0
"""How long the generation of a step's keys may take."""
_STALL_S = 300.0
"""An RSA-4096 key pair may take a minute by chance."""

_OF_LOAD = frozenset({"batch"})
_SIGNING = (Step.SIGN, Step.SIGN_WHILE_UNWRAPPING)


class StepTimesTrial(TimedTrial[StepTimesParameters]):
    """Time one step of the chain on a token: generate, wrap and save, load, unwrap, sign."""

    kind: ClassVar[str] = "keypool.step-times"
    title: ClassVar[str] = "Key pool, steps"
    description: ClassVar[str] = (
        "How long does a token take to generate a key pair, to wrap it, to load it back, to sign with it? Each step of "
        "the key pool by itself, next to the source's Tables 2-4 to 2-11."
    )
    parameters: ClassVar[type[Parameters]] = StepTimesParameters
    series: ClassVar[tuple[Series, ...]] = (OPERATIONS,)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("time_per_key", "throughput", "latency_mean", "latency_p99")
    finding_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean")
    live: ClassVar[tuple[LiveChannel, ...]] = (DONE_CHANNEL, TIME_CHANNEL)

    def measurement(self, parameters: StepTimesParameters) -> Measurement:
        return Measurement(
            "labconsole_keypool.measuring.step_times_role:StepTimesRole",
            f"{STEP_LABELS[parameters.step]}, {parameters.keys:,} keys",
            parameters.keys,
            DONE_CHANNEL,
            stall_s=_STALL_S,
            advice=f"see `labconsole hsm doctor {parameters.token}`",
            ready_s=_READY_S,
        )

    def evaluate(self, parameters: StepTimesParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(parameters, samples)

    def curves_from(self, parameters: StepTimesParameters, samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
        return evaluation.curves(parameters, samples, begin_ns)

    def distributions(
        self, parameters: StepTimesParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return evaluation.distributions(parameters, samples)

    def contrast(self, reference: StepTimesParameters, other: StepTimesParameters) -> str:
        in_order = reference.step is other.step or (reference.step, other.step) == _SIGNING
        if not in_order or other.threads < reference.threads:
            return ""
        as_many = {"keys": reference.keys, "distinct": reference.distinct}  # a key takes the time that it takes
        return difference(reference, other.model_copy(update=as_many), _OF_LOAD)

    def comparable(self, reference: StepTimesParameters, other: StepTimesParameters) -> bool:
        return reference.step is other.step or {reference.step, other.step} == set(_SIGNING)

    def warnings(self, parameters: StepTimesParameters) -> tuple[str, ...]:
        warnings = []
        if parameters.timing:
            warnings.append(
                f"Emulated with the timing profile {parameters.timing}: the token's operations take as long as that "
                "device's; storage is this computer's."
            )
        if parameters.step in (Step.SAVE, Step.LOAD, Step.LOAD_AND_UNWRAP) and parameters.storage is Storage.DATABASE:
            warnings.append(
                "The database is a key store: what is loaded is claimed durably, so that no key is used twice."
            )
        if parameters.step not in (Step.GENERATE, Step.WRAP_AND_SAVE) and parameters.distinct < parameters.keys:
            warnings.append(
                f"{parameters.distinct:,} different key pairs were generated; those of the step are copies of them "
                "and take the same time."
            )
        if parameters.step in _SIGNING:
            warnings.append(
                "A signature by the token, without network and CA; the source's signing times include its service."
            )
        return tuple(warnings)
