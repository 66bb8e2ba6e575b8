"""A PKCS#11 module is loaded for several threads, and says in a sentence why it is not."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pkcs11
import pytest
from pkcs11 import Attribute, KeyType, Mechanism
from pkcs11.util.ec import encode_named_curve_parameters

from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.module import Module, load_module
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.errors import TokenError

THREADS = 8
ROUNDS = 60
ELF_MACHINE = slice(18, 20)
AARCH64, X86_64 = (number.to_bytes(2, "little") for number in (0xB7, 0x3E))


@contextmanager
def loaded(configuration: TokenConfiguration) -> Iterator[Module]:
    module = load_module(configuration)
    try:
        yield module
    finally:
        module.finalize()


def refusal(configuration: TokenConfiguration, **changed: object) -> str:
    """The sentence with which the changed `configuration` does not load."""
    with pytest.raises(TokenError) as refused:
        load_module(configuration.model_copy(update=changed))
    sentence = str(refused.value)
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


def test_eight_threads_share_a_module(token: Token) -> None:
    """SoftHSM2 fails, or crashes, without the flag for threads, which python-pkcs11 itself never sets."""

    def work(session: pkcs11.Session) -> int:
        curve = {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}
        signatures = 0
        for _ in range(ROUNDS):
            domain = session.create_domain_parameters(KeyType.EC, curve, local=True)
            public_key, private_key = domain.generate_keypair(store=False)
            for _ in range(5):
                signatures += len(private_key.sign(bytes(32), mechanism=Mechanism.ECDSA)) == 64
            private_key.destroy()
            public_key.destroy()
        return signatures

    with ThreadPoolExecutor(THREADS) as threads:
        signatures = list(threads.map(work, [token.session() for _ in range(THREADS)]))
    assert signatures == [5 * ROUNDS] * THREADS


def test_a_module_that_is_not_there(configuration: TokenConfiguration, tmp_path: Path) -> None:
    missing = tmp_path / "libnowhere.so"
    sentence = refusal(configuration, module=missing)
    assert sentence == f"There is no PKCS#11 module {missing}: install the token's software, or correct the path."


@pytest.mark.skipif(sys.platform != "linux", reason="changes the machine in an ELF header")
def test_a_module_for_another_machine(configuration: TokenConfiguration, tmp_path: Path) -> None:
    """The C library says of it that it is not there, which it is."""
    image = bytearray(configuration.module.read_bytes())
    image[ELF_MACHINE] = X86_64 if image[ELF_MACHINE] == AARCH64 else AARCH64
    foreign = tmp_path / "libforeign.so"
    foreign.write_bytes(image)
    sentence = refusal(configuration, module=foreign)
    assert sentence == f"{foreign} is for another kind of machine: install the module for {platform.machine()}."


def test_a_library_without_pkcs11(configuration: TokenConfiguration) -> None:
    library = Path(pkcs11._pkcs11.__file__)
    sentence = refusal(configuration, module=library)
    assert sentence == f"{library} is a library, but no PKCS#11 module: name the PKCS#11 library of the token's maker."


def test_a_file_that_is_not_a_library(configuration: TokenConfiguration, tmp_path: Path) -> None:
    text = tmp_path / "read me.so"
    text.write_text("Not a library.\n" * 100)
    sentence = refusal(configuration, module=text)
    assert sentence.startswith(f"{text} cannot be loaded (")
    assert sentence.count(str(text)) == 1
    assert sentence.endswith("): name a PKCS#11 library that is whole.")


def test_a_second_load_is_refused_until_the_first_has_ended(configuration: TokenConfiguration) -> None:
    with loaded(configuration):
        assert "is loaded in this process already: close the token that uses it first" in refusal(configuration)
    with loaded(configuration) as again:
        assert [token.label for token in again.get_tokens() if token.label] == ["test"]


def test_a_module_that_does_not_start_names_its_configuration(
    configuration: TokenConfiguration, tmp_path: Path
) -> None:
    missing = tmp_path / "softhsm2.conf"
    sentence = refusal(configuration, environment=softhsm.environment(missing))
    assert sentence.endswith(f"does not start (CK_RV 0x5): check SOFTHSM2_CONF={missing} and what is named there.")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.skipif(sys.platform == "win32", reason="compiles a library as Unix does")
def test_variables_are_set_before_the_module_is_loaded(configuration: TokenConfiguration, tmp_path: Path) -> None:
    """A library may read them while it is loaded, and never again: this one keeps what it saw then in a file."""
    library, source, seen = tmp_path / "libearly.so", tmp_path / "early.c", tmp_path / "seen"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void early(void) {\n"
        '    const char *path = getenv("EARLY_FILE");\n'
        '    FILE *file = path ? fopen(path, "w") : NULL;\n'
        "    if (file) fclose(file);\n}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert "no PKCS#11 module" in refusal(configuration, module=library, environment={"EARLY_FILE": str(seen)})
    assert seen.exists()
    assert "EARLY_FILE" not in os.environ


def test_another_token_directory_may_follow(configuration: TokenConfiguration, tmp_path: Path) -> None:
    empty = softhsm.environment(softhsm.write_configuration(tmp_path))
    with loaded(configuration.model_copy(update={"environment": empty})) as module:
        assert [token.label for token in module.get_tokens()] == [""]
    with loaded(configuration) as module:
        assert "test" in [token.label for token in module.get_tokens()]


def test_the_environment_is_put_back(configuration: TokenConfiguration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOFTHSM2_CONF", raising=False)
    with loaded(configuration):
        assert "SOFTHSM2_CONF" not in os.environ
    monkeypatch.setenv("SOFTHSM2_CONF", "the operator's own")
    with loaded(configuration):
        assert os.environ["SOFTHSM2_CONF"] == "the operator's own"


def test_nss_starts_with_its_parameters(nss: Token) -> None:
    assert (nss.identity.label, nss.identity.manufacturer) == ("NSS Certificate DB", "Mozilla Foundation")
    assert int(Mechanism.AES_KEY_WRAP) in nss.mechanisms()


def test_nss_names_its_parameters_when_it_does_not_start(nss_configuration: TokenConfiguration, tmp_path: Path) -> None:
    parameters = nss_configuration.parameters.replace("sql:", f"sql:{tmp_path}/nowhere")
    assert f"check its parameters configdir='sql:{tmp_path}" in refusal(nss_configuration, parameters=parameters)
    assert "(CK_RV 0x7): it may need parameters, as NSS does" in refusal(nss_configuration, parameters="")


def test_softhsm_does_not_report_free_memory(configuration: TokenConfiguration) -> None:
    with loaded(configuration) as module:
        assert [module.free_private_memory(slot.slot_id) for slot in module.get_slots()] == [None, None]


def test_a_token_directory_with_a_path_that_softhsm_cuts_off_is_refused(tmp_path: Path) -> None:
    for name in ("a#b", "a=b"):
        (tmp_path / name).mkdir()
        with pytest.raises(TokenError, match="choose another directory"):
            softhsm.write_configuration(tmp_path / name)
    blank = tmp_path / "with a blank"
    blank.mkdir()
    assert str(blank) in softhsm.write_configuration(blank).read_text()
    shutil.rmtree(blank)
