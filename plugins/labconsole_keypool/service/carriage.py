"""Sees to it that the tokens that sign have the wrapper keys of those that generate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from labconsole.model.trial import Level, RunContext
from labconsole.security.token.configuration import is_lab
from labconsole_keypool.choices import KeySource
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.shares.wrapper_transfer import carry
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import WrapperKey

_INTERVAL_S = 1.0


class Carriage:
    """Carries new wrapper keys between the console's own tokens; of other tokens it says what they lack."""

    def __init__(self, parameters: ServiceParameters, context: RunContext, store: KeyReader) -> None:
        self._parameters = parameters
        self._context = context
        self._store = store
        self._names: dict[str, str] = {}
        self._carried: set[tuple[str, str]] = set()
        self._looked = -_INTERVAL_S

    def told(self, infos: Sequence[Mapping[str, Any]]) -> None:
        """Generators reported the serial numbers of their tokens."""
        self._names |= {info["token"]: info["settings"].token for info in infos}

    def carry(self) -> None:
        """Carry what is new, once a second at most. Raises UserError: a token refuses."""
        if len(self._parameters.tokens) < 2 or time.monotonic() - self._looked < _INTERVAL_S:
            return
        self._looked = time.monotonic()
        wrappers = self._store.wrappers()
        for serial, source in self._names.items():
            made = [wrapper for wrapper in wrappers if wrapper.token == serial]
            for token in self._parameters.signing_tokens:
                if token != source and is_lab(token) and is_lab(source):
                    self._carry(source, token, made)

    def say_what_lacks(self, infos: Sequence[Mapping[str, Any]]) -> None:
        """Say which signers could load fewer keys than they should have."""
        if self._parameters.keys is not KeySource.POOL:
            return
        for info in infos:
            signer: RoleSettings = info["settings"]
            wanted = signer.keys_at_start + signer.store_keys
            if info["keys"] < wanted:
                self._context.event(
                    "keys missing",
                    f"{signer.name} could load {info['keys']:,} of {wanted:,} keys: the pool has no more, or they are "
                    f"wrapped by wrapper keys that the token {signer.token} lacks: load these from their shares.",
                    Level.WARNING,
                    signer=signer.name,
                    loaded=info["keys"],
                    wanted=wanted,
                )

    def _carry(self, source: str, token: str, made: Sequence[WrapperKey]) -> None:
        # One that has wrapped nothing may not be in its token yet.
        new = [wrapper for wrapper in made if wrapper.pairs and (token, wrapper.serial) not in self._carried]
        if not new:
            return
        arrived = carry(source, token, new)
        self._carried |= {(token, wrapper.serial) for wrapper in new}
        if arrived:
            self._context.event(
                "carried",
                f"Wrapper keys carried from the token {source} to {token}, under a transport key of which any 2 of 3 "
                f"shares were needed: {', '.join(arrived)}.",
                wrappers=list(arrived),
            )
