"""The names of a run's roles are known before it: those that hosts are chosen for are those that it starts."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.identities import RunIdentities
from labconsole_amqp.trial.messaging_run import role_specs


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (
            {"senders": 2, "receivers": 2, "numbered": True},
            ("broker", "receiver-0", "receiver-1", "sender-0", "sender-1"),
        ),
        ({"shaping": "built-in", "link_rate": 5.0}, ("broker", "shaper", "receiver-0", "sender-0")),
        ({"broker": "none"}, ("receiver-0", "sender-0")),
        ({"broker": "external", "mode": "sender", "trial_id": "a"}, ("sender-0", "clock")),
    ],
)
def test_a_run_starts_the_roles_that_are_named_before(
    lab_home: Path, settings: dict[str, Any], names: tuple[str, ...]
) -> None:
    parameters = AmqpParameters(test=1, **settings)
    assert AmqpTrial().role_names(parameters) == names
    assert tuple(spec.name for spec in chain(*role_specs(parameters, RunIdentities(parameters)))) == names
