"""Fixtures for all tests of the V2X plugin: the PKI of a lab."""

from __future__ import annotations

import pytest

from labconsole_v2x.security.issuing import LabPki
from tests.labconsole_v2x.inspection.road_capture import lab


@pytest.fixture(scope="module")
def pki() -> LabPki:
    """Certificates of a lab, valid from a year before the captures of `road_capture`."""
    return lab()
