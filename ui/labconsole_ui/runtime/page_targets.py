"""Targets: the strings by which navigation, menus and links name a page of the window."""

from __future__ import annotations

from labconsole.model.plugin import Plugin

START = "start"
HELP = "help"
GUIDE = "guide"


def trial_target(kind: str) -> str:
    """The target of a trial's page."""
    return f"trial:{kind}"


def page_target(plugin: Plugin, name: str) -> str:
    """The target of another page of a plugin."""
    return f"page:{plugin.name}:{name}"


def targets_of(plugin: Plugin) -> list[str]:
    """The targets of a plugin: its trials, then its other pages."""
    return [*map(trial_target, plugin.trials), *(page_target(plugin, name) for name in plugin.pages)]
