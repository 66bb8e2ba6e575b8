"""The process of one operation: `python -m labconsole.engine.operation`, with its task on standard input."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from labconsole.engine.child_channel import ChildChannel
from labconsole.engine.protocol import WorkerChannel
from labconsole.errors import UserError
from labconsole.model.operation import Result, conduct
from labconsole.model.plugin import Plugins
from labconsole.model.validation_faults import fault_sentence, nearest
from labconsole.processes import create_child_job, die_with_parent
from labconsole.security.secret_value import Secret

PROGRESS_INTERVAL_S = 0.1


class _Context:
    """`OperationContext` where the operation is performed."""

    def __init__(self, channel: WorkerChannel, secrets: Mapping[str, Secret], typed: str) -> None:
        self._channel = channel
        self._secrets = secrets
        self._typed = typed
        self._stop = threading.Event()
        self._sent_s = 0.0
        self._newest: tuple[int, int] | None = None

    @property
    def stop_requested(self) -> bool:
        return self._stop.is_set()

    @property
    def typed(self) -> str:
        return self._typed

    def on_message(self, message: Mapping[str, Any]) -> None:
        """Called on the channel's reader thread."""
        if message["t"] == "cancel":
            self._stop.set()

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        self._newest = (done, total)
        if now - self._sent_s >= PROGRESS_INTERVAL_S:
            self._sent_s = now
            self.flush()

    def flush(self) -> None:
        """Send the progress that was held back."""
        if self._newest is not None:
            done, total = self._newest
            self._newest = None
            self._channel.send({"t": "progress", "done": done, "total": total})

    def say(self, sentence: str) -> None:
        self._channel.send({"t": "say", "sentence": sentence})

    def secret(self, key: str) -> Secret | None:
        return self._secrets.get(key)

    def hand_over(self, title: str, secret: Secret) -> None:
        self._channel.send({"t": "secret", "title": title, "text": secret.reveal()})


def _run_operation(task: Mapping[str, Any], context: _Context) -> Result:
    """Run the operation, and return its result. Raises UserError."""
    name, plugins = task["name"], Plugins.discover()
    try:
        operation = plugins.operation(name)
    except KeyError:
        raise UserError(f"No operation is called {name}{nearest(name, plugins.operations())}") from None
    try:
        parameters = operation.parameters.model_validate(task["parameters"])
    except ValidationError as error:
        raise UserError(f"{operation.title}: {fault_sentence(error, operation.parameters)}") from error
    return conduct(operation, parameters, context)


def perform_operation(task: Mapping[str, Any], channel: WorkerChannel) -> bool:
    """Run the operation of a task and report its end; returns whether it ended as it should, also when cancelled."""
    context = _Context(channel, {key: Secret(value) for key, value in task["secrets"].items()}, task["typed"])
    channel.listen(context.on_message)
    fault, result = "", Result()
    try:
        result = _run_operation(task, context)
    except UserError as error:
        fault = str(error)
    except Exception as error:  # noqa: BLE001 - an operation is foreign code
        traceback.print_exc()
        fault = f"A fault in the operation: {type(error).__name__}: {error}"
    context.flush()
    channel.send(
        {
            "t": "end",
            "fault": fault,
            "result": result.to_json(),
            "failed": bool(fault),
            "stopped": context.stop_requested,
        }
    )
    return not fault


def main() -> int:
    """Entry of the operation's process: 0 when it ended as it should, also when it was cancelled, else 1."""
    channel = ChildChannel()
    task = channel.first()
    die_with_parent(task["parent_pid"])
    job = create_child_job()
    succeeded = perform_operation(task, channel)
    channel.close()
    del job
    return 0 if succeeded else 1


if __name__ == "__main__":
    raise SystemExit(main())
