"""Answers to OCSP requests, as the openssl program asks and understands them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from asn1crypto import ocsp as asn1_ocsp
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole_certificates.revocation.ocsp_answers import NotRevoked, answer
from tests.helpers.authorities import named, new_authority
from tests.helpers.mutations import mutations, tenth_and_all
from tests.helpers.openssl_command import run_openssl
from tests.helpers.pkilint_errors import ocsp_errors
from tests.helpers.x509_keys import key_of

DAY = Validity.for_days(1)
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOST = [x509.DNSName("broker.example.sg")]
PUBLIC_KEY = key_of(KeyType.P_384).public_key()


class OcspLab:
    """A CA, its responder, and certificates that are good, revoked and unknown to it; PEM files of them."""

    def __init__(self, folder: Path, responder_type: KeyType) -> None:
        self._requests: dict[tuple[str, tuple[str, ...]], bytes] = {}
        self.folder = folder
        self.root = new_authority("State A Root")
        key = key_of(responder_type)
        profile = CertificateProfile.OCSP_RESPONDER
        self.responder = Issuer(issue(self.root, key.public_key(), named("CN=Responder"), [], profile, DAY), key)
        self.certificates = {name: self._issued(name) for name in ("good", "revoked", "unknown")}
        self._write("root", self.root.certificate)
        for name, certificate in self.certificates.items():
            self._write(name, certificate)

    def _issued(self, name: str) -> x509.Certificate:
        return issue(self.root, PUBLIC_KEY, named(f"CN={name}"), HOST, CertificateProfile.TLS_SERVER, DAY)

    def _write(self, name: str, certificate: x509.Certificate) -> None:
        (self.folder / name).write_bytes(certificate.public_bytes(Encoding.PEM))

    def status_of(self, serial: int) -> NotRevoked | Revoked:
        names = {certificate.serial_number: name for name, certificate in self.certificates.items()}
        if names[serial] == "revoked":
            return Revoked(serial, AT, x509.ReasonFlags.key_compromise)
        return NotRevoked(names[serial])

    def asked(self, name: str, *options: str) -> bytes:
        """The request that openssl makes for a certificate; with the same options, the same one."""
        if (name, options) in self._requests:
            return self._requests[name, options]
        request = self.folder / "request"
        files = ("-cert", self.folder / name, "-reqout", request)
        run_openssl("ocsp", "-issuer", self.folder / "root", *options, *files)
        return self._requests.setdefault((name, options), request.read_bytes())

    def answered(self, request: bytes, responder: Issuer) -> bytes:
        return answer(request, self.root.certificate, responder, self.status_of, DAY)

    def understood(self, name: str, request: bytes, response: bytes, *options: str) -> str:
        """What openssl reads in the answer, once it has verified it; `-no_nonce`: the request keeps its own."""
        (self.folder / "asked").write_bytes(request)
        (self.folder / "response").write_bytes(response)
        return run_openssl(
            *("ocsp", "-no_nonce", "-CAfile", self.folder / "root", "-issuer", self.folder / "root"),
            *(
                *options,
                "-cert",
                self.folder / name,
                "-reqin",
                self.folder / "asked",
                "-respin",
                self.folder / "response",
            ),
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> OcspLab:
    return OcspLab(tmp_path_factory.mktemp("ocsp"), KeyType.P_256)


@pytest.mark.parametrize("name", ["good", "revoked", "unknown"])
@pytest.mark.parametrize("delegated", [True, False])
@pytest.mark.parametrize("digest", ["-sha1", "-sha256"])
def test_openssl_understands_the_answer(lab: OcspLab, name: str, delegated: bool, digest: str) -> None:
    request = lab.asked(name, digest)
    response = lab.answered(request, lab.responder if delegated else lab.root)
    assert ocsp_errors(response) == []
    said = lab.understood(name, request, response, digest)
    assert "Response verify OK" in said
    assert "WARNING" not in said  # as it would of a nonce that is not repeated
    assert f"{lab.folder / name}: {name}" in said
    if name == "revoked":
        assert "Reason: keyCompromise" in said
        assert "Revocation Time: May  1 12:00:00 2026 GMT" in said


@pytest.mark.parametrize("type", [KeyType.RSA_2048, KeyType.ED25519, KeyType.ML_DSA_44])
def test_every_kind_of_key_answers(type: KeyType, tmp_path: Path) -> None:
    lab = OcspLab(tmp_path, type)
    request = lab.asked("good")
    response = ocsp.load_der_ocsp_response(lab.answered(request, lab.responder))
    assert response.certificate_status is ocsp.OCSPCertStatus.GOOD
    (sent,) = response.certificates
    assert sent == lab.responder.certificate
    if type is not KeyType.ML_DSA_44:
        assert "verify OK" in lab.understood("good", request, response.public_bytes(Encoding.DER))


def test_the_nonce_is_repeated_only_where_there_is_one(lab: OcspLab) -> None:
    for options, expected in ((("-no_nonce",), 0), ((), 1)):
        request = lab.asked("good", *options)
        response = ocsp.load_der_ocsp_response(lab.answered(request, lab.root))
        assert list(response.extensions) == list(ocsp.load_der_ocsp_request(request).extensions)
        assert len(list(response.extensions)) == expected


def test_a_certificate_of_another_ca_is_unknown(lab: OcspLab) -> None:
    outsider = new_authority("Stranger").certificate
    builder = ocsp.OCSPRequestBuilder().add_certificate(lab.certificates["good"], outsider, hashes.SHA256())
    response = ocsp.load_der_ocsp_response(lab.answered(builder.build().public_bytes(Encoding.DER), lab.root))
    assert response.certificate_status is ocsp.OCSPCertStatus.UNKNOWN


def request_with_nonce(lab: OcspLab, length: int) -> bytes:
    builder = ocsp.OCSPRequestBuilder().add_certificate(lab.certificates["good"], lab.root.certificate, hashes.SHA256())
    return builder.add_extension(x509.OCSPNonce(bytes(length)), critical=False).build().public_bytes(Encoding.DER)


def test_a_malformed_request_gets_the_malformed_request_answer(lab: OcspLab) -> None:
    request = lab.asked("good")
    two = lab.asked("good", "-cert", str(lab.folder / "revoked"))
    number = lab.certificates["good"].serial_number
    serial = number.to_bytes(number.bit_length() // 8 + 1, "big")
    negative = request_with_nonce(lab, 8).replace(serial, bytes([serial[0] | 0x80]) + serial[1:])
    assert ocsp.load_der_ocsp_response(lab.answered(request_with_nonce(lab, 128), lab.root)).extensions
    nonces = (request_with_nonce(lab, length) for length in (0, 129))
    for bad in (b"", b"\x30", request[:-1], bytes(100), two, *nonces, negative):
        response = ocsp.load_der_ocsp_response(lab.answered(bad, lab.root))
        assert response.response_status is ocsp.OCSPResponseStatus.MALFORMED_REQUEST


@pytest.mark.parametrize("count", tenth_and_all(1000))
def test_damaged_requests_are_answered(lab: OcspLab, count: int) -> None:
    """Any request to the responder gets an answer that a client can read, never an error of its own."""
    seen = Counter(
        ocsp.load_der_ocsp_response(
            answer(request, lab.root.certificate, lab.root, lambda _: NotRevoked.GOOD, DAY)
        ).response_status
        for request in mutations(request_with_nonce(lab, 16), count, seed=7)
    )
    assert set(seen) == {ocsp.OCSPResponseStatus.SUCCESSFUL, ocsp.OCSPResponseStatus.MALFORMED_REQUEST}


def test_a_doubled_extension_is_a_malformed_request(lab: OcspLab) -> None:
    request = asn1_ocsp.OCSPRequest.load(lab.asked("good"))
    extensions = request["tbs_request"]["request_extensions"]
    request["tbs_request"]["request_extensions"] = [extensions[0].copy(), extensions[0].copy()]
    response = ocsp.load_der_ocsp_response(lab.answered(request.dump(force=True), lab.root))
    assert response.response_status is ocsp.OCSPResponseStatus.MALFORMED_REQUEST
