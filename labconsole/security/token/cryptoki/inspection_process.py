"""The process that `inspection` starts: loads one module, reads or probes its token, and reports the result."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Any

import pkcs11
from pkcs11 import Mechanism

from labconsole.security.secret_value import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.cryptoki.mechanism_probes import probe_wrapping, threads_safe
from labconsole.security.token.cryptoki.module import load_module
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.opening import empty_slot, find_token, identity_of, open_with_pin, pin_warning
from labconsole.security.token.inspection import Findings, Overview
from labconsole.security.token.module_process import answer
from labconsole.security.token.token_access import ReceivedAccess, TokenAccess


def read_overview(name: str, configuration: TokenAccess) -> Overview:
    """What the module and its token report without a PIN. Raises TokenError."""
    with softhsm.opened_exclusively(configuration.environment):
        started = time.perf_counter()
        module = load_module(configuration)
        start_s = time.perf_counter() - started
    try:
        token = find_token(module, name, configuration)
        with translated_errors("be looked at", name):
            return Overview(
                identity=identity_of(module, token),
                slots=tuple(_label(slot) for slot in module.get_slots()),
                mechanisms=tuple(map(_name, sorted(token.slot.get_mechanisms()))),
                free_memory=module.free_private_memory(token.slot.slot_id),
                pin_warning=pin_warning(token),
                start_s=start_s,
            )
    finally:
        module.finalize()


def require_empty_slot(name: str, configuration: TokenAccess) -> None:
    """Raises TokenError: the module cannot be loaded, or has no empty slot for a new token."""
    with softhsm.opened_exclusively(configuration.environment):
        module = load_module(configuration)
    try:
        empty_slot(module, name)
    finally:
        module.finalize()


def probe(name: str, configuration: TokenAccess, pin: Secret) -> Findings:
    """The results of probing the token, logged in. Raises TokenError, WrongPinError."""
    started = time.perf_counter()
    with open_with_pin(name, configuration, pin) as token:
        opened = time.perf_counter()
        wrapping = probe_wrapping(token.session(), token.wrap_mechanisms)
        safe = threads_safe(token)
        return Findings(wrapping, safe, login_s=opened - started, probes_s=time.perf_counter() - opened)


def _label(slot: pkcs11.Slot) -> str:
    """The label of the token in `slot`; empty without one, or for one that was never initialised."""
    try:
        return slot.get_token().label
    except pkcs11.TokenNotPresent:
        return ""


def _name(mechanism: int) -> str:
    """The mechanism's name; python-pkcs11 prefixes those of weak ones with an underscore."""
    return mechanism.name.lstrip("_") if isinstance(mechanism, Mechanism) else f"0x{mechanism:X}"


def _respond(question: dict[str, Any]) -> dict[str, Any]:
    name, pin = question["name"], question["pin"]
    configuration = ReceivedAccess.from_json(question["configuration"])
    if question["new"]:
        require_empty_slot(name, configuration)
        return {}
    if pin is None:
        return asdict(read_overview(name, configuration))
    return asdict(probe(name, configuration, Secret(pin)))


if __name__ == "__main__":
    sys.exit(answer(_respond))
