"""Fixtures for all tests of the V2X plugin: the PKI of a lab, and roles that leave their process as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from labconsole_v2x.security.issuing import LabPki
from tests.labconsole_v2x.inspection.road_capture import lab

_SWITCH_S = sys.getswitchinterval()


@pytest.fixture(scope="module")
def pki() -> LabPki:
    """Certificates of a lab, valid from a year before the captures of `road_capture`."""
    return lab()


@pytest.fixture(autouse=True)
def undo_role_settings() -> Iterator[None]:
    """Undo what stations set for their whole process, where they were threads of this one: how often threads switch."""
    yield
    if sys.getswitchinterval() != _SWITCH_S:
        sys.setswitchinterval(_SWITCH_S)
