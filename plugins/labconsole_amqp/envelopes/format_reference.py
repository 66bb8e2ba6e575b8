"""The reference page of the envelopes: one table of all formats, made from their definitions."""

from __future__ import annotations

from labconsole.reference.markdown import page, table
from labconsole_amqp.envelopes.formats import EnvelopeFormat, key_titles

PAGE = "reference/amqp-envelopes.md"


def envelopes_page() -> str:
    """The page in Markdown."""
    return page(
        "# AMQP envelopes",
        "Generated from the definitions that the form, the profiles and the runs use: the values of *Envelope* "
        "(`envelope`) for Tests 3 and 4. [Envelopes](../explanation/amqp-envelopes.md) explains what they protect "
        "against, with measured times and sizes; [AMQP message sizes](amqp-messages.md) has the layout of messages.",
        table(
            ("`envelope`", "Format", "Standard", "Of use for", "Signs"),
            ((f"`{one.value}`", one.label, one.standard, one.purpose, one.signs) for one in EnvelopeFormat),
        ),
        "With no identity named, a run uses lab keys of the first type in each list. Content types are those in the "
        "properties of the message; a format without a registered one has none.",
        table(
            ("`envelope`", "Keys that sign", "Keys that bodies are encrypted to", "Content type: Test 3; Test 4"),
            (
                (f"`{one.value}`", key_titles(one.signing), key_titles(one.encryption), _content_types(one))
                for one in EnvelopeFormat
            ),
        ),
    )


def _content_types(format: EnvelopeFormat) -> str:
    signed, encrypted = (f"`{one}`" if one else "none" for one in format.content_types)
    return "none" if not any(format.content_types) else f"{signed}; {encrypted}"
