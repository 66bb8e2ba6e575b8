"""Makes what several tests look at, some at a time: most of a short run is the start of processes, or waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Case = TypeVar("Case")
Made = TypeVar("Made")


def run_parallel(cases: Iterable[Case], make: Callable[[Case], Made], lanes: int = 2) -> dict[Case, Future[Made]]:
    """Call `make` for each case, `lanes` at a time; all are done when this returns.

    What one raises is raised where its result is asked for.
    """
    with ThreadPoolExecutor(lanes) as threads:
        return {case: threads.submit(make, case) for case in cases}
