"""Names in any script, as text and back; nothing hidden in what is shown or issued."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from labconsole.errors import BadInput
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import (
    general_name_as_text,
    general_name_from_text,
    name_as_text,
    name_constraint_from_text,
    name_from_text,
    name_of,
    short_name,
    shown,
)
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

KEY = key_of(KeyType.P_256)
THAI = "สำนักงานการบินพลเรือนแห่งประเทศไทย"
"""The Civil Aviation Authority of Thailand: 34 characters, 102 bytes."""
SCRIPTS = (
    "CN=broker,O=CAAS,C=SG",
    f"CN={THAI},O={THAI},C=TH",
    "CN=民航局,O=中国民用航空局,C=CN",
    "CN=항공교통본부,O=국토교통부,C=KR",
    "CN=شركة الملاحة,O=الهيئة العامة للطيران المدني,C=SA",
    "CN=نامه\u200cای,C=IR",
    "CN=क्\u200dष,O=भारतीय विमानपत्तन प्राधिकरण,C=IN",
    "CN=Управление,OU=Связь,C=MN",
    "CN=Bücher\\, Straße \\+ Söhne,C=DE",
)


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
@pytest.mark.parametrize("text", SCRIPTS)
def test_names_of_any_script_come_back_as_they_were(text: str) -> None:
    name = name_from_text(text)
    assert name_as_text(name) == text
    assert name_from_text(name_as_text(name)) == name
    csr = create_csr(KEY, name, [], CertificateProfile.TLS_SERVER)
    assert parsing.read_csr(csr.public_bytes(Encoding.DER)).subject == name


def test_names_are_made_of_values_as_they_are() -> None:
    assert name_of(("O", THAI), ("CN", "a, b=c+#\\")) == name_from_text(f"CN=a\\, b=c\\+#\\\\,O={THAI}")
    for wrong in ("", " ", "ท" * 65, "a\u202eb"):
        with pytest.raises(BadInput, match="cannot be used in a certificate"):
            name_of(("O", "CAAS"), ("CN", wrong))


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
def test_long_names_are_read_in_silence(tmp_path: Path) -> None:
    csr = create_csr(KEY, name_from_text(f"CN={THAI},C=TH"), [], CertificateProfile.TLS_CLIENT)
    (tmp_path / "a.csr").write_bytes(csr.public_bytes(Encoding.PEM))
    read = (
        "import pathlib, sys; from labconsole.security.x509.parsing import read_csr; "
        "read_csr(pathlib.Path(sys.argv[1]).read_bytes())"
    )
    ran = subprocess.run([sys.executable, "-c", read, tmp_path / "a.csr"], check=True, capture_output=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")


def test_openssl_reads_utf8_in_subjects_and_idna_in_hosts() -> None:
    name = name_from_text(f"CN=ศูนย์,O={THAI},C=TH")
    csr = create_csr(KEY, name, [general_name_from_text("ศูนย์.ไทย")], CertificateProfile.TLS_SERVER)
    said = run_openssl("req", "-noout", "-text", "-nameopt", "utf8,sep_comma_plus", data=csr.public_bytes(Encoding.PEM))
    assert f"O={THAI}" in said
    assert "DNS:xn--" in said


def test_how_people_write_names() -> None:
    assert name_from_text(" cn=x, o=CAAS, C=SG ") == name_from_text("CN=x,O=CAAS,C=SG")
    assert name_as_text(name_from_text("E=a@b.example,CN=x")) == "E=a@b.example,CN=x"
    composed, decomposed = name_from_text("CN=B\u00fccher"), name_from_text("CN=Bu\u0308cher")
    assert composed == decomposed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("CN", "is not a distinguished name"),
        ("FOO=bar", "is not a distinguished name"),
        ("CN= ", "CN is empty"),
        ("C=SGP", "country code of two letters"),
        ("C=中国", "country code of two letters"),
        (f"CN={'ก' * 65}", "CN has 64 characters at most, this one 65"),
        ("E=用户@b.example", "E has ASCII characters only"),
        ("CN=safe\u202egnp.exe", "do not show, U\\+202E"),
        ("CN=a\\00b", "do not show, U\\+0000"),
        ("CN=State\u200d A", "do not show, U\\+200D"),
        ("CN=State\u00ad A", "do not show, U\\+00AD"),
        ("CN=\u3164", "do not show, U\\+3164"),
    ],
)
def test_bad_names_are_refused(text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as refused:
        name_from_text(text)
    assert "\u202e" not in str(refused.value) and "\0" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "encoded", "expected"),
    [
        ("bücher.example", "xn--bcher-kva.example", "bücher.example (xn--bcher-kva.example)"),
        ("BÜCHER.Example", "xn--bcher-kva.example", "bücher.example (xn--bcher-kva.example)"),
        ("*.bücher.example", "*.xn--bcher-kva.example", "*.bücher.example (*.xn--bcher-kva.example)"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", "bücher.example (xn--bcher-kva.example)"),
        ("straße.example", "xn--strae-oqa.example", "straße.example (xn--strae-oqa.example)"),
        ("شركة.مثال", "xn--ogbpi5d.xn--mgbh0fb", "شركة.مثال (xn--ogbpi5d.xn--mgbh0fb)"),
        ("DNS:swim.caas.gov.sg.", "swim.caas.gov.sg", "swim.caas.gov.sg"),
        ("localhost", "localhost", "localhost"),
    ],
)
def test_hosts_are_idna_2008(text: str, encoded: str, expected: str) -> None:
    name = general_name_from_text(text)
    assert name == x509.DNSName(encoded)
    assert general_name_as_text(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.1", "IP:192.0.2.1"),
        ("IP:2001:db8::1", "IP:2001:db8::1"),
        ("URI:http://ocsp.example/a", "URI:http://ocsp.example/a"),
        ("amhs@bücher.example", "email:amhs@bücher.example (xn--bcher-kva.example)"),
        ("email:用户@例え.jp", "email:用户@例え.jp"),
        ("DIR:CN=根,C=CN", "DIR:CN=根,C=CN"),
    ],
)
def test_other_alternative_names(text: str, expected: str) -> None:
    assert general_name_as_text(general_name_from_text(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "a b", "a..b", "-a.example", "xn--zz.example", "IP:300.1.1.1", "IP:10.0.0.0/8", "URI:nothing"),
        *("@b.example", "DIR:C=SGP", "a\u202eb.example", "x" * 64 + ".example"),
    ],
)
def test_bad_alternative_names_are_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        general_name_from_text(text)
    assert str(refused.value).endswith(".") and "\u202e" not in str(refused.value)


def test_networks_are_for_name_constraints_alone() -> None:
    assert general_name_as_text(name_constraint_from_text("IP:10.0.0.0/8")) == "IP:10.0.0.0/8"
    assert name_constraint_from_text("caas.gov.sg") == x509.DNSName("caas.gov.sg")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("safe\u202egnp.exe", "safe<U+202E>gnp.exe"),
        ("a\nb\x00", "a<U+000A>b<U+0000>"),
        ("\u2066a\u2069\ufeff", "<U+2066>a<U+2069><U+FEFF>"),
        ("A\u200dB", "A<U+200D>B"),
        ("نامه\u200cای", "نامه\u200cای"),
        ("क्\u200dष", "क्\u200dष"),
        ("A\ufe0f\U000e0101\u2800", "A<U+FE0F><U+E0101><U+2800>"),
        ("\ud800", "<U+D800>"),
        ("Zoë 中文 ก็ 한글", "Zoë 中文 ก็ 한글"),
    ],
)
def test_invisible_characters_are_spelt_out(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_a_hostile_name_is_safe_to_show() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "safe\u202egnp\n.exe")])
    assert name_as_text(name) == "CN=safe\\E2\\80\\AEgnp\\0A.exe"
    assert short_name(name) == "safe<U+202E>gnp<U+000A>.exe"
    assert general_name_as_text(x509.UniformResourceIdentifier("http://a\r")) == "URI:http://a<U+000D>"


def test_hosts_that_are_not_idna_are_shown_unchanged() -> None:
    assert general_name_as_text(x509.DNSName("xn--zz.example")) == "xn--zz.example (no valid international name)"
    assert general_name_as_text(x509.DNSName(".caas.gov.sg")) == ".caas.gov.sg"
    damaged = x509.OtherName(x509.ObjectIdentifier("1.3.6.1.5.5.7.8.9"), b"\x0c\x01\xff")
    assert general_name_as_text(damaged) == "email, damaged: 0c01ff"


def test_what_to_call_a_certificate() -> None:
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    nameless = csr.sign(KEY, hashes.SHA256())
    assert short_name(nameless) == "without a name"
    host = csr.add_extension(x509.SubjectAlternativeName([x509.DNSName("xn--bcher-kva.example")]), critical=True)
    assert short_name(host.sign(KEY, hashes.SHA256())) == "bücher.example (xn--bcher-kva.example)"
    assert short_name(name_from_text("O=CAAS,C=SG")) == "CAAS"
    assert short_name(name_from_text("C=SG")) == "C=SG"
