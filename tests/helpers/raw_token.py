"""Signs with a token by bare calls of its module: what the token layer's own time is measured against."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


class _Mechanism(ctypes.Structure):
    """CK_MECHANISM (PKCS#11 v2.40, 3.5), which is packed on Windows only."""

    if sys.platform == "win32":
        _pack_ = 1
    _fields_ = [("mechanism", ctypes.c_ulong), ("parameter", ctypes.c_void_p), ("length", ctypes.c_ulong)]


class RawSigner:
    """C_SignInit and C_Sign in the session of handle `session`, by the mechanism of that number."""

    def __init__(self, module: Path, session: int, mechanism: int) -> None:
        library = ctypes.CDLL(str(module))
        self._init = library.C_SignInit
        self._init.argtypes = (ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong)
        self._sign = library.C_Sign
        self._sign.argtypes = (
            ctypes.c_ulong,
            ctypes.c_char_p,
            ctypes.c_ulong,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_ulong),
        )
        self._session = session
        self._mechanism = _Mechanism(mechanism)
        self._signature = ctypes.create_string_buffer(512)

    def sign(self, key: int, data: bytes) -> bytes:
        """The signature by the key of handle `key`. Raises RuntimeError with the module's CK_RV."""
        length = ctypes.c_ulong(512)
        code = self._init(self._session, ctypes.byref(self._mechanism), key) or self._sign(
            self._session, data, len(data), self._signature, ctypes.byref(length)
        )
        if code:
            raise RuntimeError(f"C_Sign: 0x{code:X}")
        return self._signature.raw[: length.value]
