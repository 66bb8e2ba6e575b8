"""A private key in a token, usable in any process: a child process holds the PKCS#11 module and signs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from labconsole.security.secrets import Secret
from labconsole.security.token.terms import KeyKind

TokenPrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@contextmanager
def opened_token_key(token_name: str, label: str, pin: Secret) -> Iterator[TokenPrivateKey]:
    """The private key labelled `label` in the token called `token_name`, while the context is open. It only signs.

    Raises:
        TokenError: no such token or key, a wrong PIN (tried once), or the module crashes or hangs.
    """
    raise NotImplementedError
    yield


def make_token_key(
    token_name: str, label: str, kind: KeyKind, pin: Secret
) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    """Make a key pair in the token, for good and never extractable. Raises TokenError as above, and: label taken."""
    raise NotImplementedError
