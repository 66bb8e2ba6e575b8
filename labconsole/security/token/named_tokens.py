"""Tokens by name: the entries of `tokens.toml` in the data directory, and the built-in ones (`lab`, `lab-2` ...)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout
from pydantic import ValidationError

from labconsole import paths
from labconsole.model.validation_faults import fault_sentence, nearest
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.configuration import LAB, TokenConfiguration, is_lab
from labconsole.security.token.errors import TokenError
from labconsole.security.token.lab_token import lab_token

_FORMAT = 1
_KEYS = ("format", "tokens")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LOCK_TIMEOUT_S = 10.0


def tokens_file(home: Path | None = None) -> Path:
    """The path of the file of token configurations (0600), which need not exist yet."""
    return paths.data_dir(home) / "tokens.toml"


def load_configurations(home: Path | None = None) -> dict[str, TokenConfiguration]:
    """All configurations in the file by name; without the built-in tokens.

    Raises:
        TokenError: not TOML, another format, an unknown key (with the nearest right one), a bad name or value.
        UserError: the file cannot be read, or others can read it.
    """
    file = tokens_file(home)
    if not file.exists():
        return {}
    return {name: _configuration(file, name, table) for name, table in _tables(file).items()}


def save_configuration(name: str, configuration: TokenConfiguration, home: Path | None = None) -> None:
    """Add the token `name`, or replace it. The file is written again, completely or not at all, without its comments.

    Raises:
        TokenError: `name` is a lab token's or not a name, or the existing file is faulty or cannot be written.
        UserError: as `load_configurations`.
    """
    check_new_name(f"The token {name} was not added", name)
    with _changing(home) as configurations:
        configurations[name] = configuration


def pin_requests(*names: str) -> tuple[SecretRequest, ...]:
    """The PINs of these tokens that an operator is asked for: none of the lab tokens, which are random.

    Raises:
        TokenError, UserError: as `find_configuration`.
    """
    return tuple(find_configuration(name).pin_request(name) for name in names if not is_lab(name))


def forget_configuration(name: str, home: Path | None = None) -> None:
    """Remove the token `name` from the file; the token itself, and a PIN in the keyring, stay as they are.

    Raises:
        TokenError: there is none of that name (with the nearest), or as `save_configuration`.
        UserError: as `load_configurations`.
    """
    if is_lab(name):
        raise TokenError(f"The token {name} is built-in and has no entry: name another one.")
    with _changing(home) as configurations:
        if name not in configurations:
            raise TokenError(_unknown(name, configurations))
        del configurations[name]


def find_configuration(name: str, home: Path | None = None) -> TokenConfiguration:
    """The configuration of the token `name`; a missing lab token is created. Never prompts.

    Raises:
        TokenError: there is none of that name (with the nearest), or a lab token cannot be created.
        UserError: as `load_configurations`.
    """
    if is_lab(name):
        return lab_token(home, name)
    configurations = load_configurations(home)
    if name not in configurations:
        raise TokenError(_unknown(name, configurations))
    return configurations[name]


def check_new_name(what: str, name: str) -> None:
    """Raises TokenError, whose sentence begins with `what`: `name` is a lab token's, or not a name."""
    if is_lab(name):
        raise TokenError(f"{what}: {name} is a built-in token; choose another name.")
    if _NAME.fullmatch(name) is None:
        raise TokenError(f"{what}: a name is made of letters, digits, - and _, and begins with a letter or digit.")


@contextmanager
def _changing(home: Path | None) -> Iterator[dict[str, TokenConfiguration]]:
    """The configurations, to be changed in the block; written when it ends without an error."""
    file = tokens_file(home)
    try:
        with FileLock(file.with_name(f".{file.name}.lock"), timeout=_LOCK_TIMEOUT_S, mode=0o600):
            configurations = load_configurations(home)
            yield configurations
            tables = {
                name: configuration.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
                for name, configuration in sorted(configurations.items())
            }
            write_private(file, tomli_w.dumps({"format": _FORMAT, "tokens": tables}).encode())
    except Timeout as error:
        raise TokenError(
            f"Another process has been changing {file} for {_LOCK_TIMEOUT_S:.0f} s: end it, then try again."
        ) from error
    except OSError as error:
        raise TokenError(f"{file} cannot be written: {error.strerror or error}.") from error


def _tables(file: Path) -> Mapping[str, Any]:
    try:
        data = tomllib.loads(read_private(file, "file of tokens").decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TokenError(f"The file of tokens {file} is not valid TOML: {error}.") from error
    if data.get("format") != _FORMAT:
        found = data.get("format", "none")
        raise TokenError(f"The file of tokens {file} has format {found}; this console reads `format = {_FORMAT}`.")
    _check_keys(str(file), data, _KEYS)
    tables = data.get("tokens", {})
    if not isinstance(tables, dict):
        raise TokenError(f"{file}: tokens must be tables, as in [tokens.office].")
    return tables


def _configuration(file: Path, name: str, table: Any) -> TokenConfiguration:
    where = f"{file}: token {name}"
    check_new_name(where, name)
    if not isinstance(table, dict):
        raise TokenError(f"{where}: it must be a table, as in [tokens.{name}].")
    # Before the model validates: it would report the right key as missing, not the misspelt one.
    _check_keys(where, table, TokenConfiguration.model_fields)
    try:
        return TokenConfiguration.model_validate(table)
    except ValidationError as error:
        raise TokenError(f"{where}: {fault_sentence(error, TokenConfiguration)}") from error


def _check_keys(where: str, table: Iterable[str], known: Collection[str]) -> None:
    for key in table:
        if key not in known:
            raise TokenError(f"{where}: there is no key {key}{nearest(key, known)}")


def _unknown(name: str, configurations: Mapping[str, TokenConfiguration]) -> str:
    return f"No token is called {name}{nearest(name, (LAB, *configurations))}"
