"""`--set KEY=VALUE` of commands that take parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def parse_settings(settings: Iterable[str]) -> dict[str, str] | None:
    """The values by their keys; None after a complaint on standard error about one of another form."""
    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            print(f"labconsole: --set {setting} is not of the form KEY=VALUE.", file=sys.stderr)
            return None
        values[key.strip()] = value.strip()
    return values
