"""The parameters of the simulated signing service: what the form shows and a profile sets."""

from __future__ import annotations

from typing import Annotated

from pydantic import field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Origin
from labconsole.profiles.timing_profile import load_timing, timing_names
from labconsole_keypool.service.keypool_parameters import (
    SERVICE,
    Batch,
    KeypoolParameters,
    KeysAtStart,
    LowWater,
    key_count,
)
from labconsole_keypool.simulation.service_model import ServiceModel


class SimulationParameters(KeypoolParameters):
    """One scenario of the simulated signing service."""

    timing: str = parameter(
        "Timing profile",
        "How long each operation of the device takes, with RSA-2048",
        default="luna-sa-1700",
        group=SERVICE,
        choices=timing_names,
    )

    keys_at_start: KeysAtStart = 12_033
    low_water: LowWater = 2000
    batch: Batch = 2000
    pool_keys: Annotated[
        int,
        key_count("In the pool", "Wrapped key pairs outside at the start; once they are used up, keys are generated"),
    ] = 20_000

    @field_validator("timing")
    @classmethod
    def _is_given(cls, timing: str) -> str:
        if not timing:
            raise ValueError(f"a simulation needs a timing profile; there are: {', '.join(timing_names())}")
        return timing

    @property
    def origin(self) -> Origin:
        return Origin.SIMULATED

    def service_model(self, seed: int = 0) -> ServiceModel:
        """The signing service that the simulator follows; `seed` is of times with a distribution.

        Raises UserError: its timing profile is broken.
        """
        profile = load_timing(self.timing)
        sign, generation = profile.sign[self.sign], profile.key_generation
        return ServiceModel(
            sign_ms=profile.sign_ms(self.sign, self.threads),
            key_generation_ms=profile.key_generation.at(self.key_generation),
            unwrap_ms=profile.unwrap.ms,
            keys=self.keys,
            keys_at_start=self.keys_at_start,
            store_keys=self.store_keys,
            pool_keys=self.pool_keys,
            batch=self.batch,
            low_water=self.low_water,
            refill=self.refill,
            threads=self.threads,
            generators=profile.key_generation.at_a_time,
            sign_factors=sign.factors if sign.distribution else None,
            generation_factors=generation.factors if generation.distribution else None,
            seed=seed,
        )
