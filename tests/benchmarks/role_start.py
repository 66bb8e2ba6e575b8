"""Measure how long the processes of roles take to start: twenty light roles at once, and each built-in role's imports.

Run it with `python tests/benchmarks/role_start.py [CHECKOUT]`; with another checkout (an older version, say) both take
turns, seven times each; modules of roles that were renamed since are found by their old names. It works in a temporary
directory and leaves no files.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from labconsole.engine.provenance import provenance
from tests.helpers.practice import PLUGIN

HERE = Path(__file__).resolve().parents[2]
ROLES = 20
PAIRS = 7
BEFORE = {
    "labconsole_amqp.roles.sender_role": "labconsole_amqp.sender",
    "labconsole_amqp.roles.receiver_role": "labconsole_amqp.receiver",
    "labconsole_amqp.roles.broker_role": "labconsole_amqp.broker_role",
    "labconsole_keypool.service.service_role": "labconsole_keypool.live.service_role",
    "labconsole_keypool.service.signer_role": "labconsole_keypool.live.signer_role",
    "labconsole_keypool.service.generator_role": "labconsole_keypool.live.generator_role",
}
"""Modules of roles, each with its name in older checkouts."""
BUILT_IN = (
    *("labconsole_amqp.roles.sender_role", "labconsole_amqp.roles.receiver_role", "labconsole_amqp.roles.broker_role"),
    *("labconsole_keypool.simulation.simulator_role", "labconsole_keypool.service.service_role"),
    *("labconsole_keypool.service.signer_role", "labconsole_keypool.service.generator_role"),
    *("labconsole_keypool.measuring.step_times_role", "labconsole_keypool.measuring.device_benchmark_role"),
)


def main(arguments: Sequence[str]) -> None:
    """Print medians for this checkout, and for the one that is named."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, Python {said['python']}, {said['load_average_before']}")
    checkouts = {"this checkout": HERE, **{path: Path(path).resolve() for path in arguments}}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in checkouts}
    for _ in range(PAIRS):
        for name, checkout in checkouts.items():
            took[name].append(start(checkout))
    for name, pairs in took.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        print(f"{name}: {ROLES} light roles ready after {wall:.2f} s; {cpu * 1000:.0f} ms CPU each, start to end")
    for module in BUILT_IN:
        figures = [
            f"{name} {statistics.median(import_cpu_s(path, module) for _ in range(PAIRS)) * 1000:.0f} ms"
            for name, path in checkouts.items()
        ]
        print(f"{module}: CPU of a Python that imports it: {', '.join(figures)}")


def start(checkout: Path) -> tuple[float, float]:
    """Start the roles at once: wall time until the last one is ready, s, and CPU of each until its end, s."""
    with tempfile.TemporaryDirectory() as folder:
        cpu, begun = _children_cpu_s(), time.perf_counter()
        roles = [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "labconsole.engine.role", f"light-{number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(checkout),
            )
            for number in range(ROLES)
        ]
        for number, role in enumerate(roles):
            task = {"name": f"light-{number}", "target": "practice_light_role:LightRole", "settings": {}, "secrets": {}}
            task |= {
                "address": "127.0.0.1",
                "files": {},
                "spool": f"{folder}/{number}.spool",
                "parent_pid": os.getpid(),
                "live_hz": 0.0,
            }
            _send(role, task)
        for role in roles:
            assert role.stdout is not None
            assert json.loads(role.stdout.readline())["t"] == "ready"
        wall = time.perf_counter() - begun
        for role in roles:
            _send(role, {"t": "begin", "at_ns": 0})
        for role in roles:
            assert role.wait() == 0
    return wall, (_children_cpu_s() - cpu) / ROLES


def import_cpu_s(checkout: Path, module: str) -> float:
    """CPU of a Python that imports what a role of `module` does, s."""
    before = _children_cpu_s()
    place = checkout / "plugins" / f"{module.replace('.', '/')}.py"
    code = f"import labconsole.engine.role, {module if place.exists() else BEFORE[module]}"
    subprocess.run([sys.executable, "-P", "-c", code], env=_environment(checkout), check=True)
    return _children_cpu_s() - before


def _environment(checkout: Path) -> dict[str, str]:
    roots = (checkout, checkout / "ui", checkout / "plugins", checkout / PLUGIN.relative_to(HERE))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}


def _send(role: subprocess.Popen[bytes], message: dict[str, object]) -> None:
    assert role.stdin is not None
    role.stdin.write(json.dumps(message).encode() + b"\n")
    role.stdin.flush()


def _children_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)


if __name__ == "__main__":
    main(sys.argv[1:])
