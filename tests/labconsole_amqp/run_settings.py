"""Parameters that runs of several tests have."""

from __future__ import annotations

from typing import Any

PACED = {"loop": "open", "rate": 2_000.0}
"""So that a run lasts until it is cut."""
SHAPED = {"shaping": "built-in", "link_rate": 2.0, "link_calibration": 0.5}
FOLLOWED: dict[str, Any] = {
    "test": 3,
    "payload": "small",
    "loop": "open",
    "rate": 200.0,
    "count": 300,
    "patience": 2.0,
    "sender_identity": "alpha-client",
    "receiver_identity": "beta-client",
    "broker_identity": "beta-broker",
}
"""A run of 1.5 s between two States, during which the database changes."""
