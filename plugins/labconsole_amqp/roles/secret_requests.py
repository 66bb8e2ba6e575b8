"""Which secrets a run may need: the password at a foreign broker, and the passphrases of the operator's own keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles
from labconsole.security.key_files import is_encrypted
from labconsole.security.secrets import SecretRequest, SecretSource
from labconsole_amqp.choices import BrokerChoice
from labconsole_amqp.parameters import AmqpParameters

if TYPE_CHECKING:
    from labconsole_amqp.trial.identities import RoleName, RunIdentities


def password_request(parameters: AmqpParameters, host: str, port: int) -> SecretRequest:
    """The password of the user at the broker on `host` and `port`."""
    account = f"{parameters.username}@{host}:{port}"
    file = Path(parameters.password_file) if parameters.password_file else None
    source = SecretSource(keyring_entry=account, passphrase_file=file)
    return SecretRequest(f"password {account}", f"user {parameters.username} at {host}", source)


def passphrase_request(files: IdentityFiles, role: str) -> SecretRequest:
    """The passphrase of the key of `role` ("the sender", say)."""
    return SecretRequest(f"key {files.key.absolute()}", f"the key of {role}, {files.key}", files.secret_source)


def secret_requests(parameters: AmqpParameters) -> Iterator[SecretRequest]:
    """All secrets of a run but those of lab identities, which the console keeps itself."""
    if parameters.username and parameters.broker is BrokerChoice.EXTERNAL:
        yield password_request(parameters, parameters.host, parameters.port)
    if not parameters.tls:
        return
    from labconsole_amqp.trial.identities import RunIdentities  # roles import this module, and choose no identity

    identities = RunIdentities(parameters)
    for role in identities.here:
        if not identities.uses_lab_identity(role):
            yield from _passphrase_requests(identities, role)


def _passphrase_requests(identities: RunIdentities, role: RoleName) -> Iterator[SecretRequest]:
    """The passphrase of the role's key; nobody is asked for a key that cannot be used: the run says what is wrong."""
    try:
        files = identities.files(role)
        encrypted = is_encrypted(files.key)
    except UserError:
        return
    if encrypted:
        name = identities.name(role)
        yield passphrase_request(files, f"the {role} (identity {name})" if name else f"the {role}")
