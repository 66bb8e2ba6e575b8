"""A plugin whose manifest cannot be imported."""

raise RuntimeError("this plugin is in pieces")
