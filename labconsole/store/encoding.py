"""Plain values in text columns: canonical JSON, its SHA-256, and UTC times as ISO 8601."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def to_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, no NaN. Raises ValueError or TypeError for values that JSON does not
    have."""
    if isinstance(value, Mapping):
        value = dict(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def to_shown_json(value: Any) -> str:
    """The same for values that are only shown (an event's data, say): those that JSON does not have become text."""
    return to_stored_text(to_json(_encodable(value)))


def to_stored_text(text: str) -> str:
    """The text with `?` for what UTF-8 cannot have (a lone surrogate, from a peer's JSON say)."""
    return text.encode(errors="replace").decode()


def _encodable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def sha256_hex(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def time_to_text(moment: datetime) -> str:
    """An aware time as UTC text of one length, `2026-11-20T15:23:41.000000Z`, so that texts sort as times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def time_from_text(text: str) -> datetime:
    """The inverse of `time_to_text`."""
    return datetime.fromisoformat(text)
