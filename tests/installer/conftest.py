"""The installer is a folder of scripts, not a package: its modules are found as the script itself finds them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "installer"))
