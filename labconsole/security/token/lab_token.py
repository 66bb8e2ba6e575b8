"""The built-in tokens on SoftHSM2 in the user's data directory, with random PINs: created on first use.

`lab` is the default; `lab-2` to `lab-99` represent further devices.

A token is created in a directory of another name and gets its own by one rename, under a lock: two processes create
one token, and one killed in the middle leaves nothing that is used. A damaged token is reported and never replaced, as
it contains keys.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from labconsole import paths
from labconsole.errors import UserError
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret, SecretSource, keep_secret
from labconsole.security.token import module_process, softhsm
from labconsole.security.token.configuration import LAB, TokenConfiguration, is_lab
from labconsole.security.token.errors import TokenError

_LABEL = "labconsole"
_PROGRAM = "labconsole.security.token.cryptoki.initialisation_process"
_SOURCES_FILE = "secret-source.json"
_LOCK_TIMEOUT_S = 60.0
_INITIALISING_TIMEOUT_S = 30.0


class _Sources(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    pin: SecretSource
    so_pin: SecretSource


def lab_token(home: Path | None = None, name: str = LAB) -> TokenConfiguration:
    """The configuration of a lab token; the token is created on first use (half a second). Never prompts.

    Loads no module into this process.

    Raises:
        TokenError: SoftHSM2 is not there, the token cannot be created or is damaged, or another process does not finish
            creating it. ValueError: `name` is not that of a lab token.
    """
    directory = _made(home, name)
    return _configuration(directory, _label(name), _sources(directory).pin)


def lab_so_pin(home: Path | None = None, name: str = LAB) -> SecretSource:
    """Where the random PIN of a lab token's security officer is stored. Raises as `lab_token`."""
    return _sources(_made(home, name)).so_pin


def make_softhsm_token(directory: Path, label: str, pin: Secret, so_pin: Secret) -> TokenConfiguration:
    """The configuration, without a source of the PIN, of a new token in a directory of its own.

    Raises:
        TokenError: SoftHSM2 is not there, or refuses; the label is too long; the PIN has under 4 or over 255 bytes.
        OSError: the directory cannot be created.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    softhsm.write_configuration(directory)
    configuration = _configuration(directory, label, SecretSource())
    _initialise(label, configuration, True, so_pin, pin)
    return configuration


def initialise_token(
    name: str, configuration: TokenConfiguration, typed_label: str, so_pin: Secret, pin: Secret
) -> None:
    """Initialise the token called `name`: all keys in it are destroyed. `pin` is its new user PIN.

    Raises:
        TokenError: `typed_label` is not the token's label, the token is missing or in use, or it refuses: the security
            officer's PIN is wrong (it is tried once), the new PIN too short.
    """
    if typed_label != configuration.label:
        raise TokenError(
            f"The token {name} was not initialised: to destroy every key in it, type its label {configuration.label}"
            f" (typed was {typed_label!r})."
        )
    _initialise(name, configuration, False, so_pin, pin)


def create_token(name: str, configuration: TokenConfiguration, so_pin: Secret, pin: Secret) -> None:
    """Initialise the module's first empty token, with its label and both PINs: no key is lost.

    Raises:
        TokenError: no token of the module is empty, a PIN has a wrong length, or it refuses.
    """
    _initialise(name, configuration, True, so_pin, pin)


def _initialise(name: str, configuration: TokenConfiguration, new: bool, so_pin: Secret, pin: Secret) -> None:
    question = {
        "name": name,
        "configuration": configuration.model_dump(mode="json"),
        "new": new,
        "so_pin": so_pin.reveal(),
        "pin": pin.reveal(),
    }
    module_process.ask(_PROGRAM, question, _INITIALISING_TIMEOUT_S, f"The PKCS#11 module {configuration.module}")


def _label(name: str) -> str:
    """`labconsole` of the token `lab`, `labconsole-2` of `lab-2`."""
    return _LABEL + name.removeprefix(LAB)


def _made(home: Path | None, name: str) -> Path:
    """The directory of a lab token, created if missing; its configuration file names where it is now."""
    if not is_lab(name):
        raise ValueError(f"{name} is not a name of a lab token")
    try:
        parent = paths.tokens_dir(home)
        with FileLock(parent / ".lock", timeout=_LOCK_TIMEOUT_S, mode=0o600):
            directory = parent / name
            if not directory.is_dir():
                _make(directory)
            elif not softhsm.contains_token(directory):
                raise TokenError(_damage(directory, "its objects are gone"))
            softhsm.write_configuration(directory)
            return directory
    except Timeout as error:
        raise TokenError(
            f"Another process has been creating the token {name} in {parent} for {_LOCK_TIMEOUT_S:.0f} s: end it."
        ) from error
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}" if error.filename else error
        raise TokenError(f"The token {name} cannot be created ({reason}): check the data directory.") from error


def _make(directory: Path) -> None:
    """Create a lab token; the caller has the lock. Raises OSError, TokenError."""
    for left_over in directory.parent.glob(".making-*"):
        shutil.rmtree(left_over)
    tag = secrets.token_hex(4)
    making = directory.with_name(f".making-{tag}")
    pin, so_pin = (Secret(secrets.token_urlsafe(24)) for _ in range(2))
    make_softhsm_token(making, _label(directory.name), pin, so_pin)
    sources = _Sources(
        pin=keep_secret(making, "pin", pin, f"token-{tag}"),
        so_pin=keep_secret(making, "so-pin", so_pin, f"token-{tag}-so"),
    )
    write_private(making / _SOURCES_FILE, sources.model_dump_json().encode())
    making.rename(directory)


def _sources(directory: Path) -> _Sources:
    """The sources of the token's PINs; a file with one is in the token's directory, wherever that was moved to."""
    try:
        sources = _Sources.model_validate_json(read_private(directory / _SOURCES_FILE, "reference to the PINs"))
    except ValidationError as error:
        raise TokenError(_damage(directory, f"{_SOURCES_FILE} is not whole")) from error
    except UserError as error:
        raise TokenError(_damage(directory, str(error).rstrip("."))) from error
    return _Sources(pin=sources.pin.relative_to(directory), so_pin=sources.so_pin.relative_to(directory))


def _damage(directory: Path, what: str) -> str:
    return (
        f"The token {directory.name} is damaged ({what}): bring {directory} back from a backup, or move it away;"
        " then a new token is created, and the keys in this one are lost."
    )


def _configuration(directory: Path, label: str, pin: SecretSource) -> TokenConfiguration:
    library = softhsm.library()
    if library is None:
        raise TokenError("SoftHSM2 is not there: install it (Debian: softhsm2, Homebrew: softhsm).")
    try:
        return TokenConfiguration(
            module=library,
            label=label,
            pin=pin,
            environment=softhsm.environment(directory.absolute() / softhsm.CONFIGURATION_FILE),
        )
    except ValidationError as error:
        raise TokenError(f"SoftHSM2 cannot create the token {label!r}: {error.errors()[0]['msg']}.") from error
