"""Key pairs that are to be made: of which type, in a file or a token, and where the passphrase lies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from labconsole.security.pki.changes import Change

from labconsole.security.pki.records import KeyRecord, State
from labconsole.security.secrets import Prompt, SecretRequest, SecretSource
from labconsole.security.x509.gate import PrivateKey
from labconsole.security.x509.key_types import KeyType


@dataclass(frozen=True)
class NewKey:
    """A key pair to be made."""

    type: KeyType = KeyType.P_256
    token: str = ""
    """Name of the PKCS#11 token that it is made in, and never leaves; empty: an encrypted PKCS#8 file."""
    passphrase: SecretSource | None = None
    """Where the file's passphrase lies, `SecretSource()`: with the operator, who is asked. None: the console makes a
    random one and keeps it, so that nobody is ever asked."""


def secrets_of(new: NewKey) -> tuple[SecretRequest, ...]:
    """What must be known to make the key: the token's PIN, or the passphrase to be, which is asked for twice."""
    raise NotImplementedError


@contextmanager
def made_key(
    change: Change, state: State, new: NewKey, label: str, prompt: Prompt | None
) -> Iterator[tuple[KeyRecord, PrivateKey]]:
    """Make the key pair of `state` within `change`; its private key can be used while the context is open.

    Raises TrialError: no passphrase, one typed in two ways, or the token refuses; nothing changed.
    """
    raise NotImplementedError
    yield
