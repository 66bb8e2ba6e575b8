"""Bundles signed by the console that made the runs: the statement next to a bundle, its check, and what is kept of it.

`FILE.p7s` is the statement of a bundle FILE: CMS SignedData with the SHA-256 of the bundle, and uuid and digest of each
run in it. A console that imports the bundle keeps the statement, so that whose a run is can be checked at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from labconsole.agreements.agreement_files import keep_results, kept_results
from labconsole.agreements.documents import Received, Results, SignedRun, received, signed_pem
from labconsole.clock import wall_now
from labconsole.errors import BadInput, UserError
from labconsole.output.bundle_format import signature_path
from labconsole.output.bundle_writer import Progress, write_bundle
from labconsole.output.export_file import complete_file
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.signing_identities import Signer, SigningIdentity
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Prompt
from labconsole.security.x509.parsing import read_file
from labconsole.store.errors import MissingDatabaseError
from labconsole.store.reader import Reader


def write_signed_bundle(
    reader: Reader,
    run_ids: Sequence[int],
    bundle: Path,
    identity: SigningIdentity,
    prompt: Prompt | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a bundle with these runs, then its statement, whose path is returned. Raises UserError: one is not sealed.

    `progress` as in `write_bundle`.
    """
    write_bundle(reader, run_ids, bundle, progress, signed=True)
    runs = []
    for run_id in dict.fromkeys(run_ids):
        evidence = reader.evidence(run_id)
        if evidence is None:
            raise UserError(f"Run {run_id} is not sealed, so that a signature says nothing about it: leave it out.")
        runs.append(SignedRun(uuid=reader.run(run_id).row.uuid, digest=evidence.digest))
    results = Results(
        written=wall_now().replace(microsecond=0),
        state=identity.state.name,
        bundle_sha256=_sha256(bundle),
        runs=runs,
    )
    signed = signed_pem(results, identity, prompt)
    path = signature_path(bundle)
    with complete_file(path) as partial:
        partial.write_bytes(signed)
    return path


def statement_of(bundle: Path) -> Received[Results]:
    """The statement next to a bundle, its signer judged now.

    Raises BadInput: bundle or statement was changed after it was signed, or the statement is another bundle's.
    """
    found = received(read_file(signature_path(bundle), "signature"), Results, _snapshot())
    if found.document.bundle_sha256 != _sha256(bundle):
        raise BadInput(f"It is not the bundle that {found.signer.title} signed, but was changed: ask for it again.")
    return found


def keep_statement(bundle: Path, uuids: Iterable[str]) -> None:
    """Keep the statement of a bundle for these runs, which were imported from it just now. Raises UserError.

    Those that were there before are left out: their statement, if any, is that of the bundle in which they came.
    """
    signed = read_file(signature_path(bundle), "signature")
    for uuid in uuids:
        keep_results(uuid, signed)


def signer_of_run(uuid: str, digest: str) -> Signer | None:
    """Who signed the bundle in which a run with this digest came, judged now; None where it was not signed.

    Raises UserError: the run is not as it was signed.
    """
    signed = kept_results(uuid)
    if signed is None:
        return None
    found = received(signed, Results, _snapshot())
    if SignedRun(uuid=uuid, digest=digest) not in found.document.runs:
        raise BadInput(f"Run {uuid} is not as {found.signer.title} signed it: import its bundle into a new database.")
    return found.signer


def _snapshot() -> Snapshot:
    """The certificate database; an empty one where there is none yet, by which no signer is trusted."""
    try:
        with PkiReader.open() as reader:
            return reader.snapshot()
    except MissingDatabaseError:
        return Snapshot()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"It cannot be read ({error.strerror or error}): check the file.") from error
