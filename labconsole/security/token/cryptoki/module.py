"""A PKCS#11 module for use by several threads; functions missing in python-pkcs11 are called by its function list."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pkcs11
from pkcs11 import PKCS11Error, _pkcs11

from labconsole.security.token.errors import TokenError
from labconsole.security.token.token_access import TokenAccess

_CKF_OS_LOCKING_OK = 0x2
_CKR_GENERAL_ERROR = 0x5
_CKR_CRYPTOKI_ALREADY_INITIALIZED = 0x191
_UNAVAILABLE = ctypes.c_ulong(-1).value
"""CK_UNAVAILABLE_INFORMATION: the token does not report it."""


class _Structure(ctypes.Structure):
    if sys.platform == "win32":
        _pack_ = 1


class _Arguments(_Structure):
    """CK_C_INITIALIZE_ARGS (PKCS#11 v2.40, section 3.7)."""

    _fields_ = [("mutexes", ctypes.c_void_p * 4), ("flags", ctypes.c_ulong), ("reserved", ctypes.c_void_p)]


class _NssArguments(_Structure):
    """The same for NSS: its parameter string comes before `reserved`."""

    _fields_ = [
        ("mutexes", ctypes.c_void_p * 4),
        ("flags", ctypes.c_ulong),
        ("parameters", ctypes.c_char_p),
        ("reserved", ctypes.c_void_p),
    ]


class _TokenInfo(_Structure):
    """CK_TOKEN_INFO (PKCS#11 v2.40, section 3.2)."""

    _fields_ = [
        ("label_to_serial", ctypes.c_char * 96),
        ("flags_and_sessions", ctypes.c_ulong * 5),
        ("longest_pin", ctypes.c_ulong),
        ("shortest_pin", ctypes.c_ulong),
        ("public_memory", ctypes.c_ulong * 2),
        ("total_private_memory", ctypes.c_ulong),
        ("free_private_memory", ctypes.c_ulong),
        ("versions", ctypes.c_ubyte * 4),
        ("utc_time", ctypes.c_char * 16),
    ]


_Initialize = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p)
_GetTokenInfo = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p)
_InitToken = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


class _FunctionList(_Structure):
    """The head of CK_FUNCTION_LIST, in the standard's order (PKCS#11 v2.40, section 3.6)."""

    _fields_ = [
        ("version", ctypes.c_ubyte * 2),
        ("initialize", _Initialize),
        ("finalize", _Initialize),
        ("unused_2_to_5", ctypes.c_void_p * 4),
        ("token_info", _GetTokenInfo),
        ("unused_7_and_8", ctypes.c_void_p * 2),
        ("init_token", _InitToken),
    ]


class ReturnValueError(Exception):
    """A function of the module that python-pkcs11 does not call failed; `code` is its CK_RV."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function} gave CK_RV 0x{code:X}")
        self.code = code


class Module(_pkcs11.lib):
    """A loaded module. A process loads a module once at a time; `finalize` unloads it, and another may follow."""

    def __new__(cls, so: str, parameters: str = "") -> Module:
        return super().__new__(cls, so)  # type: ignore[call-arg]

    def __init__(self, so: str, parameters: str = "") -> None:
        self._parameters = parameters
        self._running = False
        super().__init__(so)

    def initialize(self) -> None:
        """Start the module; called by the base class, whose own would not request locking between threads.

        Raises:
            ReturnValueError: the module does not start.
        """
        if self._running:
            return
        head = ctypes.POINTER(_FunctionList)()
        # This may be the only exported symbol: NSS exports no other.
        self._library = ctypes.CDLL(self.so)
        _check("C_GetFunctionList", self._library.C_GetFunctionList(ctypes.byref(head)))
        self._functions = head.contents
        arguments = (
            _NssArguments(flags=_CKF_OS_LOCKING_OK, parameters=self._parameters.encode())
            if self._parameters
            else _Arguments(flags=_CKF_OS_LOCKING_OK)
        )
        _check("C_Initialize", self._functions.initialize(ctypes.addressof(arguments)))
        self._running = True

    def finalize(self) -> None:
        """End every session of this process with the module; twice does nothing. Raises ReturnValueError."""
        if self._running:
            self._running = False
            _check("C_Finalize", self._functions.finalize(None))

    def tokens(self) -> list[pkcs11.Token]:
        """The token in each slot that has one, initialised or not; `get_tokens` fails for others (kryoptic)."""
        found = []
        for slot in self.get_slots():
            with suppress(pkcs11.TokenNotPresent, pkcs11.TokenNotRecognised):
                found.append(slot.get_token())
        return found

    def init_token(self, slot_id: int, so_pin: str, label: str) -> None:
        """Initialise the token in `slot_id`: all its objects are destroyed. Raises ReturnValueError."""
        pin = so_pin.encode()
        _check("C_InitToken", self._functions.init_token(slot_id, pin, len(pin), label.encode().ljust(32)))

    def free_private_memory(self, slot_id: int) -> int | None:
        """Free bytes for private objects, None if the token does not report it. Raises ReturnValueError."""
        free: int = self._token_info(slot_id).free_private_memory
        return None if free == _UNAVAILABLE else free

    def pin_lengths(self, slot_id: int) -> tuple[int, int]:
        """Bytes of the shortest and the longest PIN that the token accepts; 1 and a huge number if it reports none.

        Raises:
            ReturnValueError: there is no such slot, or no token in it.
        """
        info = self._token_info(slot_id)
        shortest, longest = info.shortest_pin, info.longest_pin
        return (1 if shortest in (0, _UNAVAILABLE) else shortest), longest or _UNAVAILABLE

    def _token_info(self, slot_id: int) -> _TokenInfo:
        info = _TokenInfo()
        _check("C_GetTokenInfo", self._functions.token_info(slot_id, ctypes.addressof(info)))
        return info


def load_module(configuration: TokenAccess) -> Module:
    """The module that `configuration` names, loaded and started; `Module.finalize` ends it.

    Raises:
        TokenError: missing, not for this machine, not a PKCS#11 module, loaded already, or does not start.
    """
    path = configuration.module
    if not path.is_file():
        raise TokenError(f"There is no PKCS#11 module {path}: install the token's software, or correct the path.")
    try:
        # Some libraries read their variables while they are loaded, before any function is called.
        with _environment_set(configuration.environment):
            return Module(str(path), configuration.parameters)
    except ReturnValueError as error:
        raise TokenError(_start_fault(configuration, error.code)) from error
    except PKCS11Error as error:
        raise TokenError(_load_fault(path, str(error))) from error


def _load_fault(path: Path, text: str) -> str:
    if "C_GetFunctionList" in text:
        return f"{path} is a library, but no PKCS#11 module: name the PKCS#11 library of the token's maker."
    # glibc skips a library for another processor, and then reports that there is none of that name.
    if any(sign in text for sign in (f" {path}: cannot open", "wrong ELF class", "incompatible architecture")):
        return f"{path} is for another kind of machine: install the module for {platform.machine()}."
    return f"{path} cannot be loaded ({text.rpartition(f'{path}: ')[2]}): name a PKCS#11 library that is whole."


def _start_fault(configuration: TokenAccess, code: int) -> str:
    if code == _CKR_CRYPTOKI_ALREADY_INITIALIZED:
        return (
            f"The PKCS#11 module {configuration.module} is loaded in this process already:"
            " close the token that uses it first."
        )
    named = ", ".join(f"{name}={value}" for name, value in configuration.environment.items())
    given = f"its parameters {configuration.parameters}" if configuration.parameters else named
    hint = f"check {given} and what is named there" if given else "it may need parameters, as NSS does, or variables"
    return f"The PKCS#11 module {configuration.module} does not start (CK_RV 0x{code:X}): {hint}."


def _check(function: str, code: int) -> None:
    if code:
        raise ReturnValueError(function, code)


@contextmanager
def _environment_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables that the module reads while it is loaded and starts, restored afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
