"""A disk whose writes fail in mid-run (EIO, by a preloaded library): one sentence, no traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.practice import PLUGIN, TIMEOUT_S, environment, profile_text

_FAILING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failing(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || access(getenv("FAILING"), F_OK)) return 0;
    path[length] = 0;
    return strstr(path, "runs.db") != 0;
}

#define FAIL(name, signature, call) \\
    ssize_t name signature { \\
        static ssize_t (*real) signature; \\
        if (!real) real = dlsym(RTLD_NEXT, #name); \\
        if (failing(file)) { errno = EIO; return -1; } \\
        return real call; \\
    }
FAIL(pwrite64, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
FAIL(pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
FAIL(write, (int file, const void *data, size_t size), (file, data, size))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is of Linux")
def test_an_io_error_at_the_end_of_a_run_gives_one_sentence(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler is not None  # python-qpid-proton is built with it
    library, source, failing = tmp_path / "failing.so", tmp_path / "failing.c", tmp_path / "failing"
    source.write_text(_FAILING, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    profile, database = tmp_path / "counting.toml", tmp_path / "runs.db"
    profile.write_text(profile_text(count=100_000, rate=5000), encoding="utf-8")
    command = [sys.executable, "-m", "labconsole.cli.main", "run", profile, "--db", database]
    variables = environment(PLUGIN) | {"LD_PRELOAD": str(library), "FAILING": str(failing)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as run:
        _wait_for_samples(database)
        failing.touch()
        _, errors = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 1
    assert "Traceback" not in errors
    (line,) = [line for line in errors.replace("\n", " ").split("Run 1 ") if line.startswith("(counting)")]
    assert line.startswith("(counting) failed: ")
    assert line.partition("labconsole:")[0].count("check the disk and its free space") == 1
    with Reader(database) as reader:
        assert reader.run(1).row.status is RunStatus.RUNNING  # the next console takes it over
        assert len(reader.samples(1).table("counted", "counter-0")["number"]) > 0


def _wait_for_samples(database: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            with Reader(database) as reader:
                if "counter-0" in reader.samples(1).roles("counted"):
                    return
        except StoreError:
            pass  # not there yet
        time.sleep(0.05)
    pytest.fail("nothing was counted")
