"""The OS keyring, read by a process of its own, so that a locked keyring can neither hang nor prompt for ever.

Run as a module it is that process: `python -m labconsole.security.os_keyring get|set ENTRY`; a secret travels over
stdin and stdout only. Backends that store nothing (null, fail) or that `keyring` does not recommend are not used.
"""

from __future__ import annotations

import os
import subprocess
import sys

from labconsole.processes import own_program

SERVICE = "labconsole"
"""The service name of all entries; `keyring set labconsole ENTRY` stores a secret by hand."""

_TIMEOUT_S = 10.0
_BACKEND_VARIABLE = "PYTHON_KEYRING_BACKEND"
_NO_BACKENDS = ("keyring.backends.null.Keyring", "keyring.backends.fail.Keyring")
"""Values of that variable by which `keyring` is switched off (its documentation, "Disabling Keyring")."""
_FOUND, _NO_ENTRY, _NO_KEYRING = 0, 3, 4
_RECOMMENDED = 1  # the lowest priority of a backend that `keyring` recommends


def read(entry: str, timeout_s: float = _TIMEOUT_S) -> str | None:
    """The secret stored as `entry`, or None if there is none, no usable keyring, or no answer in `timeout_s`."""
    return _ask("get", entry, "", timeout_s)


def store(entry: str, secret: str, timeout_s: float = _TIMEOUT_S) -> bool:
    """Store `secret` as `entry`; True if it can be read back, False if there is no usable keyring."""
    return _ask("set", entry, secret, timeout_s) == secret


def _ask(command: str, entry: str, secret: str, timeout_s: float) -> str | None:
    if os.environ.get(_BACKEND_VARIABLE) in _NO_BACKENDS:
        return None  # without the 0.25 s that a process takes to say so
    arguments = own_program(__name__, command, entry)
    try:
        answer = subprocess.run(
            arguments,
            input=secret,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout_s,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired:
        return None
    return answer.stdout if answer.returncode == _FOUND else None


def _main(command: str, entry: str) -> int:
    import keyring
    from keyring.errors import KeyringError

    try:
        backend = keyring.get_keyring()
        if backend.priority < _RECOMMENDED:
            return _NO_KEYRING
        if command == "set":
            backend.set_password(SERVICE, entry, sys.stdin.read())
        secret = backend.get_password(SERVICE, entry)
    except (KeyringError, RuntimeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return _NO_KEYRING
    if secret is None:
        return _NO_ENTRY
    sys.stdout.write(secret)
    return _FOUND


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
