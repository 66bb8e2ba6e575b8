"""The key store: statuses, claims, wrapper keys, what is erased, what is refused."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.store.errors import StoreError
from labconsole.store.run_store import Store
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import Counts
from labconsole_keypool.store.key_schema import KEY_STORE
from labconsole_keypool.store.key_store import KeyStore, store_path
from labconsole_keypool.store.verify_store import verify_store
from tests.helpers.function_calls import calls_in
from tests.labconsole_keypool.stored_keys import KIND, NOON, TOKEN, new_keys, new_wrapper, private_of, signatures


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lab.db"


@pytest.fixture
def store(path: Path) -> Iterator[KeyStore]:
    with KeyStore.open(path, run="run") as opened:
        yield opened


def rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(statement).fetchall()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(statement)


def test_a_new_store_is_a_private_file_of_its_own_kind(store: KeyStore, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert rows(path, "PRAGMA page_size") == [(8192,)]
    assert rows(path, "PRAGMA application_id") == [(KEY_STORE.application_id,)]
    assert store.counts() == Counts(0, 0, 0, 0)
    assert verify_store(path) == ()


def test_a_store_has_a_name_in_the_data_directory(own_home: Path) -> None:
    assert store_path("lab") == own_home / "key-stores" / "lab.db"
    assert stat.S_IMODE(store_path("lab").parent.stat().st_mode) == 0o700
    for name in ("", "../lab", "a/b", "-x", "x" * 65):
        with pytest.raises(StoreError, match="cannot name a key store"):
            store_path(name)


def test_a_claimed_key_is_as_it_was_stored(store: KeyStore) -> None:
    wrapper = new_wrapper(store)
    given = new_keys(wrapper, 3)
    store.add(given)
    claimed = store.claim(KIND, [wrapper.serial], 3)
    assert [(key.kind, key.private, key.public, key.wrapper, key.mechanism) for key in claimed] == [
        (key.kind, key.private, key.public, key.wrapper, key.mechanism) for key in given
    ]
    assert isinstance(claimed[0].kind, KeyKind) and isinstance(claimed[0].mechanism, WrapMechanism)


def test_claims_take_the_oldest_keys_first_and_each_once(store: KeyStore) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 5))
    first = store.claim(KIND, [wrapper.serial], 2)
    second = store.claim(KIND, [wrapper.serial], 100)
    ids = [key.id for key in first + second]
    assert ids == sorted(set(ids)) and len(ids) == 5
    assert [key.private for key in first] == [private_of(wrapper.serial, number) for number in (0, 1)]
    assert store.claim(KIND, [wrapper.serial], 1) == []


def test_a_claim_takes_only_its_kind_and_the_wrapper_keys_that_were_named(store: KeyStore) -> None:
    one, other = new_wrapper(store), new_wrapper(store)
    rsa = store.new_wrapper(TOKEN, KeyKind.RSA_2048, WrapMechanism.KEY_WRAP, 10)
    for wrapper in (one, other, rsa):
        store.add(new_keys(wrapper, 2))
    assert store.claim(KeyKind.RSA_2048, [one.serial], 9) == []
    assert {key.wrapper for key in store.claim(KIND, [other.serial, rsa.serial], 9)} == {other.serial}
    assert store.claim(KIND, [], 9) == []
    assert store.counts() == Counts(4, 2, 0, 0)
    assert store.counts(KeyKind.RSA_2048) == Counts(2, 0, 0, 0)


def test_a_used_key_is_erased_from_the_file_and_its_signature_stored(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 2))
    used, kept = store.claim(KIND, [wrapper.serial], 2)
    store.used([used.id], signatures([used.id]))
    assert store.counts() == Counts(0, 1, 1, 0)
    assert rows(path, f"SELECT private FROM key WHERE id = {used.id}") == [(None,)]
    [(moment,)] = rows(path, f"SELECT used FROM key_state WHERE id = {used.id}")
    assert moment == NOON + 20  # Table 3-1's keyUsedTimeStamp is the moment at which its request got it
    [row] = rows(path, "SELECT request, to_be_signed, waiting, process, date, key FROM signature")
    assert row == (0, b"digest 0", 10, 390, "2026-11-20", used.id)
    store.close()
    content = path.read_bytes()
    assert used.private not in content
    assert kept.private not in content  # claimed and not used: invalid since the store was closed
    assert hashlib.sha256(used.private).digest() in content


def test_an_erased_key_is_removed_from_the_log_too_while_a_reader_is_open(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 1))
    [key] = store.claim(KIND, [wrapper.serial], 1)
    with KeyReader(path) as reader:
        store.used([key.id], [])
        assert reader.counts() == Counts(0, 0, 1, 0)
        store.close()
        for file in path.parent.iterdir():
            assert key.private not in file.read_bytes()


def test_a_request_whose_key_was_never_stored_has_a_signature_too(store: KeyStore, path: Path) -> None:
    [row] = signatures([0])
    store.used([], [replace(row, key=None, pre_generated=False)])
    assert rows(path, "SELECT key, pre_generated FROM signature") == [(None, 0)]
    assert verify_store(path) == ()


def test_only_who_claimed_a_key_can_use_it_and_only_once(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 2))
    [mine] = store.claim(KIND, [wrapper.serial], 1)
    with KeyStore.open(path) as other:
        [theirs] = other.claim(KIND, [wrapper.serial], 1)
        for ids in ([theirs.id], [mine.id, theirs.id], [mine.id, mine.id], [999]):
            with pytest.raises(StoreError, match="not all are claimed by this process"):
                store.used(ids, [])
            with pytest.raises(StoreError, match="not all are claimed by this process"):
                store.invalid([*ids, 999], "no")
        assert store.counts() == Counts(0, 2, 0, 0)
        other.used([theirs.id], [])
    store.used([mine.id], [])
    with pytest.raises(StoreError):
        store.used([mine.id], [])
    assert store.counts() == Counts(0, 0, 2, 0)


def test_a_key_cannot_have_two_signatures(store: KeyStore) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 1))
    [key] = store.claim(KIND, [wrapper.serial], 1)
    with pytest.raises(StoreError, match="refused the data"):
        store.used([key.id], signatures([key.id, key.id]))
    assert store.counts() == Counts(0, 1, 0, 0)


def test_a_key_that_will_not_be_used_is_invalid_and_never_given_again(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 2))
    [key] = store.claim(KIND, [wrapper.serial], 1)
    store.invalid([key.id], "the token does not unwrap it")
    assert store.counts() == Counts(1, 0, 0, 1)
    assert [other.id for other in store.claim(KIND, [wrapper.serial], 9)] != [key.id]
    assert rows(path, "SELECT reason FROM event WHERE event = 3") == [("the token does not unwrap it",)]


def test_what_was_claimed_and_not_used_is_invalid_once_the_store_is_closed(path: Path) -> None:
    with KeyStore.open(path) as store:
        wrapper = new_wrapper(store)
        store.add(new_keys(wrapper, 3))
        store.claim(KIND, [wrapper.serial], 2)
    store.close()
    with KeyReader(path) as reader:
        assert reader.counts() == Counts(1, 0, 0, 2)
    assert verify_store(path) == ()


def test_opening_leaves_the_claims_of_the_living_alone(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 1))
    [key] = store.claim(KIND, [wrapper.serial], 1)
    KeyStore.open(path).close()
    store.used([key.id], [])
    assert store.counts() == Counts(0, 0, 1, 0)


def test_purging_erases_new_keys_of_one_kind_or_all(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    rsa = store.new_wrapper(TOKEN, KeyKind.RSA_2048, WrapMechanism.KEY_WRAP, 10)
    store.add(new_keys(wrapper, 4) + new_keys(rsa, 2))
    store.claim(KIND, [wrapper.serial], 1)
    assert store.purge(KeyKind.RSA_2048) == 2
    assert store.counts() == Counts(3, 1, 0, 2)
    assert store.purge() == 3
    assert store.purge() == 0
    assert store.counts() == Counts(0, 1, 0, 5)
    assert rows(path, "SELECT count(private) FROM key") == [(1,)]
    assert verify_store(path) == ()


def test_a_wrapper_key_wraps_no_more_than_its_limit(store: KeyStore) -> None:
    wrapper = new_wrapper(store, limit_keys=3)
    assert store.wrapper_for(TOKEN, KIND) == wrapper
    store.add(new_keys(wrapper, 2))
    found = store.wrapper_for(TOKEN, KIND)
    assert found is not None and (found.serial, found.pairs, found.room) == (wrapper.serial, 2, 1)
    with pytest.raises(StoreError, match="has no room for 2 more key pairs"):
        store.add(new_keys(wrapper, 2, first=2))
    assert store.counts().total == 2
    store.add(new_keys(wrapper, 1, first=2))
    assert store.wrapper_for(TOKEN, KIND) is None
    assert store.wrapper_for("other token", KIND) is None
    assert store.wrapper_for(TOKEN, KeyKind.RSA_2048) is None


def test_a_wrapper_key_serves_one_opening_at_a_time(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    with KeyStore.open(path) as other:
        assert other.wrapper_for(TOKEN, KIND) is None
        own = new_wrapper(other)
        assert own.serial != wrapper.serial
        assert store.wrapper_for(TOKEN, KIND) == wrapper
    store.close()
    with KeyStore.open(path) as later:
        assert later.wrapper_for(TOKEN, KIND) == own  # the newest: the token may have been reinitialised in between
        assert later.wrappers() == [wrapper, own]


def test_a_spent_wrapper_key_is_named_until_it_is_destroyed(store: KeyStore, path: Path) -> None:
    wrapper, open_one = new_wrapper(store, limit_keys=2), new_wrapper(store)
    store.add(new_keys(wrapper, 2) + new_keys(open_one, 1))
    first, second = store.claim(KIND, [wrapper.serial], 2)
    store.used([first.id], [])
    assert store.spent_wrappers(TOKEN) == []
    store.invalid([second.id], "no")
    assert [spent.serial for spent in store.spent_wrappers(TOKEN)] == [wrapper.serial]
    assert store.spent_wrappers("other token") == []
    store.wrapper_destroyed(wrapper.serial)
    assert store.spent_wrappers(TOKEN) == []
    assert [left.serial for left in store.wrappers()] == [open_one.serial]
    assert verify_store(path) == ()


def test_a_sample_is_inspected_and_not_claimed(store: KeyStore) -> None:
    wrapper = new_wrapper(store)
    assert store.sample_of(wrapper.serial) is None
    store.add(new_keys(wrapper, 1))
    sample = store.sample_of(wrapper.serial)
    assert sample is not None and sample.private == private_of(wrapper.serial, 0)
    assert store.counts() == Counts(1, 0, 0, 0)


def test_threads_share_a_store_and_no_key_comes_twice(store: KeyStore) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 200))
    got: list[int] = []

    def take() -> None:
        while claimed := store.claim(KIND, [wrapper.serial], 7):
            got.extend(key.id for key in claimed)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got)) == 200


def test_thousands_of_keys_go_in_and_out_quickly(store: KeyStore) -> None:
    """A key takes 38 calls in and 3 out; `benchmarks/key_store.py` has the time, 0.014 and 0.004 ms of CPU."""
    wrapper = new_wrapper(store, limit_keys=3_000)
    keys = [replace(key, private=bytes(1224), public=bytes(294)) for key in new_keys(wrapper, 3_000)]
    assert calls_in(lambda: store.add(keys)) <= 40 * len(keys)
    assert calls_in(lambda: store.claim(KIND, [wrapper.serial], 3_000)) <= 4 * len(keys)
    assert store.counts() == Counts(0, 3_000, 0, 0)


def test_a_reader_sees_what_is_committed_while_others_write(store: KeyStore, path: Path) -> None:
    wrapper = new_wrapper(store)
    with KeyReader(path) as reader:
        before = reader.head()
        store.add(new_keys(wrapper, 2))
        assert reader.counts() == Counts(2, 0, 0, 0)
        assert reader.head().rows == before.rows + 2
        assert verify_store(path, before) == ()


def test_another_kind_of_file_is_refused_and_stays_as_it_is(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"%PDF-1.7 and so on" * 100)
    runs = tmp_path / "runs.db"
    Store.open(runs).close()
    before = runs.read_bytes()
    for file in (path, runs):
        for use in (KeyStore.open, KeyReader, verify_store):
            with pytest.raises(StoreError, match="not a key store"):
                use(file)  # type: ignore[operator]
    assert (runs.read_bytes(), path.read_bytes()) == (before, b"%PDF-1.7 and so on" * 100)
    with pytest.raises(StoreError, match="not a database"):
        KeyStore.open(tmp_path / "keys.db").close()
        Store.open(tmp_path / "keys.db")


def test_a_newer_store_is_refused(store: KeyStore, path: Path) -> None:
    store.close()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 2")
    for use in (KeyStore.open, KeyReader, verify_store):
        with pytest.raises(StoreError, match=r"newer lab console \(key store version 2, this one reads up to 1\)"):
            use(path)  # type: ignore[operator]


def test_a_missing_store_is_named(path: Path) -> None:
    for use in (KeyReader, verify_store):
        with pytest.raises(StoreError, match=r"There is no key store .*: fill the pool first"):
            use(path)  # type: ignore[operator]
    with pytest.raises(StoreError, match="There is no directory"):
        KeyStore.open(path.parent / "nowhere" / "lab.db")


def test_a_store_whose_end_was_removed_is_not_written_on(path: Path) -> None:
    store = KeyStore.open(path)
    wrapper = new_wrapper(store)
    with KeyReader(path) as reader:
        change(path, "DELETE FROM head")
        with pytest.raises(StoreError, match="where its chain of rows ends: it was changed"):
            store.add(new_keys(wrapper, 1))
        with pytest.raises(StoreError, match="where its chain of rows ends"):
            reader.head()
        for use in (store.close, lambda: KeyStore.open(path)):
            with pytest.raises(StoreError, match="where its chain of rows ends"):
                use()
        assert reader.counts() == Counts(0, 0, 0, 0)


@pytest.mark.parametrize("values", ["kind = 'dsa-1024'", "mechanism = 99"])
def test_a_key_whose_kind_or_mechanism_was_changed_cannot_be_claimed(store: KeyStore, path: Path, values: str) -> None:
    wrapper = new_wrapper(store)
    store.add(new_keys(wrapper, 2))
    change(path, f"UPDATE key SET {values}")
    with pytest.raises(StoreError, match="as a kind of keys or a mechanism, and there is none: it was changed"):
        store.claim(KIND, [wrapper.serial], 1)
    assert store.counts() == Counts(2, 0, 0, 0)
    change(path, f"UPDATE wrapper_key SET {values}")
    with pytest.raises(StoreError, match="it was changed"):
        store.wrappers()


def test_a_locked_store_is_named_and_nothing_is_lost(path: Path) -> None:
    with KeyStore.open(path, lock_timeout_s=0.1) as store:
        wrapper = new_wrapper(store)
        store.add(new_keys(wrapper, 2))
        [key] = store.claim(KIND, [wrapper.serial], 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked by another program"):
                store.claim(KIND, [wrapper.serial], 1)
            with pytest.raises(StoreError, match="locked by another program"):
                store.used([key.id], signatures([key.id]))
            assert store.counts() == Counts(1, 1, 0, 0)
        store.used([key.id], signatures([key.id]))
        assert store.counts() == Counts(1, 0, 1, 0)
