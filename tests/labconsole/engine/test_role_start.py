"""What a role's process imports: only what every role needs, since fifteen to twenty of them start together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = frozenset(
    (
        *(
            "pydantic",
            "pydantic_core",
            "sqlalchemy",
            "rich",
            "psutil",
            "zstandard",
            "cryptography",
            "keyring",
            "PySide6",
        ),
        *("numpy.random", "numpy.fft", "numpy.polynomial", "numpy.testing", "numpy.ma", "numpy.f2py"),
        *("importlib.metadata", "email", "subprocess", "logging", "socket", "asyncio", "multiprocessing"),
        *(
            "labconsole.model.plugin",
            "labconsole.profiles.profile",
            "labconsole.security.secrets",
            "labconsole.model.parameters",
        ),
        *("labconsole.store", "labconsole.cli", "labconsole.engine.role_handle", "labconsole.engine.launcher"),
    )
)


def imported(statement: str, *paths: Path) -> frozenset[str]:
    """The modules that a fresh Python has after `statement`."""
    code = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}; before = set(sys.modules); {statement}; "
    code += "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    found = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return frozenset(json.loads(found.stdout))


def test_a_role_imports_nothing_that_it_does_not_need(practice_plugin: Path) -> None:
    modules = imported("import labconsole.engine.role, practice_light_role", practice_plugin)
    assert modules >= {"labconsole.engine.role", "practice_light_role", "labconsole.model.series", "numpy"}
    assert modules & HEAVY == set()


@pytest.mark.parametrize(
    "module",
    [
        *(
            "labconsole_amqp.roles.sender_role",
            "labconsole_amqp.roles.receiver_role",
            "labconsole_amqp.roles.broker_role",
        ),
        *("labconsole_keypool.simulation.simulator_role", "labconsole_keypool.service.service_role"),
        *("labconsole_keypool.service.signer_role", "labconsole_keypool.service.generator_role"),
        *("labconsole_keypool.measuring.step_times_role", "labconsole_keypool.measuring.device_benchmark_role"),
    ],
)
def test_a_built_in_role_imports_neither_its_trial_nor_its_evaluation(module: str) -> None:
    modules = imported(f"import labconsole.engine.role, {module}")
    own = [name for name in modules if name.startswith("labconsole_")]
    assert module in own
    assert [name for name in own if name.endswith(("trial", "evaluation", "curves", "contrast", "manifest"))] == []
    assert (
        modules
        & {"rich", "scipy", "PySide6", "labconsole.model.plugin", "labconsole.profiles.profile", "labconsole.cli"}
        == set()
    )


def test_the_parameters_of_a_trial_are_offered_where_they_always_were() -> None:
    from labconsole.model import parameters, trial

    assert trial.Parameters is parameters.Parameters
    assert trial.STORED == parameters.STORED
    with pytest.raises(AttributeError, match="has no attribute 'Parameter'"):
        trial.Parameter  # type: ignore[attr-defined]  # noqa: B018
