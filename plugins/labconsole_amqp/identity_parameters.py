"""The parameters of the identities of an AMQP trial: who proves itself with which key, and what it trusts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import (
    LABELS,
    WITH_EMBEDDED_BROKER,
    WITH_ENCRYPTION,
    WITH_EXTERNAL_BROKER,
    WITH_SIGNATURES,
    WITH_TLS,
    Mode,
    TlsVersion,
)
from labconsole_amqp.envelopes.formats import PINNED


def _identity_file(title: str, description: str, kind: str = "file") -> Any:
    """The field of a file in the group of identities, which only tests with TLS have."""
    return parameter(title, description, group="Identities", kind=kind, shown_if=WITH_TLS)


def _identity_name(title: str, description: str, **shown_if: Any) -> Any:
    """The field of an identity of the certificate database, by its name."""
    return parameter(title, description, max_length=64, group="Identities", shown_if={**WITH_TLS, **shown_if})


def _message_identity(title: str, description: str, shown_if: dict[str, Any]) -> Any:
    """The field of an identity for messages, where TLS has another one."""
    return parameter(title, description, max_length=64, group="Identities", shown_if=shown_if)


def _encryption_key(title: str, description: str) -> Any:
    """The field of a key that is pinned by file, for the envelopes that have such keys."""
    shown_if = {**WITH_ENCRYPTION, "envelope": [format.value for format in PINNED]}
    return parameter(title, description, group="Identities", kind="file", shown_if=shown_if)


class IdentityParameters(Parameters):
    """TLS and message identities: by name, from files, or the lab's."""

    tls_minimum: TlsVersion = parameter(
        "TLS from",
        "Lowest TLS version",
        default=TlsVersion.V1_2,
        group="Identities",
        labels=LABELS["tls_minimum"],
        shown_if=WITH_TLS,
    )
    server_name: str = parameter(
        "Server name",
        "Name that the broker's certificate must carry; empty: the host",
        default="",
        group="Identities",
        shown_if={**WITH_TLS, **WITH_EXTERNAL_BROKER},
    )
    sender_identity: Annotated[
        str,
        _identity_name(
            "Sender's identity",
            "Name of an identity on the page Certificates; empty: the files below, else the lab's State A",
        ),
    ] = ""
    receiver_identity: Annotated[
        str,
        _identity_name(
            "Receiver's identity",
            "Name of an identity on the page Certificates; empty: the files below, else the lab's State B",
        ),
    ] = ""
    broker_identity: Annotated[
        str,
        _identity_name(
            "Broker's identity",
            "Name of an identity on the page Certificates; empty: the lab's broker",
            **WITH_EMBEDDED_BROKER,
        ),
    ] = ""
    sender_message_identity: Annotated[
        str,
        _message_identity(
            "Sender's message identity",
            "Name of an identity whose key, in a file or a token, signs the messages; empty: the sender's identity",
            WITH_SIGNATURES,
        ),
    ] = ""
    receiver_message_identity: Annotated[
        str,
        _message_identity(
            "Receiver's message identity",
            "Name of an identity that bodies are encrypted to; empty: they are encrypted to the receiver's identity",
            WITH_ENCRYPTION,
        ),
    ] = ""
    receiver_encryption_key: Annotated[
        str,
        _encryption_key(
            "Receiver's encryption key",
            "File of the private key that bodies are encrypted to (PKCS#8, PEM, encrypted, 0600), where no certificate "
            "carries it; empty: the lab's. The receiver's passphrase file is for it, too",
        ),
    ] = ""
    receiver_encryption_public_key: Annotated[
        str,
        _encryption_key(
            "Receiver's public encryption key",
            "File of its public key (PEM), for the sender; empty: the lab's",
        ),
    ] = ""
    trust: Annotated[
        str,
        _identity_file(
            "Trusted authority",
            "PEM file of the authority that the peers' certificates come from; empty: for an identity by name what its "
            "State trusts, else the console's lab CA",
        ),
    ] = ""
    sender_certificate: Annotated[
        str, _identity_file("Sender's certificate", "PEM file, with chain; empty: the lab identity of State A")
    ] = ""
    sender_key: Annotated[
        str, _identity_file("Sender's key", "Encrypted PKCS#8 file (0600); not needed by a console that only receives")
    ] = ""
    sender_passphrase_file: Annotated[
        str,
        _identity_file(
            "Sender's passphrase file",
            "File with the passphrase of the key (0600); empty: the keyring, else you are asked",
            kind="secret-file",
        ),
    ] = ""
    receiver_certificate: Annotated[
        str, _identity_file("Receiver's certificate", "PEM file, with chain; empty: the lab identity of State B")
    ] = ""
    receiver_key: Annotated[
        str, _identity_file("Receiver's key", "Encrypted PKCS#8 file (0600); not needed by a console that only sends")
    ] = ""
    receiver_passphrase_file: Annotated[
        str,
        _identity_file(
            "Receiver's passphrase file",
            "File with the passphrase of the key (0600); empty: the keyring, else you are asked",
            kind="secret-file",
        ),
    ] = ""

    @field_validator("sender_certificate", "receiver_certificate")
    @classmethod
    def _check_identity_not_twice(cls, certificate: str, info: ValidationInfo) -> str:
        by_name = str(info.field_name).replace("certificate", "identity")
        if certificate and info.data.get(by_name):
            raise ValueError(f"`{by_name}` names that identity already: leave one of the two out")
        return certificate

    @field_validator("receiver_encryption_public_key")
    @classmethod
    def _check_encryption_key_is_a_pair(cls, public_key: str, info: ValidationInfo) -> str:
        """A console that plays both ends needs both files, or none."""
        private_key = info.data.get("receiver_encryption_key")
        if info.data.get("test") == 4 and info.data.get("mode") is Mode.BOTH and bool(public_key) != bool(private_key):
            raise ValueError(
                "the sender needs the public key and the receiver the private one: set both "
                "`receiver_encryption_key` and `receiver_encryption_public_key`, or none of them for the lab's"
            )
        return public_key

    @field_validator("sender_key", "receiver_key")
    @classmethod
    def _check_key_has_certificate(cls, key: str, info: ValidationInfo) -> str:
        """An identity of the operator's is certificate and key; of the other end, its certificate is enough."""
        if info.data.get("test", 1) < 2:
            return key
        role = str(info.field_name).removesuffix("_key")
        certificate = info.data.get(f"{role}_certificate", "")
        if key and not certificate:
            raise ValueError(
                f"a key needs its certificate: set `{role}_certificate` too, or leave `{role}_key` out for the lab "
                "identity"
            )
        if certificate and not key and info.data.get("mode") in (Mode.BOTH, Mode(role)):
            raise ValueError(f"a {role} proves itself with a key: set `{role}_key` to that of `{role}_certificate`")
        return key
