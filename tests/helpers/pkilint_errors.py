"""What pkilint has against certificates, CRLs and OCSP responses: its PKIX linters, as its commands set them up."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pkilint import loader, pkix
from pkilint.bin import lint_pkix_signer_signee_cert_chain as chain_linter
from pkilint.pkix import certificate, crl, extension, name, ocsp
from pkilint.pkix.certificate import RFC5280Certificate
from pkilint.validation import ValidationFindingSeverity, ValidationResult, ValidatorContainer


def certificate_errors(subject: x509.Certificate) -> list[str]:
    """Findings of `lint_pkix_cert` from warnings up."""
    document = loader.load_der_certificate(subject.public_bytes(Encoding.DER))
    return _serious(_certificate_linter().validate(document.root))


def chain_errors(issuer: x509.Certificate, subject: x509.Certificate) -> list[str]:
    """Findings of `lint_pkix_signer_signee_cert_chain` from warnings up."""
    documents: dict[str, RFC5280Certificate] = {}
    for role, one in (("issuer", issuer), ("subject", subject)):
        documents[role] = loader.load_der_certificate(one.public_bytes(Encoding.DER), role, role, documents)
    decoding = chain_linter.create_decoder_validation_container()
    return _serious(
        [
            *decoding.validate(documents["issuer"].root),
            *decoding.validate(documents["subject"].root),
            *chain_linter.create_issuer_validation_container().validate(documents["issuer"].root),
            *chain_linter.create_subject_validation_container().validate(documents["subject"].root),
        ]
    )


def crl_errors(revoked: x509.CertificateRevocationList) -> list[str]:
    """Findings of `lint_crl -t CRL -p PKIX` from warnings up."""
    document = loader.load_der_crl(revoked.public_bytes(Encoding.DER))
    return _serious(_crl_linter().validate(document.root))


def ocsp_errors(response_der: bytes) -> list[str]:
    """Findings of `lint_ocsp_response` from warnings up."""
    document = loader.load_der_ocsp_response(response_der)
    return _serious(_ocsp_linter().validate(document.root))


@cache
def _certificate_linter() -> ValidatorContainer:
    return certificate.create_pkix_certificate_validator_container(
        certificate.create_decoding_validators(name.ATTRIBUTE_TYPE_MAPPINGS, extension.EXTENSION_MAPPINGS),
        [
            certificate.create_issuer_validator_container([]),
            certificate.create_validity_validator_container(),
            certificate.create_subject_validator_container([]),
            certificate.create_extensions_validator_container([]),
            certificate.create_spki_validator_container([]),
        ],
    )


@cache
def _crl_linter() -> ValidatorContainer:
    return crl.create_pkix_crl_validator_container(
        [
            pkix.create_attribute_decoder(name.ATTRIBUTE_TYPE_MAPPINGS),
            pkix.create_extension_decoder(extension.EXTENSION_MAPPINGS),
        ],
        [
            crl.create_issuer_validator_container([]),
            crl.create_validity_validator_container([]),
            crl.create_extensions_validator_container([]),
        ],
    )


@cache
def _ocsp_linter() -> ValidatorContainer:
    return ocsp.create_pkix_ocsp_response_validator_container(
        [
            ocsp.create_response_decoder(),
            pkix.create_attribute_decoder(name.ATTRIBUTE_TYPE_MAPPINGS),
            pkix.create_extension_decoder(extension.EXTENSION_MAPPINGS),
        ],
        [],
    )


def _serious(results: Iterable[ValidationResult]) -> list[str]:
    return [
        f"{finding.finding.code} {finding.message or ''} ({result.node.path})".strip()
        for result in results
        for finding in result.finding_descriptions
        if finding.finding.severity <= ValidationFindingSeverity.WARNING
    ]
