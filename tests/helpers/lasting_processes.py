"""Processes that outlast the test that started them, as a broker of all tests: they start others whenever they like."""

from __future__ import annotations

PIDS: set[int] = set()
"""Of those that this test process has started; what is below them is not left behind by a test."""
