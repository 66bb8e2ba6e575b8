"""What fields of several of the key pool's forms have in common."""

from __future__ import annotations

from typing import Any

from pydantic import Field


def extra(group: str, **more: Any) -> dict[str, Any]:
    """What a form needs of a field beside its type."""
    return {"group": group, **more}


def token_name(**more: Any) -> Any:
    """The field of a token's name; `more` is what its form needs beside the type."""
    return Field(
        title="Token",
        description="Name of the token, as `labconsole hsm tokens` lists it; `lab` is the console's own",
        min_length=1,
        json_schema_extra=more,
    )
