"""Writes the pages of docs/reference that are made from definitions: .venv/bin/python docs/reference_pages.py"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from labconsole.model.plugin import Plugins
from labconsole.paths import HOME_VARIABLE
from labconsole.reference.pages import reference_pages
from labconsole_amqp.envelopes.format_reference import PAGE as ENVELOPES
from labconsole_amqp.envelopes.format_reference import envelopes_page
from labconsole_v2x.use_case_reference import PAGE, use_cases_page

DOCS = Path(__file__).parent


def main() -> None:
    """Write all of them, as they are without any data of the operator's."""
    with tempfile.TemporaryDirectory() as home:
        os.environ[HOME_VARIABLE] = home
        plugins = Plugins.discover()
        pages = {**reference_pages(plugins), PAGE: use_cases_page(plugins), ENVELOPES: envelopes_page()}
        for name, text in pages.items():
            (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
