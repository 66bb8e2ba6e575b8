"""What the processes of a run import: only what they need, since fifteen to twenty roles start together with a worker.

A user waits for these imports at the start of each run, and the suite starts hundreds of workers and roles.
"""

from __future__ import annotations

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
PLUGINS = "from labconsole.model.plugin import Plugins; plugins = Plugins.discover()"
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


forks = pytest.mark.skipif(sys.platform == "win32", reason="forks")
_EACH = """
import os, sys
before, statements, common = set(sys.modules), sys.argv[2:], sys.argv[1]
exec(common)
for statement in statements:
    if not (child := os.fork()):
        exec(statement)
        print(*sorted(set(sys.modules) - before), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, statement
"""
"""Executes what all have in common once, and each statement in a child that has imported nothing else."""


def imported_by_each(*statements: str, common: str = "") -> list[frozenset[str]]:
    """The modules that a fresh Python has after `common` and each of `statements`."""
    command = [sys.executable, "-P", "-c", _EACH, common, *statements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [frozenset(line.split()) for line in done.stdout.splitlines()]


@forks
def test_a_role_and_a_worker_import_nothing_that_they_do_not_need(practice_plugin: Path) -> None:
    """No database toolkit and no certificates in the worker."""
    role, worker = imported_by_each(
        f"sys.path.insert(0, {str(practice_plugin)!r}); import labconsole.engine.role, practice_light_role",
        "import labconsole.engine.worker",
    )
    assert role >= {"labconsole.engine.role", "practice_light_role", "labconsole.model.series", "numpy"}
    assert role & HEAVY == set()
    assert worker >= {"labconsole.engine.worker", "labconsole.store.run_store", "pydantic", "sqlite3"}
    assert worker & (WORKER_HEAVY | {"labconsole.store.schema", "labconsole.store.reader"}) == set()


@forks
def test_a_trial_that_a_worker_loads_imports_no_database_toolkit_and_no_role() -> None:
    trials = imported_by_each(*(f"plugins.trial({kind!r})" for kind in NOT_IMPORTED), common=PLUGINS)
    unneeded = {kind: modules & NOT_IMPORTED[kind] for kind, modules in zip(NOT_IMPORTED, trials, strict=True)}
    assert all("labconsole.model.plugin" in modules for modules in trials)
    assert unneeded == dict.fromkeys(NOT_IMPORTED, frozenset())


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


@forks
def test_models_are_built_when_first_used() -> None:
    """The first model that Pydantic builds also searches every installed package for its plugins."""
    for modules in imported_by_each(
        "import labconsole_amqp.parameters", common="import labconsole.model.parameters, labconsole.security.secrets"
    ):
        assert {"labconsole.security.secrets", "labconsole_amqp.parameters"} <= modules
        assert "importlib.metadata" not in modules


ROLES = (
    *("labconsole_amqp.roles.sender_role", "labconsole_amqp.roles.receiver_role", "labconsole_amqp.roles.broker_role"),
    *("labconsole_keypool.simulation.simulator_role", "labconsole_keypool.service.service_role"),
    *("labconsole_keypool.service.signer_role", "labconsole_keypool.service.generator_role"),
    *("labconsole_keypool.measuring.step_times_role", "labconsole_keypool.measuring.device_benchmark_role"),
    "labconsole_v2x.live.station_role",
)


@forks
def test_the_built_in_roles_import_neither_their_trials_nor_evaluations() -> None:
    """All of them in one process: what one of them imports is among what they import together."""
    [modules] = imported_by_each("import labconsole.engine.role, " + ", ".join(ROLES))
    own = [name for name in modules if name.startswith("labconsole_")]
    assert set(ROLES) <= set(own)
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


@forks
def test_amqp_roles_read_plain_settings_without_the_certificate_libraries() -> None:
    """All three in one process: what one of them imports is among what they import together."""
    roles = ("sender", "receiver", "broker")
    modules = [f"labconsole_amqp.roles.{role}_role" for role in roles]
    statement = f"import labconsole.engine.role, {', '.join(modules)}\n"
    statement += "from labconsole_amqp.roles.role_settings import RoleSettings\n"
    statement += f"for role in {roles}: RoleSettings.model_validate({{'parameters': {{}}, 'role': role}})"
    [imported] = imported_by_each(statement)
    assert set(modules) <= imported
    assert imported & CERTIFICATE_LIBRARIES == set()


def test_the_parameters_of_a_trial_are_offered_where_they_always_were() -> None:
    from labconsole.model import parameters, trial

    assert trial.Parameters is parameters.Parameters
    assert trial.STORED == parameters.STORED
    with pytest.raises(AttributeError, match="has no attribute 'Parameter'"):
        trial.Parameter  # type: ignore[attr-defined]  # noqa: B018
