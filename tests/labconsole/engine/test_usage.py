"""Readings of processes: of one that is alive, and none of one that is exiting."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from labconsole.engine.spool import SpoolWriter
from labconsole.engine.usage import UsageMeter


def test_a_process_that_exits_gives_no_reading_without_memory(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        spool = SpoolWriter(tmp_path / "usage.spool")
        meter = UsageMeter(spool)
        meter.watch("own", os.getpid())
        meter.watch("child", child.pid)
        meter.read()
        assert set(meter.latest) == {"own", "child"} and meter.latest["child"].rss > 0
        assert child.stdin is not None
        child.stdin.close()
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:  # exited, and not yet waited for
            time.sleep(0.01)
        meter.read()
        assert set(meter.latest) == {"own"}
        spool.close()
