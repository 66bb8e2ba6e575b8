"""`labconsole pki trust | pin | take-bundle`: what must be confirmed, at a terminal and in a script."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state, claim_domain
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import ImportBundle, ImportBundleParameters
from labconsole_certificates.trust.roots_and_pins import TrustParameters, TrustRoot
from tests.labconsole_certificates.three_states import ThreeStates

A = "State A"


class Elsewhere:
    """State D at its own console, which sends bundles."""

    def __init__(self, directory: Path) -> None:
        self.store = PkiStore.open(directory / "elsewhere")
        self.state: State = add_state(self.store, "State D", "d.example")
        self.root: CertificateRecord = create_root(self.store, self.state, NewKey())
        self._directory = directory

    def bundle(self, domain: str = "d.example") -> Path:
        """Its next bundle, in which it claims `domain`."""
        claim_domain(self.store, self.state, domain)
        file = self._directory / "d.bundle"
        file.write_bytes(make_bundle(self.store, "State D"))
        return file


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    made = Elsewhere(tmp_path)
    yield made
    made.store.close()


class _Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Typed:
    """`OperationContext` of an operation that nothing is asked of but what was typed."""

    stop_requested = False

    def __init__(self, typed: str) -> None:
        self.typed = typed

    def progress(self, done: int, total: int) -> None: ...

    def say(self, sentence: str) -> None: ...

    def secret(self, key: str) -> Secret | None:
        return None

    def hand_over(self, title: str, secret: Secret) -> None: ...


def types(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The operator is at a terminal, and types `text`."""
    monkeypatch.setattr("sys.stdin", _Keyboard(f"{text}\n"))


def known(world: ThreeStates, root: CertificateRecord) -> None:
    """The root of State D is known to the console of State A."""
    state = add_state(world.store, "State D", local=False)
    import_certificates(world.store, root.certificate.public_bytes(Encoding.PEM), state)


def trusts(world: ThreeStates) -> int:
    """How many certificates are trusted."""
    return len([one for one in world.store.snapshot().trust if one.withdrawn is None])


def test_fingerprint_of_another_console_s_root_is_typed_and_never_shown(
    world: ThreeStates, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known(world, elsewhere.root)
    before, sha256 = trusts(world), elsewhere.root.sha256
    for typed in ("yes", "", sha256[:16], "0" * 64):
        types(monkeypatch, typed)
        assert main(["pki", "trust", A, "root:State D"]) == 1
        assert trusts(world) == before
    said = capsys.readouterr()
    assert "that is not the fingerprint" in said.err and "State A will trust State D Root CA" in said.err
    assert sha256 not in said.err + said.out and grouped(sha256)[:9] not in said.err + said.out
    types(monkeypatch, grouped(sha256).lower())
    assert main(["pki", "trust", A, "root:State D"]) == 0
    assert trusts(world) == before + 1
    [row] = [one for one in world.store.snapshot().trust if one.certificate == row_of(world, sha256)]
    assert row.confirmed == "fingerprint typed"


def row_of(world: ThreeStates, sha256: str) -> int:
    """Id of the certificate."""
    return world.store.snapshot().certificate_by_sha256[sha256].id


def test_script_gives_the_fingerprint_as_an_option(
    world: ThreeStates, elsewhere: Elsewhere, capsys: pytest.CaptureFixture[str]
) -> None:
    known(world, elsewhere.root)
    before, sha256 = trusts(world), elsewhere.root.sha256
    for confirmed, why in (([], "as --confirmed"), (["--confirmed", "0" * 64], "That is not the fingerprint of")):
        assert main(["pki", "trust", A, "root:State D", *confirmed]) == 1
        said = capsys.readouterr().err
        assert why in said and sha256 not in said and grouped(sha256)[:9] not in said
    assert trusts(world) == before
    assert main(["pki", "trust", A, "root:State D", "--confirmed", grouped(sha256)]) == 0
    assert trusts(world) == before + 1


def test_work_checks_the_fingerprint_itself(world: ThreeStates, elsewhere: Elsewhere) -> None:
    known(world, elsewhere.root)
    before, file = trusts(world), elsewhere.bundle()
    for typed in ("", "yes", "0" * 64):
        with pytest.raises(UserError, match="That is not the fingerprint of State D Root CA"):
            TrustRoot().run(TrustParameters(state=A, certificate="root:State D"), _Typed(typed))
        with pytest.raises(UserError, match="fingerprint"):
            ImportBundle().run(ImportBundleParameters(state=A, file=file), _Typed(typed))
    assert trusts(world) == before


def test_state_of_this_console_shows_its_fingerprint_and_is_confirmed(
    world: ThreeStates, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = trusts(world)
    assert main(["pki", "trust", A, "root:State B"]) == 1
    assert "give --confirmed FINGERPRINT" in capsys.readouterr().err
    types(monkeypatch, "no")
    assert main(["pki", "trust", A, "root:State B"]) == 1
    assert trusts(world) == before
    types(monkeypatch, "yes")
    assert main(["pki", "trust", A, "root:State B"]) == 0
    assert grouped(world.root_b.sha256) in capsys.readouterr().err and trusts(world) == before + 1
    assert main(["pki", "withdraw", A, "root:State B"]) == 0
    assert trusts(world) == before
    assert main(["pki", "withdraw", A, "root:State B"]) == 1


def test_first_bundle_is_confirmed_by_its_fingerprint_and_a_new_domain_by_itself(
    world: ThreeStates, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take, sha256 = ["pki", "take-bundle", A], elsewhere.root.sha256
    file = str(elsewhere.bundle())
    types(monkeypatch, "d.example")
    assert main([*take, file]) == 1
    types(monkeypatch, grouped(sha256))
    assert main([*take, file]) == 0
    assert sha256 not in (said := capsys.readouterr().err) and "first trust bundle of State D" in said
    assert world.store.state("State D").domain == "d.example"

    file = str(elsewhere.bundle("new.example"))
    for typed in ("yes", "d.example", grouped(sha256)):
        types(monkeypatch, typed)
        assert main([*take, file]) == 1
    assert main([*take, file, "--confirmed-domain", "d.example"]) == 1
    assert world.store.state("State D").domain == "d.example"
    assert "State D claims new.example, and had d.example before." in capsys.readouterr().err
    types(monkeypatch, "new.example")
    assert main([*take, file]) == 0
    assert world.store.state("State D").domain == "new.example"

    file = str(elsewhere.bundle(""))
    assert main([*take, file, "--confirmed", grouped(sha256)]) == 1, "no domain is a question of its own"
    types(monkeypatch, "no domain")
    assert main([*take, file]) == 0
    assert world.store.state("State D").domain == ""


def test_bundle_that_is_swapped_after_the_question_is_refused(world: ThreeStates, elsewhere: Elsewhere) -> None:
    parameters = ImportBundleParameters(state=A, file=elsewhere.bundle(), confirmed=elsewhere.root.sha256)
    ImportBundle().run(parameters, _Typed(""))
    later = ImportBundleParameters(state=A, file=elsewhere.bundle("asked.example"))
    asked = ImportBundle().confirmation(later)
    assert asked is not None and asked.text == "asked.example"
    elsewhere.bundle("swapped.example")
    with pytest.raises(UserError, match="only once you have confirmed the domain"):
        ImportBundle().run(later, _Typed(asked.text))
    assert world.store.state("State D").domain == "d.example"


def test_bundle_is_signed_with_a_passphrase_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("mine", "mine-1357"), ("other", "not-mine")):
        (tmp_path / name).write_text(f"{text}\n")
        (tmp_path / name).chmod(0o600)
    with PkiStore.open() as store:
        asked = NewKey(passphrase=SecretSource())
        create_root(store, add_state(store, "State E"), asked, prompt=lambda _purpose: Secret("mine-1357"))
    bundle = ["pki", "bundle", "State E", "e.bundle"]
    for source in ([], ["--passphrase-file", "other"]):
        assert main([*bundle, *source]) == 1
        assert "passphrase" in capsys.readouterr().err and not (tmp_path / "e.bundle").exists()
    assert main([*bundle, "--passphrase-file", "mine"]) == 0
    assert "e.bundle is trust bundle 1 of State E" in capsys.readouterr().out
