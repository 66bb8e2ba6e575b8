"""The processes of a live run, and the warnings for readers of its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.named_tokens import save_configuration
from labconsole_keypool.service.conductor import RunPlan, plan_run
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.trials.service_trial import ServiceTrial


@pytest.fixture
def tokens(tmp_path: Path) -> None:
    """Three tokens that are configured, and never opened here."""
    for name in ("a", "b", "c"):
        save_configuration(name, TokenConfiguration(module=tmp_path / "module.so", label=name))


def plan(**settings: Any) -> RunPlan:
    parameters = {"token": "a", "further_tokens": "b, c", "threads": 5, "signers": 3, "generators": 2, **settings}
    return plan_run(ServiceParameters(**parameters), Path("store.db"), "run")


@pytest.mark.usefixtures("tokens")
def test_signers_share_threads_keys_and_tokens() -> None:
    signers = plan(keys_at_start=10, store_keys=4).signers()
    assert [signer.name for signer in signers] == ["signer-1", "signer-2", "signer-3"]
    assert [signer.token for signer in signers] == ["a", "b", "c"]
    assert [signer.threads for signer in signers] == [2, 2, 1]
    assert [signer.keys_at_start for signer in signers] == [4, 3, 3]
    assert [signer.store_keys for signer in signers] == [2, 1, 1]


@pytest.mark.usefixtures("tokens")
def test_the_first_token_generates_and_the_others_sign_where_they_are_split() -> None:
    split = plan(token_use="split", generators=2)
    assert [one.token for one in split.generators()] == ["a", "a"]
    assert [one.token for one in split.signers()] == ["b", "c", "b"]
    assert plan(keys="generated").generators() == []


@pytest.mark.usefixtures("tokens")
def test_pins_of_foreign_tokens_are_asked_for_and_go_to_their_processes_alone() -> None:
    parameters = ServiceParameters(token="a", further_tokens="b, lab-2")
    assert [request.key for request in ServiceTrial().secrets(parameters)] == ["pin a", "pin b"]
    asked = [[request.key for request in one.spec("x:Y").secrets] for one in plan().signers()]
    assert asked == [["pin a"], ["pin b"], ["pin c"]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"key_kind": "p-256"},
            "A pool gains nothing for P-256: such a key is generated faster than it is loaded",
        ),
        (
            {"timing": "luna-sa-1700", "emulation_speed": 5.0},
            "Emulated: the token was slowed down to the timing profile luna-sa-1700; the figures are those of that "
            "device, not of this token. Everything ran 5 times faster, and figures are in the device's time.",
        ),
        ({"pool_at_start": 0, "keys_at_start": 0}, "The pool is empty at the start: requests wait until keys are "),
        ({"time_scale": 10.0}, "Requests arrive 10 times faster than the pattern says; the token is as fast as it is."),
        ({"further_tokens": "lab-2"}, "The tokens share one computer's processors: two of them sign no faster than "),
    ],
)
def test_warnings_state_what_the_figures_do_not_show(settings: dict[str, Any], sentence: str) -> None:
    (warning,) = ServiceTrial().warnings(ServiceParameters(**settings))
    assert warning.startswith(sentence)
    assert ServiceTrial().warnings(ServiceParameters()) == ()


@pytest.mark.parametrize(("further", "expected"), [("", True), ("lab-2", False)])
def test_several_emulated_signers_of_one_token_give_a_warning(further: str, expected: bool) -> None:
    parameters = ServiceParameters(timing="luna-sa-1700", signers=2, threads=2, further_tokens=further)
    warnings = ServiceTrial().warnings(parameters)
    assert any(warning.startswith("Each of the 2 signers emulates a device") for warning in warnings) is expected
