"""SoftHSM2: where its library is installed, and the configuration file of a token directory of the console."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from labconsole.security.private_files import write_private
from labconsole.security.token.errors import TokenError

PLACES = (
    "/usr/lib/softhsm",
    "/usr/lib64/softhsm",
    "/usr/lib64/pkcs11",
    "/usr/local/lib/softhsm",
    "/opt/homebrew/lib/softhsm",
    "C:/SoftHSM2/lib",
)
NAMES = ("libsofthsm2.so", "softhsm2-x64.dll")
CONFIGURATION_FILE = "softhsm2.conf"

_OBJECTS = "objects"
_VARIABLE = "SOFTHSM2_CONF"
_OPENING_LOCK = ".opening.lock"
_LOCK_TIMEOUT_S = 60.0
_NOT_IN_A_PATH = "#=\r\n"
"""Characters with a meaning in SoftHSM2's configuration: a line ends at #, its value at a second =."""


def library() -> Path | None:
    """The path of SoftHSM2's PKCS#11 library, or None."""
    places = [*map(Path, PLACES), *Path("/usr/lib").glob("*/softhsm")]
    candidates = (place / name for place in places for name in NAMES)
    return next((path for path in candidates if path.is_file()), None)


def write_configuration(directory: Path) -> Path:
    """The configuration file (0600) that makes `directory` a token directory, wherever that was moved to.

    Raises:
        TokenError: SoftHSM2 could not read the path.
        OSError: the file or the directory of the objects cannot be made.
    """
    objects = directory.absolute() / _OBJECTS
    if set(_NOT_IN_A_PATH) & set(str(objects)):
        raise TokenError(
            f"SoftHSM2 cannot keep a token in {directory}: its configuration takes no '#', '=' or line break in a path;"
            " choose another directory."
        )
    objects.mkdir(mode=0o700, exist_ok=True)
    lines = (
        f"directories.tokendir = {objects}",
        "objectstore.backend = file",
        "log.level = ERROR",
        "slots.removable = false",
    )
    text = "".join(f"{line}\n" for line in lines).encode()
    file = directory.absolute() / CONFIGURATION_FILE
    if not file.is_file() or file.read_bytes() != text:
        write_private(file, text)
    return file


def contains_token(directory: Path) -> bool:
    """Whether the token directory contains a token."""
    return any((directory / _OBJECTS).glob("*/token.object"))


def environment(configuration_file: Path) -> dict[str, str]:
    """The environment variables that SoftHSM2 reads when it starts."""
    return {_VARIABLE: str(configuration_file)}


@contextmanager
def opened_exclusively(variables: Mapping[str, str]) -> Iterator[None]:
    """Lock for one process at a time, if `variables` name a SoftHSM2 configuration of the console.

    A login writes the token's file; a module that starts meanwhile would read half of it, and find no token.

    Raises:
        TokenError: another process has the lock for a minute.
    """
    directory = Path(variables[_VARIABLE]).parent if _VARIABLE in variables else None
    if directory is None or not os.access(directory, os.W_OK):
        yield
        return
    lock = FileLock(directory / _OPENING_LOCK, timeout=_LOCK_TIMEOUT_S, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        raise TokenError(
            f"Another process has been opening the token in {directory} for {_LOCK_TIMEOUT_S:.0f} s: end it, then try "
            "again."
        ) from error
    try:
        yield
    finally:
        lock.release()
