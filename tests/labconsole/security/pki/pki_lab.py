"""What tests of the certificate database fill it with: States with a root and end certificates."""

from __future__ import annotations

from cryptography import x509

from labconsole.security.pki.keys import make_key
from labconsole.security.pki.records import CertificateRecord, Origin, State, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType, PrivateKey
from labconsole.security.x509.validity import Validity

VALID = Validity.for_days(30)


def named(text: str) -> x509.Name:
    """A distinguished name with this common name."""
    return x509.Name.from_rfc4514_string(f"CN={text}")


class OwnState:
    """A local State with a root whose key the console keeps."""

    def __init__(self, store: PkiStore, name: str) -> None:
        made = make_key(store.directory, KeyType.P_256)
        certificate = issue_root(made.private, named(f"{name} Root CA"), VALID)
        self.store = store
        self.issuer = Issuer(certificate, made.private)
        with store.change() as change:
            self.state: State = change.add_state(name)
            change.add_key(self.state.id, "root", made.private.public_key(), made.place)
            self.root: CertificateRecord = change.add_certificate(
                certificate, origin=Origin.SELF_SIGNED, profile=CertificateProfile.ROOT
            )
            change.trust(self.state.id, self.root.id, TrustKind.ROOT, "its own")

    def issued(self, name: str, profile: CertificateProfile = CertificateProfile.TLS_CLIENT) -> CertificateRecord:
        """An end certificate of this State for a key that the console keeps."""
        made = make_key(self.store.directory, KeyType.P_256)
        certificate = issue_for(self.issuer, made.private, name, profile)
        with self.store.change() as change:
            change.add_key(self.state.id, name, made.private.public_key(), made.place)
            return change.add_certificate(certificate, origin=Origin.ISSUED, profile=profile)


def issue_for(
    issuer: Issuer, key: PrivateKey, name: str, profile: CertificateProfile = CertificateProfile.TLS_CLIENT
) -> x509.Certificate:
    """An end certificate for `key`."""
    return issue(issuer, key.public_key(), named(name), [x509.DNSName("localhost")], profile, VALID)
