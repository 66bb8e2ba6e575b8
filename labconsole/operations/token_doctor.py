"""A report on a token as tables: the needs of the key pool, its mechanisms, and the wrap mechanisms that work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from labconsole.doctor import Check
from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result, TextTable, Tone, TonedText
from labconsole.model.parameters import Parameters
from labconsole.operations.configured_tokens import token_name
from labconsole.security.secrets import Secret, SecretRequest
from labconsole.security.token.configuration import LAB
from labconsole.security.token.errors import MechanismMissingError, TokenError
from labconsole.security.token.inspection import Findings, Inspection, Overview, inspect_token
from labconsole.security.token.mechanisms import KeyKind, WrapBehaviour, WrapProbe, choose_mechanism
from labconsole.security.token.named_tokens import find_configuration, pin_requests

_OPTIONAL = ("P-256 keys", "second wrap")
"""Checks that a token may fail: they limit it, but the key pool can use it."""

_ANOTHER = "use another token"


def has_all_required(inspection: Inspection) -> bool:
    """Whether the token can serve as a key pool: it was tested, and no required check failed."""
    return all(check.ok for check in _checks(inspection) if check.name not in _OPTIONAL)


def report(inspection: Inspection) -> tuple[str | TextTable, ...]:
    """The report on the token, for a person."""
    rows = [(_mark(one), one.name, one.found, one.needed_for, one.remedy) for one in _checks(inspection)]
    parts: list[str | TextTable] = [TextTable(("", "What", "Found", "Needed for", "To do"), tuple(rows))]
    if inspection.overview is not None:
        names = inspection.overview.mechanisms
        parts.append(f"\nMechanisms ({len(names)}): {', '.join(names)}")
    if inspection.findings is not None:
        parts += ["", _wrapping(inspection.findings.wrapping)]
    return tuple(parts)


def report_data(inspection: Inspection) -> dict[str, Any]:
    """The same as plain JSON."""
    overview, findings = inspection.overview, inspection.findings
    return {
        "token": inspection.name,
        "label": overview and overview.identity.label,
        "serial": overview and overview.identity.serial,
        "serves_a_key_pool": has_all_required(inspection),
        "checks": [{"name": one.name, "ok": one.ok, "found": one.found} for one in _checks(inspection)],
        "mechanisms": [] if overview is None else list(overview.mechanisms),
        "wrapping": [_probe_data(probe) for probe in (() if findings is None else findings.wrapping)],
    }


def _probe_data(probe: WrapProbe) -> dict[str, Any]:
    return {
        "mechanism": probe.mechanism.title,
        "behaviour": probe.behaviour.value,
        "keys": [kind.value for kind, signs in probe.keys.items() if signs],
        "refuses_tampered": probe.refuses_tampered,
        "refuses_second_wrap": probe.refuses_second_wrap,
    }


def _mark(check: Check) -> str:
    if check.ok:
        return TonedText("ok", Tone.GOOD)
    return TonedText("no", Tone.WARNING) if check.name in _OPTIONAL else TonedText("missing", Tone.BAD)


def _checks(inspection: Inspection) -> list[Check]:
    overview, findings = inspection.overview, inspection.findings
    seen = [] if overview is None else _module_checks(overview)
    if findings is not None:
        return [*seen, *_probe_checks(findings)]
    warning = overview.pin_warning if overview is not None else None
    found = "not done" if warning is None else f"not done; before, the token said: {warning}"
    return [*seen, Check("login, probes", False, found, "all keys", "as said below")]


def _module_checks(overview: Overview) -> list[Check]:
    identity = overview.identity
    module = f"{identity.module}, version {identity.library_version} (PKCS#11 {identity.cryptoki_version})"
    token = f"{identity.label}, serial number {identity.serial} ({identity.manufacturer}, {identity.model})"
    labels = [label or "(none)" for label in overview.slots]
    free = "the token does not report it" if overview.free_memory is None else f"{overview.free_memory:,} B"
    room = overview.free_memory != 0
    return [
        Check("module", True, f"{module}, started in {1000 * overview.start_s:.0f} ms", "everything", ""),
        Check("token", True, token, "everything", ""),
        Check("slots", True, f"{len(labels)}, with tokens: {', '.join(labels)}", "several tokens", ""),
        Check("free space", room, free, "keys in the token", "" if room else "destroy keys that are not needed"),
    ]


def _probe_checks(findings: Findings) -> list[Check]:
    second = [probe for probe in findings.wrapping if any(probe.keys.values())]
    refused = bool(second) and all(probe.refuses_second_wrap for probe in second)
    return [
        Check("PIN", True, f"right, logged in within {1000 * findings.login_s:.0f} ms", "all keys", ""),
        _threads(findings.threads_safe),
        _kind("RSA keys", KeyKind.RSA_2048, findings, "key pool"),
        _kind("P-256 keys", KeyKind.P_256, findings, "key pool of P-256 keys"),
        Check(
            "second wrap",
            refused,
            "refused" if refused else "an unwrapped key can be wrapped again, though it is not extractable",
            "keys that never leave",
            "" if refused else "guard the PIN: who has it can take keys out",
        ),
    ]


def _threads(safe: bool | None) -> Check:
    purpose = "signing threads"
    if safe is None:
        return Check("threads", True, "not tried: it generates no P-256 keys, which the test needs", purpose, "")
    found = "eight at a time generate keys and sign" if safe else "eight at a time fail"
    return Check("threads", safe, found, purpose, "" if safe else "ask its maker for a module that bears threads")


def _kind(name: str, kind: KeyKind, findings: Findings, purpose: str) -> Check:
    """Whether keys of `kind` can be wrapped, and by which mechanism."""
    try:
        mechanism = choose_mechanism(findings.wrapping, kind)
    except MechanismMissingError:
        return Check(name, False, "no wrap mechanism carries them and refuses changed ones", purpose, _ANOTHER)
    return Check(name, True, f"wrapped with {mechanism.title}, sign again", purpose, "")


def _wrapping(probes: Iterable[WrapProbe]) -> TextTable:
    headings = ("Wrap mechanism", "What it does", "Keys", "Changed key", "Second wrap")
    return TextTable(headings, tuple(map(_wrapping_row, probes)))


def _wrapping_row(probe: WrapProbe) -> tuple[str, ...]:
    if probe.behaviour is WrapBehaviour.ABSENT:
        return probe.mechanism.title, probe.behaviour.value, "–", "–", "–"
    carried = [kind.value for kind, signs in probe.keys.items() if signs]
    keys = ", ".join(carried) or "none"
    does = f"{probe.behaviour.value} ({probe.detail})" if probe.detail else probe.behaviour.value
    if not carried:
        return probe.mechanism.title, does, keys, "–", "–"
    changed = "refused" if probe.refuses_tampered else "TAKEN"
    return probe.mechanism.title, does, keys, changed, "refused" if probe.refuses_second_wrap else "done"


class CheckTokenParameters(Parameters):
    """The token to test."""

    token: Annotated[str, token_name(positional=True, metavar="NAME")] = LAB


class CheckToken(Operation[CheckTokenParameters]):
    """Inspects a token and tests its mechanisms."""

    name: ClassVar[str] = "tokens.doctor"
    title: ClassVar[str] = "Try a token"
    description: ClassVar[str] = (
        "Inspects a token, logs in, and tests what a key pool needs. Objects that it creates in the token are removed."
    )
    parameters: ClassVar[type[Parameters]] = CheckTokenParameters

    def secrets(self, parameters: CheckTokenParameters) -> tuple[SecretRequest, ...]:
        return pin_requests(parameters.token)

    def run(self, parameters: CheckTokenParameters, context: OperationContext) -> Result:
        name = parameters.token
        configuration = find_configuration(name)
        request = configuration.pin_request(name)
        pin: Secret | None = context.secret(request.key)
        no_pin = ""
        try:
            pin = pin or request.resolve()
        except UserError as error:
            no_pin = str(error)
        inspection = inspect_token(name, configuration, pin)
        if inspection.overview is None:
            raise TokenError(inspection.problem)
        warnings = (f"{inspection.problem} {no_pin}".rstrip(),) if inspection.problem else ()
        return Result(report(inspection), report_data(inspection), warnings, passed=has_all_required(inspection))
