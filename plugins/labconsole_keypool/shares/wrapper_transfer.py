"""Carries wrapper keys between named tokens, each opened by a process of its own; this one loads no module.

The transport key exists in the two processes alone, and only for moments; its shares pass through pipes, never through
arguments, environment, log or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labconsole.security.secrets import Secret
from labconsole.security.token import module_process
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.shares.exported_wrappers import ExportedWrappers, NamedWrapper, StoredKey
from labconsole_keypool.shares.secret_sharing import Share

PROGRAM = "labconsole_keypool.shares.transport_process"
_TIMEOUT_S = 60.0


def carry(
    from_name: str,
    to_name: str,
    wrappers: Iterable[NamedWrapper],
    *,
    shares: int = 3,
    threshold: int = 2,
    proof: Mapping[str, StoredKey] | None = None,
    pins: Mapping[str, Secret] | None = None,
    home: Path | None = None,
) -> tuple[str, ...]:
    """Carry wrapper keys from one named token to another, with as many shares as are needed.

    Args:
        from_name: Where they are; one that is not there (any more) is passed over: it was destroyed when it was spent.
        to_name: Where they go; one that is there already stays.
        wrappers: Which.
        shares: Into how many the transport key is split.
        threshold: How many of those are given to the second token.
        proof: As for `transport.load_wrappers`.
        pins: PINs by the token's name, for tokens whose PIN lies neither in the keyring nor in a file.
        home: The console's data directory, if another than usual.

    Returns:
        The serials that were new to the second token.

    Raises:
        TokenError: a token is unknown, refuses, or its process crashed or hung.
        UserError: a PIN is nowhere to be had.
    """
    known = pins or {}
    carried, made = export(from_name, wrappers, shares, threshold, pin=known.get(from_name), home=home)
    if not carried.wrappers:
        return ()
    return load(to_name, carried, made[:threshold], proof, pin=known.get(to_name), home=home)


def export(
    name: str,
    wrappers: Iterable[NamedWrapper],
    shares: int = 3,
    threshold: int = 2,
    *,
    pin: Secret | None = None,
    home: Path | None = None,
) -> tuple[ExportedWrappers, tuple[Share, ...]]:
    """`transport.export_wrappers` of those that the token called `name` holds, in a process of its own.

    Raises as `carry`.
    """
    question = {
        "do": "export",
        "wrappers": [[wrapper.serial, int(wrapper.mechanism)] for wrapper in wrappers],
        "shares": shares,
        "threshold": threshold,
    }
    told = _ask(name, question, pin, home)
    made = tuple(Share.from_bytes(bytes.fromhex(share)) for share in told["shares"])
    return ExportedWrappers.from_data(told["carried"]), made


def load(
    name: str,
    carried: ExportedWrappers,
    shares: Sequence[Share],
    proof: Mapping[str, StoredKey] | None = None,
    *,
    pin: Secret | None = None,
    home: Path | None = None,
) -> tuple[str, ...]:
    """`transport.load_wrappers` on the token called `name`, in a process of its own. Raises as `carry`."""
    question = {
        "do": "load",
        "carried": carried.as_data(),
        "shares": [share.to_bytes().hex() for share in shares],
        "proof": {serial: [key.kind, key.private.hex()] for serial, key in (proof or {}).items()},
    }
    return tuple(_ask(name, question, pin, home)["loaded"])


def _ask(name: str, question: Mapping[str, Any], pin: Secret | None, home: Path | None) -> dict[str, Any]:
    configuration = find_configuration(name, home)
    secret = configuration.pin_request(name).resolve() if pin is None else pin
    whole = {
        **question,
        "name": name,
        "configuration": configuration.model_dump(mode="json"),
        "pin": secret.reveal(),
    }
    return module_process.ask(PROGRAM, whole, _TIMEOUT_S, f"The PKCS#11 module {configuration.module}")
