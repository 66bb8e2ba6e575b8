"""Dotted names of manifests and roles (`package.module:attribute`), imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any


def load_dotted(dotted: str) -> Any:
    """Import `package.module:attribute`. Raises ImportError or AttributeError."""
    module, _, attribute = dotted.partition(":")
    return getattr(importlib.import_module(module), attribute)
