"""The process that initialises a token: named by `-m` only, since it loads the token's module; see `lab_token`."""

from __future__ import annotations

import sys
from typing import Any

import pkcs11

from labconsole.security.secret_value import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.cryptoki.module import Module, load_module
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.opening import empty_slot, find_token
from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import answer
from labconsole.security.token.token_access import ReceivedAccess, TokenAccess


def initialise(name: str, configuration: TokenAccess, new: bool, so_pin: Secret, pin: Secret) -> None:
    """Give a token its label, SO PIN and user PIN: the first empty slot if `new`, else the token with that label.

    Raises:
        TokenError: no such token, no empty slot, a user PIN of a wrong length, or the token refuses.
    """
    module = load_module(configuration)
    try:
        slot = empty_slot(module, name) if new else find_token(module, name, configuration).slot
        with translated_errors("be initialised", name):
            _check_length(module, slot, name, pin)
            module.init_token(slot.slot_id, so_pin.reveal(), configuration.label)
            # It may be in another slot now, and its old object has the old state.
            token = slot.get_token()
            with token.open(rw=True, so_pin=so_pin.reveal()) as session:
                session.init_pin(pin.reveal())
    finally:
        module.finalize()


def _check_length(module: Module, slot: pkcs11.Slot, name: str, pin: Secret) -> None:
    """Checks the PIN's length before anything is destroyed: C_InitToken deletes all keys, and only C_InitPIN checks."""
    shortest, longest = module.pin_lengths(slot.slot_id)
    size = len(pin.reveal().encode())
    if not shortest <= size <= longest:
        limit = f"at least {shortest}" if size < shortest else f"at most {longest}"
        raise TokenError(f"The token {name} was not initialised: its PIN must have {limit} bytes; choose another one.")


def _respond(question: dict[str, Any]) -> dict[str, Any]:
    configuration = ReceivedAccess.from_json(question["configuration"])
    so_pin, pin = Secret(question["so_pin"]), Secret(question["pin"])
    with softhsm.opened_exclusively(configuration.environment):
        initialise(question["name"], configuration, question["new"], so_pin, pin)
    return {}


if __name__ == "__main__":
    sys.exit(answer(_respond))
