"""The usual names of algorithms, name attributes, extensions and purposes, by their object identifier."""

from __future__ import annotations

from types import MappingProxyType

from cryptography import x509
from cryptography.x509.oid import (
    AuthorityInformationAccessOID,
    CRLEntryExtensionOID,
    ExtendedKeyUsageOID,
    ExtensionOID,
    NameOID,
    SignatureAlgorithmOID,
    SubjectInformationAccessOID,
)

SIGNATURES = MappingProxyType(
    {
        SignatureAlgorithmOID.RSA_WITH_MD5: "RSA with MD5",
        SignatureAlgorithmOID.RSA_WITH_SHA1: "RSA with SHA-1",
        SignatureAlgorithmOID.RSA_WITH_SHA224: "RSA with SHA-224",
        SignatureAlgorithmOID.RSA_WITH_SHA256: "RSA with SHA-256",
        SignatureAlgorithmOID.RSA_WITH_SHA384: "RSA with SHA-384",
        SignatureAlgorithmOID.RSA_WITH_SHA512: "RSA with SHA-512",
        SignatureAlgorithmOID.RSASSA_PSS: "RSASSA-PSS",
        SignatureAlgorithmOID.ECDSA_WITH_SHA1: "ECDSA with SHA-1",
        SignatureAlgorithmOID.ECDSA_WITH_SHA224: "ECDSA with SHA-224",
        SignatureAlgorithmOID.ECDSA_WITH_SHA256: "ECDSA with SHA-256",
        SignatureAlgorithmOID.ECDSA_WITH_SHA384: "ECDSA with SHA-384",
        SignatureAlgorithmOID.ECDSA_WITH_SHA512: "ECDSA with SHA-512",
        SignatureAlgorithmOID.DSA_WITH_SHA1: "DSA with SHA-1",
        SignatureAlgorithmOID.DSA_WITH_SHA256: "DSA with SHA-256",
        SignatureAlgorithmOID.ED25519: "Ed25519",
        SignatureAlgorithmOID.ED448: "Ed448",
        SignatureAlgorithmOID.ML_DSA_44: "ML-DSA-44",
        SignatureAlgorithmOID.ML_DSA_65: "ML-DSA-65",
        SignatureAlgorithmOID.ML_DSA_87: "ML-DSA-87",
    }
)
BROKEN_SIGNATURES = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_MD5,
        SignatureAlgorithmOID.RSA_WITH_SHA1,
        SignatureAlgorithmOID.ECDSA_WITH_SHA1,
        SignatureAlgorithmOID.DSA_WITH_SHA1,
    }
)
"""Signature algorithms whose hash does not resist collisions (NIST SP 800-131A)."""

ATTRIBUTES = MappingProxyType(
    {
        NameOID.COMMON_NAME: "Common name (CN)",
        NameOID.COUNTRY_NAME: "Country (C)",
        NameOID.LOCALITY_NAME: "Locality (L)",
        NameOID.STATE_OR_PROVINCE_NAME: "State or province (ST)",
        NameOID.STREET_ADDRESS: "Street",
        NameOID.ORGANIZATION_NAME: "Organisation (O)",
        NameOID.ORGANIZATIONAL_UNIT_NAME: "Organisational unit (OU)",
        NameOID.ORGANIZATION_IDENTIFIER: "Organisation identifier",
        NameOID.SERIAL_NUMBER: "Serial number of the subject",
        NameOID.SURNAME: "Surname",
        NameOID.GIVEN_NAME: "Given name",
        NameOID.TITLE: "Title",
        NameOID.PSEUDONYM: "Pseudonym",
        NameOID.USER_ID: "User ID (UID)",
        NameOID.DOMAIN_COMPONENT: "Domain component (DC)",
        NameOID.EMAIL_ADDRESS: "E-mail address",
    }
)

EXTENSIONS = MappingProxyType(
    {
        ExtensionOID.SUBJECT_KEY_IDENTIFIER: "Subject key identifier",
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER: "Authority key identifier",
        ExtensionOID.BASIC_CONSTRAINTS: "Basic constraints",
        ExtensionOID.KEY_USAGE: "Key usage",
        ExtensionOID.EXTENDED_KEY_USAGE: "Extended key usage",
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME: "Subject alternative names",
        ExtensionOID.ISSUER_ALTERNATIVE_NAME: "Issuer alternative names",
        ExtensionOID.NAME_CONSTRAINTS: "Name constraints",
        ExtensionOID.CRL_DISTRIBUTION_POINTS: "CRL distribution points",
        ExtensionOID.FRESHEST_CRL: "Freshest CRL",
        ExtensionOID.AUTHORITY_INFORMATION_ACCESS: "Authority information access",
        ExtensionOID.SUBJECT_INFORMATION_ACCESS: "Subject information access",
        ExtensionOID.CERTIFICATE_POLICIES: "Certificate policies",
        ExtensionOID.POLICY_MAPPINGS: "Policy mappings",
        ExtensionOID.POLICY_CONSTRAINTS: "Policy constraints",
        ExtensionOID.INHIBIT_ANY_POLICY: "Inhibit any-policy",
        ExtensionOID.OCSP_NO_CHECK: "OCSP no check",
        ExtensionOID.TLS_FEATURE: "TLS feature",
        ExtensionOID.CRL_NUMBER: "CRL number",
        ExtensionOID.DELTA_CRL_INDICATOR: "Delta CRL indicator",
        ExtensionOID.ISSUING_DISTRIBUTION_POINT: "Issuing distribution point",
        ExtensionOID.PRIVATE_KEY_USAGE_PERIOD: "Private key usage period",
        ExtensionOID.PRECERT_SIGNED_CERTIFICATE_TIMESTAMPS: "Signed certificate timestamps",
        CRLEntryExtensionOID.CRL_REASON: "Reason",
        CRLEntryExtensionOID.INVALIDITY_DATE: "Invalid since",
        CRLEntryExtensionOID.CERTIFICATE_ISSUER: "Certificate issuer",
    }
)

PURPOSES = MappingProxyType(
    {
        ExtendedKeyUsageOID.SERVER_AUTH: "TLS server (serverAuth)",
        ExtendedKeyUsageOID.CLIENT_AUTH: "TLS client (clientAuth)",
        ExtendedKeyUsageOID.CODE_SIGNING: "code signing (codeSigning)",
        ExtendedKeyUsageOID.EMAIL_PROTECTION: "S/MIME messages (emailProtection)",
        ExtendedKeyUsageOID.TIME_STAMPING: "time stamping (timeStamping)",
        ExtendedKeyUsageOID.OCSP_SIGNING: "OCSP answers (OCSPSigning)",
        ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE: "anything (anyExtendedKeyUsage)",
    }
)

ACCESSES = MappingProxyType(
    {
        AuthorityInformationAccessOID.OCSP: "OCSP",
        AuthorityInformationAccessOID.CA_ISSUERS: "Issuer's certificate",
        SubjectInformationAccessOID.CA_REPOSITORY: "CA repository",
    }
)

KEY_USAGES = (
    ("digital_signature", "digital signature"),
    ("content_commitment", "content commitment (non-repudiation)"),
    ("key_encipherment", "key encipherment"),
    ("data_encipherment", "data encipherment"),
    ("key_agreement", "key agreement"),
    ("key_cert_sign", "certificate signing"),
    ("crl_sign", "CRL signing"),
)
"""Attributes of `KeyUsage`, and their bits in words (RFC 5280, 4.2.1.3)."""

REASONS = MappingProxyType(
    {
        x509.ReasonFlags.unspecified: "unspecified",
        x509.ReasonFlags.key_compromise: "key compromise",
        x509.ReasonFlags.ca_compromise: "CA compromise",
        x509.ReasonFlags.affiliation_changed: "affiliation changed",
        x509.ReasonFlags.superseded: "superseded",
        x509.ReasonFlags.cessation_of_operation: "cessation of operation",
        x509.ReasonFlags.certificate_hold: "certificate hold",
        x509.ReasonFlags.privilege_withdrawn: "privilege withdrawn",
        x509.ReasonFlags.aa_compromise: "AA compromise",
        x509.ReasonFlags.remove_from_crl: "remove from CRL",
    }
)
"""RFC 5280, 5.3.1."""
