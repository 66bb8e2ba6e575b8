"""The built-in token: created once, completely or not at all, with PINs that only its owner can read."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pkcs11 import KeyType, ObjectClass

from labconsole.errors import UserError
from labconsole.security.secrets import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.errors import TokenError
from labconsole.security.token.lab_token import initialise_token, lab_so_pin, lab_token, make_softhsm_token
from labconsole.security.token.named_tokens import find_configuration, save_configuration
from tests.helpers.program_text import PROGRAM

MAKE = (
    "import sys, pathlib; from labconsole.security.token.lab_token import lab_token;"
    "print(lab_token(pathlib.Path(sys.argv[1])).model_dump_json())"
)
CHILD = "labconsole.security.token.cryptoki.initialisation_process"

UseKeyring = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a lab token, made without a keyring; not to be changed."""
    home = tmp_path_factory.mktemp("lab") / "home"
    lab_token(home)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of `made`, somewhere else."""
    return Path(shutil.copytree(made, tmp_path / "moved"))


def put_a_key(configuration: TokenConfiguration, pin: Secret | None = None) -> None:
    with open_token("lab", configuration, pin) as token:
        token.session().generate_key(KeyType.AES, 256, label="kept", store=True)


def keys(configuration: TokenConfiguration, pin: Secret | None = None) -> list[str]:
    with open_token("lab", configuration, pin) as token:
        return [key.label for key in token.session().get_objects() if key.object_class is ObjectClass.SECRET_KEY]


def test_lab_token_opens_without_a_prompt_and_is_found_again(made: Path) -> None:
    configuration = lab_token(made)
    assert find_configuration("lab", made) == configuration
    assert keys(configuration) == []
    assert configuration.pin.passphrase_file == made / "tokens" / "lab" / "pin"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_everything_is_the_owners_alone(made: Path) -> None:
    paths = [made, *made.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()} == {0o600}


def test_processes_at_the_same_time_make_one_token(tmp_path: Path) -> None:
    command = [*PROGRAM, MAKE, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (
        TokenConfiguration.model_validate_json(process.communicate(timeout=60)[0]) for process in processes
    )
    assert first == second == lab_token(tmp_path)
    assert [path.name for path in (tmp_path / "tokens").iterdir() if path.is_dir()] == ["lab"]
    assert keys(first) == []


def test_no_module_is_loaded_into_the_process_that_asks_for_it(tmp_path: Path) -> None:
    """A window may ask, and a module can crash or hang."""
    code = f"{MAKE}; sys.exit(any(name.partition('.')[0] == 'pkcs11' for name in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.DEVNULL, check=False).returncode
        == 0
    )


def test_a_moved_home_still_opens(home: Path, made: Path) -> None:
    configuration = lab_token(home)
    put_a_key(configuration)
    assert str(made) not in Path(configuration.environment["SOFTHSM2_CONF"]).read_text()
    home = home.rename(home.with_name("moved again"))
    assert keys(lab_token(home)) == ["kept"]
    assert keys(lab_token(made)) == []


def test_further_tokens_are_devices_of_their_own(home: Path) -> None:
    put_a_key(lab_token(home))
    second = find_configuration("lab-2", home)
    assert second == lab_token(home, "lab-2") and second.label == "labconsole-2"
    assert keys(second) == [] and keys(lab_token(home)) == ["kept"]
    assert len({lab_so_pin(home, name).resolve("test").reveal() for name in ("lab", "lab-2")}) == 2
    with pytest.raises(TokenError, match="lab-2 is a built-in token; choose another name"):
        save_configuration("lab-2", second, home)


@pytest.mark.parametrize("name", ["lab-1", "lab-02", "lab-100", "lab-", "lab-x", "labs", "../lab"])
def test_names_that_only_look_like_a_lab_token_s(name: str, tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="No token is called"):
        find_configuration(name, tmp_path)
    with pytest.raises(ValueError, match="not a name of a lab token"):
        lab_token(tmp_path, name)


@contextmanager
def watched_children() -> Iterator[list[str]]:
    """What the processes below this one show of themselves while the block runs: arguments and environment."""
    shown: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    shown.append(f"{process.cmdline()} {process.environ()}")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield shown
    finally:
        ended.set()
        watcher.join()


@pytest.mark.usefixtures("started_programs")
def test_a_pin_is_in_no_argument_no_output_and_no_file_but_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with watched_children() as shown:
        configuration = lab_token(tmp_path)
    put_a_key(configuration)
    assert any(CHILD in line for line in shown)
    pins = {source.resolve("test").reveal() for source in (configuration.pin, lab_so_pin(tmp_path))}
    assert len(pins) == 2 and all(len(pin) >= 30 for pin in pins)
    seen = "".join((*shown, *capfd.readouterr(), caplog.text, repr(configuration), str(os.environ)))
    assert not any(pin in seen for pin in pins)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    holding = [path.name for path in files if any(pin.encode() in path.read_bytes() for pin in pins)]
    assert sorted(holding) == ["pin", "so-pin"]


def test_the_keyring_holds_the_pins_if_there_is_one(use_keyring: UseKeyring, tmp_path: Path) -> None:
    entries = use_keyring("FileKeyring")
    configuration = lab_token(tmp_path)
    kept = json.loads(entries.read_text())
    assert sorted(kept) == [
        f"labconsole/{configuration.pin.keyring_entry}",
        f"labconsole/{configuration.pin.keyring_entry}-so",
    ]
    assert lab_so_pin(tmp_path).resolve("test").reveal() in kept.values()
    assert not list(tmp_path.rglob("*pin"))
    assert keys(configuration) == []
    entries.unlink()
    with pytest.raises(UserError, match="There is no passphrase for token labconsole"):
        open_token("lab", lab_token(tmp_path))


def test_initialise_wants_the_label_typed(home: Path) -> None:
    configuration = lab_token(home)
    so_pin, pin, new_pin = lab_so_pin(home).resolve("test"), configuration.pin.resolve("test"), Secret("new-pin-1")
    put_a_key(configuration)
    for typed in ("", "lab", "LABCONSOLE"):
        with pytest.raises(TokenError, match="type its label labconsole"):
            initialise_token("lab", configuration, typed, so_pin, new_pin)
    assert keys(configuration, pin) == ["kept"]
    initialise_token("lab", configuration, "labconsole", so_pin, new_pin)
    assert keys(configuration, new_pin) == []
    with pytest.raises(TokenError, match="refuses the PIN"):
        open_token("lab", configuration, pin)


def test_initialise_with_a_wrong_pin_of_the_officer_destroys_nothing(home: Path) -> None:
    configuration = lab_token(home)
    put_a_key(configuration)
    with pytest.raises(
        TokenError, match=r"The token lab cannot be initialised: it refuses the PIN: it is wrong"
    ) as refused:
        initialise_token("lab", configuration, "labconsole", Secret("not-the-officer"), Secret("new-pin-1"))
    assert "not-the-officer" not in str(refused.value)
    assert keys(configuration) == ["kept"]


@pytest.mark.parametrize(("new_pin", "limit"), [("", "least 4"), ("123", "least 4"), ("1" * 256, "most 255")])
def test_initialise_with_a_pin_of_a_wrong_length_destroys_nothing(home: Path, new_pin: str, limit: str) -> None:
    """The token itself would refuse it after its keys are gone."""
    configuration = lab_token(home)
    put_a_key(configuration)
    so_pin = lab_so_pin(home).resolve("test")
    with pytest.raises(TokenError, match=f"was not initialised: its PIN must have at {limit} bytes; choose"):
        initialise_token("lab", configuration, "labconsole", so_pin, Secret(new_pin))
    assert keys(configuration) == ["kept"]


@pytest.mark.parametrize("delays_s", [(0.0,), pytest.param((0.0, 0.2), marks=pytest.mark.nightly)])
def test_a_process_killed_in_the_middle_leaves_nothing_that_is_used(
    tmp_path: Path, delays_s: tuple[float, ...]
) -> None:
    """At once, and nightly also a little later."""
    killed_in_the_middle = 0
    for number, delay_s in enumerate(delays_s):
        home = tmp_path / f"{number}"
        process = subprocess.Popen([*PROGRAM, MAKE, str(home)], stdout=subprocess.DEVNULL)
        while process.poll() is None and not list(home.glob("tokens/.making-*")):
            time.sleep(0.002)
        time.sleep(delay_s)
        process.kill()
        process.wait()
        killed_in_the_middle += bool(list(home.glob("tokens/.making-*")))
        assert keys(lab_token(home)) == []
        assert [path.name for path in (home / "tokens").iterdir() if path.is_dir()] == ["lab"]
    assert killed_in_the_middle > 0


@pytest.mark.parametrize(("damage", "sentence"), [(None, "does not exist"), ("{}", "secret-source.json is not whole")])
def test_a_damaged_token_is_reported_and_never_replaced(home: Path, damage: str | None, sentence: str) -> None:
    put_a_key(lab_token(home))
    reference = home / "tokens" / "lab" / "secret-source.json"
    whole = reference.read_text()
    if damage is None:
        reference.unlink()
    else:
        reference.write_text(damage)
    with pytest.raises(TokenError, match=f"The token lab is damaged .*{sentence}.*or move it away"):
        lab_token(home)
    reference.write_text(whole)
    reference.chmod(0o600)
    assert keys(lab_token(home)) == ["kept"]


def test_a_token_whose_objects_are_gone_is_reported_and_never_replaced(home: Path) -> None:
    objects = home / "tokens" / "lab" / "objects"
    moved = objects.rename(home / "elsewhere")
    for _ in range(2):
        with pytest.raises(TokenError, match=r"The token lab is damaged \(its objects are gone\): bring .* back from"):
            lab_token(home)
    moved.rename(objects)
    assert keys(lab_token(home)) == []


def test_a_home_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TokenError, match=r"The token lab cannot be created \([A-Za-z ]+: .*file.*\): check"):
        lab_token(tmp_path / "file" / "home")


def test_missing_softhsm_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softhsm, "NAMES", ())
    with pytest.raises(TokenError, match=r"SoftHSM2 is not there: install it \(Debian: softhsm2"):
        lab_token(tmp_path)


def test_refusals_of_softhsm_are_one_sentence(tmp_path: Path) -> None:
    good = Secret("1234-good")
    with pytest.raises(TokenError, match="The token short was not initialised: its PIN must have at least 4 bytes"):
        make_softhsm_token(tmp_path / "short", "short", Secret("123"), good)
    with pytest.raises(TokenError, match=r"a label has 32 bytes in UTF-8 at most \(this one has 33\)"):
        make_softhsm_token(tmp_path / "long", "a" * 33, good, good)
