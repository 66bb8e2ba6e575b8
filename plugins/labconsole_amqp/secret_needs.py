"""Which secrets a run may need: the password at a foreign broker, and the passphrases of the operator's own keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labconsole.security.identities import IdentityFiles
from labconsole.security.keyfile import is_encrypted
from labconsole.security.secrets import SecretRequest, SecretSource
from labconsole.trial import TrialError
from labconsole_amqp.choices import BrokerChoice, Mode
from labconsole_amqp.parameters import AmqpParameters


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
    from labconsole_amqp.identity_choice import IdentityChoice  # roles import this module, and choose no identity

    identities = IdentityChoice(parameters)
    if parameters.sender_certificate and parameters.mode is not Mode.RECEIVER and _encrypted(identities.sender):
        yield passphrase_request(identities.sender, "the sender")
    if parameters.receiver_certificate and parameters.mode is not Mode.SENDER and _encrypted(identities.receiver):
        yield passphrase_request(identities.receiver, "the receiver")


def _encrypted(files: IdentityFiles) -> bool:
    """Whether the key needs a passphrase; for one that cannot be read nobody is asked: the run says what is wrong."""
    try:
        return is_encrypted(files.key)
    except TrialError:
        return False
