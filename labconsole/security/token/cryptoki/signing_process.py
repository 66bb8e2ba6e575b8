"""The process that `remote_private_key` starts: opens one token, generates key pairs in it and signs with its keys."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pkcs11 import Attribute, Session

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.private_keys import PrivateKey, TokenRSAPrivateKey, find_private_key
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.module_process import answer_questions
from labconsole.security.token.private_key_types import HASHES


@dataclass
class TokenSigner:
    """An open token, and its key that signs."""

    closing: ExitStack
    session: Session | None = None
    key: PrivateKey | None = None

    def respond(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to one question of `remote_private_key`. Raises UserError."""
        match question["do"]:
            case "open":
                configuration = TokenConfiguration.model_validate(question["configuration"])
                token = open_token(question["name"], configuration, Secret(question["pin"]))
                self.session = self.closing.enter_context(token).session()
                return {}
            case "find":
                self.key = find_private_key(self._opened(), question["label"])
                return {"public_key": _encoded(self.key.public_key())}
            case "make":
                made = _make(self._opened(), question["label"], KeyKind(question["kind"]))
                return {"public_key": _encoded(made)}
            case _:
                return {"signature": self._sign(question).hex()}

    def _opened(self) -> Session:
        if self.session is None:
            raise TokenError("No token is open: open it first.")
        return self.session

    def _sign(self, question: dict[str, Any]) -> bytes:
        if self.key is None:
            raise TokenError("No key is open: name one first.")
        digest = bytes.fromhex(question["digest"])
        hashed_with = utils.Prehashed(HASHES[question["hash"]])
        if not isinstance(self.key, TokenRSAPrivateKey):
            return self.key.sign(digest, ec.ECDSA(hashed_with))
        if question["salt"] is None:
            return self.key.sign(digest, padding.PKCS1v15(), hashed_with)
        mask = padding.MGF1(HASHES[question["hash"]])
        return self.key.sign(digest, padding.PSS(mask, question["salt"]), hashed_with)


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
