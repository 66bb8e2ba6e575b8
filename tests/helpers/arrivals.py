"""Arrivals of signing requests for tests of the key pool."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.choices import ArrivalPattern
from labconsole_keypool.service.arrivals import arrivals_ns


def make_arrivals(pattern: ArrivalPattern = ArrivalPattern.TABLE_4_1, **changes: Any) -> NDArray[np.int64]:
    """Arrivals with a form's usual values and some changes."""
    return arrivals_ns(pattern, **{"requests": 3000, "rate": 50.0, "seed": 1, **changes})
