"""The reference page of the envelopes is that of their definitions, and the guide names every format."""

from __future__ import annotations

import pytest

from labconsole.paths import documentation_dir
from labconsole_amqp.envelopes.format_reference import PAGE, envelopes_page
from labconsole_amqp.envelopes.formats import EnvelopeFormat


def test_the_page_is_what_the_definitions_give() -> None:
    assert (documentation_dir() / PAGE).read_text(encoding="utf-8") == envelopes_page(), "run docs/reference_pages.py"


@pytest.mark.parametrize("format", EnvelopeFormat)
def test_the_guide_explains_each_format(format: EnvelopeFormat) -> None:
    for name in ("explanation/amqp-envelopes.md", "reference/amqp-messages.md"):
        assert f"`{format.value}`" in (documentation_dir() / name).read_text(encoding="utf-8")
