"""Translates errors of a PKCS#11 module into one sentence with a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pkcs11

from labconsole.security.token.cryptoki.module import ReturnValueError
from labconsole.security.token.errors import (
    MechanismMissingError,
    TokenError,
    TokenFullError,
    TokenGoneError,
    WrongPinError,
)

_GONE = (TokenGoneError, "is gone: put it back and start again")
_FULL = (TokenFullError, "is full: destroy keys that are not needed, or keep fewer in it")
_NOT_ALLOWED = (
    TokenError,
    "does not allow that with this key: it was created for another use, or to stay in the token",
)
_SENTENCES: dict[type[pkcs11.PKCS11Error], tuple[type[TokenError], str]] = {
    pkcs11.PinIncorrect: (WrongPinError, "refuses the PIN: it is wrong, and was tried once"),
    pkcs11.PinLocked: (WrongPinError, "has locked its PIN: let its security officer set a new one"),
    pkcs11.PinExpired: (WrongPinError, "says that its PIN has expired: set a new one"),
    pkcs11.PinLenRange: (WrongPinError, "refuses the PIN: it is too short or too long"),
    pkcs11.PinInvalid: (WrongPinError, "refuses the PIN: it has characters that this token does not take"),
    pkcs11.PinTooWeak: (WrongPinError, "refuses the PIN: it is too weak"),
    pkcs11.UserPinNotInitialized: (TokenError, "has no PIN yet: initialise it (labconsole hsm init)"),
    pkcs11.TokenNotRecognised: (TokenError, "is not recognised by its module: initialise it (labconsole hsm init)"),
    pkcs11.DeviceMemory: _FULL,
    pkcs11.HostMemory: _FULL,
    pkcs11.DeviceRemoved: _GONE,
    pkcs11.TokenNotPresent: _GONE,
    pkcs11.SessionHandleInvalid: _GONE,
    pkcs11.SessionClosed: _GONE,
    pkcs11.MechanismInvalid: (MechanismMissingError, "does not offer the mechanism that this needs: use another token"),
    pkcs11.DomainParamsInvalid: (MechanismMissingError, "does not offer that curve: use another curve or token"),
    pkcs11.KeyUnextractable: _NOT_ALLOWED,
    pkcs11.TokenWriteProtected: (TokenError, "is write-protected: allow writing to it"),
    pkcs11.SessionExists: (TokenError, "is in use: end the programs that have it open, then try again"),
    pkcs11.SessionCount: (TokenError, "has no session left: end other programs that use it, or take fewer threads"),
}
_ERRORS: dict[int, type[pkcs11.PKCS11Error]] = {
    0x68: pkcs11.KeyUnextractable,  # CKR_KEY_FUNCTION_NOT_PERMITTED: kryoptic's code for a key that is not extractable
    0x31: pkcs11.DeviceMemory,
    0x32: pkcs11.DeviceRemoved,
    0xA0: pkcs11.PinIncorrect,
    0xA1: pkcs11.PinInvalid,
    0xA2: pkcs11.PinLenRange,
    0xA4: pkcs11.PinLocked,
    0xB6: pkcs11.SessionExists,
    0xE0: pkcs11.TokenNotPresent,
    0xE2: pkcs11.TokenWriteProtected,
    0x140: pkcs11.DomainParamsInvalid,  # CKR_CURVE_NOT_SUPPORTED
}
"""CK_RV that python-pkcs11 lacks, or of functions that it does not call (PKCS#11 v2.40, section 3.6)."""

_UNMAPPED = re.compile(r"Unmapped error code 0x([0-9a-f]+)", re.IGNORECASE)


@contextmanager
def translated_errors(doing: str, token: str) -> Iterator[None]:
    """Turn PKCS11Error and ReturnValueError into TokenError; `doing` completes "The token `token` cannot ...".

    `doing` is needed since modules give no text: only the action shows what a general error means.
    """
    try:
        yield
    except (pkcs11.PKCS11Error, ReturnValueError) as error:
        known = _SENTENCES.get(_kind(error))
        if known is None:
            message = str(error) or type(error).__name__
            raise TokenError(f"The token {token} cannot {doing} ({message}): ask its maker what that means.") from error
        raised, sentence = known
        raise raised(f"The token {token} cannot {doing}: it {sentence}.") from error


def _kind(error: pkcs11.PKCS11Error | ReturnValueError) -> type[pkcs11.PKCS11Error]:
    if isinstance(error, ReturnValueError):
        return _ERRORS.get(error.code, pkcs11.PKCS11Error)
    unmapped = _UNMAPPED.search(str(error))
    return type(error) if unmapped is None else _ERRORS.get(int(unmapped[1], 16), type(error))
