"""The manifest of the certificates plugin."""

from __future__ import annotations

from labconsole.plugin import Plugin

plugin = Plugin(
    name="certificates",
    title="Certificates",
    description="Can two (or forty) States trust each other without a common CA, rotate and revoke?",
)
