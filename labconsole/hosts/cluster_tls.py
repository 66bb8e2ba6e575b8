"""TLS of a cluster: TLS 1.3 with certificates of the cluster's CA at both ends, from files whose keys are encrypted."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import NameOID
from distributed.security import Security

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles, load_certificates
from labconsole.security.key_files import load_private_key
from labconsole.security.secrets import Secret


@dataclass(frozen=True)
class Member:
    """The certificate of a host or of the console in a cluster; `authority` is PEM of the cluster's CA."""

    name: str
    certificate: Path
    key: Path
    authority: str
    secret: Secret

    @classmethod
    def of_console(cls, files: IdentityFiles) -> Member:
        """A console, by its own files (`cluster_certificates.console_files`). Raises UserError."""
        assert files.trust is not None
        certificate, *_ = load_certificates(files.certificate)
        secret = files.secret_source.resolve("this console's certificate in its cluster of hosts")
        return cls(_name(certificate), files.certificate, files.key, _pem(load_certificates(files.trust)), secret)

    @classmethod
    def handed_over(cls, line: bytes) -> Member:
        """What `hand_over` gave to another process of this computer."""
        said = json.loads(line)
        certificate, key, secret = Path(said["certificate"]), Path(said["key"]), Secret(said["secret"])
        return cls(said["name"], certificate, key, said["authority"], secret)

    def hand_over(self, name: str) -> bytes:
        """A line for the standard input of a process that is the host `name` by this certificate; it has the secret."""
        said = {"name": name, "certificate": str(self.certificate), "key": str(self.key), "authority": self.authority}
        return json.dumps({**said, "secret": self.secret.reveal()}).encode() + b"\n"

    @classmethod
    def of_enrolment(cls, file: Path, secret: Secret) -> Member:
        """A host, by its enrolment file. Raises UserError: it is not one, or the passphrase is wrong."""
        certificate, *above = load_certificates(file)
        key = load_private_key(file, secret)
        if key.public_key() != certificate.public_key() or not above:
            raise UserError(f"{file} is not the enrolment of a host: make one with `labconsole hosts enrol`.")
        return cls(_name(certificate), file, file, _pem(above), secret)


class ClusterSecurity(Security):
    """What Dask encrypts with: the same certificate whatever a process is in the cluster."""

    def __init__(self, member: Member) -> None:
        """Read the files of `member`. Raises OSError: they were removed or changed meanwhile."""
        super().__init__(require_encryption=True)  # type: ignore[no-untyped-call]
        # Now: the files may be moved once they are read.
        self._connecting = _context(member, ssl.PROTOCOL_TLS_CLIENT)
        self._listening = _context(member, ssl.PROTOCOL_TLS_SERVER)

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """As in Dask: the arguments of a connection to another member."""
        return {"ssl_context": self._connecting, "require_encryption": True, "extra_conn_args": {}}

    def get_listen_args(self, role: str) -> dict[str, Any]:
        """As in Dask: the arguments of a port that other members connect to."""
        return {"ssl_context": self._listening, "require_encryption": True}


def _context(member: Member, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a member is known by the CA, which is of this cluster alone
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=member.authority)
    context.load_cert_chain(member.certificate, member.key, member.secret.reveal())
    return context


def _pem(certificates: Iterable[x509.Certificate]) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def _name(certificate: x509.Certificate) -> str:
    (found,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found.value)
