"""What a signer process does with a request: a fresh key, the signature, the CSR, the certificate, the record."""

from __future__ import annotations

from labconsole.security.token.opening import Token
from labconsole.security.token.terms import KeyKind
from labconsole_keypool.authority import Authority
from labconsole_keypool.choices import KeySource, Refill
from labconsole_keypool.emulation import Device
from labconsole_keypool.key_store import KeyStore
from labconsole_keypool.reports import Reports
from labconsole_keypool.wire import Done, Job


class SigningEngine:
    """Signs with a fresh key for every request, on `lanes` threads that call `process`.

    Args:
        token: Open; the engine opens a session for each lane and one for its refills.
        store: Where the wrapped keys are; kept by the caller, who closes it after the engine.
        authority: The CA.
        device: How fast the token is, and what it holds.
        reports: Counts `keys_claimed`, `keys_loaded`, `keys_used`; events; refills. May be called by any thread.
        kind: Kind of keys in the pool; a sign request that asks for another gets a generated one.
        lanes: Signing threads.
        keys: From the pool, or each generated for its request.
        batch: Key pairs that a refill claims and unwraps.
        low_water: Parallel refill begins when fewer keys than this are in the token.
        refill: When refills begin, and when their keys can be used.
        run: Uuid of the run, for the record.
    """

    def __init__(
        self,
        token: Token,
        store: KeyStore,
        authority: Authority,
        device: Device,
        reports: Reports,
        *,
        kind: KeyKind,
        lanes: int,
        keys: KeySource,
        batch: int,
        low_water: int,
        refill: Refill,
        run: str,
    ) -> None:
        raise NotImplementedError

    def fill(self, count: int, stored: int = 0) -> int:
        """Load `count` keys into the token's RAM and `stored` into its store, over all lanes; returns how many came.

        Called before T0: their requests count as A and B. Raises TokenError, StoreError.
        """
        raise NotImplementedError

    def start_refill(self) -> None:
        """From now on keys are loaded by a thread of the engine's own; without it, none are."""

    def pause_refill(self, paused: bool) -> None:
        """Load nothing while `paused` and keys are in the token: they need the processor for signing."""

    def process(self, lane: int, job: Job) -> Done:
        """Serve one request; blocks. One thread for each lane, 0 to `lanes` - 1.

        A key that turns out to be tampered with becomes invalid, and the request takes the next one.

        Raises:
            TokenError: the token is gone or refuses.
            StoreError: the record cannot be kept.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the refill, destroy the keys that are left in the token (they become invalid), write the last records."""
