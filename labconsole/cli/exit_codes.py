"""Exit codes of `labconsole`, for scripts."""

from __future__ import annotations

FINISHED = 0
FAILED = 1
BAD_USAGE = 2
THRESHOLD_MISSED = 3
CANCELLED = 130
