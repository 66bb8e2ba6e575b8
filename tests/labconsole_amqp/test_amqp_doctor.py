"""The AMQP plugin's check: a python-qpid-proton without TLS, or one that does not load, is reported."""

from __future__ import annotations

import sys

import proton
import pytest

from labconsole_amqp import doctor


def test_the_tls_library_that_proton_links_is_named() -> None:
    (check,) = doctor.checks()
    assert check.ok
    assert "TLS by " in check.found
    assert "does not name itself" not in check.found


def test_a_build_without_tls_is_reported_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proton.SSL, "present", staticmethod(lambda: False))
    (check,) = doctor.checks()
    assert not check.ok
    assert "without TLS" in check.found
    assert "--no-cache-dir" in check.remedy


def test_a_proton_that_does_not_load_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cproton_ffi", None)
    (check,) = doctor.checks()
    assert not check.ok
    assert check.found.startswith("does not load")
