"""What the clock of a host is, as a report prints it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labconsole.clock import clock_source


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_the_source_and_the_state_of_the_clock_are_the_kernels() -> None:
    source, state = clock_source().split(", ")
    assert source in Path("/sys/devices/system/clocksource/clocksource0/available_clocksource").read_text().split()
    assert state in ("synchronised", "not synchronised")
    if shutil.which("timedatectl"):
        asked = subprocess.run(["timedatectl", "show", "-p", "NTPSynchronized"], capture_output=True, text=True)
        if asked.returncode == 0:
            assert (state == "synchronised") == asked.stdout.strip().endswith("yes")
