"""The identities of a run, by name, from files or the lab's, the secrets of their keys, and the artefacts of a run."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from labconsole.errors import UserError
from labconsole.model.trial import RunContext
from labconsole.security.identities import IdentityFiles, TokenIdentity, load_certificates
from labconsole.security.secrets import SecretRequest
from labconsole.security.x509.key_types import KeyType, type_of
from labconsole_amqp.choices import BrokerChoice, MessageKeys, Mode
from labconsole_amqp.envelopes import encryption_keys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyFiles
from labconsole_amqp.envelopes.formats import key_titles
from labconsole_amqp.parameters import AmqpParameters, field_label
from labconsole_amqp.roles.role_settings import (
    RoleIdentities,
    encryption_key_request,
    passphrase_request,
    password_request,
)
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.payload import Payload

# What reads certificates and keys is imported where it is used: a plain run, of Test 1, has neither, and its worker
# would import the certificate database, asn1crypto, pyOpenSSL and `cryptography.x509` for nothing.
if TYPE_CHECKING:
    from labconsole.security.lab_identities import LabIdentities
    from labconsole.security.pki.identities import NamedIdentities

EndName = Literal["sender", "receiver"]
RoleName = Literal["sender", "receiver", "broker", "sender_message", "receiver_message"]
"""A role's TLS identity, or the identity of its messages, where that is another one."""
_MESSAGE_ROLES: dict[EndName, RoleName] = {"sender": "sender_message", "receiver": "receiver_message"}
_OTHER_END: dict[RoleName, EndName] = {"sender": "receiver", "receiver": "sender"}
_WHOSE: dict[RoleName, str] = {
    "sender": "the sender",
    "receiver": "the receiver",
    "broker": "the broker",
    "sender_message": "the sender's messages",
    "receiver_message": "the receiver's messages",
}
"""As parts of sentences."""

_ML_DSA = frozenset({KeyType.ML_DSA_44, KeyType.ML_DSA_65, KeyType.ML_DSA_87})
_FIRST_OPENSSL_WITH_ML_DSA = (3, 5)  # OpenSSL


class RunIdentities:
    """The identities of one run; the lab's are created on first use, and only if one of them is needed.

    Every method raises UserError: the lab identities cannot be created, or a named identity is missing or unusable.
    """

    def __init__(
        self, parameters: AmqpParameters, database: NamedIdentities | None = None, directory: Path | None = None
    ) -> None:
        """`database`: where named identities are, or its `directory`; the user's own where neither is given."""
        self._parameters = parameters
        self._given_database, self._directory = database, directory
        self._by_role: dict[RoleName, IdentityFiles] = {}
        self.notes: tuple[str, ...] = ()

    @property
    def local_roles(self) -> tuple[RoleName, ...]:
        """The roles that run on this console; without a broker the receiver is in its place."""
        mode = self._parameters.mode
        plays: dict[RoleName, bool] = {
            "sender": mode is not Mode.RECEIVER,
            "receiver": mode is not Mode.SENDER,
            "broker": self._parameters.broker is not BrokerChoice.EXTERNAL,
        }
        return tuple(role for role, is_local in plays.items() if is_local)

    @property
    def message_roles(self) -> dict[EndName, RoleName]:
        """The identity that signs messages, and the one that bodies are encrypted to, by end, where this test has them.

        It is that of TLS, unless one is named, or the lab's has a key of another type than the envelope's first or in
        a token.
        """
        ends: dict[Protection, tuple[EndName, ...]] = {
            Protection.SIGNED: ("sender",),
            Protection.SIGNED_ENCRYPTED: ("sender", "receiver"),
        }
        return {
            end: _MESSAGE_ROLES[end] if self._has_message_identity(end) else end
            for end in ends.get(self._parameters.protection, ())
        }

    def _has_message_identity(self, end: EndName) -> bool:
        in_token = end == "sender" and self._signs_in_token
        return bool(self.name(_MESSAGE_ROLES[end]) or in_token or self._lab_message_type(end))

    def message_certificate(self, end: EndName) -> Path | None:
        """The certificate that an end's messages are verified with or encrypted to; None where this test has none."""
        role = self.message_roles.get(end)
        return self.certificate(role) if role is not None else None

    def message_subject(self, end: EndName) -> str:
        """The name of an end in hardened envelopes: the subject of its message certificate; empty with the source's."""
        parameters = self._parameters
        if parameters.protection is Protection.NONE or not parameters.envelope.is_hardened:
            return ""
        from labconsole.security.x509.names import name_as_text, short_name

        certificate = load_certificates(self.certificate(self.message_roles.get(end, end)))[0]
        return name_as_text(certificate.subject) or short_name(certificate)

    @cached_property
    def encryption_key(self) -> EncryptionKeyFiles | None:
        """The receiver's key that is pinned by file; None where bodies are not encrypted to such a key."""
        parameters, type = self._parameters, self._parameters.envelope.pinned_key
        if type is None or parameters.protection is not Protection.SIGNED_ENCRYPTED:
            return None
        private, public = parameters.receiver_encryption_key, parameters.receiver_encryption_public_key
        if not private and not public:
            from labconsole_amqp.trial.lab_encryption_keys import lab_encryption_key

            return lab_encryption_key(type)
        passphrase_file = parameters.receiver_passphrase_file
        return EncryptionKeyFiles(
            key=Path(private) if private else None,
            public_key=Path(public) if public else None,
            passphrase_file=Path(passphrase_file) if passphrase_file else None,
        )

    def message_files(self, end: EndName) -> IdentityFiles | None:
        """The identity of an end's messages with its key, None where it is that of TLS."""
        role = self.message_roles.get(end, end)
        return None if role == end or self._token(role) is not None else self._files(role)

    def message_token(self, end: EndName) -> TokenIdentity | None:
        """The identity of an end's messages where its key is in a token."""
        return self._token(self.message_roles.get(end, end))

    def _token(self, role: RoleName) -> TokenIdentity | None:
        """An identity whose key signs messages in a token: a named one, or the lab's."""
        if role != "sender_message":
            return None
        if not self.name(role):
            return self._lab_token
        token = self._database.token_identity(self.name(role))
        if token is not None:
            self._check(role, token.certificate)
        elif self._signs_in_token:
            raise UserError(
                f"The key of the identity {self.name(role)} is in a file, and {field_label('message_keys')} asks for "
                "one in a token: name an identity whose key is in a token, or none for the lab's."
            )
        return token

    @property
    def _signs_in_token(self) -> bool:
        """Whether the parameters ask for messages that are signed in a token."""
        signed = self._parameters.protection is not Protection.NONE
        return signed and self._parameters.message_keys is not MessageKeys.IDENTITY

    @cached_property
    def _lab_token(self) -> TokenIdentity | None:
        """State A's identity with a key in the token `lab`, where messages are signed in a token."""
        type = self._parameters.envelope.token_type
        if not self._signs_in_token or type is None:
            return None
        from labconsole.security.lab_identities import STATE_A, lab_token_identity

        return lab_token_identity(STATE_A, type)

    def files(self, role: RoleName) -> IdentityFiles:
        """The identity of a role that this console plays, with key and trusted certificates."""
        files = self._files(role)
        trust = Path(self._parameters.trust) if self._parameters.trust else files.trust
        if trust is None and self.name(role):
            raise UserError(
                f"The State of the identity {self.name(role)} trusts no root: let it trust the other end's root on the "
                "page Certificates, or name a trusted authority."
            )
        return files.model_copy(update={"trust": trust or self._lab.authority_file})

    def certificate(self, role: RoleName) -> Path:
        """The certificate that the other end verifies with or encrypts for; its key is not needed here."""
        given = self._parameter(role, "certificate")
        if given:
            return Path(given)
        if not self.name(role):
            token = self._token(role)
            return token.certificate if token is not None else self._files(role).certificate
        certificate = self._database.certificate(self.name(role))
        self._check(role, certificate)
        return certificate

    def of_role(self, role: RoleName) -> RoleIdentities:
        """What a sender, receiver or broker of this console proves itself with and trusts."""
        identity = self.files(role) if self._parameters.tls else None
        if role not in _OTHER_END:
            return RoleIdentities(identity=identity)
        own: EndName = "sender" if role == "sender" else "receiver"
        return RoleIdentities(
            identity=identity,
            message_identity=self.message_files(own),
            message_token=self.message_token(own),
            server_name=self.server_name if identity is not None else "",
            peer_certificate=self.message_certificate(_OTHER_END[role]),
            encryption_key=self.encryption_key,
            sender_name=self.message_subject("sender"),
            recipient_name=self.message_subject("receiver"),
        )

    @cached_property
    def by_role(self) -> dict[RoleName, RoleIdentities]:
        """What each role of this console proves itself with and trusts."""
        return {role: self.of_role(role) for role in self.local_roles}

    @property
    def server_name(self) -> str:
        """The name that the broker's certificate must carry; empty: the host.

        A State's certificate names the State's host, and the lab's this computer, wherever the run's broker listens.
        """
        if (given := self._parameters.server_name) or "broker" not in self.local_roles:
            return given
        from cryptography.x509 import DNSName

        from labconsole.security.lab_identities import LAB_SERVER
        from labconsole.security.x509.extensions import alternative_names

        if not self.name("broker"):
            return LAB_SERVER if self.uses_lab_identity("broker") else ""
        certificate = load_certificates(self._files("broker").certificate)[0]
        names = alternative_names(certificate.extensions)
        return next((one.value for one in names if isinstance(one, DNSName) and "*" not in one.value), "")

    def name(self, role: RoleName) -> str:
        """The name of a role's identity in the certificate database; empty for files and lab identities."""
        return self._parameter(role, "identity")

    def uses_lab_identity(self, role: RoleName) -> bool:
        """Whether the role has a lab identity, whose passphrase is never asked for."""
        return not self.name(role) and not self._parameter(role, "certificate")

    def _lab_message_type(self, end: EndName) -> KeyType | None:
        """The type of key of an end's lab identity for messages; None where there is none."""
        from labconsole.security.lab_identities import LAB_KEY_TYPE

        format = self._parameters.envelope
        type = (format.signing if end == "sender" else format.encryption)[0]
        other = isinstance(type, KeyType) and type is not LAB_KEY_TYPE
        return KeyType(type) if other and self.uses_lab_identity(end) else None

    @cached_property
    def _lab(self) -> LabIdentities:
        from labconsole.security.lab_identities import lab_identities

        lab = lab_identities()
        self.notes = lab.notes
        return lab

    @cached_property
    def _database(self) -> NamedIdentities:
        from labconsole.security.pki.identities import NamedIdentities

        return self._given_database or NamedIdentities(self._directory)

    def _parameter(self, role: RoleName, what: str) -> str:
        return str(getattr(self._parameters, f"{role}_{what}", ""))

    def _files(self, role: RoleName) -> IdentityFiles:
        if role not in self._by_role:
            self._by_role[role] = self._find(role)
        return self._by_role[role]

    def _find(self, role: RoleName) -> IdentityFiles:
        from labconsole.security.lab_identities import BROKER, STATE_A, STATE_B, lab_message_identity

        lab_names: dict[RoleName, str] = {"sender": STATE_A, "receiver": STATE_B, "broker": BROKER}
        if self.name(role):
            files = self._database.files(self.name(role))
            self._check(role, files.certificate)
            return files
        if role in ("sender_message", "receiver_message"):
            end: EndName = "sender" if role == "sender_message" else "receiver"
            type = self._lab_message_type(end)
            assert type is not None
            return lab_message_identity(lab_names[end], type)
        if self.uses_lab_identity(role):
            return self._lab.files(lab_names[role])
        passphrase_file = self._parameter(role, "passphrase_file")
        return IdentityFiles(
            certificate=Path(self._parameter(role, "certificate")),
            key=Path(self._parameter(role, "key")),
            passphrase_file=Path(passphrase_file) if passphrase_file else None,
        )

    def _check(self, role: RoleName, certificate: Path) -> None:
        """Raises UserError if TLS or messages of this test cannot use the key of a named identity."""
        key = load_certificates(certificate)[0].public_key()
        end = next((end for end, one in self.message_roles.items() if one == role), None)
        format = self._parameters.envelope
        signs = end == "sender"
        fits = end is None or (format.signs_with(key) if signs else format.pinned_key or format.encrypts_to(key))
        if not fits:
            types = format.signing if signs else format.encryption
            raise UserError(
                f"The key of the identity {self.name(role)} is not {key_titles(types)}, with which messages of the "
                f"envelope {format.value} are {'signed' if signs else 'encrypted'}: choose another identity "
                "for the messages, another envelope, or Test 2."
            )
        if type_of(key) in _ML_DSA and ssl.OPENSSL_VERSION_INFO < _FIRST_OPENSSL_WITH_ML_DSA:
            raise UserError(
                f"The key of the identity {self.name(role)} is ML-DSA, which TLS here ({ssl.OPENSSL_VERSION}) does not "
                "know: choose an identity with an RSA, ECDSA or Ed25519 key."
            )


def secret_requests(parameters: AmqpParameters) -> Iterator[SecretRequest]:
    """All secrets that a run may need, except those of lab identities, which the console stores itself."""
    if parameters.username and parameters.broker is BrokerChoice.EXTERNAL:
        yield password_request(parameters)
    if not parameters.tls:
        return
    identities = RunIdentities(parameters)
    local, messages = identities.local_roles, identities.message_roles
    for role in dict.fromkeys((*local, *(role for end, role in messages.items() if end in local))):
        if not identities.uses_lab_identity(role):
            yield from _passphrase_requests(identities, role)
    if "sender" in local and identities.name("sender_message"):
        yield from _pin_requests(identities)
    if "receiver" in local and parameters.receiver_encryption_key:
        yield from _encryption_key_requests(identities)


def _pin_requests(identities: RunIdentities) -> Iterator[SecretRequest]:
    """The PIN of the token that signs messages; none for one that cannot be used: the run reports the fault."""
    from labconsole.security.token.named_tokens import pin_requests

    try:
        token = identities.message_token("sender")
        requests = pin_requests(token.token) if token is not None else ()
    except UserError:
        return
    yield from requests


def _passphrase_requests(identities: RunIdentities, role: RoleName) -> Iterator[SecretRequest]:
    """The passphrase of the role's key; none for a key that cannot be used: the run reports the fault."""
    from labconsole.security.key_files import is_encrypted

    try:
        files = identities.files(role)
        encrypted = is_encrypted(files.key)
    except UserError:
        return
    if encrypted:
        name = identities.name(role)
        yield passphrase_request(files, f"{_WHOSE[role]} (identity {name})" if name else _WHOSE[role])


def _encryption_key_requests(identities: RunIdentities) -> Iterator[SecretRequest]:
    """The passphrase of the receiver's key that is pinned by file; none for a key that cannot be used."""
    files = identities.encryption_key
    try:
        encrypted = files is not None and files.key is not None and encryption_keys.is_encrypted(files.key)
    except UserError:
        return
    if files is not None and encrypted:
        yield encryption_key_request(files)


def keep_artefacts(
    parameters: AmqpParameters,
    identities: RunIdentities,
    payloads: Sequence[Payload],
    sender: Mapping[str, Any],
    context: RunContext,
) -> None:
    """Store certificates, the hash of each payload and an encoded message for later checks. Raises UserError.

    `sender` is what a sender reported when it was ready.
    """
    hashes = (f"{hashlib.sha256(payload.data).hexdigest()}  {Path(payload.name).name}\n" for payload in payloads)
    context.artefact("payload.sha256", "text/plain", "".join(hashes).encode())
    for name, path in _certificates(parameters, identities).items():
        from cryptography.hazmat.primitives.serialization import Encoding

        pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in load_certificates(path))
        context.artefact(name, "application/x-pem-file", pem)
    pinned = identities.encryption_key
    if pinned is not None and pinned.public_key is not None:
        from labconsole.security.x509.parsing import read_file

        context.artefact(
            "receiver-encryption-key.pem", "application/x-pem-file", read_file(pinned.public_key, "key file")
        )
    if "example" in sender:
        context.artefact("message.amqp", "application/octet-stream", base64.b64decode(sender["example"]))


def _certificates(parameters: AmqpParameters, identities: RunIdentities) -> dict[str, Path]:
    """The certificate files that this run uses, as far as they are known on this side."""
    if not parameters.tls:
        return {}
    known = {*identities.local_roles, *identities.message_roles.values()}
    files = {f"{role.replace('_', '-')}.pem": identities.certificate(role) for role in sorted(known)}
    trust = {role: path for role in identities.local_roles if (path := identities.files(role).trust) is not None}
    if len(set(trust.values())) == 1:
        return files | {"trust.pem": trust[identities.local_roles[0]]}
    return files | {f"{role}-trust.pem": path for role, path in trust.items()}
