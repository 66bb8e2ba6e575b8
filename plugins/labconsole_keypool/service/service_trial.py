"""The trial `keypool.signing-service`: the source's signing service, live on PKCS#11 tokens."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import ClassVar

from labconsole.model.trial import (
    Curve,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    Question,
    RunContext,
    Samples,
    Series,
    ServiceLevel,
    Trial,
)
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.configuration import is_lab
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.choices import KeySource
from labconsole_keypool.results import curves, evaluation
from labconsole_keypool.results.evaluation import METRICS
from labconsole_keypool.results.verdicts import SERVICE_LEVEL, keep_artefacts, record_chain_head, record_store
from labconsole_keypool.series import DROPS, FAILURES, GENERATED, LIVE_REQUESTS, QUEUE, REFILLS, SERVICE_CHANNELS
from labconsole_keypool.service import contrast
from labconsole_keypool.service.conductor import Conductor, RunPlan
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_store import KeyStore, store_path


def warnings(parameters: ServiceParameters) -> Iterator[str]:
    """One sentence each."""
    if parameters.timing:
        faster = (
            f" Everything ran {parameters.speed:g} times faster, and figures are in the device's time."
            if parameters.speed > 1
            else ""
        )
        yield (
            f"Emulated: the token was slowed down to the timing profile {parameters.timing}; the figures are those of "
            f"that device, not of this token.{faster}"
        )
        if parameters.signers > len(parameters.signing_tokens):
            yield (
                f"Each of the {parameters.signers} signers emulates a device of its own: they sign as many devices "
                "would, not as one that they share."
            )
    if parameters.keys is KeySource.POOL and parameters.key_kind is KeyKind.P_256 and not parameters.timing:
        yield "A pool gains nothing for P-256: such a key is generated faster than it is loaded and unwrapped."
    if parameters.keys is KeySource.POOL and not (parameters.pool_at_start or parameters.keys_at_start):
        yield "The pool is empty at the start: requests wait until keys are generated, as without a pool."
    if parameters.time_scale > 1 and not parameters.timing:
        yield (
            f"Requests arrive {parameters.time_scale:g} times faster than the pattern says; the token is as fast as "
            "it is."
        )
    if len(parameters.tokens) > 1 and all(map(is_lab, parameters.tokens)):
        yield "The tokens share one computer's processors: two of them sign no faster than one."


class ServiceTrial(Trial[ServiceParameters]):
    """Let signing requests arrive at a service with real tokens, with and without a pool of keys made before."""

    kind: ClassVar[str] = "keypool.signing-service"
    title: ClassVar[str] = "Key pool, live"
    description: ClassVar[str] = (
        "Can a slow HSM carry a peak load if keys are made ahead of time? Lived through on a PKCS#11 token: keys are "
        "generated, wrapped, stored, loaded back, and each signs one request."
    )
    parameters: ClassVar[type[Parameters]] = ServiceParameters
    series: ClassVar[tuple[Series, ...]] = (LIVE_REQUESTS, DROPS, FAILURES, QUEUE, REFILLS, GENERATED)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean", "latency_p99", "dropped")
    finding_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean")
    live: ClassVar[tuple[LiveChannel, ...]] = SERVICE_CHANNELS
    service_level: ClassVar[ServiceLevel | None] = SERVICE_LEVEL

    def secrets(self, parameters: ServiceParameters) -> tuple[SecretRequest, ...]:
        """The PINs of tokens that are not the console's own."""
        foreign = (name for name in parameters.tokens if not is_lab(name))
        return tuple(find_configuration(name).pin_request(name) for name in foreign)

    def run(self, parameters: ServiceParameters, context: RunContext) -> None:
        path, run = store_path(parameters.key_store), str(uuid.uuid4())
        with KeyStore.open(path, run=run):  # makes it, and invalidates what dead processes had claimed
            pass
        with KeyReader(path) as store:
            counts = store.counts(parameters.key_kind)
            context.event(
                "pool",
                f"Key store {parameters.key_store}: {counts.new:,} new {parameters.key_kind} keys.",
                new=counts.new,
                store=str(parameters.key_store),
                run=run,
            )
            record_chain_head(store, parameters, context)  # already now: a run that is killed has one, too
            result = Conductor(RunPlan(parameters, path, run), context, store).conduct()
            if result is not None:
                keep_artefacts(parameters, result, context)
                record_store(path, store, parameters, context)

    def evaluate(self, parameters: ServiceParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(parameters, samples, events)

    def curves(self, parameters: ServiceParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return curves.curves(parameters, samples, events)

    def distributions(
        self, parameters: ServiceParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return evaluation.distributions(parameters, samples, events)

    def contrast(self, reference: ServiceParameters, other: ServiceParameters) -> str:
        return contrast.contrast_label(reference, other)

    def questions(self, reference: ServiceParameters, other: ServiceParameters) -> tuple[Question, ...]:
        return contrast.questions(reference, other)

    def comparable(self, reference: ServiceParameters, other: ServiceParameters) -> bool:
        return contrast.same_load(reference, other)

    def warnings(self, parameters: ServiceParameters) -> tuple[str, ...]:
        return tuple(warnings(parameters))
