"""The keys in the token: a session for each signing thread, so that no thread waits for another's.

A key is bound to the session that unwrapped it, and a session serves one thread at a time. Keys are therefore
unwrapped into the sessions in turn; a thread takes from its own session, else from the fullest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import PrivateKey, private_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, find_wrapper
from labconsole.security.token.errors import TamperedKeyError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.store.key_records import ClaimedKey


@dataclass(frozen=True, slots=True)
class LoadedKey:
    """A private key in the token, ready to sign once; `row` is its key in the store, 0 if it was never there."""

    row: int
    key: PrivateKey
    origin: KeyOrigin
    destroy: Callable[[], None]
    """Removes it from the token. Raises TokenError."""


class SigningSession:
    """One session of the token, and the keys in it, used in the order of loading."""

    def __init__(self, token: Token) -> None:
        self.keys: deque[LoadedKey] = deque()
        self._session = token.session()
        self._wrappers: dict[str, Wrapper] = {}

    def wrapper(self, serial: str, mechanism: WrapMechanism) -> Wrapper:
        """The wrapper key, through this session. Raises KeyMissingError, TokenError."""
        found = self._wrappers.get(serial)
        if found is None:
            found = self._wrappers[serial] = find_wrapper(self._session, serial, mechanism)
        return found

    def unwrap(self, claimed: ClaimedKey, origin: KeyOrigin) -> LoadedKey:
        """The claimed key in the token, but not yet among `keys`; of TOKEN_STORE as a token object.

        Raises:
            TamperedKeyError: its private or its public key is not what was stored.
            TokenError: the token is full or gone, or does not have the wrapper key.
        """
        wrapper = self.wrapper(claimed.wrapper, claimed.mechanism)
        public_key = _public_key(claimed)
        handle = wrapper.unwrap(claimed.private, claimed.kind, stored=origin is KeyOrigin.TOKEN_STORE)
        key = private_key(handle, public_key)
        return LoadedKey(claimed.id, key, origin, key.destroy)

    def generate(self, kind: KeyKind) -> LoadedKey:
        """A new key pair. Raises TokenError."""
        pair = generate(self._session, kind, extractable=False)
        return LoadedKey(0, private_key(pair.private_handle, pair.public_key), KeyOrigin.GENERATED, pair.destroy)


class SigningSessions:
    """All sessions of a signer. Not thread-safe: callers hold a lock; no method blocks."""

    def __init__(self, token: Token, count: int) -> None:
        self._sessions = [SigningSession(token) for _ in range(count)]
        self._next = 0

    def __len__(self) -> int:
        """Keys in all sessions."""
        return sum(len(session.keys) for session in self._sessions)

    def __getitem__(self, number: int) -> SigningSession:
        return self._sessions[number]

    def next(self) -> SigningSession:
        """The session that gets the next key."""
        self._next = (self._next + 1) % len(self._sessions)
        return self._sessions[self._next]

    def take(self, number: int) -> LoadedKey | None:
        """A key of this session, else of the fullest; None if there is none at all."""
        session = self._sessions[number]
        if not session.keys:
            session = max(self._sessions, key=lambda other: len(other.keys))
        return session.keys.popleft() if session.keys else None


def _public_key(claimed: ClaimedKey) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    try:
        key = load_der_public_key(claimed.public)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TamperedKeyError("The stored public key was changed: it is not a public key. Do not use it.") from error
    if isinstance(key, ec.EllipticCurvePublicKey if claimed.kind is KeyKind.P_256 else rsa.RSAPublicKey):
        return key
    raise TamperedKeyError(f"The stored public key was changed: it is not a {claimed.kind} key. Do not use it.")
