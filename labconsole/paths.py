"""Paths of the user's data (runs, profiles, identities) and of the files that come with the console.

The user's data is in the platform's directory for application data. `LABCONSOLE_HOME` names another one, and so does
the `home` argument, which wins. Every directory that is created here is private to its owner (0700), because identities
are stored in it.

Profiles, resources and documentation are at the root of a checkout (an editable installation) and in `labconsole/_data`
of a wheel.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import platformdirs

HOME_VARIABLE = "LABCONSOLE_HOME"
_PACKAGE = Path(__file__).resolve().parent


def data_dir(home: Path | None = None) -> Path:
    """Return the directory of the user's data, created if it is missing.

    Raises:
        OSError: the directory cannot be created.
    """
    named = home or os.environ.get(HOME_VARIABLE)
    chosen = Path(named).expanduser() if named else platformdirs.user_data_path("labconsole", appauthor=False)
    return _private_directory(chosen.absolute())


def database_path() -> Path:
    """Return the path of the default run database, which need not exist yet."""
    return data_dir() / "runs.db"


def tokens_dir(home: Path | None = None) -> Path:
    """Return the directory of the built-in PKCS#11 tokens, created if it is missing."""
    return _private_directory(data_dir(home) / "tokens")


def key_stores_dir(home: Path | None = None) -> Path:
    """Return the directory of wrapped private keys, created if it is missing."""
    return _private_directory(data_dir(home) / "key-stores")


def pki_dir() -> Path:
    """Return the directory of the certificate database and its private keys, created if it is missing."""
    return _private_directory(data_dir() / "pki")


def hosts_dir() -> Path:
    """Return the directory in which scheduler and agent work, created if it is missing."""
    return _private_directory(data_dir() / "hosts")


def agreements_dir() -> Path:
    """Return the directory of agreements with other owners' consoles, created if it is missing."""
    return _private_directory(data_dir() / "agreements")


def profiles_dir() -> Path:
    """Return the directory of the profiles that come with the console.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    return _shipped("profiles")


def resource(*parts: str) -> Path:
    """Return the path of a file or directory under `resources/`, as in `resource("payloads", "fpl.txt")`.

    Raises:
        FileNotFoundError: there is no such resource.
    """
    return _shipped("resources", *parts)


def documentation_dir() -> Path:
    """Return the directory of the documentation (Markdown).

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    return _shipped("docs")


@functools.cache
def _shipped(*parts: str) -> Path:
    # A window asks 60 times: 20 ms of its start went into looking at the disk.
    in_wheel = _PACKAGE / "_data"
    path = (in_wheel if in_wheel.is_dir() else _PACKAGE.parent).joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: the installation is incomplete, install the console again")
    return path


def _private_directory(path: Path) -> Path:
    """Create `path` with mode 0700 unless it exists: the mode of an existing directory is its owner's choice."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    return path
