"""All reference pages that are made from definitions."""

from __future__ import annotations

from labconsole.model.plugin import Plugins
from labconsole.reference.commands import command_pages, operations_page
from labconsole.reference.formats import format_pages
from labconsole.reference.interface import interface_page
from labconsole.reference.trials import trial_page, trial_page_name


def reference_pages(plugins: Plugins) -> dict[str, str]:
    """Page of the documentation -> its text, of these plugins and of the console itself."""
    trials = [plugins.trial(kind) for kind in plugins.kinds()]
    return {
        **{trial_page_name(trial.kind): trial_page(trial) for trial in trials},
        **command_pages(plugins.providers),
        "reference/operations.md": operations_page(plugins.providers),
        **format_pages(plugins),
        "reference/plugin-interface.md": interface_page(),
    }
