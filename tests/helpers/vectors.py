"""Recorded packets of a production car, which are not part of the project: without them, their tests are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

_VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"


def recorded(name: str) -> bytes:
    """The octets of a packet or certificate of the car; skips the test where they are not on this computer."""
    path = _VECTORS / f"vw_golf8_{name}.hex"
    if not path.is_file():
        pytest.skip("the recorded packets are not part of the project")
    return bytes.fromhex(path.read_text())
