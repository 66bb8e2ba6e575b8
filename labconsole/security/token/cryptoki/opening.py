"""Opens a token: loads its module, finds it by label, logs in once, and provides further sessions."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pkcs11
from pkcs11 import TokenFlag

from labconsole.security.secret_value import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.cryptoki.module import Module, load_module
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.errors import TokenError, WrongPinError
from labconsole.security.token.mechanisms import TokenIdentity, WrapMechanism
from labconsole.security.token.token_access import TokenAccess

if TYPE_CHECKING:
    from labconsole.security.token.configuration import TokenConfiguration  # not in a module's own process: pydantic

_PIN_WARNINGS = {
    TokenFlag.USER_PIN_LOCKED: "its PIN is locked, and its security officer must set a new one",
    TokenFlag.USER_PIN_FINAL_TRY: "one try is left before it locks its PIN",
    TokenFlag.USER_PIN_COUNT_LOW: "few tries may be left before it locks its PIN, and it does not report how many",
}
"""In order of urgency (PKCS#11 v2.40, section 3.2)."""


class Token:
    """An open token of this process, logged in once.

    Threads share it by `session` and `close` only: each uses a session of its own, and ends before `close`.
    """

    def __init__(
        self,
        name: str,
        module: Module,
        token: pkcs11.Token,
        login: pkcs11.Session,
        configuration: TokenAccess,
    ) -> None:
        self.name = name
        self.wrap_mechanisms = tuple(map(WrapMechanism, configuration.wrap_mechanisms))
        self.identity = identity_of(module, token)
        self._module = module
        self._token = token
        self._login = login
        self._variables = configuration.environment
        self._sessions: list[pkcs11.Session] = []
        self._lock = threading.Lock()
        self._open = True

    def session(self) -> pkcs11.Session:
        """A further read-write session, logged in with the first; closed by `close`. Its session keys are lost then.

        Raises:
            TokenError: the token is closed, or has no session left.
        """
        with self._lock:
            if not self._open:
                raise TokenError(f"The token {self.name} is closed: open it again.")
            with softhsm.opened_exclusively(self._variables), translated_errors("open another session", self.name):
                opened = self._token.open(rw=True)
            self._sessions.append(opened)
            return opened

    def mechanisms(self) -> frozenset[int]:
        """The numbers of the mechanisms (CK_MECHANISM_TYPE) that the token offers. Raises TokenError."""
        with translated_errors("name its mechanisms", self.name):
            return frozenset(int(mechanism) for mechanism in self._token.slot.get_mechanisms())

    def pin_warning(self) -> str | None:
        """The token's flags on the tries of its PIN that are left; None if all are. Raises TokenError."""
        with translated_errors("show its flags", self.name):
            return pin_warning(self._token)

    def close(self) -> None:
        """Close the further sessions, then the one that logged in (which logs all out), then the module.

        Twice does nothing. Raises TokenError when the token is gone; the module is finalised nevertheless.
        """
        with self._lock, translated_errors("be closed", self.name), ExitStack() as closing:
            if not self._open:
                return
            self._open = False
            closing.callback(self._module.finalize)
            closing.callback(_close, self._login)
            for session in self._sessions:
                closing.callback(_close, session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open_token(name: str, configuration: TokenConfiguration, secret: Secret | None = None) -> Token:
    """The token called `name`, logged in, once, with `secret`, else with the PIN from the configuration's source.

    Never prompts.

    Raises:
        WrongPinError: with the tries that are left, from the token's flags.
        TokenError: no module or token, several of that label, no PIN set in the token.
        UserError: there is no PIN.
    """
    request = configuration.pin_request(name)
    try:
        return open_with_pin(name, configuration, request.resolve() if secret is None else secret)
    except WrongPinError as error:
        error.key = request.key
        raise


def open_with_pin(name: str, configuration: TokenAccess, pin: Secret) -> Token:
    """The token called `name`, logged in, once. Raises WrongPinError and TokenError as `open_token`."""
    with softhsm.opened_exclusively(configuration.environment), ExitStack() as undo:
        module = load_module(configuration)
        undo.callback(module.finalize)
        token = find_token(module, name, configuration)
        login = _log_in(name, token, pin)
        opened = Token(name, module, token, login, configuration)
        undo.pop_all()
        return opened


def find_token(module: Module, name: str, configuration: TokenAccess) -> pkcs11.Token:
    """The token that `configuration` names by label, and by serial number where one is given. Slot numbers change.

    Raises:
        TokenError: missing (naming the existing labels), or several of that label.
    """
    with translated_errors("be looked for", name):
        present = [token for token in module.tokens() if token.label]
    label = configuration.label
    labelled = [token for token in present if token.label == label]
    found = [token for token in labelled if configuration.serial in ("", serial_of(token))]
    if len(found) == 1:
        return found[0]
    serials = ", ".join(sorted(serial_of(token) for token in labelled))
    if found:
        raise TokenError(
            f"{configuration.module} has {len(found)} tokens labelled {label}: name one of them by its serial number"
            f" ({serials})."
        )
    if labelled:
        raise TokenError(
            f"The token labelled {label} has the serial number {serials}, and not {configuration.serial}:"
            f" correct the configuration of {name}."
        )
    from labconsole.model.validation_faults import nearest  # late: pydantic, for this sentence alone

    there_are = (
        nearest(label, [token.label for token in present]) if present else ": it has none at all; initialise one."
    )
    raise TokenError(f"{configuration.module} has no token labelled {label}{there_are}")


def empty_slot(module: Module, name: str) -> pkcs11.Slot:
    """The first slot with a token that was never initialised. Raises TokenError: there is none."""
    with translated_errors("be made", name):
        for token in module.tokens():
            if TokenFlag.TOKEN_INITIALIZED not in token.flags:
                return token.slot
    raise TokenError(f"{module.so} has no empty slot for another token: initialise one that is there.")


def identity_of(module: Module, token: pkcs11.Token) -> TokenIdentity:
    """The identity of a token and of its module."""
    return TokenIdentity(
        label=token.label,
        serial=serial_of(token),
        manufacturer=token.manufacturer_id,
        model=token.model,
        module=module.so,
        library_version=".".join(map(str, module.library_version)),
        cryptoki_version=".".join(map(str, module.cryptoki_version)),
    )


def serial_of(token: pkcs11.Token) -> str:
    """The serial number of a token: up to 16 characters."""
    return token.serial.decode("utf-8", errors="replace").strip("\0 ")


def pin_warning(token: pkcs11.Token) -> str | None:
    """The report of the token's flags on tries of the PIN that are left (completes "the token says that ...")."""
    flags = token.slot.get_token().flags
    return next((sentence for flag, sentence in _PIN_WARNINGS.items() if flag in flags), None)


def _log_in(name: str, token: pkcs11.Token, pin: Secret) -> pkcs11.Session:
    if TokenFlag.USER_PIN_INITIALIZED not in token.flags:
        raise TokenError(f"The token {name} has no PIN yet: initialise it (labconsole hsm init {name}).")
    try:
        with translated_errors("be opened", name):
            return token.open(rw=True, user_pin=pin.reveal())
    except WrongPinError as error:
        with translated_errors("show its flags", name):
            warning = pin_warning(token)
        if warning is None:
            raise
        raise WrongPinError(f"{str(error).rstrip('.')}; {warning}.") from error


def _close(session: pkcs11.Session) -> None:
    with suppress(pkcs11.SessionHandleInvalid, pkcs11.SessionClosed, pkcs11.DeviceRemoved, pkcs11.TokenNotPresent):
        session.close()
