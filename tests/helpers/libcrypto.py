"""The OpenSSL that a PKCS#11 module is linked with: what the module's own figures are measured against."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_EVP_PKEY_RSA = 6
_Bytes = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_int)
_Status = ctypes.CFUNCTYPE(ctypes.c_int)


class _RandomMethod(ctypes.Structure):
    """RAND_METHOD (openssl/rand.h)."""

    _fields_ = [
        ("seed", ctypes.c_void_p),
        ("bytes", _Bytes),
        ("cleanup", ctypes.c_void_p),
        ("add", ctypes.c_void_p),
        ("pseudorand", _Bytes),
        ("status", _Status),
    ]


class LibCrypto:
    """libcrypto 3 as `module` finds it, through its own dependencies. Raises AttributeError where it has none."""

    def __init__(self, module: Path) -> None:
        self._library = ctypes.CDLL(str(module))
        text = self._library.OpenSSL_version
        text.restype = ctypes.c_char_p
        self.version: str = text(0).decode()
        for name in ("EVP_PKEY_Q_keygen", "d2i_PrivateKey", "EVP_MD_CTX_new", "EVP_sha256"):
            getattr(self._library, name).restype = ctypes.c_void_p
        self._sha256 = ctypes.c_void_p(self._library.EVP_sha256())

    def generate(self, bits: int) -> ctypes.c_void_p:
        """An RSA key (EVP_PKEY), to be given to `free`."""
        kind, length = b"RSA", ctypes.c_size_t(bits)
        return self._made(self._library.EVP_PKEY_Q_keygen(None, None, kind, length), "EVP_PKEY_Q_keygen")

    def load(self, der: bytes) -> ctypes.c_void_p:
        """The RSA key (EVP_PKEY) of a PKCS #1 or PKCS #8 encoding, to be given to `free`."""
        start = ctypes.c_char_p(der)
        key = self._library.d2i_PrivateKey(_EVP_PKEY_RSA, None, ctypes.byref(start), ctypes.c_long(len(der)))
        return self._made(key, "d2i_PrivateKey")

    def free(self, key: ctypes.c_void_p) -> None:
        """End of a key."""
        self._library.EVP_PKEY_free(key)

    def private_der(self, key: ctypes.c_void_p) -> bytes:
        """The private key, as `load` takes it."""
        return self._encoded("i2d_PrivateKey", key)

    def public_der(self, key: ctypes.c_void_p) -> bytes:
        """The public key in PKCS #1, which holds the modulus."""
        return self._encoded("i2d_PublicKey", key)

    def sign(self, key: ctypes.c_void_p, data: bytes) -> bytes:
        """RSA PKCS #1 v1.5 with SHA-256."""
        context = ctypes.c_void_p(self._library.EVP_MD_CTX_new())
        signature, length = ctypes.create_string_buffer(1024), ctypes.c_size_t(1024)
        done = self._library.EVP_DigestSignInit(context, None, self._sha256, None, key) == 1 and (
            self._library.EVP_DigestSign(context, signature, ctypes.byref(length), data, ctypes.c_size_t(len(data)))
            == 1
        )
        self._library.EVP_MD_CTX_free(context)
        if not done:
            raise RuntimeError("EVP_DigestSign failed")
        return signature.raw[: length.value]

    @contextmanager
    def repeated_random(self) -> Iterator[SeededRandom]:
        """libcrypto takes its random numbers from a stream that can be restarted: no key generated so is secret."""
        stream = SeededRandom()
        fill = _Bytes(stream.fill)
        method = _RandomMethod(None, fill, None, None, fill, _Status(lambda: 1))
        if self._library.RAND_set_rand_method(ctypes.byref(method)) != 1:
            raise RuntimeError("RAND_set_rand_method failed")
        try:
            yield stream
        finally:
            self._library.RAND_set_rand_method(None)

    def _encoded(self, function: str, key: ctypes.c_void_p) -> bytes:
        end = ctypes.create_string_buffer(8192)
        start = ctypes.c_void_p(ctypes.addressof(end))
        length: int = getattr(self._library, function)(key, ctypes.byref(start))
        if not 0 < length <= len(end):
            raise RuntimeError(f"{function} failed")
        return end.raw[:length]

    @staticmethod
    def _made(key: int | None, function: str) -> ctypes.c_void_p:
        if not key:
            raise RuntimeError(f"{function} failed")
        return ctypes.c_void_p(key)


class SeededRandom:
    """SHAKE-128 of a seed and the number of the call."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, seed: int) -> None:
        """The stream of `seed`, from its beginning."""
        self._seed = seed.to_bytes(8, "big")
        self._calls = 0

    def fill(self, target: object, length: int) -> int:
        """RAND_METHOD.bytes: the next `length` bytes to `target`; 1 for success."""
        self._calls += 1
        drawn = hashlib.shake_128(self._seed + self._calls.to_bytes(8, "big")).digest(length)
        ctypes.memmove(target, drawn, length)  # type: ignore[arg-type]
        return 1
