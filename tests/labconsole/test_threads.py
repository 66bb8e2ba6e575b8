"""The console's processes start no superfluous threads, which would disturb measurements."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNT = "import labconsole.engine.role, os; print(len(os.listdir('/proc/self/task')))"


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_role_has_one_thread_before_it_starts_its_own() -> None:
    """On a machine of two cores or more numpy's BLAS would have started some."""
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, timeout=60, env=own)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
