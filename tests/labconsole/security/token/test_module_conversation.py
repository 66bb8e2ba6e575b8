"""A module has a process of its own that stays: question after question, and its end is reported in one sentence."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import Conversation

PIN = "314159-user"


@pytest.fixture(autouse=True)
def odd_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `python -m odd_conversations` be found."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


@pytest.fixture
def conversation() -> Iterator[Conversation]:
    before = psutil.Process().children()
    with Conversation("odd_conversations", 20.0, "The module m.so") as opened:
        yield opened
    assert psutil.Process().children() == before


def refusal(conversation: Conversation, what: str) -> str:
    with pytest.raises(TokenError) as refused:
        conversation.ask({"do": what, "pin": PIN})
    assert PIN not in str(refused.value)
    return str(refused.value)


def test_one_process_answers_again_and_again(conversation: Conversation) -> None:
    children = psutil.Process().children()
    for _ in range(3):
        assert conversation.ask({"do": "chatter", "pin": PIN}) == {"length": len(PIN)}
    assert refusal(conversation, "refuse") == "The token says no: say yes."
    assert conversation.ask({"do": "chatter", "pin": ""}) == {"length": 0}
    assert psutil.Process().children() == children


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no signals")
def test_a_crash_is_reported_with_its_signal_for_each_question(conversation: Conversation) -> None:
    for _ in range(2):
        assert refusal(conversation, "crash").startswith("The module m.so ended its process (signal 11): ")


def test_a_fault_in_the_child_is_reported_with_its_last_output(conversation: Conversation) -> None:
    assert "(exit code 1, saying: ZeroDivisionError: a fault of our own)" in refusal(conversation, "stumble")


def test_a_module_that_hangs_is_ended_in_time() -> None:
    began, before = time.monotonic(), psutil.Process().children()
    with Conversation("odd_conversations", 1.0, "The module m.so") as conversation:
        assert refusal(conversation, "hang").startswith("The module m.so did not answer within 1 s: ")
    assert time.monotonic() - began < 30.0, "it would have slept a minute"
    assert psutil.Process().children() == before


def test_a_closed_one_answers_no_more(conversation: Conversation) -> None:
    conversation.close()
    assert refusal(conversation, "chatter") == "The module m.so is closed: open its key again."
    conversation.close()
