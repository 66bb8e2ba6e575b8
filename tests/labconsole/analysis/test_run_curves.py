"""Lines of a run's processes over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.run_curves import resource_curves


class Readings:
    """Samples of one process that has ended at its last reading."""

    def roles(self, series: str) -> list[str]:
        return ["broker"]

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        return {
            "t_ns": np.array([1_000_000_000, 2_000_000_000, 3_000_000_000]),
            "cpu": np.array([60.0, 50.0, 0.0], np.float32),
            "rss": np.array([62_000_000, 63_000_000, 0]),
        }


def test_a_process_that_has_ended_draws_no_line_down_to_zero() -> None:
    cpu, memory = resource_curves(Readings(), 1_000_000_000)  # type: ignore[arg-type]
    assert cpu.t_s.tolist() == memory.t_s.tolist() == [0.0, 1.0]
    assert memory.values.tolist() == [62e6, 63e6] and cpu.values.tolist() == [60.0, 50.0]
