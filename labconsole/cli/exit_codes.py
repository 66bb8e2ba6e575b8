"""Exit codes of `labconsole`, for scripts."""

from __future__ import annotations

FINISHED = 0
FAILED = 1
BAD_USAGE = 2
CHECK_FAILED = 3
"""A run finished, but an integrity verdict failed (its data are not whole) or its profile's threshold was missed."""
CANCELLED = 130
