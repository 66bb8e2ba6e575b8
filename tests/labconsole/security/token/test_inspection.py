"""A report on a token, asked in processes of their own: what both modules say, and modules that hang or crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.inspection import Inspection, inspect_token
from labconsole.security.token.mechanisms import KeyKind, WrapBehaviour, WrapMechanism
from tests.helpers.forked_programs import runs

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="uses a FIFO")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="sees in /proc which libraries a process has loaded")


def test_softhsm_says_all_but_how_much_is_free(configuration: TokenConfiguration, pin: Secret) -> None:
    seen = inspect_token("test", configuration, pin)
    assert seen.problem == "" and seen.overview is not None and seen.findings is not None
    overview, findings = seen.overview, seen.findings
    assert (overview.identity.label, overview.identity.model) == ("test", "SoftHSM v2")
    assert overview.identity.module == str(configuration.module)
    assert overview.slots == ("test", ""), "SoftHSM2 adds an empty slot"
    assert {"RSA_PKCS_KEY_PAIR_GEN", "AES_KEY_WRAP_PAD", "MD5"} < set(overview.mechanisms)
    assert overview.free_memory is None and overview.pin_warning is None
    assert findings.threads_safe is True
    assert [probe.mechanism for probe in findings.wrapping] == list(WrapMechanism)
    assert findings.wrapping[1].behaviour is WrapBehaviour.RFC5649_ZERO_PADDED
    assert findings.wrapping[1].keys == {KeyKind.RSA_2048: True, KeyKind.P_256: True}
    assert 0 < overview.start_s < 30 and 0 < findings.login_s < 30 and 0 < findings.probes_s < 30


def test_nss_says_how_much_is_free_and_has_mechanisms_of_its_own(
    nss_configuration: TokenConfiguration, pin: Secret
) -> None:
    seen = inspect_token("nss", nss_configuration, pin)
    assert seen.problem == "" and seen.overview is not None and seen.findings is not None
    assert seen.overview.free_memory is not None
    assert "0xCE534351" in seen.overview.mechanisms
    assert seen.findings.wrapping[1].behaviour is WrapBehaviour.RFC3394_PKCS7


def test_without_a_pin_the_token_is_only_inspected(configuration: TokenConfiguration) -> None:
    seen = inspect_token("test", configuration, None)
    assert seen.overview is not None and seen.findings is None
    assert seen.problem == "Without its PIN nothing can be tried in the token test."


def test_a_wrong_pin_is_tried_once_and_the_overview_stays(configuration: TokenConfiguration, pin: Secret) -> None:
    seen = inspect_token("test", configuration, Secret("not-the-pin"))
    assert seen.overview is not None and seen.findings is None
    assert "refuses the PIN: it is wrong, and was tried once" in seen.problem
    assert "few tries" in seen.problem and "not-the-pin" not in seen.problem
    again = inspect_token("test", configuration, None)
    assert again.overview is not None and "few tries" in str(again.overview.pin_warning)
    open_token("test", configuration, pin).close()  # the right one still opens it


def test_no_such_module_is_one_sentence(configuration: TokenConfiguration, tmp_path: Path) -> None:
    missing = configuration.model_copy(update={"module": tmp_path / "no.so"})
    seen = inspect_token("test", missing, Secret("1234"))
    assert seen == Inspection("test", problem=seen.problem)
    assert seen.problem.startswith(f"There is no PKCS#11 module {tmp_path / 'no.so'}:")


@pytest.fixture
def hanging(configuration: TokenConfiguration, tmp_path: Path) -> TokenConfiguration:
    """SoftHSM2 that waits for ever in C_Initialize: no process writes its configuration into a FIFO."""
    fifo = tmp_path / "softhsm2.conf"
    os.mkfifo(fifo)
    return configuration.model_copy(update={"environment": {"SOFTHSM2_CONF": str(fifo)}})


@posix_only
def test_a_module_that_hangs_is_ended(hanging: TokenConfiguration, pin: Secret) -> None:
    started = time.monotonic()
    seen = inspect_token("test", hanging, pin, timeout_s=0.5)
    assert time.monotonic() - started < 10
    assert seen.overview is None
    assert seen.problem.startswith(f"The PKCS#11 module {hanging.module} did not answer within 0.5 s:")
    assert _inspecting() == [], "its process is gone"


@pytest.mark.usefixtures("started_programs")
@linux_only
def test_a_module_crash_is_reported_and_the_pin_is_not_an_argument(hanging: TokenConfiguration, pin: Secret) -> None:
    """The process that hangs in the module is sent what a crash would send."""
    seen: list[Inspection] = []
    asking = threading.Thread(target=lambda: seen.append(inspect_token("test", hanging, pin)))
    asking.start()
    try:
        child = _waiting_for(hanging)
        assert pin.reveal() not in " ".join(child.cmdline()) and pin.reveal() not in str(child.environ())
        child.send_signal(signal.SIGSEGV)
    finally:
        asking.join(60)
    assert "ended its process (signal 11" in seen[0].problem


@linux_only
def test_a_module_that_hangs_exits_with_its_parent(hanging: TokenConfiguration) -> None:
    program = (
        "import sys; from labconsole.security.token.configuration import TokenConfiguration as C;"
        "from labconsole.security.token.inspection import inspect_token;"
        "inspect_token('test', C.model_validate_json(sys.argv[1]), None)"
    )
    console = subprocess.Popen([sys.executable, "-c", program, hanging.model_dump_json()])
    child = _waiting_for(hanging, psutil.Process(console.pid))
    console.kill()
    console.wait()
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running()


def _inspecting(parent: psutil.Process | None = None) -> list[psutil.Process]:
    children = (parent or psutil.Process()).children()
    return [child for child in children if runs(child, "labconsole.security.token.cryptoki.inspection_process")]


def _waiting_for(hanging: TokenConfiguration, parent: psutil.Process | None = None) -> psutil.Process:
    """The child, once it has loaded the module, which waits for ever then."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(0.02)
        found = _inspecting(parent)
        if found and any(mapped.path == str(hanging.module.resolve()) for mapped in found[0].memory_maps()):
            return found[0]
    raise AssertionError("no child came to wait in the module")
