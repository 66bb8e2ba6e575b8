"""Measure how long the processes of a run take to start: twenty light roles at once, and what each of them imports.

Run it with `python tests/benchmarks/role_start.py [CHECKOUT]`; with another checkout (an older version, say) both take
turns, seven times each; modules of roles that were renamed since are found by their old names. A busy computer changes
seconds but hardly their ratio. The packages with the largest shares are those of `-X importtime`. It works in a
temporary directory and leaves no files.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
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
    "labconsole_v2x.live.station_role",
)
TRIALS = ("amqp.messaging", "v2x.live", "keypool.simulation", "keypool.signing-service")
_LARGEST = 6


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
    worker = "import labconsole.engine.worker"
    trial = worker + "; from labconsole.model.plugin import Plugins; Plugins.discover().trial({!r})"
    statements = {"a worker": dict.fromkeys(checkouts, worker)}
    statements |= {f"a worker with {kind}": dict.fromkeys(checkouts, trial.format(kind)) for kind in TRIALS}
    statements |= {
        module: {name: _role_import(checkout, module) for name, checkout in checkouts.items()} for module in BUILT_IN
    }
    for what, of_checkout in statements.items():
        seconds: dict[str, list[float]] = {name: [] for name in checkouts}
        for _ in range(PAIRS):
            for name, checkout in checkouts.items():
                seconds[name].append(import_cpu_s(checkout, of_checkout[name]))
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        figures = ", ".join(f"{name} {value * 1000:.0f} ms" for name, value in medians.items())
        ratios = [f"{medians['this checkout'] / medians[name]:.2f} of {name}" for name in list(medians)[1:]]
        shares = largest_shares(HERE, of_checkout["this checkout"])
        print(f"{what}: CPU of a Python that imports it: {'; '.join([figures, *ratios])}; {shares}")


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


def import_cpu_s(checkout: Path, statement: str) -> float:
    """CPU of a Python that runs an import statement, s."""
    before = _children_cpu_s()
    subprocess.run([sys.executable, "-P", "-c", statement], env=_environment(checkout), check=True)
    return _children_cpu_s() - before


def largest_shares(checkout: Path, statement: str) -> str:
    """The packages that take most of the time of an import statement, each with its share, by `-X importtime`."""
    command = [sys.executable, "-P", "-X", "importtime", "-c", statement]
    done = subprocess.run(command, env=_environment(checkout), check=True, capture_output=True, text=True)
    lines = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines() if "|" in line]
    of_package: Counter[str] = Counter()
    for own_us, _, module in lines[1:]:
        of_package[module.strip().partition(".")[0]] += int(own_us)
    total = of_package.total()
    return ", ".join(f"{package} {share / total:.0%}" for package, share in of_package.most_common(_LARGEST))


def _role_import(checkout: Path, module: str) -> str:
    place = checkout / "plugins" / f"{module.replace('.', '/')}.py"
    return f"import labconsole.engine.role, {module if place.exists() else BEFORE[module]}"


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
