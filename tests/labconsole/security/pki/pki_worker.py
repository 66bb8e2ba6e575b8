"""Changes a certificate database until it is killed: says each certificate that is on disk."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from labconsole.security.pki.records import TrustKind
from labconsole.security.pki.store import PkiStore
from tests.labconsole.security.pki.pki_lab import OwnState


def change_until_killed(directory: Path) -> None:
    """Add end certificates with keys, trust in them and identities."""
    with PkiStore.open(directory) as store:
        own = OwnState(store, f"State {os.getpid()}")
        for number in itertools.count():
            record = own.issued(f"end-{number}")
            with store.change() as change:
                change.trust(own.state.id, record.id, TrustKind.PIN, "by the test")
                change.name_identity(f"{own.state.name} end-{number}", record.id)
            print(record.sha256, flush=True)


if __name__ == "__main__":
    change_until_killed(Path(sys.argv[1]))
