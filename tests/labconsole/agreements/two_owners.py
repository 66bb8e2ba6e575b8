"""Two owners, each with a console of its own: State A and State B, whose roots trust each other, and its commands."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from labconsole.cli.main import main
from labconsole.paths import HOME_VARIABLE
from labconsole.security.pki.keys import make_key
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import Origin, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.signals import interruptible
from tests.helpers.worker_threads import CONSOLE_IN_THREADS, operations_in_threads, workers_in_threads
from tests.labconsole.security.pki.pki_lab import OwnState, named

LIMIT_S = 60.0
CONSOLE = [sys.executable, "-m", "labconsole.cli.main"]


@dataclass(frozen=True)
class Owner:
    """A console with the home `folder`: its State, and the issuer of its certificates."""

    folder: Path
    state: str
    issuer: Issuer

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def root_file(self) -> Path:
        """The root, for openssl."""
        path = self.folder / "root.pem"
        path.write_bytes(self.issuer.certificate.public_bytes(Encoding.PEM))
        return path

    def environment(self) -> dict[str, str]:
        return {**os.environ, HOME_VARIABLE: str(self.folder)}

    def command(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command of this console without a terminal, in this process; its runs and operations are threads."""
        words, out, err = [*map(str, arguments)], io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            workers_in_threads(),
            operations_in_threads(),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            patch.setenv(HOME_VARIABLE, str(self.folder))
            patch.setattr(sys, "stdin", io.StringIO())
            code = main(words)
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    def does(self, *arguments: str | Path) -> str:
        """What a command that must succeed prints."""
        done = self.command(*arguments)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def refuses(self, *arguments: str | Path) -> str:
        """What a command that must fail says."""
        done = self.command(*arguments)
        assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
        return done.stderr

    def begin(self, *arguments: str | Path, threads: bool = False) -> subprocess.Popen[str]:
        """Start a command; `threads`: its runs are conducted by threads of its process."""
        with interruptible():
            return subprocess.Popen(
                [*(CONSOLE_IN_THREADS if threads else CONSOLE), *map(str, arguments)],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def name_signer(
        self,
        name: str,
        profile: CertificateProfile = CertificateProfile.MESSAGE_SIGNING,
        validity: Validity | None = None,
        type: KeyType = KeyType.P_256,
        host: str = "",
    ) -> x509.Certificate:
        """An identity of this console by a certificate of its State's CA, for a server on `host`."""
        with PkiStore.open(self.pki) as store:
            state = next(one for one in store.snapshot().states if one.local)
            made = make_key(store.directory, type)
            lasting = validity or Validity.for_days(30)
            hosts = [x509.DNSName(host)] if host else []
            certificate = issue(self.issuer, made.private.public_key(), named(name), hosts, profile, lasting)
            with store.change() as change:
                change.add_key(state.id, name, made.private.public_key(), made.place)
                added = change.add_certificate(certificate, origin=Origin.ISSUED, profile=profile)
                change.name_identity(name, added.id)
        return certificate

    def certificate_of(self, name: str) -> x509.Certificate:
        """The certificate of an identity of this console."""
        with PkiReader.open(self.pki) as reader:
            snapshot = reader.snapshot()
        [found] = [one.certificate for one in snapshot.identities if one.name == name]
        return snapshot.certificate_by_id[found].certificate

    def key_file(self, name: str, passphrase: str) -> tuple[Path, Path]:
        """A certificate of this State's CA for a TLS client, and its key under a passphrase, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        profile = CertificateProfile.TLS_CLIENT
        certificate = issue(self.issuer, key.public_key(), named(name), [], profile, Validity.for_days(30))
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        encrypted = BestAvailableEncryption(passphrase.encode())
        write_private(files[1], key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted))
        return files

    def import_crl(self, issuer: Issuer, *revoked: x509.Certificate) -> None:
        """Import a CRL of another State's CA."""
        now = datetime.now(UTC).replace(microsecond=0)
        entries = [Revoked(one.serial_number, now, x509.ReasonFlags.key_compromise) for one in revoked]
        crl = issue_crl(issuer, entries, 1, Validity.for_days(30))
        with PkiStore.open(self.pki) as store:
            root = next(one for one in store.snapshot().certificates if one.certificate == issuer.certificate)
            with store.change() as change:
                change.add_crl(crl, root.id)

    def trust(self, state: str, root: x509.Certificate) -> None:
        """Trust the root of another console's State."""
        with PkiStore.open(self.pki) as store:
            own = next(one for one in store.snapshot().states if one.local)
            with store.change() as change:
                other = change.add_state(state, local=False)
                added = change.add_certificate(
                    root, origin=Origin.IMPORTED, state=other.id, profile=CertificateProfile.ROOT
                )
                change.trust(own.id, added.id, TrustKind.ROOT, "by the test")


def new_owner(folder: Path, letter: str) -> Owner:
    """A console with State `letter` and the identity `LETTER-signer`."""
    folder.mkdir(parents=True)
    state = f"State {letter.upper()}"
    with PkiStore.open(folder / "pki") as store:
        issuer = OwnState(store, state).issuer
    owner = Owner(folder, state, issuer)
    owner.name_signer(f"{letter}-signer")
    return owner


def trusting_owners(folder: Path) -> tuple[Owner, Owner]:
    """State A and State B, which trust each other's roots."""
    a, b = new_owner(folder / "a", "a"), new_owner(folder / "b", "b")
    a.trust(b.state, b.issuer.certificate)
    b.trust(a.state, a.issuer.certificate)
    return a, b


def sender_profile(path: Path, **parameters: Any) -> Path:
    """A profile in which this console plays the sender."""
    settings = {"mode": "sender", "broker": "external", "address": "q", "test": 1, "count": 50, **parameters}
    lines = ["format = 1", 'kind = "amqp.messaging"', 'title = "Between two States"', "[parameters]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a command; returns its exit code and what it printed."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def statuses(owner: Owner) -> list[RunStatus]:
    """Of all runs of an owner's database, oldest first."""
    with Reader(owner.folder / "runs.db") as reader:
        return [row.status for row in reversed(reader.runs())]


@dataclass
class Watched:
    """`OperationContext` of an agent in this process, which is stopped once it has said `until`."""

    until: str
    secrets: dict[str, Secret] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    typed: str = ""
    deadline_s: float = field(default_factory=lambda: time.monotonic() + LIMIT_S)

    @property
    def stop_requested(self) -> bool:
        return any(self.until in one for one in self.said) or time.monotonic() > self.deadline_s

    def progress(self, done: int, total: int) -> None: ...

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def secret(self, key: str) -> Secret | None:
        return self.secrets.get(key)

    def hand_over(self, title: str, secret: Secret) -> None: ...
