"""What the processes of a run import: only what they need, since fifteen to twenty roles start together with a worker.

A user waits for these imports at the start of each run, and the suite starts hundreds of workers and roles.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.practice import Bench

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


WORKER_HEAVY = frozenset(
    ("sqlalchemy", "asyncio", "cryptography.x509", "asn1crypto", "rich", "keyring", "scipy", "lxml", "PySide6")
)
"""What no worker needs to start a run and to store it; SQLAlchemy alone was 45 % of the imports of a worker."""
TRIAL = "from labconsole.model.plugin import Plugins; Plugins.discover().trial({!r})"
NOT_IMPORTED = {
    "amqp.messaging": {
        *("sqlalchemy", "asn1crypto", "OpenSSL", "cryptography.x509"),
        "proton",
        "labconsole_amqp.roles.sender_role",
        "labconsole_amqp.roles.broker_role",
    },
    "v2x.live": {"sqlalchemy", "asn1tools", "pyparsing", "labconsole_v2x.live.station_role"},
    "keypool.simulation": {"sqlalchemy", "lxml", "labconsole_keypool.simulation.simulator_role"},
    "keypool.signing-service": {"lxml", "labconsole_keypool.service.service_role"},
}
"""By trial, what its worker does not import: databases that it may not open, codecs, and the work of its roles."""


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


def test_a_worker_imports_no_database_toolkit_and_no_certificates() -> None:
    modules = imported("import labconsole.engine.worker")
    assert modules >= {"labconsole.engine.worker", "labconsole.store.run_store", "pydantic", "sqlite3"}
    assert modules & (WORKER_HEAVY | {"labconsole.store.schema", "labconsole.store.reader"}) == set()


@pytest.mark.parametrize("kind", NOT_IMPORTED)
def test_a_trial_that_a_worker_loads_imports_no_database_toolkit_and_no_role(kind: str) -> None:
    assert imported(TRIAL.format(kind)) & NOT_IMPORTED[kind] == set()


def test_worker_and_role_of_a_whole_run_never_import_the_database_toolkit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python logs each module that a process imports; the log of worker and roles is the run's."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    [run] = bench.run({"count": 10})
    assert run.row.status == "finished" and run.row.metrics
    logged = [line.rpartition("|")[2].strip() for line in bench.listener.lines if line.startswith("import time:")]
    assert logged.count("numpy") == 2, "that of the worker and that of its role"
    assert {"labconsole.engine.run_end", "labconsole.store.run_reader"} <= set(logged)
    assert {"sqlalchemy", "asyncio", "rich", "keyring", "scipy", "PySide6"} & set(logged) == set()


@pytest.mark.parametrize(
    "statement",
    ["import labconsole.model.parameters, labconsole.security.secrets", "import labconsole_amqp.parameters"],
)
def test_models_are_built_when_first_used(statement: str) -> None:
    """The first model that Pydantic builds also searches every installed package for its plugins."""
    assert "importlib.metadata" not in imported(statement)


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
        "labconsole_v2x.live.station_role",
    ],
)
def test_a_built_in_role_imports_neither_its_trial_nor_its_evaluation(module: str) -> None:
    modules = imported(f"import labconsole.engine.role, {module}")
    own = [name for name in modules if name.startswith("labconsole_")]
    assert module in own
    assert [name for name in own if name.endswith(("trial", "evaluation", "curves", "contrast", "manifest"))] == []
    assert (
        modules
        & {
            "rich",
            "scipy",
            "PySide6",
            "asn1tools",
            "labconsole.model.plugin",
            "labconsole.profiles.profile",
            "labconsole.cli",
        }
        == set()
    )


CERTIFICATE_LIBRARIES = frozenset(("asn1crypto", "OpenSSL", "cryptography.x509", "sqlalchemy", "lxml", "filelock"))
"""What no AMQP role needs that neither speaks TLS nor signs: they were a third of its imports."""


@pytest.mark.parametrize("role", ["sender", "receiver", "broker"])
def test_an_amqp_role_reads_plain_settings_without_the_certificate_libraries(role: str) -> None:
    module = f"labconsole_amqp.roles.{role}_role"
    statement = f"import labconsole.engine.role, {module}; from labconsole_amqp.roles.role_settings import RoleSettings"
    statement += f"; RoleSettings.model_validate({{'parameters': {{}}, 'role': {role!r}}})"
    modules = imported(statement)
    assert module in modules
    assert modules & CERTIFICATE_LIBRARIES == set()


def test_the_parameters_of_a_trial_are_offered_where_they_always_were() -> None:
    from labconsole.model import parameters, trial

    assert trial.Parameters is parameters.Parameters
    assert trial.STORED == parameters.STORED
    with pytest.raises(AttributeError, match="has no attribute 'Parameter'"):
        trial.Parameter  # type: ignore[attr-defined]  # noqa: B018
