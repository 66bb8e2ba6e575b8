"""Checks of this machine without a window: what the console needs, what for, and the remedy where it is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import ssl
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from cryptography.hazmat.backends.openssl import backend

from labconsole import paths, qt_libraries, script_fonts
from labconsole.security.token import softhsm as softhsm2

OLDEST_PYTHON = (3, 11)
WAL_RESET_FIXED = (3, 51, 3)
LEAST_SPACE = 1_000_000_000  # bytes


@dataclass(frozen=True)
class Check:
    """The result of one check; `remedy` is empty where there is nothing to do."""

    name: str
    ok: bool
    found: str
    needed_for: str
    remedy: str


def checks() -> list[Check]:
    """The checks of all that the core and the window need; plugins add theirs through their manifest."""
    security = [openssl(), cryptography_openssl(), pkcs11_package(), softhsm()]
    done = [python(), sqlite(), *security, tshark(), qt(), display(), data()]
    return done if sys.platform != "linux" else [*done, qt_system_libraries(), fonts()]


def python() -> Check:
    """Check the Python that runs the console."""
    needed = ".".join(map(str, OLDEST_PYTHON))
    ok = sys.version_info >= OLDEST_PYTHON
    found = f"{platform.python_version()} ({sys.executable})"
    return Check("Python", ok, found, "everything", "" if ok else f"install Python {needed} or newer")


def sqlite() -> Check:
    """Check SQLite; before 3.51.3 a WAL that two connections reset at once could lose a commit."""
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < WAL_RESET_FIXED:
        found += " (has the WAL-reset bug fixed in 3.51.3; the console's checkpointing under a lock avoids it)"
    ok = sqlite3.threadsafety > 0
    remedy = "" if ok else "use a Python whose SQLite was built for threads"
    return Check("SQLite", ok, found, "the run database", remedy)


def openssl() -> Check:
    """Check the OpenSSL of Python's own ssl module."""
    ok = ssl.HAS_TLSv1_2 and ssl.HAS_TLSv1_3
    remedy = "" if ok else "use a Python that is linked with OpenSSL 1.1.1 or newer"
    return Check("OpenSSL (Python)", ok, ssl.OPENSSL_VERSION, "TLS 1.2 and 1.3 between hosts", remedy)


def cryptography_openssl() -> Check:
    """Check the OpenSSL that the cryptography package brings along."""
    found = f"{backend.openssl_version_text()}, cryptography {version('cryptography')}"
    return Check("OpenSSL (cryptography)", True, found, "signing, encryption and certificates", "")


def softhsm() -> Check:
    """Check for the library of SoftHSM2, the software token."""
    library = softhsm2.library()
    remedy = "" if library else "install SoftHSM2 (Debian: softhsm2, Homebrew: softhsm)"
    return Check("SoftHSM2", library is not None, str(library or "not found"), "HSM trials on a software token", remedy)


def pkcs11_package() -> Check:
    """Check for the package that speaks to PKCS#11 modules, without importing it."""
    name = "python-pkcs11"
    found = _version(name)
    remedy = "" if found else f"install the console again: {name} belongs to it"
    return Check("PKCS#11", found is not None, f"{name} {found or 'not found'}", "keys in tokens", remedy)


def tshark() -> Check:
    """Check for Wireshark's analyser on the command line."""
    path = shutil.which("tshark")
    remedy = "" if path else "install tshark (Debian: tshark, Homebrew: wireshark)"
    return Check("tshark", path is not None, path or "not found", "a second reader of captured messages", remedy)


def qt() -> Check:
    """Check for the Python packages of the window, without importing Qt."""
    packages = ("PySide6-Essentials", "pyqtgraph")
    found = {package: _version(package) for package in packages}
    missing = [package for package, known in found.items() if known is None]
    text = ", ".join(f"{package} {known or 'not found'}" for package, known in found.items())
    remedy = "" if not missing else "install the console with its extra `gui`"
    return Check("Qt", not missing, text, "the window", remedy)


def qt_system_libraries() -> Check:
    """Check for the libraries that Qt's Linux plugins link; without one of them Qt aborts the process."""
    missing = qt_libraries.missing()
    packages = " ".join(sorted(qt_libraries.PACKAGES[name] for name in missing))
    found = f"missing: {', '.join(missing)}" if missing else f"all {len(qt_libraries.PACKAGES)} found"
    return Check("Qt's libraries", not missing, found, "the window", f"install {packages}" if missing else "")


def fonts() -> Check:
    """Check for fonts of the scripts that the console's own font lacks."""
    missing = script_fonts.missing()
    packages = " ".join(script_fonts.SCRIPTS[script][1] for script in missing)
    found = f"none for {'; '.join(missing)}" if missing else f"for {'; '.join(script_fonts.SCRIPTS)}"
    return Check("fonts", not missing, found, "names in all scripts", f"install {packages}" if missing else "")


def display() -> Check:
    """Check for a display server; macOS and Windows always have one."""
    if sys.platform != "linux":
        return Check("display", True, platform.system(), "the window", "")
    names = [name for name in ("WAYLAND_DISPLAY", "DISPLAY") if os.environ.get(name)]
    found = (
        ", ".join(f"{name}={os.environ[name]}" for name in names) or "none: neither DISPLAY nor WAYLAND_DISPLAY is set"
    )
    remedy = "" if names else "work on the command line, or start the console in a desktop session"
    return Check("display", bool(names), found, "the window", remedy)


def data() -> Check:
    """Check that the data directory can be written and has room."""
    purpose = "runs, spools and identities"
    try:
        directory = paths.data_dir()
        free = shutil.disk_usage(directory).free
    except OSError as error:
        remedy = f"correct that, or name another directory in {paths.HOME_VARIABLE}"
        return Check("data directory", False, str(error), purpose, remedy)
    if not os.access(directory, os.W_OK | os.X_OK):
        remedy = f"make it writable, or name another directory in {paths.HOME_VARIABLE}"
        return Check("data directory", False, f"{directory} cannot be written", purpose, remedy)
    found = f"{directory}, {free / 1e9:.1f} GB free"
    enough = free >= LEAST_SPACE
    remedy = "" if enough else f"free {LEAST_SPACE / 1e9:.0f} GB: a run that finds the disk full fails"
    return Check("data directory", enough, found, purpose, remedy)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
