"""Asks on the terminal for the secrets that a campaign needs and that neither keyring nor file gives."""

from __future__ import annotations

import sys
from getpass import getpass

from labconsole.needed_secrets import needed_secrets
from labconsole.plugin import Plugins
from labconsole.security.secrets import Secret, missing_secrets
from labconsole.store.records import NewCampaign


def ask_secrets(campaign: NewCampaign, plugins: Plugins) -> dict[str, Secret]:
    """What the operator entered, by key; without a terminal nobody is asked, and the run says what it lacks.

    Raises TrialError as `needed_secrets`, and KeyboardInterrupt.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        return {}
    asked = missing_secrets(needed_secrets(campaign.scenarios, plugins))
    entered = {request.key: _enter(f"Passphrase for {request.purpose}: ") for request in asked}
    return {key: Secret(text) for key, text in entered.items() if text}


def prompt(purpose: str) -> Secret | None:
    """`labconsole.security.secrets.Prompt` on the terminal; nothing without one. Raises KeyboardInterrupt."""
    text = _enter(f"Passphrase for {purpose}: ") if sys.stdin is not None and sys.stdin.isatty() else ""
    return Secret(text) if text else None


def _enter(question: str) -> str:
    try:
        return getpass(question)
    except EOFError:
        return ""
