"""What a live run keeps for whoever checks it: a request with its answer, and the state of the key store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labconsole.model.trial import Level, RunContext
from labconsole_keypool.choices import RequestContent
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import HEAD_EVENT, Head
from labconsole_keypool.store.verify_store import verify_store

STORE_VERIFIED = "key store verified"
"""Event: the links of the key store were checked; data `findings`, sentences."""

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


def note_head(store: KeyReader, parameters: ServiceParameters, context: RunContext) -> Head:
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
    head = note_head(store, parameters, context)
    findings = verify_store(path, head)
    said = (
        f"{len(findings):,} rows are not as they were written: {findings[0].message}"
        if findings
        else f"all {head.rows:,} rows are as they were written."
    )
    context.event(
        STORE_VERIFIED,
        f"Key store {parameters.key_store}: {said}",
        Level.ERROR if findings else Level.INFO,
        rows=head.rows,
        findings=[finding.message for finding in findings[:_MOST_FINDINGS]],
    )
