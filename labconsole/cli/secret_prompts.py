"""Asks on the terminal for the secrets that a campaign needs and that neither keyring nor file gives."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from getpass import getpass

from labconsole.model.plugin import Plugins
from labconsole.profiles.needed_secrets import needed_secrets
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole.store.records import NewCampaign


def ask_secrets(campaign: NewCampaign, plugins: Plugins) -> dict[str, Secret]:
    """The secrets that the operator entered, by key; empty without a terminal: the run then reports what is missing.

    Raises UserError as `needed_secrets`, and KeyboardInterrupt.
    """
    return ask(needed_secrets(campaign.scenarios, plugins)) if has_terminal() else {}


def ask(requests: Iterable[SecretRequest]) -> dict[str, Secret]:
    """The secrets that the operator entered, by key, of those that are stored nowhere; empty without a terminal.

    Raises KeyboardInterrupt.
    """
    asked = missing_secrets(requests) if has_terminal() else ()
    entered = {request.key: enter(f"Passphrase for {request.purpose}: ") for request in asked}
    return {key: Secret(text) for key, text in entered.items() if text}


def prompt(purpose: str) -> Secret | None:
    """`labconsole.security.secrets.Prompt` on the terminal; nothing without one. Raises KeyboardInterrupt."""
    text = enter(f"Passphrase for {purpose}: ") if has_terminal() else ""
    return Secret(text) if text else None


def has_terminal() -> bool:
    """Whether there is a terminal to ask on."""
    return sys.stdin is not None and sys.stdin.isatty()


def enter(question: str) -> str:
    """The text that the operator types, hidden; empty at the end of input. Raises KeyboardInterrupt."""
    try:
        return getpass(question)
    except EOFError:
        return ""


def prompt_visible(question: str) -> str:
    """The text that the operator types, visible; empty at the end of input. Raises KeyboardInterrupt."""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().rstrip("\n")
