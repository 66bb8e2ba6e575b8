"""Checks of python-qpid-proton for the doctor: whether it loads, and whether it was built with TLS."""

from __future__ import annotations

import ctypes
import importlib
import sys
from importlib.metadata import version

from labconsole.doctor import Check

PURPOSE = "AMQP Tests 2 to 4 (TLS with client certificates)"
REBUILD = (
    "install the OpenSSL headers (Debian: libssl-dev pkg-config build-essential python3-dev), then: "
    "pip install --force-reinstall --no-cache-dir --no-binary python-qpid-proton python-qpid-proton"
)


def checks() -> list[Check]:
    """Check that python-qpid-proton loads, and that it was built with TLS."""
    try:
        extension = importlib.import_module("cproton_ffi").__file__
        from proton import SSL
    except (ImportError, OSError) as error:
        return [Check("python-qpid-proton", False, f"does not load: {error}", "every AMQP trial", REBUILD)]
    found = f"{version('python-qpid-proton')}, "
    if not SSL.present():
        return [Check("python-qpid-proton", False, found + "built without TLS", PURPOSE, REBUILD)]
    return [Check("python-qpid-proton", True, found + f"TLS by {linked_tls(str(extension))}", PURPOSE, "")]


def linked_tls(extension: str) -> str:
    """The TLS library that the extension module at path `extension` links, by its own name and version."""
    if sys.platform == "win32":
        return "Windows (Schannel)"
    name_of = getattr(ctypes.CDLL(extension), "OpenSSL_version", None)  # found through what the extension links
    if name_of is None:
        return "a library that does not name itself"
    name_of.restype = ctypes.c_char_p
    text: bytes = name_of(0)
    return text.decode()
