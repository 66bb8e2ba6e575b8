"""An action of the practice plugin: counts, and misbehaves in every way we know."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import ClassVar, Literal

from labconsole.errors import UserError
from labconsole.model.operation import Confirmation, Operation, OperationContext, Result, TextTable, Tone, TonedText
from labconsole.model.parameters import Parameters, parameter
from labconsole.security.secrets import Secret, SecretRequest, SecretSource

FAULTS = ("none", "refuse", "fault", "exit", "deaf", "child")

TABLES = Result(
    (
        "Two tables.",
        TextTable(
            ("", "Number", "To do"),
            (
                (TonedText("ok", Tone.GOOD), "one", ""),
                (TonedText("no", Tone.WARNING), "two", "count again"),
                (TonedText("missing", Tone.BAD), "three", "buy one"),
            ),
        ),
        "Row meets column:",
        TonedText("A meets B too often.", Tone.BAD),
        TextTable(("", "A", "B"), (("A", TonedText("·", Tone.MUTED), "t"), ("B", "✓", "·")), narrow=True),
        "In all: 3.",
    )
)


class TallyParameters(Parameters):
    """How far to count, and how to go wrong."""

    count: int = parameter("Count", "How far to count", default=10, ge=1, le=1_000_000)
    pause: float = parameter("Pause", "Between numbers", default=0.0, ge=0, unit="s")
    destroy: bool = parameter("Destroy", "Whether a label must be typed", default=False)
    in_window: bool = parameter("In the window", "Whether it must be typed in the window alone", default=False)
    ask: bool = parameter("Ask", "Whether a passphrase is asked for", default=False)
    table: bool = parameter("Table", "Whether the result has tables", default=False)
    fault: Literal[FAULTS] = parameter("Fault", "What goes wrong", default="none")  # type: ignore[valid-type]


class Tally(Operation[TallyParameters]):
    """Counts."""

    name: ClassVar[str] = "practice.tally"
    title: ClassVar[str] = "Count to a number"
    description: ClassVar[str] = "Counts slowly, for practice."
    parameters: ClassVar[type[Parameters]] = TallyParameters

    def confirmation(self, parameters: TallyParameters) -> Confirmation | None:
        loss = "All numbers in my-label will be lost."
        return Confirmation("my-label", loss, window_only=parameters.in_window) if parameters.destroy else None

    def secrets(self, parameters: TallyParameters) -> tuple[SecretRequest, ...]:
        return (SecretRequest("word", "counting", SecretSource()),) if parameters.ask else ()

    def run(self, parameters: TallyParameters, context: OperationContext) -> Result | str:
        print("a stray print")
        match parameters.fault:
            case "refuse":
                raise UserError("The numbers are out: order new ones.")
            case "fault":
                raise RuntimeError("seven")
            case "exit":
                print("<b>My last words.</b>\n" * 8, file=sys.stderr, flush=True)
                os._exit(7)
            case "deaf":
                context.say("I hear nothing.")
                time.sleep(60)
            case "child":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
                context.say(str(child.pid))
                time.sleep(60)
        word = context.secret("word")
        if word is not None:
            context.hand_over("What was given", Secret(word.reveal()[::-1]))
        done = 0
        while done < parameters.count and not context.stop_requested:
            context.progress(done, parameters.count)
            context.say(f"At {done}.")
            time.sleep(parameters.pause)
            done += 1
        context.progress(done, parameters.count)
        return TABLES if parameters.table else f"Counted to {done:,}."
