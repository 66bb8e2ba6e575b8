"""Token configurations: what may stand in one, and the file that keeps them by name."""

from __future__ import annotations

import os
import stat
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.security.secrets import SecretSource
from labconsole.security.token.configuration import LAB, TokenConfiguration
from labconsole.security.token.errors import TokenError
from labconsole.security.token.named_tokens import (
    find_configuration,
    forget_configuration,
    load_configurations,
    save_configuration,
    tokens_file,
)

MODULE = Path("/opt/vendor/libpkcs11.so")
OFFICE = TokenConfiguration(module=MODULE, label="partition-1", pin=SecretSource(keyring_entry="token office"))
PLAIN = TokenConfiguration(module=MODULE, label="Größe 1", serial="0815", environment={"VENDOR_CONF": "/etc/vendor"})


def written(text: str) -> Path:
    """The file of tokens with `text` in it."""
    file = tokens_file()
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def test_configurations_come_back_as_they_were_saved() -> None:
    assert load_configurations() == {}
    save_configuration("office", OFFICE)
    save_configuration("plain", OFFICE)
    save_configuration("plain", PLAIN)
    assert load_configurations() == {"office": OFFICE, "plain": PLAIN}
    assert find_configuration("plain") == PLAIN
    forget_configuration("office")
    assert load_configurations() == {"plain": PLAIN}
    assert [path.name for path in tokens_file().parent.iterdir() if not path.name.startswith(".")] == ["tokens.toml"]


def test_a_configuration_goes_to_a_role_as_json() -> None:
    assert TokenConfiguration.model_validate_json(OFFICE.model_dump_json()) == OFFICE
    request = OFFICE.pin_request("office")
    assert (request.key, request.purpose, request.source) == ("pin office", "token partition-1", OFFICE.pin)


def test_the_file_reads_as_the_guide_writes_it() -> None:
    written(
        'format = 1\n[tokens.office]\nmodule = "/opt/vendor/libpkcs11.so"\nlabel = "partition-1"\n'
        'pin = { keyring_entry = "token office" }\n'
    )
    assert load_configurations() == {"office": OFFICE}


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_file_is_its_owners_alone() -> None:
    save_configuration("office", OFFICE)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tokens_file().parent.glob("*tokens*")} == {0o600}
    tokens_file().chmod(0o644)
    with pytest.raises(UserError, match="can be read by others"):
        load_configurations()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("format = 1\n[tokens.a]\nmodul = '/x'\nlabel = 'a'", r"token a: .*modul.*did you mean module\?$"),
        (
            "format = 1\n[tokens.a]\nmodule = '/x'\nlabel = 'a'\npin.keyring = 'x'",
            r"token a: .*pin\.keyring.*did you mean keyring_entry\?$",
        ),
        ("format = 1\n[token.a]", r"there is no key token; did you mean tokens\?$"),
        ("format = 1\n[tokens.a]\nmodule = '/x'", r"token a: the key label is missing\.$"),
        ("format = 1\n[tokens.a]\nmodule = 'x.so'\nlabel = 'a'", r"token a: module: give the whole path"),
        ("format = 1\n[tokens.lab]", r"lab is a built-in token; choose another name\.$"),
        ("format = 1\n[tokens.'a b']", r"a name is made of letters"),
        ("format = 1\ntokens = 3", r"tokens must be tables"),
        ("format = 1\ntokens.a = 3", r"token a: it must be a table, as in \[tokens\.a\]\.$"),
        ("format = 2", r"has format 2; this console reads `format = 1`"),
        ("format = 1 2", r"is not valid TOML: .*line 1"),
    ],
)
def test_a_fault_in_the_file_is_one_sentence_with_the_nearest_name(text: str, sentence: str) -> None:
    file = written(text)
    with pytest.raises(TokenError, match=sentence) as refusal:
        load_configurations()
    assert str(file) in str(refusal.value)
    with pytest.raises(TokenError):
        save_configuration("office", OFFICE)
    assert file.read_text() == text


@pytest.mark.parametrize("fault", ["pin = '271828'", "environment = { VENDOR_PIN = '271828' }", "pin = 271828"])
def test_a_pin_in_the_file_is_refused_and_shown_nowhere(fault: str) -> None:
    written(f"format = 1\n[tokens.a]\nmodule = '/x'\nlabel = 'a'\n{fault}")
    with pytest.raises(TokenError, match="PIN") as refusal:
        load_configurations()
    assert "271828" not in "".join(traceback.format_exception(refusal.value))
    assert "VENDOR_PIN" not in fault or "environment: the variable VENDOR_PIN looks like a secret" in str(refusal.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"label": ""},
        {"label": "blank at its end "},
        {"label": "ü" * 17},
        {"environment": {"Vendor_Password": "x"}},
        {"environment": {"CLIENT_SECRET": "x"}},
    ],
)
def test_what_no_token_can_have_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TokenConfiguration.model_validate({"module": MODULE, "label": "a" * 32, **fields})


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    save_configuration("office", OFFICE)
    for asked in (find_configuration, forget_configuration):
        with pytest.raises(TokenError, match=r"No token is called ofice; did you mean office\?$"):
            asked("ofice")
    with pytest.raises(TokenError, match=r"No token is called x; there are: lab, office\.$"):
        find_configuration("x")


def test_the_labs_own_name_is_kept_free() -> None:
    with pytest.raises(TokenError, match="choose another name"):
        save_configuration(LAB, OFFICE)
    with pytest.raises(TokenError, match="has no entry"):
        forget_configuration(LAB)
    assert not tokens_file().exists()


def test_a_directory_that_cannot_be_written_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    save_configuration("office", OFFICE)

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labconsole.security.token.named_tokens.write_private", full)
    with pytest.raises(TokenError, match=r"tokens\.toml cannot be written: No space left on device\.$"):
        save_configuration("plain", PLAIN)
    assert load_configurations() == {"office": OFFICE}
