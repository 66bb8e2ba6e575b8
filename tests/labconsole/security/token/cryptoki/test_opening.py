"""A token is found by its label and opened once with its PIN; further sessions need none, and end before the first."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pkcs11
import pytest
from pkcs11 import Attribute, KeyType, MechanismFlag, ObjectClass, TokenFlag

from labconsole.errors import UserError
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki import opening
from labconsole.security.token.cryptoki.module import load_module
from labconsole.security.token.cryptoki.opening import Token, find_token, open_token, pin_warning, serial_of
from labconsole.security.token.errors import TokenError, WrongPinError
from tests.helpers.program_text import PROGRAM
from tests.helpers.softhsm_token import create_softhsm_token

WRONG = Secret("4321-wrong")


def make_key(session: pkcs11.Session) -> pkcs11.SecretKey:
    """An AES key that only who has logged in sees, and that dies with its session."""
    private = {Attribute.PRIVATE: True}
    return session.generate_key(KeyType.AES, 256, store=False, capabilities=MechanismFlag.ENCRYPT, template=private)


@contextmanager
def found(configuration: TokenConfiguration) -> Iterator[pkcs11.Token]:
    """The token, not logged in."""
    module = load_module(configuration)
    try:
        yield find_token(module, "test", configuration)
    finally:
        module.finalize()


def test_an_open_token_says_which_it_is(token: Token, configuration: TokenConfiguration) -> None:
    identity = token.identity
    assert (identity.label, identity.manufacturer, identity.module) == (
        "test",
        "SoftHSM project",
        str(configuration.module),
    )
    assert len(identity.serial) == 16 and identity.cryptoki_version == "2.40" and identity.library_version >= "2.6"
    assert int(pkcs11.Mechanism.AES_KEY_WRAP_PAD) in token.mechanisms()
    assert token.pin_warning() is None


def test_further_sessions_need_no_pin(token: Token) -> None:
    first, second = token.session(), token.session()
    make_key(first)
    [seen] = second.get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY})
    assert seen.encrypt(bytes(16), mechanism_param=bytes(16))


def test_the_session_that_logged_in_closes_last(
    configuration: TokenConfiguration, pin: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end logs all others out: their private keys are gone before they are closed themselves."""
    alive_at_their_end = []

    def look_and_close(session: pkcs11.Session) -> None:
        alive_at_their_end.append(len(list(session.get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY}))))
        session.close()

    monkeypatch.setattr(opening, "_close", look_and_close)
    with open_token("test", configuration, pin) as token:
        for session in (token.session(), token.session()):
            make_key(session)
    assert alive_at_their_end == [2, 1, 0]


def test_a_session_may_be_closed_by_its_user(token: Token) -> None:
    token.session().close()
    kept = make_key(token.session())
    token.session().close()
    assert kept.encrypt(bytes(16), mechanism_param=bytes(16))
    token.close()
    token.close()
    with pytest.raises(TokenError, match=r"The token test is closed: open it again\.$"):
        token.session()


def test_a_closed_token_lets_another_follow(token: Token, configuration: TokenConfiguration, pin: Secret) -> None:
    with pytest.raises(TokenError, match="is loaded in this process already"):
        open_token("second", configuration, pin)
    make_key(token.session())
    token.close()
    with open_token("second", configuration, pin) as again:
        assert list(again.session().get_objects()) == []


def test_a_wrong_pin_is_tried_once_and_says_what_is_left(configuration: TokenConfiguration, pin: Secret) -> None:
    with pytest.raises(WrongPinError) as refused:
        open_token("test", configuration, WRONG)
    assert str(refused.value) == (
        "The token test cannot be opened: it refuses the PIN: it is wrong, and was tried once; "
        "few tries may be left before it locks its PIN, and it does not report how many."
    )
    with found(configuration) as token:
        assert TokenFlag.USER_PIN_COUNT_LOW in token.flags
        assert pin_warning(token) is not None
    with open_token("test", configuration, pin) as opened:
        assert opened.pin_warning() is None


def test_a_wrong_pin_is_sent_no_second_time(configuration: TokenConfiguration, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = []

    class Watched:
        """The token, and the number of logins that are tried."""

        def __init__(self, token: pkcs11.Token) -> None:
            self._token = token

        def open(self, **arguments: object) -> pkcs11.Session:
            logins.append(arguments)
            return self._token.open(**arguments)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(self._token, name)

    find = opening.find_token
    monkeypatch.setattr(opening, "find_token", lambda *arguments: Watched(find(*arguments)))
    with pytest.raises(WrongPinError):
        open_token("test", configuration, WRONG)
    assert len(logins) == 1


def test_the_pin_comes_from_its_source(configuration: TokenConfiguration, pin: Secret, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no passphrase for token test"):
        open_token("test", configuration)
    file = tmp_path / "pin"
    file.write_text(pin.reveal())
    file.chmod(0o600)
    with_file = configuration.model_copy(update={"pin": SecretSource(passphrase_file=file)})
    with open_token("test", with_file) as token:
        make_key(token.session())


def test_a_missing_token_names_those_there_are(configuration: TokenConfiguration, pin: Secret, tmp_path: Path) -> None:
    def refusal(**changed: object) -> str:
        with pytest.raises(TokenError) as refused:
            open_token("office", configuration.model_copy(update=changed), pin)
        return str(refused.value)

    module = configuration.module
    assert refusal(label="tset") == f"{module} has no token labelled tset; did you mean test?"
    assert refusal(label="xyz") == f"{module} has no token labelled xyz; there are: test."
    empty = softhsm.environment(softhsm.write_configuration(tmp_path))
    assert refusal(environment=empty) == f"{module} has no token labelled test: it has none at all; initialise one."
    with found(configuration) as token:
        serial = serial_of(token)
    sentence = refusal(serial="0815")
    assert sentence.startswith(f"The token labelled test has the serial number {serial}, and not 0815")


def test_two_tokens_of_one_label_need_a_serial_number(pin: Secret, so_pin: Secret, tmp_path: Path) -> None:
    twins = create_softhsm_token(tmp_path, "twin", pin, so_pin)
    create_softhsm_token(tmp_path, "twin", pin, so_pin)
    with pytest.raises(
        TokenError, match="has 2 tokens labelled twin: name one of them by its serial number"
    ) as refused:
        open_token("twin", twins, pin)
    module = load_module(twins)
    serials = [serial_of(token) for token in module.get_tokens() if token.label]
    module.finalize()
    for serial in serials:
        assert serial in str(refused.value)
        with open_token("twin", twins.model_copy(update={"serial": serial}), pin) as token:
            assert token.identity.serial == serial


def test_a_token_whose_pin_was_never_set(pin: Secret, so_pin: Secret, tmp_path: Path) -> None:
    configuration = TokenConfiguration(
        module=softhsm.library() or Path("/"),
        label="fresh",
        environment=softhsm.environment(softhsm.write_configuration(tmp_path)),
    )
    module = load_module(configuration)
    module.init_token(module.get_slots()[0].slot_id, so_pin.reveal(), "fresh")
    module.finalize()
    with pytest.raises(
        TokenError, match=r"The token fresh has no PIN yet: initialise it \(labconsole hsm init fresh\)\.$"
    ):
        open_token("fresh", configuration, pin)


def test_nss_without_a_pin_says_so(nss_configuration: TokenConfiguration, pin: Secret, tmp_path: Path) -> None:
    parameters = re.sub("sql:[^']*", f"sql:{tmp_path}", nss_configuration.parameters)
    with pytest.raises(TokenError, match="The token nss has no PIN yet: initialise it"):
        open_token("nss", nss_configuration.model_copy(update={"parameters": parameters}), pin)


def test_nss_is_opened_the_same_way(nss: Token) -> None:
    make_key(nss.session())
    assert nss.pin_warning() is None


OPENING = """
import sys
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
configuration = TokenConfiguration.model_validate_json(sys.stdin.readline())
for _ in range(8):
    with open_token("test", configuration, Secret("1234-user")) as token:
        token.session()
"""


def test_processes_that_open_one_token_at_a_time_all_find_it(configuration: TokenConfiguration) -> None:
    """A login writes the token's file, and a module that starts meanwhile would see half of it."""
    processes = [
        subprocess.Popen([*PROGRAM, OPENING], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    settings = configuration.model_dump_json()
    with ThreadPoolExecutor() as pool:
        ends = list(pool.map(lambda process: process.communicate(settings)[1], processes))
    assert [process.returncode for process in processes] == [0, 0, 0], ends
