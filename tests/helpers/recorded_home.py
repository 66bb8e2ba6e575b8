"""The directory of a console of version 0.1.0, its keyring's entries and files, as that version wrote them."""

from __future__ import annotations

import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / "recorded" / "home-0.1.0.tar.xz"


def unpack_home(folder: Path) -> None:
    """Unpack the archive into `folder`."""
    with tarfile.open(ARCHIVE) as archive:
        # Not the argument `filter`: Python 3.11.2, which Debian 12 has, does not know it.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
