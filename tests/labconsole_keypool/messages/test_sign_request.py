"""Sign requests: both forms are read, and everything that is not one is refused in one sentence."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.messages import signature_algorithms
from labconsole_keypool.messages.safe_xml import SignRequestError
from labconsole_keypool.messages.sign_request import CertificateType, Form, SignatureType, SignTask, parse, sample
from labconsole_keypool.messages.signature_algorithms import ALGORITHMS, ECDSA_SHA256
from labconsole_keypool.messages.signer_attributes import Place, SignerAttribute

NAMED = (
    SignerAttribute(Place.RDN, "2.5.4.5", "191212100007"),
    SignerAttribute(Place.RDN, "2.5.4.6", "SE"),
    SignerAttribute(Place.RDN, "2.5.4.42", "Åsa"),
    SignerAttribute(Place.RDN, "2.5.4.4", "Exempel"),
    SignerAttribute(Place.RDN, "2.5.4.3", "Åsa Exempel"),
    SignerAttribute(Place.SAN, "1", "asa.exempel@requester.example"),
)


@pytest.mark.parametrize("form", Form)
def test_request_names_signer_data_algorithm_and_certificate(form: Form) -> None:
    request = parse(sample(7, form=form, tasks=(b"first", b"\x00\xff")))

    assert request.form is form
    assert len(request.request_id) == 32
    assert request.profile
    assert request.requester == "https://requester.example/sign"
    assert request.algorithm is ECDSA_SHA256
    assert request.key_kind is KeyKind.P_256
    assert request.certificate_type is CertificateType.QC_SSCD
    assert request.attributes[: len(NAMED)] == NAMED
    assert request.tasks == (
        SignTask("SignTask1", SignatureType.XML, b"first"),
        SignTask("SignTask2", SignatureType.XML, b"\x00\xff"),
    )


def test_authentication_context_is_kept_verbatim_with_its_namespaces() -> None:
    context = parse(sample()).context

    assert context is not None
    assert 'AuthnContextClassRef="http://id.elegnamnden.se/loa/1.0/loa3"' in context
    assert 'FriendlyName="Förnamn"' in context
    assert 'xmlns:saci="http://id.elegnamnden.se/auth-cont/1.0/saci"' in context
    assert parse(sample(form=Form.CSIG)).context is None


def test_samples_differ_by_number_and_are_reproducible() -> None:
    assert sample(1) == sample(1)
    ids = {parse(sample(number)).request_id for number in range(50)}
    signers = {parse(sample(number)).attributes[0].value for number in range(50)}
    assert (len(ids), len(signers)) == (50, 50)


@pytest.mark.parametrize("uri", ALGORITHMS)
def test_requested_algorithm_is_used(uri: str) -> None:
    assert parse(sample(algorithm=signature_algorithms.algorithm_of(uri))).algorithm.uri == uri


@pytest.mark.parametrize("wanted", CertificateType)
def test_requested_certificate_type_is_used(wanted: CertificateType) -> None:
    assert parse(sample(certificate_type=wanted)).certificate_type is wanted


def test_csig_takes_the_first_name_in_order_that_the_signer_has() -> None:
    both = _csig('Name="urn:oid:0.9.2342.19200300.100.1.3"', 'Name="urn:oid:1.2.752.201.3.4"')
    assert parse(both).attributes[0].value == "191212100000"  # Order 0, though it is last
    other = both.replace(b"urn:oid:1.2.752.29.4.13</eid2", b"urn:oid:9.9</eid2")
    assert parse(other).attributes[0] == SignerAttribute(Place.RDN, "2.5.4.5", "asa.exempel@requester.example")


def test_a_csig_request_without_properties_wants_a_plain_certificate() -> None:
    data = sample(form=Form.CSIG)
    start, end = data.index(b"<eid2:CertRequestProperties"), data.index(b"</eid2:SignRequestExtension>")
    assert parse(data[:start] + data[end:]).certificate_type is CertificateType.PKC


def test_a_single_task_needs_no_name() -> None:
    assert parse(_source('SignTaskId="SignTask1" ', "")).tasks[0].id is None


def test_a_request_in_utf_16_is_read() -> None:
    text = sample().decode().replace("UTF-8", "UTF-16")
    assert parse(text.encode("utf-16")).attributes[2].value == "Åsa"


@pytest.mark.parametrize(
    ("encoding", "declared"), [("utf-8", "UTF-8"), ("utf-16", "UTF-16"), ("utf-16-be", "UTF-16"), ("utf-32", "UTF-32")]
)
def test_a_doctype_is_refused_in_every_encoding(encoding: str, declared: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    text = f'{mark}<?xml version="1.0" encoding="{declared}"?><!DOCTYPE a><a/>'
    with pytest.raises(SignRequestError, match="has a DOCTYPE"):
        parse(text.encode(encoding))


def test_a_doctype_in_utf_7_is_refused() -> None:
    hidden = b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE a+AD4-<a/>'
    with pytest.raises(SignRequestError, match=r"has a DOCTYPE|is not XML"):
        parse(hidden)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_billion_laughs_document_is_refused_before_expansion(encoding: str) -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY l0 "lol">{entities}]><l>&l9;</l>'.encode(encoding)
    with pytest.raises(SignRequestError, match="has a DOCTYPE"):
        parse(bomb)


def test_an_external_entity_is_not_fetched(tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("secret") / "secret.txt"
    secret.write_text("hush")
    data = sample().replace(
        b"<dss:SignRequest", f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret}">]>\n<dss:SignRequest'.encode()
    )
    data = data.replace(b"https://requester.example/sign", b"&e;")
    with pytest.raises(SignRequestError, match="has a DOCTYPE") as refusal:
        parse(data)
    assert "hush" not in str(refusal.value)


def test_a_hundred_megabytes_are_refused_at_once_and_uncopied() -> None:
    data = bytes(100_000_000)
    tracemalloc.start()
    started = time.thread_time()
    with pytest.raises(SignRequestError, match=r"has 100,000,000 bytes, where 1,000,000 at most"):
        parse(data)
    taken = time.thread_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 0.1
    assert peak < 1_000_000


def test_too_deeply_nested_document_is_refused() -> None:
    with pytest.raises(SignRequestError, match="is not XML"):
        parse(b"<a>" * 5000 + b"</a>" * 5000)


@pytest.mark.parametrize(
    "data", [b"", b"abc", b"{}", b"\x30\x82", sample()[:200], sample()[:1500], b"<a>&undefined;</a>", b"<a>\0</a>"]
)
def test_invalid_xml_is_refused_in_one_short_line(data: bytes) -> None:
    with pytest.raises(SignRequestError, match=r"is not XML \(line \d+: ") as refusal:
        parse(data)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


def _source(old: str, new: str) -> bytes:
    return _changed(sample(), old, new)


def _csig(old: str, new: str) -> bytes:
    return _changed(sample(form=Form.CSIG), old, new)


def _changed(data: bytes, old: str, new: str) -> bytes:
    assert old.encode() in data
    return data.replace(old.encode(), new.encode())


def _without(element: str, form: Form = Form.SOURCE) -> Callable[[], bytes]:
    """A request without the named element, its contents and its end."""

    def made() -> bytes:
        data = sample(form=form).decode()
        start = data.index(f"<{element}")
        close = f"</{element}>"
        end = data.index(close) + len(close) if close in data else data.index("/>", start) + 2
        return (data[:start] + data[end:]).encode()

    return made


FAULTS = {
    "another document": (lambda: b"<a/>", "is not a sign request"),
    "another namespace": (lambda: _source("urn:oasis:names:tc:dss:1.0:core:schema", "urn:x"), "is not a sign request"),
    "no RequestID": (lambda: _source(" RequestID=", " Other="), "SignRequest has no attribute RequestID"),
    "no inputs": (_without("dss:OptionalInputs"), "has no OptionalInputs"),
    "no requester": (_without("eid2:SignRequester"), "has no SignRequester"),
    "no algorithm": (_without("eid2:RequestedSignatureAlgorithm"), "has no RequestedSignatureAlgorithm"),
    "no properties": (_without("eid2:CertRequestProperties"), "has no CertRequestProperties"),
    "no context": (_without("saci:SAMLAuthContext"), "has no SAMLAuthContext"),
    "no documents": (_without("dss:InputDocuments"), "has no SignTasks"),
    "no tasks": (lambda: sample(tasks=0), "has 0 sign tasks, where 1 to 100 are taken"),
    "101 tasks": (lambda: sample(tasks=101), "has 101 sign tasks"),
    "two tasks of one name": (lambda: _changed(sample(tasks=2), "SignTask2", "SignTask1"), "cannot be distinguished"),
    "no bytes": (_without("eid2:ToBeSignedBytes"), "has no ToBeSignedBytes"),
    "empty bytes": (lambda: sample(tasks=[b""]), "ToBeSignedBytes must hold text alone"),
    "wrong base64": (lambda: _source("<eid2:ToBeSignedBytes>", "<eid2:ToBeSignedBytes>§"), "is not base64"),
    "base64 with more": (lambda: _source("</eid2:ToBeSignedBytes>", "!!!!</eid2:ToBeSignedBytes>"), "is not base64"),
    "cut base64": (lambda: _source("</eid2:ToBeSignedBytes>", "A</eid2:ToBeSignedBytes>"), "is not base64"),
    "elements for text": (
        lambda: _source("https://requester.example/sign", "b<a/>"),
        "SignRequester must hold text alone",
    ),
    "another certificate": (
        lambda: _source("QC/SSCD", "GOLD"),
        "CertType 'GOLD' is not known: take one of PKC, QC, QC/SSCD",
    ),
    "another place": (lambda: _source('Type="rdn"', 'Type="x"'), "Type 'x' is not known: take one of rdn, san, sda"),
    "no reference": (lambda: _source(' Ref="2.5.4.5"', ""), "AttributeMapping has no attribute Ref"),
    "no value": (lambda: _source(">191212100000<", "><"), "AttributeValue must hold text alone"),
    "another signature": (lambda: _source('SigType="XML"', 'SigType="JWS"'), "SigType 'JWS' is not known"),
    "an AdES": (lambda: _source('AdESType="None"', 'AdESType="BES"'), "asks for an AdES signature"),
    "processing rules": (lambda: _source('AdESType="None"', 'ProcessingRules="urn:x"'), "or for processing rules"),
    "csig: no conditions": (_without("saml:Conditions", Form.CSIG), "has no Conditions"),
    "csig: too late": (lambda: _csig("2113-06-24", "2014-06-24"), "out of its time"),
    "csig: too early": (lambda: _csig('NotBefore="2013', 'NotBefore="2112'), "out of its time"),
    "csig: no time": (lambda: _csig('NotBefore="2013-06-24T11:30:57Z"', 'NotBefore="soon"'), "NotBefore is not a time"),
    "csig: a needed attribute": (_without("eid2:Signer", Form.CSIG), "needs 'serialNumber' of its signer"),
    "csig: no order": (lambda: _csig('Order="1"', 'Order="x"'), "Order 'x' is not a number"),
}


@pytest.mark.parametrize(("make", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_request_is_refused_with_one_sentence(make: Callable[[], bytes], sentence: str) -> None:
    with pytest.raises(SignRequestError) as refusal:
        parse(make())
    text = str(refusal.value)
    assert sentence in text
    assert text.endswith(".")
    assert "\n" not in text


def test_an_unknown_algorithm_is_refused_with_those_there_are() -> None:
    data = _source("xmldsig-more#ecdsa-sha256", "xmldsig-more#hmac-sha256")
    with pytest.raises(SignRequestError) as refusal:
        parse(data)
    assert "hmac-sha256" in str(refusal.value)
    assert all(uri in str(refusal.value) for uri in ALGORITHMS)


def test_source_as_printed_is_not_a_valid_request() -> None:
    """Appendix A's line breaks split the namespace; its request has no end either."""
    printed = _source("http://id.elegnamnden.se/csig/1.0/dss-ext/ns", "http://id.elegnamnden.se/csig/1.0/dss-\next/ns")
    with pytest.raises(SignRequestError, match=r"has no|is not XML"):
        parse(printed)
