"""The process that `remote_private_key` starts: opens one token, generates key pairs in it and signs with its keys.

For `one_time_keys` it also generates wrapped keys, each of which it loads for one signature.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from pkcs11 import Attribute, Session

from labconsole.clock import now_ns
from labconsole.security.secret_value import Secret
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.opening import Token, open_with_pin
from labconsole.security.token.cryptoki.private_keys import PrivateKey, TokenRSAPrivateKey, find_private_key
from labconsole.security.token.cryptoki.wrapped_keys import WrappedKey, WrappedKeys
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.module_process import answer_questions
from labconsole.security.token.private_key_types import HASHES
from labconsole.security.token.token_access import ReceivedAccess

_BATCH_NS = 500_000_000
"""How long one answer with keys that are generated ahead may take, a key more at most."""


@dataclass
class TokenSigner:
    """An open token, and its key that signs."""

    closing: ExitStack
    token: Token | None = None
    session: Session | None = None
    key: PrivateKey | None = None
    ahead: WrappedKeys | None = None

    def respond(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to one question of `remote_private_key` or `one_time_keys`. Raises UserError."""
        match question["do"]:
            case "open":
                configuration = ReceivedAccess.from_json(question["configuration"])
                token = open_with_pin(question["name"], configuration, Secret(question["pin"]))
                self.token = self.closing.enter_context(token)
                self.session = self.token.session()
                return {}
            case "find":
                self.key = find_private_key(self._opened(), question["label"])
                return {"public_key": _encoded(self.key.public_key())}
            case "make":
                made = _make(self._opened(), question["label"], KeyKind(question["kind"]))
                return {"public_key": _encoded(made)}
            case "prepare ahead":
                assert self.token is not None
                self.ahead = WrappedKeys(self._opened(), self.token.wrap_mechanisms, KeyKind(question["kind"]))
                return {}
            case "generate ahead":
                return {"keys": self._generate_ahead(question["most"])}
            case "sign once":
                return self._sign_once(question)
            case _:
                if self.key is None:
                    raise TokenError("No key is open: name one first.")
                return {"signature": _signature(self.key, question).hex()}

    def _opened(self) -> Session:
        if self.session is None:
            raise TokenError("No token is open: open it first.")
        return self.session

    def _ahead(self) -> WrappedKeys:
        if self.ahead is None:
            raise TokenError("The token generates no keys ahead: prepare it first.")
        return self.ahead

    def _generate_ahead(self, most: int) -> list[dict[str, Any]]:
        """Wrapped keys, one at least, up to `most`: as many as are ready in half a second."""
        ahead, began_ns, made = self._ahead(), now_ns(), list[WrappedKey]()
        while not made or (len(made) < most and now_ns() - began_ns < _BATCH_NS):
            made.append(ahead.generate())
        return [
            {
                "private": one.private.hex(),
                "public_key": _encoded(one.public_key),
                "generate_ns": one.generate_ns,
                "wrap_ns": one.wrap_ns,
            }
            for one in made
        ]

    def _sign_once(self, question: dict[str, Any]) -> dict[str, Any]:
        loaded = load_der_public_key(bytes.fromhex(question["public_key"]))
        public_key = cast(rsa.RSAPublicKey | ec.EllipticCurvePublicKey, loaded)
        signed = self._ahead().sign(
            bytes.fromhex(question["private"]), public_key, lambda key: _signature(key, question)
        )
        return {
            "signature": signed.signature.hex(),
            "load_ns": signed.load_ns,
            "sign_ns": signed.sign_ns,
            "destroy_ns": signed.destroy_ns,
        }


def _signature(key: PrivateKey, question: dict[str, Any]) -> bytes:
    """The signature of the digest in a question."""
    digest = bytes.fromhex(question["digest"])
    hashed_with = utils.Prehashed(HASHES[question["hash"]])
    if not isinstance(key, TokenRSAPrivateKey):
        return key.sign(digest, ec.ECDSA(hashed_with))
    if question["salt"] is None:
        return key.sign(digest, padding.PKCS1v15(), hashed_with)
    mask = padding.MGF1(HASHES[question["hash"]])
    return key.sign(digest, padding.PSS(mask, question["salt"]), hashed_with)


def _make(session: Session, label: str, kind: KeyKind) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    with translated_errors(f"look for the key {label}", session.token.label):
        taken = any(True for _ in session.get_objects({Attribute.LABEL: label}))
    if taken:
        raise TokenError(f"The token {session.token.label} has something labelled {label} already: take another label.")
    return generate(session, kind, extractable=False, label=label, stored=True).public_key


def _encoded(public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> str:
    return public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()


if __name__ == "__main__":
    with ExitStack() as closing:
        code = answer_questions(TokenSigner(closing).respond)
    sys.exit(code)
