"""What the suite needs from the place where it is started: neither a display nor a shell's foreground."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.signals import interruptible

ROOT = Path(__file__).resolve().parents[1]


def test_pytest_needs_no_display() -> None:
    bare = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    bare.pop("QT_QPA_PLATFORM", None)
    opens = "import tests.conftest; from PySide6.QtGui import QGuiApplication; QGuiApplication([])"
    done = subprocess.run(
        [sys.executable, "-c", opens], cwd=ROOT, env=bare, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ignores neither")
@pytest.mark.parametrize("number", ["SIGINT", "SIGHUP"])
def test_processes_that_are_interrupted_accept_it_in_a_suite_that_ignores_it(number: str) -> None:
    """A shell's background ignores SIGINT, `nohup` SIGHUP."""
    said = f"import signal; print(signal.getsignal(signal.{number}) is signal.SIG_IGN)"
    before = signal.signal(signal.Signals[number], signal.SIG_IGN)
    try:
        with interruptible():
            started = subprocess.Popen([sys.executable, "-c", said], stdout=subprocess.PIPE, text=True)
        assert signal.getsignal(signal.Signals[number]) is signal.SIG_IGN
    finally:
        signal.signal(signal.Signals[number], before)
    assert started.communicate(timeout=60)[0] == "False\n"
