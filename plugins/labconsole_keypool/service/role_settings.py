"""The settings of the processes of the live signing service, as JSON and without any secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from labconsole.model.role import RoleContext
from labconsole.model.trial import Level, RoleSpec
from labconsole.profiles.timing_profile import load_timing
from labconsole.security.secret_value import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.errors import TokenGoneError
from labconsole_keypool.device.emulation import Device, Timing
from labconsole_keypool.service.service_parameters import ServiceParameters

TOKEN_GONE = "token_gone"
"""In the result of a role: its token was removed; the name of the token."""


class RoleSettings(BaseModel):
    """Settings of a signer or a generator.

    Attributes:
        name: The role's name, such as `signer-1`.
        parameters: The scenario.
        token: Name of its token.
        configuration: How to reach that token.
        store: File of the key store.
        run: Name of the run in the key store.
        threads: Signing threads of this process, each with a session of the token.
        keys_at_start: Keys that this process loads into the token's RAM before T0.
        store_keys: Keys that it loads into the token's store before T0.

    The last three are of signers alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    parameters: ServiceParameters
    token: str
    configuration: TokenConfiguration
    store: Path
    run: str
    threads: int = 1
    keys_at_start: int = 0
    store_keys: int = 0

    def spec(self, target: str) -> RoleSpec:
        """The role to start; it may ask its context for the token's PIN."""
        pin = self.configuration.pin_request(self.token)
        return RoleSpec(self.name, target, self.model_dump(mode="json"), (pin,))

    def device(self) -> Device:
        """The emulated speed and capacity of the token. Raises UserError: its timing profile is broken."""
        parameters = self.parameters
        if not parameters.timing:
            return Device(ram=parameters.token_capacity)
        profile = load_timing(parameters.timing)
        timing = Timing(profile, parameters.sign, parameters.key_generation, parameters.speed)
        ram = min(parameters.token_capacity, profile.ram.key_pairs)
        return Device(timing, ram=ram, store=profile.store.key_pairs)

    def without_token(self, context: RoleContext, error: TokenGoneError) -> dict[str, Any]:
        """The result of a role whose token was removed: the run continues where another token is left."""
        context.event(
            "token gone", f"The token {self.token} is gone. {error}", Level.ERROR, token=self.token, role=self.name
        )
        return {TOKEN_GONE: self.token}

    def pin(self, context: RoleContext) -> Secret | None:
        """The PIN that the operator was asked for; None where the configuration's source has it."""
        return context.secret(self.configuration.pin_request(self.token).key)
