"""The facts that a trial's page shows about a scenario."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from labconsole_ui.panels.trial_panel import TrialPanel


def facts(page: TrialPanel) -> dict[str, str]:
    """The visible facts: values by label."""
    labels = [label.text() for label in page.facts_card.findChildren(QLabel) if not label.isHidden()]
    return dict(zip(labels[::2], labels[1::2], strict=True))
