"""`labconsole pki exchange-step`: step after step until two States of this console have proven both ways."""

from __future__ import annotations

import json

import pytest

from labconsole.cli.exit_codes import BAD_USAGE, FAILED, FINISHED
from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.model.operation import Confirmation
from labconsole_certificates.exchange.step_execution import DoExchangeStep, ExchangeStepParameters
from labconsole_certificates.operations.export import note_handover
from tests.labconsole_certificates.three_states import ThreeStates


def _step(*more: str) -> int:
    return main(["pki", "exchange-step", "State A", "State B", *more])


def test_each_call_does_the_next_step_until_both_ways_are_proven(
    world: ThreeStates, capsys: pytest.CaptureFixture[str]
) -> None:
    done = []
    for client, server, root in (("State A", "State B", world.root_b), ("State B", "State A", world.root_a)):
        steps = ["trust-root", "make-server", "make-request", "approve"]
        for _ in steps:
            assert main(["pki", "exchange-step", client, server, "--confirmed", root.sha256, "--json"]) == FINISHED
            done.append(json.loads(capsys.readouterr().out)["step"])
        assert done[-len(steps) :] == steps
    assert _step("--json") == FINISHED
    proven = json.loads(capsys.readouterr().out)
    assert (proven["step"], proven["next"]) == ("prove", "")
    assert len(world.store.snapshot().proofs) == 2
    assert _step() == FINISHED
    assert "Nothing was done: State A has proven" in capsys.readouterr().out
    assert main(["pki", "exchange", "State A", "State B"]) == FINISHED
    named = [entry.subject for entry in world.store.audit() if entry.what == "operation"]
    assert named == ["certificates.exchange-step"] * 9


def test_a_root_is_trusted_only_by_its_fingerprint(world: ThreeStates, capsys: pytest.CaptureFixture[str]) -> None:
    asked = DoExchangeStep().confirmation(ExchangeStepParameters(state_a="State A", state_b="State B"))
    assert isinstance(asked, Confirmation)
    assert asked.loss.startswith("State A will trust State B Root CA, the root of State B: ")
    assert _step() == FAILED  # there is no terminal to confirm it on
    assert "--confirmed FINGERPRINT" in capsys.readouterr().err
    assert _step("--confirmed", world.root_a.sha256) == FAILED
    assert "That is not the fingerprint of State B Root CA" in capsys.readouterr().err
    assert not world.store.snapshot().trust


def test_nothing_is_done_if_another_step_is_next(world: ThreeStates, capsys: pytest.CaptureFixture[str]) -> None:
    before = world.rows()
    assert _step("--step", "prove", "--confirmed", world.root_b.sha256, "--json") == FINISHED
    assert json.loads(capsys.readouterr().out)["step"] == ""
    assert world.rows() == before
    with pytest.raises(SystemExit) as refused:
        _step("--step", "unknown")
    assert refused.value.code == BAD_USAGE


def test_states_of_other_consoles_do_their_steps_there(world: ThreeStates) -> None:
    note_handover(world.store, world.root_a, world.a, world.c)
    with pytest.raises(UserError, match="State C is a State of another console"):
        DoExchangeStep().secrets(ExchangeStepParameters(state_a="State A", state_b="State C"))
