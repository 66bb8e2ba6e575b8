"""The two actions of M of N, in their own processes, between the two lab tokens and a real key store."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.engine.operation_process import OperationProcess, Outcome
from labconsole.errors import UserError
from labconsole.security.secrets import Secret
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.wrapping import find_wrapper, make_wrapper
from labconsole.security.token.errors import KeyMissingError, TokenError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.shares.secret_sharing import ShareError
from labconsole_keypool.shares.share_files import ShareForm
from labconsole_keypool.shares.share_operations import ExportParameters, ExportShares, LoadParameters, LoadShares
from labconsole_keypool.shares.share_words import from_words
from labconsole_keypool.store.key_records import NewKey
from labconsole_keypool.store.key_store import KeyStore, store_path
from tests.helpers.worker_threads import operations_in_threads

PAD = WrapMechanism.KEY_WRAP_PAD
TIMEOUT_S = 60.0


@dataclass
class Console:
    """The context of an operation, kept in memory: the protocol `OperationContext`."""

    secrets: dict[str, str] = field(default_factory=dict)
    handed_over: list[str] = field(default_factory=list)
    stop_requested: bool = False
    typed: str = ""

    def secret(self, key: str) -> Secret | None:
        return Secret(self.secrets[key]) if key in self.secrets else None

    def say(self, sentence: str) -> None:
        assert sentence.endswith(".")

    def progress(self, done: int, total: int) -> None:
        assert done <= total

    def hand_over(self, title: str, secret: Secret) -> None:
        self.handed_over.append(secret.reveal())


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with a key store `lab` that holds one key of the token `lab`; the serial of its wrapper key."""
    home = tmp_path_factory.mktemp("home")
    with (
        open_token("lab", find_configuration("lab", home)) as token,
        KeyStore.open(store_path("lab", home)) as store,
    ):
        wrapper = store.new_wrapper(token.identity.serial, KeyKind.P_256, PAD, 10)
        session = token.session()
        pair = generate(session, KeyKind.P_256, extractable=True)
        wrapped = make_wrapper(session, wrapper.serial, PAD).wrap(pair)
        public = pair.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        store.add([NewKey(pair.kind, wrapped, public, wrapper.serial, PAD, 1, 2, 1)])
    return home, wrapper.serial


@pytest.fixture
def serial(pool: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The wrapper key's serial, in the pool's home; it is not in the token `lab-2`, before or after."""
    home, serial = pool
    monkeypatch.setenv("LABCONSOLE_HOME", str(home))
    yield serial
    with open_token("lab-2", find_configuration("lab-2")) as token, suppress(KeyMissingError):
        find_wrapper(token.session(), serial, PAD).destroy()


def _run(name: str, parameters: Mapping[str, Any], secrets: Mapping[str, str] | None = None) -> OperationProcess:
    """The operation in a thread of this process, finished."""
    wakeup = threading.Event()
    hidden = {key: Secret(text) for key, text in (secrets or {}).items()}
    with operations_in_threads():
        process = OperationProcess(name, dict(parameters), wakeup.set, hidden)
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while process.end is None:
            assert time.monotonic() < deadline
            process.pump()
            wakeup.wait(0.05)
            wakeup.clear()
    finally:
        process.close()
    return process


def _loaded(serial: str) -> bool:
    with open_token("lab-2", find_configuration("lab-2")) as token:
        try:
            find_wrapper(token.session(), serial, PAD)
        except KeyMissingError:
            return False
        return True


def test_words_are_shown_once_and_load_the_wrapper_key(tmp_path: Path, serial: str) -> None:
    directory = tmp_path / "carried"
    exported = _run("keypool.export-shares", {"directory": str(directory)})
    assert exported.end is not None
    assert exported.end.outcome is Outcome.DONE, exported.end.sentence
    assert exported.end.sentence == (
        f"1 wrapper key of the token lab went to {directory / 'wrappers.json'}; 2 of 3 shares load them."
    )
    handed = exported.take_handed_over()
    assert [title for title, _ in handed] == ["Share 1 of 3", "Share 2 of 3", "Share 3 of 3"]
    texts = [secret.reveal() for _, secret in handed]
    assert [path.name for path in directory.iterdir()] == ["wrappers.json"]
    assert from_words(texts[0]).to_bytes().hex() not in (directory / "wrappers.json").read_text()

    load = {"file": str(directory / "wrappers.json")}
    alone = LoadParameters(file=directory / "wrappers.json")
    for entry in ("share-1", "share-2"):  # whichever the operator left empty
        with pytest.raises(ShareError, match=r"^1 of 2 present: share 1 or 3 is missing\.$"):
            LoadShares().run(alone, Console({entry: texts[1]}))
    with pytest.raises(ShareError, match=r"^Entry 2: A share has 34 words, here are 2"):
        LoadShares().run(alone, Console({"share-1": texts[0], "share-2": "balav ranok"}))
    assert not _loaded(serial)

    enough = _run("keypool.load-shares", load, {"share-1": texts[2], "share-2": texts[0]})
    assert enough.end is not None
    assert enough.end.sentence == ("1 wrapper key loaded into the token lab-2. Each unwraps a key of the key store.")
    assert enough.said == "2 of 2 present."
    assert _loaded(serial)


def test_files_of_shares_load_it_as_well(tmp_path: Path, serial: str) -> None:
    console = Console()
    ExportShares().run(ExportParameters(directory=tmp_path / "carried", form=ShareForm.FILES), console)
    files = tuple(sorted((tmp_path / "carried").glob("share-*.toml")))
    assert len(files) == 3
    assert console.handed_over == []
    parameters = LoadParameters(file=tmp_path / "carried" / "wrappers.json", share_files=files[:2])
    assert LoadShares().run(parameters, console).text.startswith("1 wrapper key loaded")
    assert _loaded(serial)
    assert (
        LoadShares()
        .run(parameters, console)
        .text.startswith("0 wrapper keys loaded into the token lab-2. 1 wrapper key was there already.")
    )


def test_nothing_is_replaced_and_nothing_half_exported(tmp_path: Path, serial: str) -> None:
    (tmp_path / "share-2-of-3.toml").write_text("mine")
    with pytest.raises(ShareError, match=r"share-2-of-3\.toml is there already"):
        ExportShares().run(ExportParameters(directory=tmp_path, form=ShareForm.FILES), Console())
    assert [path.name for path in tmp_path.glob("[sw]*")] == ["share-2-of-3.toml"]


def test_token_without_wrapper_keys_is_reported(tmp_path: Path, serial: str) -> None:
    parameters = ExportParameters(directory=tmp_path / "carried", token="lab-2")
    with pytest.raises(TokenError, match="lab-2 holds no wrapper key of the key store lab"):
        ExportShares().run(parameters, Console())
    assert not (tmp_path / "carried").exists()


def test_wrapper_keys_of_other_tokens_are_left_out_and_counted(tmp_path: Path, serial: str) -> None:
    with (
        open_token("lab", find_configuration("lab")) as token,
        KeyStore.open(store_path("of-two")) as store,
    ):
        here = store.new_wrapper(token.identity.serial, KeyKind.P_256, PAD, 10)
        make_wrapper(token.session(), here.serial, PAD)
        elsewhere = store.new_wrapper("another token", KeyKind.P_256, PAD, 10)
        store.add([NewKey(KeyKind.P_256, b"", b"", wrapper.serial, PAD, 1, 2, 1) for wrapper in (here, elsewhere)])
    text = ExportShares().run(ExportParameters(directory=tmp_path, key_store="of-two"), Console()).text
    assert text.startswith("1 wrapper key of the token lab went to ")
    assert text.endswith("; 2 of 3 shares load them. 1 wrapper key is in other tokens.")


def test_as_many_shares_are_asked_for_as_are_needed(tmp_path: Path, serial: str) -> None:
    file = tmp_path / "wrappers.json"
    data = {"format": "labconsole wrappers 1", "set": "00", "key_check": "00", "threshold": 3, "token": "1"}
    file.write_text(json.dumps({**data, "wrappers": []}))
    file.chmod(0o600)
    asked = LoadShares().secrets(LoadParameters(file=file, token="lab"))
    assert [request.key for request in asked] == ["pin lab", "share-1", "share-2", "share-3"]
    some = LoadShares().secrets(LoadParameters(file=file, token="lab", share_files=(tmp_path, tmp_path)))
    assert [request.key for request in some] == ["pin lab", "share-1"]
    assert [request.key for request in ExportShares().secrets(ExportParameters())] == ["pin lab"]
    with pytest.raises(UserError, match="does not exist"):
        LoadShares().secrets(LoadParameters(file=tmp_path / "nowhere", token="lab"))


def test_the_window_and_the_worker_load_no_module_for_them() -> None:
    modules = ("shares.share_operations", "shares.wrapper_transfer", "messages.sign_request")
    imports = ", ".join(f"labconsole_keypool.{module}" for module in modules)
    check = f"import sys, {imports}; sys.exit('pkcs11' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=TIMEOUT_S, check=False).returncode == 0
