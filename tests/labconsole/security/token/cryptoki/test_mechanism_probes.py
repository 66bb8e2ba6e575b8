"""What each module's wrap mechanisms really do, by known answers; the choice between them follows from that."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pkcs11
import pytest
from pydantic import ValidationError

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki import mechanism_probes
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.mechanism_probes import mechanism_for, probe_wrapping, threads_safe
from labconsole.security.token.cryptoki.module import load_module
from labconsole.security.token.cryptoki.opening import Token, find_token, open_token
from labconsole.security.token.cryptoki.wrapping import make_wrapper
from labconsole.security.token.errors import MechanismMissingError, TamperedKeyError
from labconsole.security.token.mechanisms import (
    AES_GCM,
    KeyKind,
    WrapBehaviour,
    WrapMechanism,
    WrapProbe,
    choose_mechanism,
    probed_kind,
)
from tests.helpers.kryoptic_token import make_kryoptic_token
from tests.helpers.program_text import PROGRAM

KEY_WRAP, KEY_WRAP_PAD, KEY_WRAP_KWP = WrapMechanism
BOTH = {KeyKind.RSA_2048: True, KeyKind.P_256: True}


def _probes(session: pkcs11.Session) -> dict[WrapMechanism, WrapProbe]:
    probes = {probe.mechanism: probe for probe in probe_wrapping(session)}
    assert list(probes) == list(WrapMechanism)
    return probes


def test_softhsm_pads_with_zeros_before_rfc_3394_and_5649(session: pkcs11.Session) -> None:
    """A mechanism that its configuration names and that it does not have is absent; nothing of a probe stays in it."""
    named, *others = probe_wrapping(session, (WrapMechanism(0x80000171),))
    assert named.behaviour is WrapBehaviour.ABSENT
    probes = {probe.mechanism: probe for probe in others}
    assert list(probes) == list(WrapMechanism)
    assert choose_mechanism([named, *others], KeyKind.RSA_2048) is KEY_WRAP_PAD
    assert list(session.get_objects()) == []
    assert probes[KEY_WRAP] == WrapProbe(KEY_WRAP, WrapBehaviour.RFC3394_ZERO_PADDED, BOTH, True, True)
    assert probes[KEY_WRAP_PAD] == WrapProbe(KEY_WRAP_PAD, WrapBehaviour.RFC5649_ZERO_PADDED, BOTH, True, True)
    assert probes[KEY_WRAP_KWP] == WrapProbe(KEY_WRAP_KWP, WrapBehaviour.ABSENT, {}, False, False)


def test_kryoptic_wraps_with_0x210b_as_rfc_5649_says(tmp_path: Path, pin: Secret, so_pin: Secret) -> None:
    with open_token("test", make_kryoptic_token(tmp_path, "test", pin, so_pin), pin) as token:
        probes = _probes(token.session())
        assert probes[KEY_WRAP_KWP] == WrapProbe(KEY_WRAP_KWP, WrapBehaviour.RFC5649, BOTH, True, True)
        assert probes[KEY_WRAP].behaviour is WrapBehaviour.RFC3394 and not any(probes[KEY_WRAP].keys.values())
        assert choose_mechanism(probes.values(), KeyKind.RSA_2048) is KEY_WRAP_KWP
        assert threads_safe(token) is True


def test_aes_gcm_wraps_where_the_configuration_names_it(tmp_path: Path, pin: Secret, so_pin: Secret) -> None:
    made = make_kryoptic_token(tmp_path, "test", pin, so_pin)
    with open_token("test", made.model_copy(update={"wrap_mechanisms": (AES_GCM,)}), pin) as token:
        probes = probe_wrapping(token.session(), token.wrap_mechanisms)
        assert probes[0] == WrapProbe(AES_GCM, WrapBehaviour.AES_GCM, BOTH, True, True)
        assert choose_mechanism(probes, KeyKind.RSA_2048) == AES_GCM == 0x1087
        assert AES_GCM.title == "AES_GCM (0x1087)"
        wrapper = make_wrapper(token.session(), "wrapper-gcm", AES_GCM)
        pair = generate(token.session(), KeyKind.P_256, extractable=True)
        one, other = wrapper.wrap(pair), wrapper.wrap(pair)
        assert one[:12] != other[:12], "no nonce is used twice"
        with pytest.raises(TamperedKeyError):
            wrapper.unwrap(one[:12], KeyKind.P_256)


def test_a_number_that_does_not_wrap_is_refused(configuration: TokenConfiguration) -> None:
    with pytest.raises(ValidationError, match=r"0x1082 is not a mechanism that wraps keys: name 0x1087"):
        TokenConfiguration.model_validate({**configuration.model_dump(), "wrap_mechanisms": [0x1082]})


@pytest.mark.parametrize("kind", [KeyKind.P_256, KeyKind.RSA_3072])
def test_keys_of_the_asked_kind_alone_are_generated_for_a_choice(
    session: pkcs11.Session, monkeypatch: pytest.MonkeyPatch, kind: KeyKind
) -> None:
    """A pool of P-256 keys does not wait for the RSA key of a slow token."""
    generated: set[KeyKind] = set()
    monkeypatch.setattr(
        mechanism_probes,
        "generate",
        lambda session, kind, **options: (generated.add(kind), generate(session, kind, **options))[1],
    )
    assert mechanism_for(session, kind) is KEY_WRAP_PAD
    assert generated == {probed_kind(kind)}


def test_nss_pads_0x210a_as_pkcs7_and_wraps_rsa_keys_alone(nss: Token) -> None:
    """Its maker's own mechanism is probed as the others: 0xCE534351 is AES key wrap, and 0xCE534352 with padding."""
    vendor = WrapMechanism(0xCE534352)
    named, *others = probe_wrapping(nss.session(), (vendor,))
    assert named.mechanism is vendor and vendor.title == "vendor mechanism 0xCE534352"
    assert named.behaviour is WrapBehaviour.RFC3394_PKCS7 and named.keys[KeyKind.RSA_2048]
    assert choose_mechanism([named, *others], KeyKind.RSA_2048) is vendor
    probes = {probe.mechanism: probe for probe in others}
    assert list(probes) == list(WrapMechanism)
    assert probes[KEY_WRAP].behaviour is WrapBehaviour.RFC3394_ZERO_PADDED
    assert probes[KEY_WRAP].detail == "rsa-2048: DataLenRange, p-256: DataLenRange"
    padding = probes[KEY_WRAP_PAD]
    assert padding.behaviour is WrapBehaviour.RFC3394_PKCS7
    assert padding.keys == {KeyKind.RSA_2048: True, KeyKind.P_256: False}
    assert padding.refuses_tampered
    assert not padding.refuses_second_wrap, "NSS wraps private keys whatever CKA_EXTRACTABLE says"
    assert padding.detail == "p-256: TemplateIncomplete"
    assert choose_mechanism(probes.values(), KeyKind.RSA_3072) is KEY_WRAP_PAD
    with pytest.raises(MechanismMissingError, match="KEY_WRAP_PAD carries rsa-2048 keys"):
        mechanism_for(nss.session(), KeyKind.P_256)


def test_without_login_no_mechanism_is_testable(configuration: TokenConfiguration) -> None:
    module = load_module(configuration)
    try:
        with find_token(module, "test", configuration).open(rw=True) as session:
            probes = _probes(session)
    finally:
        module.finalize()
    assert probes[KEY_WRAP_PAD].behaviour is WrapBehaviour.NOT_TESTABLE and probes[KEY_WRAP_PAD].keys == {}
    with pytest.raises(MechanismMissingError):
        choose_mechanism(probes.values(), KeyKind.RSA_2048)


def test_a_mechanism_that_was_switched_off_is_absent(
    configuration: TokenConfiguration, pin: Secret, tmp_path: Path
) -> None:
    less = tmp_path / "softhsm2.conf"
    said = Path(configuration.environment["SOFTHSM2_CONF"]).read_text(encoding="utf-8")
    # SoftHSM2 overlooks the first of the list.
    less.write_text(f"{said}\nslots.mechanisms = -CKM_MD5,CKM_AES_KEY_WRAP\n", encoding="utf-8")
    lesser = configuration.model_copy(update={"environment": {"SOFTHSM2_CONF": str(less)}})
    with open_token("test", lesser, pin) as token:
        probes = _probes(token.session())
    assert probes[KEY_WRAP] == WrapProbe(KEY_WRAP, WrapBehaviour.ABSENT, {}, False, False)
    assert probes[KEY_WRAP_PAD].keys == BOTH
    with pytest.raises(MechanismMissingError, match=r"no mechanism that wraps rsa-2048 keys .*offers no AES key wrap"):
        choose_mechanism([probes[KEY_WRAP], probes[KEY_WRAP_KWP]], KeyKind.RSA_2048)


def _seen(mechanism: WrapMechanism, keys: Mapping[KeyKind, bool], *, refuses_tampered: bool = True) -> WrapProbe:
    return WrapProbe(mechanism, WrapBehaviour.RFC5649, keys, refuses_tampered, True)


def test_the_choice_follows_the_probe_and_not_the_number() -> None:
    everything = [_seen(mechanism, BOTH) for mechanism in WrapMechanism]
    assert choose_mechanism(everything, KeyKind.RSA_4096) is KEY_WRAP_KWP
    careless = [replace(one, refuses_tampered=one.mechanism is KEY_WRAP) for one in everything]
    assert choose_mechanism(careless, KeyKind.P_256) is KEY_WRAP
    rsa_only = [_seen(KEY_WRAP_KWP, {KeyKind.RSA_2048: True, KeyKind.P_256: False}), _seen(KEY_WRAP, BOTH)]
    assert choose_mechanism(rsa_only, KeyKind.P_256) is KEY_WRAP
    with pytest.raises(MechanismMissingError, match="KEY_WRAP_PAD carries rsa-2048 and p-256 keys, but takes changed"):
        choose_mechanism([_seen(KEY_WRAP_PAD, BOTH, refuses_tampered=False)], KeyKind.RSA_2048)


def test_eight_threads_at_a_time(token: Token) -> None:
    assert threads_safe(token) is True


UNLOCKED = """
import sys
from labconsole.security.secrets import Secret
from labconsole.security.token.cryptoki import module
from labconsole.security.token.mechanisms import choose_mechanism
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.mechanism_probes import threads_safe

module._CKF_OS_LOCKING_OK = 0
configuration = TokenConfiguration.model_validate_json(sys.argv[1])
token = open_token("test", configuration, Secret(sys.stdin.read()))
print(all(threads_safe(token) for _ in range(100)), flush=True)
"""


def test_a_module_that_is_not_thread_safe_is_detected(configuration: TokenConfiguration, pin: Secret) -> None:
    """SoftHSM2 that is not asked to lock fails with several threads, ends its process or hangs: hence one of its own.

    How soon is chance, and takes longest where the threads share one processor.
    """
    with subprocess.Popen(
        [*PROGRAM, UNLOCKED, configuration.model_dump_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            output, _ = child.communicate(pin.reveal(), timeout=60)
        except subprocess.TimeoutExpired:
            child.kill()
            output = "hung"
    assert output in ("False\n", "hung") or child.returncode < 0
