"""Roles of live runs that kill themselves: in the middle of their work, and neither before nor after it."""

from __future__ import annotations

import os
import signal
from typing import Any

from labconsole.engine.role import RoleProcess
from labconsole_keypool.series import KEYS_STORED_CHANNEL, KEYS_USED_CHANNEL
from labconsole_keypool.service.generator_role import GeneratorRole
from labconsole_keypool.service.signer_role import SignerRole

KILLED_GENERATOR = f"{__name__}:KilledGenerator"
KILLED_SIGNER = f"{__name__}:KilledSigner"


def _kill_after(context: RoleProcess, channel: str, count: int) -> None:
    """Kill this process once it has counted so many on `channel`."""
    report, total = context.count, 0

    def counted(name: str, amount: int = 1, *details: Any) -> None:
        nonlocal total
        report(name, amount, *details)
        total += amount if name == channel else 0
        if total >= count:
            os.kill(os.getpid(), signal.SIGKILL)

    context.count = counted  # type: ignore[method-assign]


class KilledGenerator(GeneratorRole):
    """It is killed once it has stored ten keys, which are fifty: it stores them together."""

    def __init__(self, context: RoleProcess) -> None:
        super().__init__(context)
        _kill_after(context, KEYS_STORED_CHANNEL.name, 10)


class KilledSigner(SignerRole):
    """It is killed once it has signed with five keys."""

    def __init__(self, context: RoleProcess) -> None:
        super().__init__(context)
        _kill_after(context, KEYS_USED_CHANNEL.name, 5)
