"""Wrapper keys go from one real token to another under M of N; wrong sets touch nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from pkcs11 import Attribute, ObjectClass

from labconsole.security.token import module_process
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.cryptoki.wrapping import find_wrapper, make_wrapper
from labconsole.security.token.errors import KeyMissingError, TamperedKeyError, TokenError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.shares.exported_wrappers import (
    ExportedWrapper,
    ExportedWrappers,
    WrapperFileError,
    read_wrapper_file,
    write_wrapper_file,
)
from labconsole_keypool.shares.secret_sharing import Share, ShareError
from labconsole_keypool.shares.transport import export_wrappers, load_wrappers
from labconsole_keypool.shares.wrapper_transfer import transfer_wrappers

PAD = WrapMechanism.KEY_WRAP_PAD


@dataclass(frozen=True)
class Stored:
    """A key of a pool that was wrapped in the first token."""

    kind: KeyKind
    private: bytes
    public: ec.EllipticCurvePublicKey
    serial: str
    mechanism: WrapMechanism = PAD


@dataclass(frozen=True)
class Exported:
    """Two wrapper keys taken out of the first token, and a stored key under each."""

    home: Path
    stored: tuple[Stored, ...]
    carried: ExportedWrappers
    shares: tuple[Share, ...]
    other_carried: ExportedWrappers
    other_shares: tuple[Share, ...]

    @property
    def proof(self) -> dict[str, Stored]:
        """A stored key for each wrapper key."""
        return {key.serial: key for key in self.stored}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The export of the first lab token."""
    home = tmp_path_factory.mktemp("home")
    with open_token("lab", find_configuration("lab", home)) as token:
        stored = tuple(_stored(token, serial) for serial in ("one", "two"))
        return Exported(home, stored, *export_wrappers(token, stored), *export_wrappers(token, stored))


@pytest.fixture
def second(exported: Exported) -> Iterator[Token]:
    """The second lab token, open; it has no secret key afterwards."""
    with open_token("lab-2", find_configuration("lab-2", exported.home)) as token:
        yield token
        for key in token.session().get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY}):
            key.destroy()


def _stored(token: Token, serial: str) -> Stored:
    session = token.session()
    pair = generate(session, KeyKind.P_256, extractable=True)
    assert isinstance(pair.public_key, ec.EllipticCurvePublicKey)
    return Stored(pair.kind, make_wrapper(session, serial, PAD).wrap(pair), pair.public_key, serial)


def _sign_with(token: Token, stored: Stored) -> None:
    """Unwrap a stored key in `token`, sign with it, and verify."""
    key = find_wrapper(token.session(), stored.serial, stored.mechanism).unwrap(stored.private, stored.kind)
    signing = private_key(key, stored.public)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    stored.public.verify(signing.sign(b"data", ec.ECDSA(hashes.SHA256())), b"data", ec.ECDSA(hashes.SHA256()))


def _count(token: Token) -> int:
    return len(list(token.session().get_objects({})))


def test_two_of_three_shares_carry_wrapper_keys_that_unwrap_and_sign(second: Token, exported: Exported) -> None:
    assert load_wrappers(second, exported.carried, exported.shares[1:], exported.proof) == ("one", "two")
    assert _count(second) == 2  # no transport key, no key of the proof
    for stored in exported.stored:
        _sign_with(second, stored)


def test_existing_wrapper_keys_stay_and_only_missing_ones_are_loaded(second: Token, exported: Exported) -> None:
    one = replace(exported.carried, wrappers=exported.carried.wrappers[:1])
    assert load_wrappers(second, one, exported.shares[:2]) == ("one",)
    assert load_wrappers(second, exported.carried, exported.shares) == ("two",)
    assert load_wrappers(second, exported.other_carried, exported.other_shares) == ()
    assert _count(second) == 2


def test_any_single_and_any_mixed_set_of_shares_touches_nothing(second: Token, exported: Exported) -> None:
    wrong: list[list[Share]] = [[share] for share in exported.shares]
    wrong += [list(pair) for pair in product(exported.shares, exported.other_shares)]
    wrong += [[share, share] for share in exported.shares]
    wrong += [list(pair) for pair in combinations(exported.other_shares, 2)]  # whole, and of another file
    wrong += [[exported.shares[0], replace(exported.shares[1], halves=(bytes(16), bytes(16)))], []]
    for shares in wrong:
        with pytest.raises(ShareError):
            load_wrappers(second, exported.carried, shares, exported.proof)
    assert _count(second) == 0


def test_a_changed_wrapper_key_is_refused_and_the_others_are_not_loaded(second: Token, exported: Exported) -> None:
    first, last = exported.carried.wrappers
    changed = replace(last, wrapped=last.wrapped[:-1] + bytes([last.wrapped[-1] ^ 1]))
    with pytest.raises(TamperedKeyError, match="cannot load the wrapper key two"):
        load_wrappers(second, replace(exported.carried, wrappers=(first, changed)), exported.shares)
    assert _count(second) == 0


def test_swapped_wrapper_keys_are_detected_by_their_stored_keys(second: Token, exported: Exported) -> None:
    first, last = exported.carried.wrappers
    swapped = (replace(first, wrapped=last.wrapped), replace(last, wrapped=first.wrapped))
    with pytest.raises(TamperedKeyError, match="cannot unwrap a private key with one"):
        load_wrappers(second, replace(exported.carried, wrappers=swapped), exported.shares, exported.proof)
    assert _count(second) == 0


def test_another_wrapper_key_of_the_same_name_is_not_taken_for_it(second: Token, exported: Exported) -> None:
    made = make_wrapper(second.session(), "two", PAD)
    with pytest.raises(TokenError, match="has another wrapper key two"):
        load_wrappers(second, exported.carried, exported.shares)
    assert _count(second) == 1
    made.destroy()


def test_when_one_cannot_stay_none_stays(second: Token, exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    from labconsole.security.token.cryptoki.transport_keys import TransportKey

    unwrap, kept = TransportKey.unwrap, []

    def full(key: TransportKey, *arguments: object, stored: bool) -> object:
        if stored and kept:
            raise TokenError("full")
        kept.extend([True] * stored)
        return unwrap(key, *arguments, stored=stored)

    monkeypatch.setattr(TransportKey, "unwrap", full)
    with pytest.raises(TokenError, match="full"):
        load_wrappers(second, exported.carried, exported.shares)
    assert kept == [True]
    assert _count(second) == 0


def test_a_wrapper_key_that_is_not_there_cannot_be_exported(second: Token, exported: Exported) -> None:
    with pytest.raises(KeyMissingError, match="has no wrapper key one"):
        export_wrappers(second, exported.stored)
    with pytest.raises(ShareError, match="cannot be made"):
        export_wrappers(second, (), shares=1)
    assert _count(second) == 0


def test_carry_goes_through_two_processes_and_shows_no_secret(
    exported: Exported, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[str, dict[str, object]]] = []
    ask = module_process.ask

    def watched(program: str, question: dict[str, object], timeout_s: float, what: str) -> dict[str, object]:
        seen.append((what, question))
        return ask(program, question, timeout_s, what)

    monkeypatch.setattr(module_process, "ask", watched)
    proof = exported.proof
    assert transfer_wrappers("lab", "lab-2", exported.stored, proof=proof, home=exported.home) == ("one", "two")

    assert [question["do"] for _, question in seen] == ["export", "load"]
    shares = seen[1][1]["shares"]
    assert isinstance(shares, list)
    assert len(shares) == 2
    visible = "".join(capfd.readouterr()) + repr(os.environ) + "".join(what for what, _ in seen)
    assert not any(share in visible for share in shares)
    with open_token("lab-2", find_configuration("lab-2", exported.home)) as token:
        for stored in exported.stored:
            _sign_with(token, stored)
        for key in token.session().get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY}):
            key.destroy()


def test_carry_skips_wrapper_keys_that_are_gone(exported: Exported) -> None:
    assert transfer_wrappers("lab-2", "lab", exported.stored, home=exported.home) == ()
    with pytest.raises(TokenError, match="No token is called nowhere"):
        transfer_wrappers("nowhere", "lab", exported.stored, home=exported.home)


def test_the_file_of_carried_keys(tmp_path: Path, exported: Exported) -> None:
    path = tmp_path / "wrappers.json"
    write_wrapper_file(path, exported.carried)
    assert read_wrapper_file(path) == exported.carried
    assert path.stat().st_mode & 0o077 == 0 or os.name != "posix"
    with pytest.raises(WrapperFileError, match="is there already"):
        write_wrapper_file(path, exported.carried)
    with pytest.raises(WrapperFileError, match="cannot be written"):
        write_wrapper_file(tmp_path / "nowhere" / "wrappers.json", exported.carried)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no JSON", "it is not JSON"),
        ("{}", "is damaged"),
        ('{"format": "other"}', "its format is not"),
        ('{"format": "labconsole wrappers 1", "set": 1}', "is damaged"),
        ("[]", "is damaged"),
    ],
)
def test_damaged_wrapper_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "wrappers.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(WrapperFileError, match=sentence):
        read_wrapper_file(path)


def test_loaded_wrapper_key_unwraps_its_stored_key() -> None:
    data = ExportedWrappers(bytes(8), bytes(3), 2, "1", (ExportedWrapper("a", PAD, bytes(40)),)).as_data()
    assert ExportedWrappers.from_data(data).wrappers[0].mechanism is PAD
    data["wrappers"][0]["mechanism"] = 7
    with pytest.raises(WrapperFileError, match="is damaged"):
        ExportedWrappers.from_data(data)
