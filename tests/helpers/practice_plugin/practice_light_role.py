"""Roles as light as a plugin can write them: they import the console's role and series, and nothing of their trial."""

from __future__ import annotations

import sys
from typing import Any

from labconsole.errors import UserError
from labconsole.model.role import Role
from labconsole.model.series import Column, Series

READINGS = Series("readings", "Readings", (Column("t_ns", "i8", "ns", "Time"),))


class LightRole(Role):
    """Declares a series, and is ready."""

    def prepare(self) -> dict[str, Any]:
        self.context.series(READINGS)
        return {}

    def run(self) -> dict[str, Any]:
        return {}


class ReaderRole(LightRole):
    """Reads the file `note` of its run, and records an event with its content and the modules of its process."""

    def prepare(self) -> dict[str, Any]:
        path = self.context.file("note")
        text = "nothing" if path is None else path.read_text()
        self.context.event("read", f"Read {path}.", text=text, path=str(path), modules=sorted(sys.modules))
        if text == "faulty":
            raise UserError(f"The note {path} is faulty: write another one.")
        return super().prepare()
