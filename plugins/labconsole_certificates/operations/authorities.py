"""Own CAs of States: creates roots and intermediates, and imports CAs that were created elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.model.operation import HomePath, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret, SecretRequest
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.issuing import check_key_pair, issue, issue_root
from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.certificate_import import add_chain, profile_of
from labconsole_certificates.operations.issuing import constraints, must_be_accepted, opened_issuer, subject_of
from labconsole_certificates.operations.new_keys import DEFAULT_TYPE, NewKey, kept_key, made_key, secrets_of
from labconsole_certificates.operations.parameter_fields import (
    AuthorityChoice,
    Days,
    IssuerUnlockParameters,
    KeptKeyParameters,
    Limits,
    NewKeyParameters,
    PasswordParameters,
    PathLength,
    StateParameters,
    Subject,
)
from labconsole_certificates.operations.pki_operation import (
    PkiOperation,
    file_password,
    key_secrets,
    with_fingerprint,
)
from labconsole_certificates.operations.record_lookup import authority_of, local_state_named, must_be_local, state_named

ROOT_DAYS = 3650
INTERMEDIATE_DAYS = 1825


def create_root(
    store: PkiStore,
    state: State,
    new: NewKey,
    *,
    subject: str = "",
    days: int = ROOT_DAYS,
    path_length: int | None = None,
    name_constraints: Sequence[str] = (),
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """A new root: key pair and self-signed CA certificate (RFC 5280, 4.2.1.9); the State trusts it from then on.

    `subject` is RFC 4514 text (empty: `CN=<State> Root CA,O=<State>`); `name_constraints` are names, as in
    `caas.gov.sg`, and the CA may issue only within them (RFC 5280, 4.2.1.10).
    Raises UserError: a value is faulty, no passphrase, the token refuses; nothing changed.
    """
    must_be_local(state)
    name, validity = subject_of(state, CertificateProfile.ROOT, subject), Validity.for_days(days)
    limits = constraints(name_constraints)
    with made_key(store.directory, new, f"{state.name} Root CA", prompt) as key:
        root = issue_root(key.private, name, validity, path_length=path_length, name_constraints=limits)
        with store.change() as change:
            key.record(change, state)
            return change.add_certificate(
                root, state=state.id, profile=CertificateProfile.ROOT, origin=Origin.SELF_SIGNED
            )


def create_intermediate(
    store: PkiStore,
    issuer: CertificateRecord,
    state: State,
    new: NewKey,
    *,
    subject: str = "",
    days: int = INTERMEDIATE_DAYS,
    path_length: int | None = 0,
    name_constraints: Sequence[str] = (),
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """A new CA of `state` below `issuer`, whose key is stored here: key pair and certificate.

    `state` is usually the issuer's own; a CA for another State is limited by `name_constraints`.
    Raises UserError as `create_root`, and when the issuer may have no CA below it or its certificate ends earlier.
    """
    must_be_local(state)
    profile = CertificateProfile.INTERMEDIATE
    name, validity = subject_of(state, profile, subject), Validity.for_days(days)
    limits = constraints(name_constraints)
    with (
        opened_issuer(store.directory, store.snapshot(), issuer, prompt) as opened,
        made_key(store.directory, new, f"{state.name} Intermediate CA", prompt) as key,
    ):
        made = issue(
            opened,
            key.private.public_key(),
            name,
            (),
            profile,
            validity,
            name_constraints=limits,
            path_length=path_length,
        )
        must_be_accepted(made, opened)
        with store.change() as change:
            key.record(change, state)
            return change.add_certificate(made, state=state.id, profile=profile, origin=Origin.ISSUED)


def import_authority(
    store: PkiStore,
    state: State,
    certificates: bytes,
    key: bytes,
    *,
    password: Secret | None = None,
    keep: NewKey | None = None,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Import a CA from elsewhere: its certificate (first of `certificates`, PEM or DER, then its chain) and private
    key (PEM, DER, PKCS#8), or both in one PKCS#12 given as `certificates` with an empty `key`.

    `keep` says how the key file is protected here (its type and token are ignored).
    Raises UserError: wrong password, key and certificate do not belong together, not a CA certificate, expired;
    nothing changed.
    """
    must_be_local(state)
    if key:
        certificate, *issuers = parsing.read_certificates(certificates, "The certificate file")
        chain = tuple(issuers)
        private = parsing.read_private_key(key, password, "The key file")
    else:
        certificate, chain, private = complete_pkcs12(certificates, password)
    check_key_pair(certificate, private)
    _must_be_a_ca(certificate)
    kept = kept_key(store.directory, private, keep, short_name(certificate), prompt)
    with store.change() as change:
        kept.record(change, state)
        add_chain(change, chain)
        return change.add_certificate(
            certificate, state=state.id, profile=profile_of(certificate), origin=Origin.IMPORTED
        )


def complete_pkcs12(
    data: bytes, password: Secret | None
) -> tuple[x509.Certificate, tuple[x509.Certificate, ...], parsing.PrivateKey]:
    """Certificate, chain and key of a PKCS#12. Raises BadInput: wrong password, or one of the two is missing."""
    content = parsing.read_pkcs12(data, password)
    if content.key is None or content.certificate is None:
        raise BadInput("The PKCS#12 file holds no private key with its certificate: ask for one that does.")
    return content.certificate, content.chain, content.key


def _must_be_a_ca(certificate: x509.Certificate) -> None:
    name, now = short_name(certificate), datetime.now(UTC)
    if not is_ca(certificate):
        raise BadInput(f"{name} is not a CA certificate (basicConstraints): choose that of the CA.")
    if now > certificate.not_valid_after_utc:
        raise BadInput(f"The CA {name} expired on {certificate.not_valid_after_utc:%Y-%m-%d}: create a new one.")


def _good_for(kind: KeyType) -> str:
    if kind.value.startswith("rsa"):
        return "Tests 1 to 4"
    return "Tests 1 and 2, with OpenSSL 3.5" if kind.value.startswith("ml-dsa") else "Tests 1 and 2"


CaKeyType = Annotated[
    KeyType,
    parameter(
        "Kind of key",
        (
            "The exchange creates the keys of servers and clients of the same kind. Tests 3 and 4 sign and "
            "encrypt by RSA, as the source does"
        ),
        labels={str(kind): f"{TITLES[kind]}: {_good_for(kind)}" for kind in KeyType},
        option="--type",
        aliases=["--key-type"],
        metavar="TYPE",
    ),
]


class CreateRootParameters(NewKeyParameters):
    """A root CA to create."""

    key_type: CaKeyType = DEFAULT_TYPE
    subject: Subject = ""
    valid_days: Days = ROOT_DAYS
    path_length: PathLength = None
    limits: Limits = ()


class CreateRoot(PkiOperation[CreateRootParameters]):
    """Creates a State's root CA."""

    name: ClassVar[str] = "certificates.create-root"
    title: ClassVar[str] = "Create a root CA"
    description: ClassVar[str] = (
        "Creates a key pair and a certificate that it signs itself: the root of what the State issues. Other States "
        "trust it once they have confirmed its fingerprint. For the AMQP Tests 3 and 4 choose RSA: they sign and "
        "encrypt by RSA, and the exchange creates servers' and clients' keys of the same kind as the CA's."
    )
    parameters: ClassVar[type[Parameters]] = CreateRootParameters

    def needs(self, parameters: CreateRootParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        return secrets_of(parameters.new_key())

    def work(
        self, parameters: CreateRootParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        record = create_root(
            store,
            state_named(store.snapshot(), parameters.state),
            parameters.new_key(),
            subject=parameters.subject,
            days=parameters.valid_days,
            path_length=parameters.path_length,
            name_constraints=parameters.limits,
            prompt=prompt,
        )
        return _ready(record, "was created")


class CreateIntermediateParameters(NewKeyParameters, IssuerUnlockParameters):
    """A CA below another one, to create."""

    issuer: AuthorityChoice = ""
    issuing_state: str = parameter(
        "Issuing State", "Whose CA issues it; empty: the State's own", default="", metavar="STATE"
    )
    subject: Subject = ""
    valid_days: Days = INTERMEDIATE_DAYS
    path_length: PathLength = 0
    limits: Limits = ()

    def issuing_certificate(self, snapshot: Snapshot) -> CertificateRecord:
        """The CA certificate that issues. Raises UserError."""
        state = local_state_named(snapshot, self.issuing_state or self.state)
        return authority_of(snapshot, state, self.issuer, datetime.now(UTC))


class CreateIntermediate(PkiOperation[CreateIntermediateParameters]):
    """Creates a CA below another one."""

    name: ClassVar[str] = "certificates.create-intermediate"
    title: ClassVar[str] = "Create an intermediate CA"
    description: ClassVar[str] = (
        "Creates a key pair and a CA certificate for it, signed by a CA that is here. It issues from then on, and the "
        "root's key can stay locked away."
    )
    parameters: ClassVar[type[Parameters]] = CreateIntermediateParameters

    def needs(
        self, parameters: CreateIntermediateParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        issuing = parameters.issuing_certificate(snapshot)
        return (
            *secrets_of(parameters.new_key()),
            *key_secrets(directory, snapshot, issuing, unlock=parameters.unlock()),
        )

    def work(
        self, parameters: CreateIntermediateParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot = store.snapshot()
        record = create_intermediate(
            store,
            parameters.issuing_certificate(snapshot),
            local_state_named(snapshot, parameters.state),
            parameters.new_key(),
            subject=parameters.subject,
            days=parameters.valid_days,
            path_length=parameters.path_length,
            name_constraints=parameters.limits,
            prompt=prompt,
        )
        return _ready(record, "was created")


class ImportAuthorityParameters(PasswordParameters, KeptKeyParameters, StateParameters):
    """A CA that was created elsewhere."""

    file: HomePath = parameter(
        "Certificate", "PEM or DER, a chain after it; or a PKCS#12 with the key in it", positional=True
    )
    key_file: HomePath | None = parameter(
        "Private key", "PEM or DER, PKCS#8; none: it is in the PKCS#12", default=None, option="--key"
    )


class ImportAuthority(PkiOperation[ImportAuthorityParameters]):
    """Imports a CA with its private key."""

    name: ClassVar[str] = "certificates.import-authority"
    title: ClassVar[str] = "Import a CA"
    description: ClassVar[str] = (
        "Imports a CA that was created elsewhere, with its private key, which is encrypted again here. The files stay "
        "as they are: put them away safely."
    )
    parameters: ClassVar[type[Parameters]] = ImportAuthorityParameters

    def needs(
        self, parameters: ImportAuthorityParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        file = parameters.key_file or parameters.file
        locked = parsing.kind_of(parsing.read_file(file, "key file")).has_password
        return (
            *((file_password(file, parameters.password()),) if locked else ()),
            *secrets_of(parameters.kept_as()),
        )

    def work(
        self, parameters: ImportAuthorityParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        key_file = parameters.key_file
        record = import_authority(
            store,
            state_named(store.snapshot(), parameters.state),
            parsing.read_file(parameters.file, "certificate file"),
            parsing.read_file(key_file, "key file") if key_file else b"",
            password=prompt(file_password(key_file or parameters.file).purpose),
            keep=parameters.kept_as(),
            prompt=prompt,
        )
        return _ready(record, "was imported")


def _ready(record: CertificateRecord, how: str) -> Result:
    return with_fingerprint(f"The CA {short_name(record.certificate)} {how}.", record)
