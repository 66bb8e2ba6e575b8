"""Roles as light as a plugin can write them: they import the console's role and series, and nothing of their trial."""

from __future__ import annotations

from typing import Any

from labconsole.role import Role
from labconsole.trial import Column, Series

READINGS = Series("readings", "Readings", (Column("t_ns", "i8", "ns", "Time"),))


class LightRole(Role):
    """Declares a series, and is ready."""

    def prepare(self) -> dict[str, Any]:
        self.context.series(READINGS)
        return {}

    def run(self) -> dict[str, Any]:
        return {}
