"""Creates and imports key pairs: of a type, in a file or a token, and with a source of the passphrase."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from labconsole.errors import UserError
from labconsole.security.pki import keys
from labconsole.security.pki.keys import MadeKey
from labconsole.security.pki.records import TokenKey
from labconsole.security.secrets import Prompt, Secret, SecretRequest, SecretSource
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import find_configuration
from labconsole.security.token.remote_private_key import opened_new_token_key
from labconsole.security.x509.key_types import TITLES, KeyType, PrivateKey, type_of

DEFAULT_TYPE = KeyType.P_256

_TOKEN_KINDS = {
    KeyType.RSA_2048: KeyKind.RSA_2048,
    KeyType.RSA_3072: KeyKind.RSA_3072,
    KeyType.RSA_4096: KeyKind.RSA_4096,
    KeyType.P_256: KeyKind.P_256,
}
_TAG_BYTES = 3
"""Labels end with a random tag: those of a token must be unique, and prompts for passphrases distinguishable."""

_PURPOSE = "the new key file"
_PASSPHRASE = "new-passphrase"
_AGAIN = "new-passphrase-again"


@dataclass(frozen=True)
class NewKey:
    """A key pair to create."""

    type: KeyType | None = None
    """None: ECDSA P-256, or for a successor the type of the key that it replaces."""
    token: str = ""
    """Name of the PKCS#11 token in which it is created and stays; empty: an encrypted PKCS#8 file."""
    passphrase: SecretSource | None = None
    """Source of the file's passphrase; `SecretSource()`: the operator is asked. None: the console creates and keeps a
    random one, so that no prompt is needed. Of a token: source of its PIN, if its configuration has none."""


def secrets_of(new: NewKey) -> tuple[SecretRequest, ...]:
    """The secrets for creating the key: the token's PIN, or the new passphrase, which is asked for twice.

    Raises UserError: there is no such token.
    """
    if new.token:
        pin = find_configuration(new.token).pin_request(new.token)
        if new.passphrase is None or new.passphrase == SecretSource():
            return (pin,)
        return (replace(pin, source=new.passphrase),)
    if new.passphrase is None:
        return ()
    first = SecretRequest(_PASSPHRASE, _PURPOSE, new.passphrase)
    if new.passphrase != SecretSource():
        return (first,)
    return (first, SecretRequest(_AGAIN, f"{_PURPOSE}, once more", new.passphrase))


@contextmanager
def made_key(directory: Path, new: NewKey, label: str, prompt: Prompt | None) -> Iterator[MadeKey]:
    """A new key pair, whose private key can be used while the context is open. Its file exists, its row does not yet.

    `directory` is that of the certificate database. Raises UserError: no passphrase, one typed in two ways, no such
    token, a type that it does not support, or it refuses.
    """
    label = f"{label} {secrets.token_hex(_TAG_BYTES)}"
    type = new.type or DEFAULT_TYPE
    if not new.token:
        yield replace(keys.make_key(directory, type, new.passphrase, _new_passphrase(new, prompt)), label=label)
        return
    kind = _TOKEN_KINDS.get(type)
    if kind is None:
        raise UserError(f"Keys of the type {TITLES[type]} cannot be created in a token: choose RSA or ECDSA P-256.")
    pin = secrets_of(new)[0].resolve(prompt)
    with opened_new_token_key(new.token, label, kind, pin) as private:
        yield MadeKey(TokenKey(new.token, label), private, label)


def kept_key(directory: Path, private: PrivateKey, keep: NewKey | None, label: str, prompt: Prompt | None) -> MadeKey:
    """An imported private key, written to a file as `keep` says (None: the console keeps its passphrase).

    Raises UserError: a key of a type that is not stored here, or as `made_key`.
    """
    if type_of(private.public_key()) is None:
        raise UserError(
            "The private key is of a kind that is not kept here: use RSA of 2,048, 3,072 or 4,096 bits, ECDSA on P-256 "
            "or P-384, Ed25519 or ML-DSA."
        )
    chosen = keep or NewKey()
    made = keys.keep_key(directory, private, chosen.passphrase, _new_passphrase(chosen, prompt))
    return replace(made, label=f"{label} {secrets.token_hex(_TAG_BYTES)}")


def _new_passphrase(new: NewKey, prompt: Prompt | None) -> Secret | None:
    """The passphrase of a new key file. Raises UserError: there is none, or it was typed in two ways."""
    entered = [request.resolve(prompt) for request in secrets_of(new)]
    if len({secret.reveal() for secret in entered}) > 1:
        raise UserError("The new passphrase was typed in two ways, so no key was created: type it again.")
    return entered[0] if entered else None
