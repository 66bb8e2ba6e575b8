"""The generator on a real token: what it leaves in the store, and that it leaves nothing in the token."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_der_public_key

from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.cryptoki.wrapping import Wrapper, find_wrapper, make_wrapper
from labconsole.security.token.errors import KeyMissingError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.device import generator
from labconsole_keypool.device.emulation import Device
from labconsole_keypool.device.generator import Generator, KeyTimes
from labconsole_keypool.store.key_store import KeyStore
from tests.labconsole_keypool.signing_lab import KIND, PIN, RecordedReports, digest, new_token, rows, signing_engine


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return new_token(tmp_path_factory.mktemp("softhsm"))


@pytest.fixture
def token(configuration: TokenConfiguration) -> Iterator[Token]:
    with open_token("test", configuration, PIN) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KeyStore]:
    with KeyStore.open(tmp_path / "keys.db") as opened:
        yield opened


def quick(token: Token, store: KeyStore, keys_per_wrapper: int, **hooks: Any) -> Generator:
    """A generator that need not probe the token, which makes RSA keys."""
    maker = Generator(token, store, Device(), KIND, keys_per_wrapper, **hooks)
    maker._mechanism = WrapMechanism.KEY_WRAP_PAD
    return maker


def never() -> bool:
    return False


def nothing(stored: int) -> None:
    return


def objects_in(token: Token) -> list[str]:
    """The classes of all objects in the token, private session objects included."""
    return [found.object_class.name for found in token.session().get_objects()]


def test_keys_come_wrapped_into_the_store_and_leave_the_token(
    token: Token, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "_BATCH_NS", 1 << 60)  # a busy computer needs half a second for fewer than 50
    before = objects_in(token)
    stored_so_far: list[int] = []
    generated: list[None] = []
    batches: list[Sequence[KeyTimes]] = []
    maker = Generator(
        token, store, Device(), KIND, 1_000, on_generated=lambda: generated.append(None), on_stored=batches.append
    )
    began = time.time_ns()
    assert maker.make(70, never, stored_so_far.append) == 70
    assert stored_so_far == [50, 70] and len(generated) == 70
    assert store.counts(KIND).new == 70
    assert sorted(objects_in(token)) == sorted([*before, "SECRET_KEY"]), "the wrapper key alone is new"
    [wrapper] = store.wrappers()
    assert (wrapper.token, wrapper.pairs, wrapper.limit_keys) == (token.identity.serial, 70, 1_000)
    for public, mechanism, start, end, duration in rows(
        store.path, "SELECT public, mechanism, generate_start, generate_end, generate_duration FROM key"
    ):
        assert load_der_public_key(public).key_size == 256
        assert mechanism == wrapper.mechanism
        assert began - 1_000_000 <= start < end <= time.time_ns() + 1_000_000 and end - start == duration
    times = [one for batch in batches for one in batch]
    assert all(one.started < one.generated < one.wrapped < one.stored for one in times)


def test_keys_that_take_long_are_stored_one_by_one(
    token: Token, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "_BATCH_NS", 100_000_000)
    batches: list[Sequence[KeyTimes]] = []
    maker = quick(token, store, 10, on_generated=lambda: time.sleep(0.11), on_stored=batches.append)
    assert maker.make(3, never, nothing) == 3
    assert [len(batch) for batch in batches] == [1, 1, 1]


def test_a_wrapper_key_that_is_full_is_followed_by_another(token: Token, store: KeyStore) -> None:
    maker = quick(token, store, 4)
    assert maker.make(10, never, nothing) == 10
    assert [wrapper.pairs for wrapper in store.wrappers()] == [4, 4, 2]


def test_it_stops_before_the_next_key(token: Token, store: KeyStore) -> None:
    made: list[None] = []
    maker = quick(token, store, 100, on_generated=lambda: made.append(None))
    assert maker.make(10, lambda: len(made) >= 3, nothing) == 3
    assert store.counts().new == 3


def test_next_generator_continues_under_the_same_wrapper_key(token: Token, tmp_path: Path) -> None:
    for _ in range(2):
        with KeyStore.open(tmp_path / "keys.db") as store:
            maker = quick(token, store, 100)
            serial = maker.ensure_wrapper()
            assert maker.make(2, never, nothing) == 2
    with KeyStore.open(tmp_path / "keys.db") as store:
        assert [(wrapper.serial, wrapper.pairs) for wrapper in store.wrappers()] == [(serial, 4)]


@pytest.mark.parametrize("made", [False, True])
def test_a_wrapper_key_whose_maker_was_killed_before_it_was_used_serves(
    token: Token, tmp_path: Path, made: bool
) -> None:
    with KeyStore.open(tmp_path / "keys.db") as store:
        row = store.new_wrapper(token.identity.serial, KIND, WrapMechanism.KEY_WRAP_PAD, 100)
        if made:
            make_wrapper(token.session(), row.serial, row.mechanism)
    with KeyStore.open(tmp_path / "keys.db") as store:
        maker = quick(token, store, 100)
        assert maker.make(1, never, nothing) == 1


def test_where_the_wrapper_key_is_gone_a_new_one_is_made(token: Token, tmp_path: Path) -> None:
    """The token was initialised, which keeps its serial number: what was wrapped waits for a load from shares."""
    with KeyStore.open(tmp_path / "keys.db") as store:
        quick(token, store, 100).make(1, never, nothing)
        [gone] = store.wrappers()
        find_wrapper(token.session(), gone.serial, gone.mechanism).destroy()
    for made in (2, 3):
        with KeyStore.open(tmp_path / "keys.db") as store:
            assert quick(token, store, 100).make(1, never, nothing) == 1
            assert store.counts().new == made
            wrappers = store.wrappers()
    assert [(row.serial == gone.serial, row.pairs) for row in wrappers] == [(True, 1), (False, 2)]


def test_a_wrapper_key_whose_keys_are_all_used_is_destroyed(token: Token, tmp_path: Path) -> None:
    """Keys in copies of the store's file are lost with it."""
    with KeyStore.open(tmp_path / "keys.db", run="run") as store:
        quick(token, store, 2).make(3, never, nothing)
        spent, in_use = store.wrappers()
        with signing_engine(token, store, RecordedReports(), low_water=1) as engine:
            engine.fill(2)
            for number in range(2):
                engine.process(0, digest(number))
        quick(token, store, 2).ensure_wrapper()
        assert [wrapper.serial for wrapper in store.wrappers()] == [in_use.serial]
        with pytest.raises(KeyMissingError):
            find_wrapper(token.session(), spent.serial, spent.mechanism)


def test_two_generators_of_a_token_may_destroy_the_same_wrapper_key(
    token: Token, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(token, store, 2).make(2, never, nothing)
    [spent] = store.wrappers()
    store.purge()
    slower = quick(token, store, 2)

    def found_by_both(*arguments: Any) -> Wrapper:
        wrapper = find_wrapper(*arguments)
        find_wrapper(*arguments).destroy()
        return wrapper

    monkeypatch.setattr(generator, "find_wrapper", found_by_both)
    assert slower.ensure_wrapper() != spent.serial
    assert spent.serial not in [wrapper.serial for wrapper in store.wrappers()]


def test_rsa_keys_sign_after_they_were_stored(token: Token, store: KeyStore) -> None:
    Generator(token, store, Device(), KeyKind.RSA_2048, 100).make(1, never, nothing)
    with signing_engine(token, store, RecordedReports(), kind=KeyKind.RSA_2048) as engine:
        assert engine.fill(1) == 1
        done = engine.process(0, digest(1, KeyKind.RSA_2048))
    assert done.key and rows(store.path, "SELECT length(signature) FROM signature") == [(256,)]
