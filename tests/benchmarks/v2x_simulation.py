"""Table 4.2 of PRESERVE D3.2, simulated, and how fast the simulation is: `python tests/benchmarks/v2x_simulation.py`.

Each row is the mean of ten fixed seeds; the errors of the rows to which the timing profile was fitted and of those that
were held out are printed apart. The time is that of 60 s of 16 stations at 100 Hz.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.testbed import simulate
from tests.labconsole_v2x.simulation.simulated_testbed import Row, rows_of_table_4_2

SEEDS = range(1, 11)
SHARE_AIM, LOSS_AIM, TIME_AIM_S = 0.3, 1.5, 5.0
ROUNDS = 5


def delays(title: str, rows: Sequence[Row], mean_aim: float) -> None:
    """Print the errors of the mean delay."""
    errors = [abs(row.delay_error) for row in rows]
    mean = sum(errors) / len(errors)
    print(f"Delay, {title}: error {mean:.1f} % on average (aim {mean_aim:g}), {max(errors):.1f} % at most")


def main() -> None:
    """Print all rows, and their errors."""
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, numpy {np.__version__}")
    rows = list(rows_of_table_4_2(SEEDS))
    for row in rows:
        figures = (
            f"{title} {row.simulated[metric]:.2f} ({row.printed[metric]:g}) {unit}"
            for title, metric, unit in (
                ("share", "benign_share", "%"),
                ("loss", "packet_loss", "%"),
                ("delay", "latency_mean", "ms"),
            )
        )
        print(f"{row.name:>14}: {', '.join(figures)}, {row.delay_error:+.1f} %{', fitted' if row.fitted else ''}")
    print(f"Share: {max(abs(row.error('benign_share')) for row in rows):.2f} points at most (aim {SHARE_AIM:g})")
    near = sum(abs(row.error("packet_loss")) <= LOSS_AIM for row in rows)
    print(f"Loss: within {LOSS_AIM:g} points in {near} of {len(rows)} rows (aim 13)")
    delays("all rows", rows, 8)
    delays("rows held out", [row for row in rows if not row.fitted], 9)
    parameters, times_s = SimulationParameters(senders=16, rate=100.0), []
    for seed in range(ROUNDS):
        began = time.perf_counter()
        packets = simulate(parameters, parameters.stack_timing(), np.random.default_rng(seed))
        times_s.append(time.perf_counter() - began)
    print(f"16 stations at 100 Hz, 62 s: {len(packets.size):,} packets in {median(times_s):.2f} s (aim {TIME_AIM_S:g})")


if __name__ == "__main__":
    main()
