"""Which identities a run uses: by name from the certificate database, the operator's own files, else the lab's."""

from __future__ import annotations

import ssl
from functools import cached_property
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles, load_certificates
from labconsole.security.lab_identities import BROKER, STATE_A, STATE_B, LabIdentities, lab_identities
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.x509.extensions import alternative_names
from labconsole.security.x509.key_types import KeyType, type_of
from labconsole_amqp.choices import BrokerChoice, Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.wire.envelope import Protection

RoleName = Literal["sender", "receiver", "broker"]

_LAB_NAMES: dict[RoleName, str] = {"sender": STATE_A, "receiver": STATE_B, "broker": BROKER}
_ML_DSA = frozenset({KeyType.ML_DSA_44, KeyType.ML_DSA_65, KeyType.ML_DSA_87})
_FIRST_OPENSSL_WITH_ML_DSA = (3, 5)  # OpenSSL


class RunIdentities:
    """The identities of one run; the lab's are made on first use, and only if one of them is needed.

    Every method raises UserError: the lab identities cannot be made, or an identity by name is not there or of no use.
    """

    def __init__(self, parameters: AmqpParameters) -> None:
        self._parameters = parameters
        self._by_role: dict[RoleName, IdentityFiles] = {}
        self.notes: tuple[str, ...] = ()

    @property
    def here(self) -> tuple[RoleName, ...]:
        """The roles that this console plays."""
        mode = self._parameters.mode
        plays: dict[RoleName, bool] = {
            "sender": mode is not Mode.RECEIVER,
            "receiver": mode is not Mode.SENDER,
            "broker": self._parameters.broker is BrokerChoice.EMBEDDED,
        }
        return tuple(role for role, is_here in plays.items() if is_here)

    def files(self, role: RoleName) -> IdentityFiles:
        """The identity of a role, with key."""
        if role not in self._by_role:
            self._by_role[role] = self._files(role)
        return self._by_role[role]

    def certificate(self, role: RoleName) -> Path:
        """What the other end verifies with or encrypts for: of an identity of files the key need not be known."""
        given = self._parameter(role, "certificate")
        return Path(given) if given else self.files(role).certificate

    def trust(self, role: RoleName) -> Path:
        """PEM file with what the role checks its peers against."""
        if self._parameters.trust:
            return Path(self._parameters.trust)
        if not self.name(role):
            return self._lab.authority_file
        trusted = self.files(role).trust
        if trusted is None:
            raise UserError(
                f"The State of the identity {self.name(role)} trusts no root: let it trust the other end's root on the "
                "page Certificates, or name a trusted authority."
            )
        return trusted

    @property
    def server_name(self) -> str:
        """The name that the broker's certificate must carry; empty: the host.

        A State's own certificate for the embedded broker names the State's host, not this computer.
        """
        if self._parameters.server_name or "broker" not in self.here or not self.name("broker"):
            return self._parameters.server_name
        certificate = load_certificates(self.files("broker").certificate)[0]
        names = alternative_names(certificate.extensions)
        hosts = (name.value for name in names if isinstance(name, x509.DNSName))
        return next((host for host in hosts if "*" not in host), "")

    def name(self, role: RoleName) -> str:
        """The name of a role's identity in the certificate database; empty where it is of files or the lab's."""
        return self._parameter(role, "identity")

    def uses_lab_identity(self, role: RoleName) -> bool:
        """Whether the role has an identity of the console's own, for which nobody is ever asked."""
        return not self.name(role) and not self._parameter(role, "certificate")

    @cached_property
    def _lab(self) -> LabIdentities:
        lab = lab_identities()
        self.notes = lab.notes
        return lab

    @cached_property
    def _database(self) -> NamedIdentities:
        return NamedIdentities()

    def _parameter(self, role: RoleName, what: str) -> str:
        return str(getattr(self._parameters, f"{role}_{what}", ""))

    def _files(self, role: RoleName) -> IdentityFiles:
        if self.name(role):
            files = self._database.files(self.name(role))
            self._check(role, files)
            return files
        if self.uses_lab_identity(role):
            return self._lab.files(_LAB_NAMES[role])
        passphrase_file = self._parameter(role, "passphrase_file")
        return IdentityFiles(
            certificate=Path(self._parameter(role, "certificate")),
            key=Path(self._parameter(role, "key")),
            passphrase_file=Path(passphrase_file) if passphrase_file else None,
        )

    def _check(self, role: RoleName, files: IdentityFiles) -> None:
        """Whether TLS and messages of this test can use the key of an identity by name. Raises UserError."""
        key = load_certificates(files.certificate)[0].public_key()
        if type_of(key) in _ML_DSA and ssl.OPENSSL_VERSION_INFO < _FIRST_OPENSSL_WITH_ML_DSA:
            raise UserError(
                f"The key of the identity {self.name(role)} is ML-DSA, which TLS here ({ssl.OPENSSL_VERSION}) does not "
                "know: choose an identity with an RSA, ECDSA or Ed25519 key."
            )
        protection = self._parameters.protection
        signs = role == "sender" and protection is not Protection.NONE
        is_encrypted_to = role == "receiver" and protection is Protection.SIGNED_ENCRYPTED
        if (signs or is_encrypted_to) and not isinstance(key, RSAPublicKey):
            raise UserError(
                f"The key of the identity {self.name(role)} is not RSA, with which the source's messages are "
                f"{'signed' if signs else 'encrypted'}: choose another identity, or Test 2."
            )
