"""Who takes part in a run of the live signing service: each process with its token, its threads and its keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.choices import KeySource
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.service.service_parameters import ServiceParameters


class RunPlan:
    """The processes of one run. Makes the lab token where it is named and not there yet. Raises UserError."""

    def __init__(self, parameters: ServiceParameters, store: Path, run: str) -> None:
        self.parameters = parameters
        self.store = store
        self.run = run
        self._configurations = {name: find_configuration(name) for name in parameters.tokens}

    def generators(self) -> list[RoleSettings]:
        """Those that generate keys, over the generating tokens in turn; none without a pool."""
        if self.parameters.keys is not KeySource.POOL:
            return []
        tokens, count = self.parameters.generating_tokens, self.parameters.generators
        return [self._settings(f"generator-{at + 1}", tokens[at % len(tokens)]) for at in range(count)]

    def signers(self) -> list[RoleSettings]:
        """Those that sign, over the signing tokens in turn; they share threads and the keys of the start."""
        parameters = self.parameters
        tokens, count = parameters.signing_tokens, parameters.signers
        shares = zip(
            _shares(parameters.threads, count),
            _shares(parameters.keys_at_start, count),
            _shares(parameters.store_keys, count),
            strict=True,
        )
        return [
            self._settings(f"signer-{at + 1}", tokens[at % len(tokens)]).model_copy(
                update={"threads": threads, "keys_at_start": keys, "store_keys": stored}
            )
            for at, (threads, keys, stored) in enumerate(shares)
        ]

    def _settings(self, name: str, token: str) -> RoleSettings:
        configuration: TokenConfiguration = self._configurations[token]
        return RoleSettings(
            name=name,
            parameters=self.parameters,
            token=token,
            configuration=configuration,
            store=self.store,
            run=self.run,
        )


def _shares(total: int, count: int) -> Iterator[int]:
    """`total` in `count` parts that differ by one at most, the larger ones first."""
    return (total // count + (at < total % count) for at in range(count))
