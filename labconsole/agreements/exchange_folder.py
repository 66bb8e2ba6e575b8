"""The folder in which two owners exchange files: what of it waits for a person, and the other one's signed bundles."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote

from labconsole.agreements.agreement_files import agreed_ids, other_signer
from labconsole.agreements.conclusion import concluded
from labconsole.agreements.documents import Acceptance, Proposal, Results, received
from labconsole.agreements.review import review
from labconsole.agreements.signed_bundles import statement_of
from labconsole.errors import BadInput, UserError
from labconsole.model.plugin import Plugins
from labconsole.model.trial import TRIAL_ID
from labconsole.output.bundle_format import signature_path
from labconsole.output.bundle_import import import_bundle, parameter_values
from labconsole.paths import agreements_dir
from labconsole.safe_text import shown
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.parsing import read_file
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.run_transfer import known_uuids

_AGAIN_S = 30.0
_OWN = ""
"""The sentence on a file about which there is nothing to say: it is this console's own, or done."""


class ExchangeFolder:
    """A folder whose files are read again only where they, the certificates or the agreements have changed."""

    def __init__(self, folder: Path, database: Path, plugins: Plugins) -> None:
        """Raises UserError: it is not a folder that can be written to."""
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise UserError(
                f"{folder} cannot be the exchange folder ({error.strerror}): name a folder that you can write to."
            ) from error
        self.path = folder
        self._database = database
        self._plugins = plugins
        self._seen: dict[Path, tuple[object, ...]] = {}
        self._again_s: dict[Path, float] = {}
        """When a file that could not be used is tried again (`time.monotonic`)."""

    def news(self, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        """Import bundles of agreements; yields name and sentence of each file of which there is something to say."""
        known = agreed_ids(), snapshot
        try:
            files = sorted(self.path.iterdir())
        except OSError as error:
            yield "", f"{self.path} cannot be read ({error.strerror}): check it. What arrives there waits until it can."
            return
        for file in files:
            if file.suffix not in (".pem", ".lcz") or not file.is_file() or file.is_symlink():
                continue
            state = (*known, *map(_stamp, (file, signature_path(file))))
            if self._seen.get(file) == state or time.monotonic() < self._again_s.get(file, 0.0):
                continue
            self._seen[file] = state
            try:
                sentence = self._document(file, snapshot) if file.suffix == ".pem" else self._bundle(file, snapshot)
            except (OSError, StoreError) as error:  # a file that is removed meanwhile, a full disk, a busy database
                reason = str(error) if isinstance(error, UserError) else f"It cannot be copied ({error.strerror})."
                sentence = f"{reason} It is tried again: check the folder and the disk."
                del self._seen[file]
                self._again_s[file] = time.monotonic() + _AGAIN_S
            except UserError as error:
                sentence = str(error)
            if sentence:
                yield file.name, f"{shown(file.name)}: {sentence}"

    def _document(self, file: Path, snapshot: Snapshot) -> str:
        """What a person has to do about a proposal or an acceptance. Raises UserError."""
        data = read_file(file)
        try:
            found = received(data, Proposal, snapshot)
        except BadInput:
            return _acceptance(file, data, snapshot)
        proposal, signer = found.document, found.signer
        if proposal.id in agreed_ids():
            return _OWN
        if signer.state is not None and signer.state.local:
            return f"Proposal {proposal.id} of this console waits for the other owner's acceptance."
        if refusals := review(data, snapshot, self._plugins).refusals:
            return f"Refused: {refusals[0]}"
        place = quote(str(file))
        return (
            f"Proposal {proposal.id} of {signer.title} waits for a person: read it by `labconsole agreements show "
            f"{place}`, and accept it by `labconsole agreements accept {place} OUT --identity NAME`."
        )

    def _bundle(self, file: Path, snapshot: Snapshot) -> str:
        """Import a bundle of an agreement, signed by the State with which it is. Raises UserError: it is refused."""
        if not signature_path(file).exists():
            return "It waits for its signature, the file with .p7s after its name."
        found = received(read_file(signature_path(file), "signature"), Results, snapshot)
        state, uuids = found.signer.state, [run.uuid for run in found.document.runs]
        with closing(Reader(self._database)) as reader, reader.snapshot() as connection:
            if (state is not None and state.local) or known_uuids(connection, uuids) >= {*uuids}:
                return _OWN
        if not found.signer.trusted:
            raise BadInput(f"It is not imported. {found.signer.sentence}")
        statement_of(file)  # a file that is changed, or not yet here wholly, may be of any size: it is not copied
        with tempfile.TemporaryDirectory(dir=agreements_dir()) as private:
            copy = Path(private) / file.name  # what is checked is what is imported, whatever happens in the folder
            shutil.copyfile(file, copy)
            shutil.copyfile(signature_path(file), signature_path(copy))
            try:
                if not _of_agreement(parameter_values(copy, TRIAL_ID), state, snapshot):
                    raise BadInput(
                        f"It is not imported, since its runs are of no agreement with {found.signer.title}: a person "
                        f"can do so by `labconsole import {quote(str(file))} --signed`."
                    )
                imported = import_bundle(self._database, copy, signed_only=True).imported
            except StoreError:
                raise
            except UserError as error:
                raise BadInput(str(error).replace(str(copy), file.name)) from error
        numbers = ", ".join(map(str, imported))
        done = f"Run {numbers} of the other console is" if len(imported) == 1 else f"Runs {numbers} of it are"
        return f"{done} imported. {found.signer.sentence}"


def _acceptance(file: Path, data: bytes, snapshot: Snapshot) -> str:
    try:
        found = received(data, Acceptance, snapshot)
    except BadInput as error:
        return f"Neither a proposal nor an acceptance, and left alone. {error}"
    state, id = found.signer.state, found.document.id
    if id in agreed_ids() or (state is not None and state.local):
        return _OWN
    concluded(data)
    return (
        f"Acceptance of {id} by {found.signer.title} waits for a person: conclude it by `labconsole agreements "
        f"conclude {quote(str(file))}`."
    )


def _of_agreement(trials: frozenset[str], signing: object, snapshot: Snapshot) -> bool:
    """Whether all runs of a bundle are of one agreement with the State that has signed it."""
    [*ids] = trials
    return len(ids) == 1 and ids[0] in agreed_ids() and other_signer(ids[0], snapshot).state == signing


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of a file; None without it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
