"""Whether the packages for hosts are installed: an extra that other commands do without."""

from __future__ import annotations

from importlib.util import find_spec

from labconsole.errors import UserError


def require_dask() -> None:
    """Raises UserError: the packages for hosts are not installed."""
    if find_spec("distributed") is None:
        raise UserError(
            "Hosts need Dask, which is not installed: install the console with its extra `hosts` "
            "(labconsole[hosts]), or start it by installer/bootstrap.py."
        )
