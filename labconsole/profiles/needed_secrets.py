"""The secrets that the runs of some scenarios need: asked for before a run, since workers cannot ask."""

from __future__ import annotations

from collections.abc import Iterable

from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.security.secrets import SecretRequest
from labconsole.store.records import NewScenario


def needed_secrets(scenarios: Iterable[NewScenario], plugins: Plugins) -> tuple[SecretRequest, ...]:
    """The requests of all scenarios, one for each key. Raises UserError if a trial cannot determine its own."""
    requests: dict[str, SecretRequest] = {}
    for scenario in scenarios:
        if scenario.kind not in plugins.kinds():
            raise UserError(f"The trial {scenario.kind} is not installed here: install the plugin that brings it.")
        try:
            trial = plugins.trial(scenario.kind)
            parameters = trial.parameters.model_validate(dict(scenario.parameters))
            requests |= {request.key: request for request in trial.secrets(parameters)}
        except Exception as error:
            raise UserError(
                f"The trial {scenario.kind} cannot say which secrets {scenario.name} needs: {error}"
            ) from error
    return tuple(requests.values())
