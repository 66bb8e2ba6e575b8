"""Key pairs that sign once: generated in a token ahead of time, kept outside wrapped, and destroyed after their use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_hex

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pkcs11 import Session

from labconsole.clock import now_ns
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.mechanism_probes import mechanism_for
from labconsole.security.token.cryptoki.private_keys import PrivateKey, private_key
from labconsole.security.token.cryptoki.wrapping import make_wrapper
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A key pair outside of its token: its private key is encrypted by a wrapper key of the token."""

    private: bytes
    public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    generate_ns: int
    wrap_ns: int


@dataclass(frozen=True, slots=True)
class SignedOnce:
    """A signature by a wrapped key, and how long the token took to load the key, to sign, and to destroy it."""

    signature: bytes
    load_ns: int
    sign_ns: int
    destroy_ns: int


class WrappedKeys:
    """Generates and uses key pairs of one kind in one session; the wrapper key is lost when the session is closed."""

    def __init__(self, session: Session, named: Sequence[WrapMechanism], kind: KeyKind) -> None:
        """`named` are the wrap mechanisms of the token's configuration.

        Raises:
            MechanismMissingError: the token wraps no keys of this kind safely.
            TokenError: it is full or gone.
        """
        self._session, self._kind = session, kind
        mechanism = mechanism_for(session, kind, named)
        self._wrapper = make_wrapper(session, f"wrapper {token_hex(8)}", mechanism, stored=False)

    def generate(self) -> WrappedKey:
        """A new key pair, wrapped and no longer in the token. Raises TokenError."""
        began_ns = now_ns()
        pair = generate(self._session, self._kind, extractable=True)
        generated_ns = now_ns()
        try:
            private = self._wrapper.wrap(pair)
            wrapped_ns = now_ns()
        finally:
            pair.destroy()
        return WrappedKey(private, pair.public_key, generated_ns - began_ns, wrapped_ns - generated_ns)

    def sign(
        self,
        private: bytes,
        public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey,
        signature_of: Callable[[PrivateKey], bytes],
    ) -> SignedOnce:
        """Load the wrapped key, let `signature_of` sign with it, and destroy it in the token.

        Raises:
            TamperedKeyError: the wrapped key was changed, or is of another token or session.
            TokenError: the token is full or gone, or refuses.
        """
        began_ns = now_ns()
        key = private_key(self._wrapper.unwrap(private, self._kind), public_key)
        loaded_ns = now_ns()
        try:
            signature = signature_of(key)
            signed_ns = now_ns()
        finally:
            key.destroy()
        return SignedOnce(signature, loaded_ns - began_ns, signed_ns - loaded_ns, now_ns() - signed_ns)
