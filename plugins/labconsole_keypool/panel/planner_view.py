"""The planner in the window: what a peak needs, by formula, simulation and measurement, and a forecast of the next week."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtWidgets import QWidget

from labconsole_ui.panel import PanelContext

Values = Mapping[str, Any]


class PlannerView(QWidget):
    """`values` gives what the form holds, `use` puts planned values into it."""

    def __init__(
        self,
        context: PanelContext,
        *,
        values: Callable[[], Values],
        use: Callable[[Values], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
