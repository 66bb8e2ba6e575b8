"""The trial `keypool.signing-service`: the source's signing service, live on PKCS#11 tokens."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from labconsole.model.trial import (
    Curve,
    Distribution,
    Evaluation,
    Event,
    Level,
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
from labconsole.security.token.named_tokens import pin_requests
from labconsole_keypool.choices import KeySource, RequestContent
from labconsole_keypool.results import curves, evaluation
from labconsole_keypool.results.evaluation import METRICS
from labconsole_keypool.results.verdicts import SERVICE_LEVEL
from labconsole_keypool.series import (
    DROPS,
    FAILURES,
    GENERATED,
    LIVE_REQUESTS,
    QUEUE,
    REFILLS,
    SERVICE_CHANNELS,
    STORE_VERIFIED,
)
from labconsole_keypool.service.conductor import Conductor, plan_run
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import HEAD_EVENT, Head
from labconsole_keypool.store.key_store import KeyStore, store_path
from labconsole_keypool.store.verify_store import verify_store
from labconsole_keypool.trials import contrast


def warnings(parameters: ServiceParameters) -> Iterator[str]:
    """The caveats of a run with these parameters, one sentence each."""
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


_MOST_FINDINGS = 20


def keep_artefacts(parameters: ServiceParameters, result: Mapping[str, Any], context: RunContext) -> None:
    """Keep the first request that was answered, and its answer."""
    request, answer = bytes.fromhex(result["request"]), bytes.fromhex(result["answer"])
    if not answer:
        return
    if parameters.content is not RequestContent.DIGESTS:
        context.artefact("sign-request.xml", "application/xml", request)
        context.artefact("sign-response.xml", "application/xml", answer)
    else:
        context.artefact("to-be-signed.bin", "application/octet-stream", request)
        context.artefact("certificate.der", "application/pkix-cert", answer)


def record_chain_head(store: KeyReader, parameters: ServiceParameters, context: RunContext) -> Head:
    """Record the head of the key store's chain: `labconsole hsm verify-store --run` holds the store against it."""
    head, counts = store.head(), store.counts(parameters.key_kind)
    context.event(
        HEAD_EVENT,
        f"Key store {parameters.key_store}: {counts.new:,} keys new, {counts.used:,} used, {counts.invalid:,} invalid; "
        f"its chain has {head.rows:,} rows.",
        store=parameters.key_store,
        **head.as_data(),
    )
    return head


def record_store(path: Path, store: KeyReader, parameters: ServiceParameters, context: RunContext) -> None:
    """Record the head of the key store's chain, and what a check of its links finds. Raises StoreError."""
    head = record_chain_head(store, parameters, context)
    findings = verify_store(path, head)
    result = (
        f"{len(findings):,} rows are not as they were written: {findings[0].message}"
        if findings
        else f"all {head.rows:,} rows are as they were written."
    )
    context.event(
        STORE_VERIFIED,
        f"Key store {parameters.key_store}: {result}",
        Level.ERROR if findings else Level.INFO,
        rows=head.rows,
        findings=[finding.message for finding in findings[:_MOST_FINDINGS]],
    )


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
        """The PINs of tokens other than lab tokens."""
        return pin_requests(*parameters.tokens)

    def run(self, parameters: ServiceParameters, context: RunContext) -> None:
        path, run = store_path(parameters.key_store), str(uuid.uuid4())
        _settle(path, run)
        with KeyReader(path) as store:
            counts = store.counts(parameters.key_kind)
            context.event(
                "pool",
                f"Key store {parameters.key_store}: {counts.new:,} new {parameters.key_kind} keys.",
                new=counts.new,
                store=str(parameters.key_store),
                run=run,
            )
            record_chain_head(store, parameters, context)  # early, so that a killed run has one, too
            try:
                result = Conductor(plan_run(parameters, path, run), context, store).conduct()
            finally:
                _settle(path, run)  # what roles held that were killed, and that no other one replaced
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


def _settle(path: Path, run: str) -> None:
    """Create the key store where there is none, and invalidate what processes had claimed that have ended."""
    with KeyStore.open(path, run=run):
        pass
