"""The parameters of the identities of an AMQP trial: who proves itself with which key, and what it trusts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import (
    LABELS,
    WITH_ENCRYPTION,
    WITH_EXTERNAL_BROKER,
    WITH_OWN_PORT,
    WITH_SIGNATURES,
    WITH_TLS,
    WITHOUT_COUNT,
    Loop,
    MessageKeys,
    Mode,
    TlsVersion,
)
from labconsole_amqp.envelopes.formats import PINNED, POOLED, key_titles

LARGEST_POOL = 100_000
"""Keys that are generated ahead for one sender."""
_NO_KEY_IN_TOKEN = (
    "the key that signs is that of the sender's identity, which is in a file: name an identity whose key is in a token "
    "as `sender_message_identity`"
)


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
            "Name of an identity on the page Certificates; empty: the lab's broker. Without a broker the receiver "
            "listens with it",
            **WITH_OWN_PORT,
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
    message_keys: MessageKeys = parameter(
        "Message keys",
        "What signs the sender's messages: one key for all of them, the message identity's, or another key for each. "
        "With no identity named, those in a token are the lab's, in the token lab. Keys for one message each are "
        "generated before the run, wrapped, and loaded into the token for their signature; the receiver gets their "
        "list, signed by the message identity",
        default=MessageKeys.IDENTITY,
        group="Identities",
        labels=LABELS["message_keys"],
        shown_if=WITH_SIGNATURES,
    )
    pool_keys: int = parameter(
        "Keys in the pool",
        "Keys that each sender generates before the run, where the number of its messages is not set; the run ends "
        "when they are used up",
        default=10_000,
        ge=1,
        le=LARGEST_POOL,
        group="Identities",
        unit="keys",
        shown_if={**WITH_SIGNATURES, **WITHOUT_COUNT, "message_keys": MessageKeys.POOL.value},
    )
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

    @field_validator("message_keys")
    @classmethod
    def _check_token_has_message_keys(cls, keys: MessageKeys, info: ValidationInfo) -> MessageKeys:
        values, envelope = info.data, info.data.get("envelope")
        if keys is MessageKeys.IDENTITY or values.get("test", 1) < 3 or envelope is None:
            return keys
        if envelope.token_type is None:
            raise ValueError(
                f"a token signs with RSA and ECDSA P-256 keys, and messages of {envelope.value} with "
                f"{key_titles(envelope.signing)}: choose another `envelope`"
            )
        if values.get("sender_identity") and not values.get("sender_message_identity"):
            raise ValueError(_NO_KEY_IN_TOKEN)
        if keys is not MessageKeys.POOL:
            return keys
        if envelope not in POOLED:
            others = ", ".join(format.value for format in POOLED)
            raise ValueError(
                f"messages of {envelope.value} do not name the key that signs them, so that all have the same one: "
                f"choose one of {others} as `envelope`"
            )
        if values.get("mode") is not Mode.BOTH:
            raise ValueError(
                "the receiver gets the list of the keys from the sender before the run, which needs both ends in this "
                "console: set `mode` to both"
            )
        if values.get("loop") is Loop.SOAK:
            raise ValueError("a soak sends more messages than a pool has keys: set `message_keys` to token")
        messages = values.get("warm_up", 0) + values.get("count", 0)
        if values.get("loop") in (Loop.CLOSED, Loop.OPEN) and messages > LARGEST_POOL:
            raise ValueError(
                f"a pool has {LARGEST_POOL:,} keys at most, and each sender sends {messages:,} messages: set `count` "
                "lower"
            )
        return keys

    @field_validator("sender_certificate")
    @classmethod
    def _check_file_has_no_message_keys(cls, certificate: str, info: ValidationInfo) -> str:
        in_token = info.data.get("message_keys", MessageKeys.IDENTITY) is not MessageKeys.IDENTITY
        if certificate and in_token and info.data.get("test", 1) >= 3 and not info.data.get("sender_message_identity"):
            raise ValueError(_NO_KEY_IN_TOKEN)
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
        role = str(info.field_name).removesuffix("_key")
        if info.data.get("test", 1) < 2 or f"{role}_certificate" not in info.data:
            return key
        certificate = info.data[f"{role}_certificate"]
        if key and not certificate:
            raise ValueError(
                f"a key needs its certificate: set `{role}_certificate` too, or leave `{role}_key` out for the lab "
                "identity"
            )
        if certificate and not key and info.data.get("mode") in (Mode.BOTH, Mode(role)):
            raise ValueError(f"a {role} proves itself with a key: set `{role}_key` to that of `{role}_certificate`")
        return key
