"""What the commands have in common: passphrases by file, keyring or question, States by name, what is told."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from labconsole.cli import asking
from labconsole.cli.terminal import output
from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Prompt, Secret, SecretSource
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.exporting import write_export
from labconsole_certificates.operations.new_keys import NewKey, is_of_a_new_key
from labconsole_certificates.operations.references import state_named


def tell(sentence: str) -> None:
    """Say what came of the command."""
    output().print(sentence, soft_wrap=True)


def warn(sentence: str) -> None:
    """Say on standard error what the operator should think of."""
    output(stderr=True).print(f"Warning: {sentence}", soft_wrap=True)


def show(table: Table) -> None:
    """Print a table."""
    output().print(table)


def table(*headings: str) -> Table:
    """A table as all lists have it."""
    return Table(*headings, box=None, pad_edge=False)


def digits(sha256: str) -> str:
    """The beginning of a fingerprint, in one piece: what other commands take for the whole."""
    return sha256[:16].upper()


def fingerprint_told(record: CertificateRecord, what: str) -> None:
    """Say what was made or taken in, with its fingerprint."""
    tell(f"{what} {short_name(record.certificate)}\nSHA-256 {groups(record.sha256)}")


def new_key(arguments: argparse.Namespace) -> NewKey:
    """The key pair that is to be made."""
    return NewKey(arguments.type, arguments.token, _source(arguments))


def kept_key(arguments: argparse.Namespace) -> NewKey:
    """How a key from outside is kept."""
    return NewKey(passphrase=_source(arguments))


def prompt(arguments: argparse.Namespace) -> Prompt:
    """Answers for keys that are here by `--passphrase-file` or `--keyring-entry`, else asks on the terminal."""
    source = SecretSource(
        keyring_entry=getattr(arguments, "unlock_entry", None), passphrase_file=getattr(arguments, "unlock_file", None)
    )
    if source == SecretSource():
        return asking.prompt

    def answer(purpose: str) -> Secret | None:
        return asking.prompt(purpose) if is_of_a_new_key(purpose) else source.resolve(purpose)

    return answer


def password(arguments: argparse.Namespace, what: str) -> Secret:
    """The password of the file `what`, by `--password-file`, else asked for. Raises UserError: there is none."""
    return SecretSource(passphrase_file=arguments.password_file).resolve(what, asking.prompt)


def new_password(arguments: argparse.Namespace, what: str) -> Secret:
    """The password of a file that is to be written; typed, it is asked for twice. Raises UserError: in two ways."""
    chosen = password(arguments, what)
    if arguments.password_file is None and password(arguments, f"{what}, once more").reveal() != chosen.reveal():
        raise UserError("The password was typed in two ways, so nothing was done: type it again.")
    return chosen


def optional_state(snapshot: Snapshot, name: str | None) -> State | None:
    """The State called so, if a name is given. Raises UserError."""
    return None if name is None else state_named(snapshot, name)


def write_out(path: Path | None, data: bytes, what: str) -> None:
    """Write what `--out` asks for, and say so. Raises UserError."""
    if path is not None:
        write_export(path, data)
        tell(f"{path} holds {what}.")


def _source(arguments: argparse.Namespace) -> SecretSource | None:
    """Where the passphrase of a new key file lies; None: the console keeps it."""
    file: Path | None = arguments.passphrase_file
    if arguments.ask_passphrase or file is not None or arguments.keyring_entry is not None:
        return SecretSource(keyring_entry=arguments.keyring_entry, passphrase_file=file and file.absolute())
    return None
