"""`labconsole hsm ...`: the tokens there are, what each of them can do, and making one anew."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError
from rich.table import Table

from labconsole.cli.asking import enter, enter_openly, has_terminal, prompt
from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.cli.terminal import output
from labconsole.cli.token_report import all_needed_is_there, print_report
from labconsole.errors import UserError
from labconsole.profile_file import fault_sentence
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import LAB, TokenConfiguration, is_lab
from labconsole.security.token.errors import TokenError
from labconsole.security.token.inspection import inspect_token
from labconsole.security.token.lab_token import create_token, initialise_token, lab_so_pin
from labconsole.security.token.named_tokens import (
    find_configuration,
    forget_configuration,
    load_configurations,
    save_configuration,
)
from labconsole.shown_text import shown_lines


def doctor(arguments: argparse.Namespace) -> int:
    """Look at a token and try it; exit code 1 if it cannot be tried, or lacks what a key pool needs.

    Raises UserError: there is no such token, or its module cannot even be looked at.
    """
    name: str = arguments.name
    configuration = find_configuration(name)
    pin, no_pin = _pin(name, configuration)
    inspection = inspect_token(name, configuration, pin)
    if inspection.overview is None:
        raise TokenError(inspection.problem)
    print_report(inspection, output())
    if inspection.problem:
        print(shown_lines(f"labconsole: {inspection.problem} {no_pin}".rstrip()), file=sys.stderr)
    return FINISHED if all_needed_is_there(inspection) else FAILED


def tokens(arguments: argparse.Namespace) -> int:
    """List the tokens. Raises UserError: their file is faulty."""
    table = Table("Token", "Label", "Module", "Its PIN lies", box=None, pad_edge=False)
    table.add_row(LAB, "labconsole", "SoftHSM2", f"with the token, which is made on first use; so is {LAB}-2 ...")
    for name, configuration in load_configurations().items():
        table.add_row(name, configuration.label, str(configuration.module), configuration.pin.describe())
    output().print(table)
    return FINISHED


def add(arguments: argparse.Namespace) -> int:
    """Add a token configuration, or replace it. Raises UserError: a value is faulty, or cannot be written."""
    file: Path | None = arguments.passphrase_file
    said = {
        "module": arguments.module.absolute(),
        "label": arguments.label,
        "serial": arguments.serial,
        "parameters": arguments.parameters,
        "wrap_mechanisms": _numbers(arguments.name, arguments.wrap_mechanism),
        "environment": _variables(arguments.name, arguments.environment),
        "pin": {"keyring_entry": arguments.keyring_entry, "passphrase_file": file and file.absolute()},
    }
    try:
        configuration = TokenConfiguration.model_validate(said)
    except ValidationError as error:
        raise TokenError(
            f"The token {arguments.name} was not added: {fault_sentence(error, TokenConfiguration)}"
        ) from error
    save_configuration(arguments.name, configuration)
    output().print(f"labconsole hsm doctor {arguments.name} shows whether it works.")
    return FINISHED


def _variables(name: str, given: list[str]) -> dict[str, str]:
    """The variables of `--environment`. Raises TokenError: one of them is not KEY=VALUE."""
    wrong = next((text for text in given if "=" not in text.lstrip("=")), None)
    if wrong is not None:
        raise TokenError(f"The token {name} was not added: write --environment as KEY=VALUE, not {wrong!r}.")
    return dict(text.split("=", 1) for text in given)


def _numbers(name: str, given: list[str]) -> list[int]:
    """The numbers of `--wrap-mechanism`, hexadecimal or decimal. Raises TokenError: one of them is not a number."""
    try:
        return [int(text, 0) for text in given]
    except ValueError as error:
        raise TokenError(
            f"The token {name} was not added: write --wrap-mechanism as a number such as 0x1087 ({error})."
        ) from error


def remove(arguments: argparse.Namespace) -> int:
    """Remove a token configuration; the token itself stays as it is. Raises UserError: there is none of that name."""
    forget_configuration(arguments.name)
    output().print(f"{arguments.name} is removed; the token itself, and its PIN, stay as they are.")
    return FINISHED


def init(arguments: argparse.Namespace) -> int:
    """Initialise a token again, after its label was typed: every key in it is gone; with --new, an empty one.

    PINs are asked for, never arguments.

    Raises UserError: no terminal, another label, a wrong PIN of the security officer, or the token refuses.
    """
    name: str = arguments.name
    if not has_terminal():
        raise TokenError(f"To initialise the token {name}, its label and PINs are asked for: do it on a terminal.")
    configuration = find_configuration(name)
    if arguments.new and is_lab(name):
        raise TokenError(f"The token {name} is the console's own and is created on first use: leave out --new.")
    so_pin, pin = _lab_pins(name, configuration) if is_lab(name) else _new_pins(name)
    if arguments.new:
        create_token(name, configuration, so_pin, pin)
        output().print(f"The token {name} is initialised. Its PIN is expected {configuration.pin.describe()}.")
        return FINISHED
    print(f"Every key in the token {name} will be destroyed. To go on, type its label.", file=sys.stderr)
    initialise_token(name, configuration, enter_openly("Label: "), so_pin, pin)
    where = "" if is_lab(name) else f" Its new PIN is expected {configuration.pin.describe()}."
    output().print(f"The token {name} is empty now.{where}")
    return FINISHED


def _pin(name: str, configuration: TokenConfiguration) -> tuple[Secret | None, str]:
    """The PIN, or None and why it cannot be had. It is asked for if it lies nowhere; nobody knows a lab token's."""
    try:
        return configuration.pin_request(name).resolve(None if is_lab(name) else prompt), ""
    except UserError as error:
        return None, str(error)


def _lab_pins(name: str, configuration: TokenConfiguration) -> tuple[Secret, Secret]:
    """The PINs of a lab token, which nobody knows by heart: it keeps them. Raises UserError."""
    return lab_so_pin(name=name).resolve(f"the security officer of {name}"), configuration.pin_request(name).resolve()


def _new_pins(name: str) -> tuple[Secret, Secret]:
    """The security officer's PIN, and the new one of the user. Raises TokenError: it was typed in two ways."""
    so_pin = enter(f"PIN of the security officer of {name}: ")
    pin = enter(f"New PIN of {name}: ")
    if enter("The new PIN once more: ") != pin:
        raise TokenError(f"The token {name} was not initialised: the new PIN was typed in two ways.")
    return Secret(so_pin), Secret(pin)
