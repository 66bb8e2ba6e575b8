"""What poppler's pdfsig, which is not of our making, says of the signatures of a PDF."""

from __future__ import annotations

import subprocess
from pathlib import Path


def pdfsig(path: Path) -> str:
    """Its report. The certificates are not looked up anywhere."""
    return subprocess.run(["pdfsig", "-nocert", str(path)], capture_output=True, text=True, timeout=30).stdout
