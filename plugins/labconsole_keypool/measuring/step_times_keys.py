"""Key pairs that a step works on: made, wrapped and unwrapped as the pool does it, each operation timed."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from labconsole.clock import now_ns
from labconsole.security.token.choice import choose_mechanism
from labconsole.security.token.cryptoki.key_pairs import KeyPair, generate
from labconsole.security.token.cryptoki.mechanism_probes import probe_wrapping
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import PrivateKey, private_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, make_wrapper
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.device.emulation import Device, Operation
from labconsole_keypool.measuring.step_times_samples import StepOperation
from labconsole_keypool.measuring.timed_threads import Observations
from labconsole_keypool.store.key_records import ClaimedKey, NewKey

_SHA256 = utils.Prehashed(hashes.SHA256())


@dataclass(frozen=True)
class StepKeys:
    """Does the operations of a step in one session of the token; `thread` is the number under which they are noted."""

    kind: KeyKind
    device: Device
    wrapper: Wrapper
    observations: Observations
    thread: int = 1

    @classmethod
    def of(cls, token: Token, kind: KeyKind, device: Device, observations: Observations, *, wrapping: bool) -> StepKeys:
        """With a wrapper key that dies with its session; what it can wrap is asked only where a step is `wrapping`.

        Raises:
            TokenError: the token cannot wrap such keys.
        """
        session = token.session()
        mechanism = WrapMechanism.KEY_WRAP
        if wrapping:
            mechanism = choose_mechanism(probe_wrapping(session, token.wrap_mechanisms), kind)
        wrapper = make_wrapper(session, f"step-times {secrets.token_hex(8)}", mechanism, stored=False)
        return cls(kind, device, wrapper, observations)

    def in_new_session(self, token: Token, thread: int) -> StepKeys:
        """For another thread. What comes before the first key, the connection and the wrapper key to be found, is the
        source's cipher initialization, and is noted."""
        started_ns = now_ns()
        self.device.connect()
        wrapper = self.wrapper.in_session(token.session())
        self._note(StepOperation.INITIALISE, started_ns)
        return StepKeys(self.kind, self.device, wrapper, self.observations, thread)

    def generate(self) -> KeyPair:
        """A new key pair. Raises TokenError."""
        started_ns = now_ns()
        with self.device.busy(Operation.GENERATE):
            pair = generate(self.wrapper.key.session, self.kind, extractable=True)
        self._note(StepOperation.GENERATE, started_ns)
        return pair

    def make(self, serial: str) -> NewKey:
        """A new key pair, wrapped, for the wrapper key that a storage medium calls `serial`. Raises TokenError."""
        began_ns = time.time_ns()
        pair = self.generate()
        ended_ns, started_ns = time.time_ns(), now_ns()
        with self.device.busy(Operation.WRAP):
            private = self.wrapper.wrap(pair)
        self._note(StepOperation.WRAP, started_ns)
        pair.destroy()
        return NewKey(
            kind=self.kind,
            private=private,
            public=pair.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            wrapper=serial,
            mechanism=self.wrapper.mechanism,
            generate_start_ns=began_ns,
            generate_end_ns=ended_ns,
            generate_duration_ns=ended_ns - began_ns,
        )

    def unwrap(self, key: ClaimedKey | NewKey) -> PrivateKey:
        """The key in the token. Raises TokenError: it was changed, or does not fit in."""
        started_ns = now_ns()
        with self.device.busy(Operation.UNWRAP):
            handle = self.wrapper.unwrap(key.private, self.kind)
        self._note(StepOperation.UNWRAP, started_ns)
        public = load_der_public_key(key.public)
        assert isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
        return private_key(handle, public)

    def sign(self, key: PrivateKey, digest: bytes) -> bytes:
        """The signature of a SHA-256 digest: PKCS #1 v1.5, or ECDSA. Raises TokenError."""
        started_ns = now_ns()
        with self.device.busy(Operation.SIGN):
            if isinstance(key, rsa.RSAPrivateKey):
                signature = key.sign(digest, padding.PKCS1v15(), _SHA256)
            else:
                signature = key.sign(digest, ec.ECDSA(_SHA256))
        self._note(StepOperation.SIGN, started_ns)
        return signature

    def _note(self, operation: StepOperation, started_ns: int) -> None:
        self.observations.add(operation, self.thread, 1, started_ns, now_ns())


def verified(key: PrivateKey, digest: bytes, signature: bytes) -> None:
    """Raises InvalidSignature: it is not that of this key."""
    if isinstance(key, rsa.RSAPrivateKey):
        key.public_key().verify(signature, digest, padding.PKCS1v15(), _SHA256)
    else:
        key.public_key().verify(signature, digest, ec.ECDSA(_SHA256))
