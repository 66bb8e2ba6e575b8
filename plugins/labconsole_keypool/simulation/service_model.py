"""The signing service as a simulation sees it: how long its steps take, and which keys it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.choices import KeySource, Refill

Factors = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class ServiceModel:
    """Signing threads that take requests from one FIFO queue, and the keys that they take for them.

    A request takes the keys in the order of Appendix B: those in RAM, those in the token's store, those loaded from the
    pool; when no key is left anywhere, one is generated for it. Threads that sign do not slow one another: `sign_ms` is
    what one of `threads` takes. Threads that generate do: the device generates `generators` key pairs at a time, and
    further threads wait for their turn. One loader unwraps.

    Attributes:
        sign_ms: Time to sign once the key is there (Si).
        key_generation_ms: Time to generate a key pair (KG).
        unwrap_ms: Time to load and unwrap one key pair (KP).
        keys: With `GENERATED` every request generates its key pair, and nothing below but `threads` and `generators`
            matters.
        keys_at_start: Key pairs in the token's RAM at T0.
        store_keys: Key pairs in the token's store at T0.
        pool_keys: Wrapped key pairs outside at T0, to refill from.
        batch: Key pairs that a refill loads, at least 1; the last one loads what is left.
        low_water: With `PARALLEL`, a refill begins when fewer key pairs than this are in the token; at the latest when
            there are none.
        refill: When a refill begins, and when its keys can be used.
        threads: Signing threads, at least 1.
        generators: Key pairs that the device generates at a time, at least 1.
        sign_factors: By what single signatures differ from `sign_ms`, for uniform random numbers; None: by nothing.
        generation_factors: The same of `key_generation_ms`.
        seed: Of those random numbers.

    Raises:
        ValueError: `batch`, `threads` or `generators` is below 1.
    """

    sign_ms: float
    key_generation_ms: float
    unwrap_ms: float
    keys: KeySource
    keys_at_start: int = 0
    store_keys: int = 0
    pool_keys: int = 0
    batch: int = 1
    low_water: int = 0
    refill: Refill = Refill.WHEN_EMPTY
    threads: int = 1
    generators: int = 1
    sign_factors: Factors | None = None
    generation_factors: Factors | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "threads", "generators"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 1")
