"""Transfers wrapper keys between named tokens, each opened in its own process; this one loads no PKCS#11 module.

The transport key exists only in the two processes, and only for moments; its shares pass through pipes, never through
arguments, environment, log or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labconsole.security.secret_value import Secret
from labconsole.security.token import module_process
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.shares.exported_wrappers import ExportedWrappers, NamedWrapper, StoredKey
from labconsole_keypool.shares.secret_sharing import Share

PROGRAM = "labconsole_keypool.shares.transport_process"
_TIMEOUT_S = 60.0


def transfer_wrappers(
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
    """Transfer wrapper keys from one named token to another, with as many shares as are needed.

    Args:
        from_name: The source; a wrapper key that is not in it is skipped: it was destroyed when it was spent.
        to_name: The destination; a wrapper key that is in it already stays.
        wrappers: The wrapper keys.
        shares: Number of shares of the transport key.
        threshold: Number of shares that restore it.
        proof: As for `transport.load_wrappers`.
        pins: PINs by the token's name, for tokens whose PIN is neither in the keyring nor in a file.
        home: The console's data directory, if another than usual.

    Returns:
        The serials that were new to the second token.

    Raises:
        TokenError: a token is unknown, refuses, or its process crashed or hung.
        UserError: a PIN has no source.
    """
    known = pins or {}
    carried, made = export_from_token(from_name, wrappers, shares, threshold, pin=known.get(from_name), home=home)
    if not carried.wrappers:
        return ()
    return load_into_token(to_name, carried, made[:threshold], proof, pin=known.get(to_name), home=home)


def export_from_token(
    name: str,
    wrappers: Iterable[NamedWrapper],
    shares: int = 3,
    threshold: int = 2,
    *,
    pin: Secret | None = None,
    home: Path | None = None,
) -> tuple[ExportedWrappers, tuple[Share, ...]]:
    """Run `transport.export_wrappers` in its own process, for the wrapper keys in the token `name`.

    Raises as `transfer_wrappers`.
    """
    question = {
        "do": "export",
        "wrappers": [[wrapper.serial, int(wrapper.mechanism)] for wrapper in wrappers],
        "shares": shares,
        "threshold": threshold,
    }
    answer = _ask(name, question, pin, home)
    made = tuple(Share.from_bytes(bytes.fromhex(share)) for share in answer["shares"])
    return ExportedWrappers.from_data(answer["carried"]), made


def load_into_token(
    name: str,
    carried: ExportedWrappers,
    shares: Sequence[Share],
    proof: Mapping[str, StoredKey] | None = None,
    *,
    pin: Secret | None = None,
    home: Path | None = None,
) -> tuple[str, ...]:
    """Run `transport.load_wrappers` in its own process, on the token `name`. Raises as `transfer_wrappers`."""
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
