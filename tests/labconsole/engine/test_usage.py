"""Readings of processes: of one that is alive, and none of one that is exiting."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from labconsole.engine.spool import SampleBlock, SpoolReader, SpoolWriter
from labconsole.engine.usage import MachineMeter, UsageMeter
from labconsole.model.series import MACHINE


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


BURN = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"


@pytest.mark.skipif(os.name == "nt", reason="not recorded on Windows")
def test_cpu_of_a_process_of_the_run_counts_as_its_own_and_that_of_others_does_not(tmp_path: Path) -> None:
    spools = [SpoolWriter(tmp_path / name) for name in ("with", "without")]
    meters = [MachineMeter(spool) for spool in spools]
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        meters[0].watch(child.pid)
        for meter in meters:
            meter.watch(os.getpid())
            meter.read()
        assert child.stdout is not None
        child.stdout.readline()
        for meter in meters:
            meter.read()
        child.communicate(b"\n")
    meters[0].read()  # the process is gone, and what it took stays
    for meter, spool in zip(meters, spools, strict=True):
        meter.flush()
        spool.close()
    [[own], [other]] = (SpoolReader(spool.path).read_new() for spool in spools)
    assert isinstance(own, SampleBlock)
    assert isinstance(other, SampleBlock)
    assert (own.series, own.role, own.rows) == (MACHINE, "worker", 3)
    assert own.columns["own_ns"][1] - other.columns["own_ns"][1] > 150_000_000
    assert own.columns["own_ns"][2] >= own.columns["own_ns"][1]
    assert own.columns["all_ns"][1] >= own.columns["busy_ns"][1] > 0
    assert {int(column[0]) for name, column in own.columns.items() if name != "t_ns"} == {0}


TWICE = BURN + BURN.removeprefix("import time").replace("0.3", "0.6")


@pytest.mark.skipif(os.name == "nt", reason="not recorded on Windows")
def test_cpu_of_what_a_role_has_started_counts_from_then_on(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "spool")
    meter = MachineMeter(spool)
    meter.watch(os.getpid())
    with subprocess.Popen([sys.executable, "-c", TWICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        meter.read()
        child.stdout.readline()
        meter.watch_children()
        meter.read()
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        meter.read()
        child.communicate(b"\n")
    meter.flush()
    spool.close()
    [block] = SpoolReader(spool.path).read_new()
    assert isinstance(block, SampleBlock)
    before, _, after = block.columns["own_ns"].tolist()
    assert before == 0 and block.columns["own_ns"][1] < 150_000_000, "what it took before is not the run's"
    assert after - block.columns["own_ns"][1] > 150_000_000
