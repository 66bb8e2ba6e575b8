"""Describes whatever comes through the gate."""

from __future__ import annotations

from labconsole.security.x509.describing.description import Description
from labconsole.security.x509.gate import Readable


def describe(thing: Readable) -> Description:
    """All that there is to see in `thing`; of private keys only what is public."""
    raise NotImplementedError
