"""`labconsole hsm`: as an operator uses it, with one sentence for each mistake and no PIN where others see it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from labconsole.cli.main import main
from labconsole.paths import tokens_dir
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.inspection import inspect_token
from labconsole.security.token.lab_token import lab_token, make_softhsm_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import load_configurations, save_configuration
from labconsole.security.token.softhsm import environment, library, write_configuration
from tests.helpers.shared_once import shared_once
from tests.helpers.terminal import Terminal
from tests.labconsole.cli.conftest import CommandLine

PIN, NEW_PIN, SO_PIN = "1234-user", "4321-user", "5678-officer"

terminal_only = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Hsm(Protocol):
    def __call__(self, *arguments: str) -> Done: ...


@pytest.fixture
def hsm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hsm:
    """Runs `labconsole hsm ...` in this process, which loads no module; there is no terminal to ask on."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Done:
        return Done(main(["hsm", *arguments]), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a token of SoftHSM2 labelled `partition-1`, which tests copy."""

    def create(folder: Path) -> None:
        make_softhsm_token(folder / "token", "partition-1", Secret(PIN), Secret(SO_PIN))

    return shared_once(tmp_path_factory, "partition-1", create) / "token"


@pytest.fixture
def unnamed(partition: Path, tmp_path: Path) -> TokenConfiguration:
    """A copy of that token, which the console does not know."""
    module = library()
    assert module is not None
    shutil.copytree(partition, tmp_path / "office")
    variables = environment(write_configuration(tmp_path / "office"))
    return TokenConfiguration(module=module, label="partition-1", pin=SecretSource(), environment=variables)


@pytest.fixture
def added(unnamed: TokenConfiguration, tmp_path: Path) -> tuple[str, ...]:
    """Words of `hsm` that add a token called office, labelled `partition-1`; its module is `lib.so` of this folder."""
    (tmp_path / "lib.so").symlink_to(unnamed.module)
    (variable,) = unnamed.environment.items()
    return ("add", "office", "--module", "lib.so", "--label", "partition-1", "--environment", "=".join(variable))


@pytest.fixture
def office(unnamed: TokenConfiguration) -> TokenConfiguration:
    """A token of SoftHSM2 called office, labelled `partition-1`; the operator alone knows its PIN."""
    save_configuration("office", unnamed)
    return unnamed


def test_lab_token_is_created_and_meets_all_requirements(labconsole: CommandLine) -> None:
    done = labconsole("hsm", "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["What", "Found", "Needed", "for", "To", "do"]
    assert [line.split()[0] for line in lines[1:10]] == ["ok"] * 9
    assert "free space   the token does not report it" in done.stdout
    assert "RSA keys     wrapped with AES_KEY_WRAP_PAD (0x210A), sign again" in done.stdout
    assert "\nMechanisms (" in done.stdout
    [padding] = [line for line in lines if line.startswith("AES_KEY_WRAP_PAD (0x210A)")]
    assert "RFC 5649 after padding with zeros to 8 bytes" in padding and padding.split()[-2:] == ["refused"] * 2
    assert lab_token().pin.resolve("the test").reveal() not in done.stdout


def test_token_without_its_pin_is_inspected_and_the_untested_parts_are_named(
    hsm: Hsm, office: TokenConfiguration
) -> None:
    done = hsm("doctor", "office")
    assert done.code == 1
    assert "partition-1, serial number " in done.out and "missing  login, probes  not done" in done.out
    assert "AES_KEY_WRAP_PAD (0x210A)" not in done.out
    assert done.err == (
        "Warning: Without its PIN nothing can be tried in the token office. "
        "There is no passphrase for token partition-1: name a passphrase file that only you can read.\n"
    )


@terminal_only
@pytest.mark.parametrize(("pin", "code"), [pytest.param("wrong-pin", 1, marks=pytest.mark.nightly), (PIN, 0)])
def test_the_pin_is_asked_for_on_a_terminal(
    labconsole: CommandLine, office: TokenConfiguration, pin: str, code: int
) -> None:
    """Nightly also a wrong one; that it is tried once is judged in CI by `security/token/test_inspection.py`."""
    terminal = Terminal(labconsole.command("hsm", "doctor", "office"), labconsole.environment)
    terminal.answer("Passphrase for token partition-1: ", pin)
    returned, out = terminal.finish()
    shown = terminal.shown.decode() + out.decode()
    assert returned == code and pin not in shown
    assert ("refuses the PIN: it is wrong, and was tried once" in shown) == bool(code)


@terminal_only
@pytest.mark.parametrize(
    ("typed", "code", "valid", "keys"), [("partition1", 1, PIN, 2), ("partition-1", 0, NEW_PIN, 0)]
)
def test_init_destroys_the_keys_once_the_label_was_typed(
    labconsole: CommandLine, office: TokenConfiguration, typed: str, code: int, valid: str, keys: int
) -> None:
    with open_token("office", office, Secret(PIN)) as token:
        generate(token.session(), KeyKind.P_256, extractable=False, label="ca", stored=True)
    terminal = Terminal(labconsole.command("hsm", "init", "office"), labconsole.environment)
    terminal.answer("To confirm, type partition-1.", typed)
    terminal.answer("Passphrase for the security officer of the token office: ", SO_PIN)
    terminal.answer("Passphrase for the token office from now on: ", NEW_PIN)
    terminal.answer("Passphrase for the token office from now on, once more: ", NEW_PIN)
    returned, out = terminal.finish()
    shown = terminal.shown.decode() + out.decode()
    assert returned == code and SO_PIN not in shown and NEW_PIN not in shown
    assert ("Nothing was done: to confirm, type partition-1 exactly as it is written." in shown) == bool(code)
    with open_token("office", office, Secret(valid)) as token:
        assert len(list(token.session().get_objects())) == keys


@terminal_only
def test_a_new_pin_typed_in_two_ways_changes_nothing(labconsole: CommandLine, office: TokenConfiguration) -> None:
    terminal = Terminal(labconsole.command("hsm", "init", "office"), labconsole.environment)
    terminal.answer("To confirm, type partition-1.", "partition-1")
    terminal.answer("Passphrase for the security officer of the token office: ", SO_PIN)
    terminal.answer("Passphrase for the token office from now on: ", NEW_PIN)
    terminal.answer("Passphrase for the token office from now on, once more: ", "4321-uesr")
    assert terminal.finish()[0] == 1
    assert b"was not initialised: the new PIN was typed in two ways." in terminal.shown
    open_token("office", office, Secret(PIN)).close()


@terminal_only
@pytest.mark.usefixtures("lab_home")
def test_lab_token_keeps_its_pins_when_reinitialised(labconsole: CommandLine) -> None:
    with open_token("lab", lab_token()) as token:
        generate(token.session(), KeyKind.P_256, extractable=False, label="ca", stored=True)
    terminal = Terminal(labconsole.command("hsm", "init", "lab"), labconsole.environment)
    terminal.answer("To confirm, type labconsole.", "labconsole")
    assert terminal.finish() == (0, b"The token lab is empty now.\n")
    with open_token("lab", lab_token()) as token:
        assert list(token.session().get_objects()) == []


@terminal_only
@pytest.mark.usefixtures("lab_home")
def test_pin_of_the_lab_token_is_never_asked_for(labconsole: CommandLine) -> None:
    """It is random: where the keyring has lost it, a question would only mislead."""
    lab_token()
    entries = {"pin": {"keyring_entry": "lost"}, "so_pin": {"keyring_entry": "lost too"}}
    (tokens_dir() / "lab" / "secret-source.json").write_text(json.dumps(entries))
    terminal = Terminal(labconsole.command("hsm", "doctor"), labconsole.environment)
    assert terminal.finish()[0] == 1
    assert b"Passphrase for" not in terminal.shown and b"There is no passphrase for token labconsole" in terminal.shown


def test_a_token_is_added_listed_replaced_and_removed(hsm: Hsm, added: tuple[str, ...], tmp_path: Path) -> None:
    assert _names(hsm) == ["lab"]
    assert hsm(*added, "--keyring-entry", "token office").code == 0
    assert _names(hsm) == ["lab", "office"]
    assert "in the OS keyring as labconsole/token office" in hsm("tokens").out
    assert load_configurations()["office"].module == tmp_path / "lib.so", "a path counts from here, for good"
    inspection = inspect_token("office", load_configurations()["office"], None)
    assert inspection.overview is not None
    serial = inspection.overview.identity.serial
    assert hsm(*added, "--passphrase-file", "pin", "--serial", serial).code == 0
    now = load_configurations()["office"]
    assert (now.pin.keyring_entry, now.pin.passphrase_file, now.serial) == (None, tmp_path / "pin", serial)
    assert [one["token"] for one in json.loads(hsm("tokens", "--json").out)["tokens"]] == ["lab", "office"]
    assert hsm("remove", "office").code == 0
    assert _names(hsm) == ["lab"]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (("--module", "nowhere.so"), "There is no PKCS#11 module {folder}/nowhere.so: install the token's software"),
        (("--label", "partition-2"), "{folder}/lib.so has no token labelled partition-2"),
        (("--label", "x", "--new", "--module", "no.so"), "There is no PKCS#11 module {folder}/no.so"),
    ],
)
def test_a_token_that_is_not_there_is_not_added(
    hsm: Hsm, added: tuple[str, ...], tmp_path: Path, wrong: tuple[str, ...], sentence: str
) -> None:
    done = hsm(*added, *wrong)
    assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1
    assert done.err.startswith(f"labconsole: The token office was not added. {sentence.format(folder=tmp_path)}")
    assert load_configurations() == {}


def test_variables_of_a_module_are_added_with_its_token(hsm: Hsm, added: tuple[str, ...]) -> None:
    variable = dict([added[-1].split("=", 1)])
    added = (*added, "--environment")
    assert hsm(*added, "KRYOPTIC_CONF=/etc/kryoptic.conf", "--environment", "MODE=a=b").code == 0
    said = {"KRYOPTIC_CONF": "/etc/kryoptic.conf", "MODE": "a=b"}
    assert load_configurations()["office"].environment == {**variable, **said}
    for wrong in ("KRYOPTIC_CONF", "=x"):
        done = hsm(*added, wrong)
        assert (done.code, done.err) == (
            1,
            "labconsole: The token office was not added: write a variable of its environment as KEY=VALUE, not "
            f"'{wrong}'.\n",
        )
    assert hsm(*added[:-1], "--wrap-mechanism", "0x1087", "--wrap-mechanism", "0x80000171").code == 0
    assert load_configurations()["office"].wrap_mechanisms == (0x1087, 0x80000171)
    assert "a number such as 0x1087" in hsm(*added[:-1], "--wrap-mechanism", "gcm").err
    secret = hsm(*added, "TOKEN_PIN=1234")
    assert secret.code == 1 and "TOKEN_PIN looks like a secret" in secret.err and "1234" not in secret.err


@terminal_only
def test_an_empty_token_is_added_and_initialised_without_typing_its_label(
    hsm: Hsm, labconsole: CommandLine, tmp_path: Path
) -> None:
    module = library()
    assert module is not None
    (tmp_path / "empty").mkdir()
    (empty,) = environment(write_configuration(tmp_path / "empty")).items()
    words = ("add", "office", "--module", str(module), "--label", "partition-1", "--environment", "=".join(empty))
    assert "has no token labelled partition-1: it has none at all" in hsm(*words).err
    assert hsm(*words, "--new").code == 0
    terminal = Terminal(labconsole.command("hsm", "init", "office", "--new"), labconsole.environment)
    terminal.answer("Passphrase for the security officer of the token office: ", SO_PIN)
    terminal.answer("Passphrase for the token office from now on: ", PIN)
    terminal.answer("Passphrase for the token office from now on, once more: ", PIN)
    code, out = terminal.finish()
    assert code == 0 and b"The token office is initialised." in out
    open_token("office", load_configurations()["office"], Secret(PIN)).close()


def _names(hsm: Hsm) -> list[str]:
    return [line.split()[0] for line in hsm("tokens").out.splitlines()[1:]]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["doctor", "offfice"], 1, "labconsole: No token is called offfice; did you mean office?"),
        (["remove", "offfice"], 1, "labconsole: No token is called offfice; did you mean office?"),
        (["remove", "lab"], 1, "labconsole: The token lab is built-in"),
        (["add", "lab", "--module", "x", "--label", "x"], 1, "labconsole: The token lab was not added: "),
        (["add", "a", "--module", "x", "--label", "x" * 33], 2, "labconsole: --label: "),
        (["add", "a", "--module", "x", "--label", "é" * 17], 1, "labconsole: The token a was not added: label: "),
        (["init", "office"], 1, "labconsole: Every key in the token office will be destroyed. "),
        (["init", "office", "--new"], 1, "labconsole: To initialise the token office, its PINs are asked for: do it"),
        (["init", "lab", "--new"], 1, "labconsole: The token lab is built-in and is initialised when"),
    ],
)
@pytest.mark.usefixtures("office")
def test_a_mistake_is_one_sentence(hsm: Hsm, arguments: list[str], code: int, sentence: str) -> None:
    done = hsm(*arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence) and done.err.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="makes an ELF file for another machine")
def test_a_module_that_cannot_be_loaded_is_one_sentence(hsm: Hsm, tmp_path: Path) -> None:
    """The others are in test_module.py: what a module's process says arrives as it is."""
    softhsm = library()
    assert softhsm is not None
    foreign = bytearray(softhsm.read_bytes())
    foreign[18] = 0xB7 if foreign[18] != 0xB7 else 0x3E  # e_machine: AArch64, or else x86-64
    (tmp_path / "other.so").write_bytes(foreign)
    pin = SecretSource(passphrase_file=tmp_path / "pin")
    save_configuration("office", TokenConfiguration(module=tmp_path / "other.so", label="x", pin=pin))
    done = hsm("doctor", "office")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"labconsole: {tmp_path / 'other.so'} is for another kind of machine: ")
    assert done.err.count("\n") == 1
    done = hsm("add", "a", "--module", "other.so", "--label", "x")
    assert done.code == 1 and "The token a was not added. " in done.err and "another kind of machine" in done.err


@pytest.mark.parametrize("option", ["--pin", "--so-pin", "--user-pin"])
@pytest.mark.parametrize("command", [["doctor", "lab"], ["init", "lab"], ["add", "a", "--module", "x", "--label", "x"]])
def test_no_command_takes_a_pin_as_an_argument(
    hsm: Hsm, capsys: pytest.CaptureFixture[str], command: list[str], option: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        hsm(*command, option, "1234")
    assert ended.value.code == 2 and f"unrecognized arguments: {option} 1234" in capsys.readouterr().err
