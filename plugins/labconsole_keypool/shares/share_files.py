"""Shares as files: TOML for a drive, a sheet of words for a printer; readable by their owner alone (0600)."""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path

import tomli_w

from labconsole.security.private_files import read_private, write_private
from labconsole_keypool.shares import share_words
from labconsole_keypool.shares.secret_sharing import Share, ShareError

_FORMAT = "labconsole share 1"
_LARGEST = 10_000
"""Bytes that a file of a share has at most: it has under 1,000."""


class ShareForm(StrEnum):
    """The form of a written share."""

    FILES = "files"
    WORDS = "words"


def write_shares(directory: Path, shares: Sequence[Share], form: ShareForm) -> tuple[Path, ...]:
    """Write each share to its own file, all or none; returns their paths. No file is ever replaced.

    Raises:
        ShareError: one of the files is there already, or cannot be written.
    """
    suffix = "toml" if form is ShareForm.FILES else "txt"
    paths = tuple(directory / f"share-{share.index}-of-{share.total}.{suffix}" for share in shares)
    with ExitStack() as undo:
        try:
            for path in paths:
                path.touch(
                    mode=0o600, exist_ok=False
                )  # an existing file stays, even when another process writes at the same time
                undo.callback(path.unlink, missing_ok=True)
            for path, share in zip(paths, shares, strict=True):
                write_private(path, to_text(share, form).encode())
        except FileExistsError as error:
            raise ShareError(f"{error.filename} is there already: move it away, or name another directory.") from error
        except OSError as error:
            raise ShareError(f"The shares cannot be written to {directory} ({error.strerror}): check it.") from error
        undo.pop_all()
    return paths


def read_share(path: Path) -> Share:
    """The share in a file of `write_shares`. Raises ShareError, and UserError: unreadable, or open to others."""
    data = read_private(path, "share")
    try:
        return from_text(data[:_LARGEST].decode())
    except UnicodeDecodeError as error:
        raise ShareError(f"{path} is not a share: it is not text.") from error


def to_text(share: Share, form: ShareForm) -> str:
    """The text of the share's file. A secret."""
    if form is ShareForm.WORDS:
        return share_words.sheet(share)
    first, second = share.halves
    return tomli_w.dumps(
        {
            "format": _FORMAT,
            "set": share.set_id.hex(),
            "index": share.index,
            "threshold": share.threshold,
            "total": share.total,
            "key_check": share.key_check.hex(),
            "first_half": first.hex(),
            "second_half": second.hex(),
            "checksum": share.to_bytes()[-4:].hex(),
        }
    )


def from_text(text: str) -> Share:
    """The share that a file holds, or that was typed as words.

    Raises:
        ShareError: it is neither, is damaged, or a word is mistyped.
    """
    if "=" not in text:
        return share_words.from_words(text)
    try:
        table = tomllib.loads(text)
        if table.get("format") != _FORMAT:
            raise ShareError(f"This is not a share: its format is not {_FORMAT!r}.")
        share = Share(
            bytes.fromhex(table["set"]),
            table["index"],
            table["threshold"],
            table["total"],
            bytes.fromhex(table["key_check"]),
            (bytes.fromhex(table["first_half"]), bytes.fromhex(table["second_half"])),
        )
        return Share.from_bytes(share.to_bytes()[:-4] + bytes.fromhex(table["checksum"]))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, struct.error) as error:
        raise ShareError("This share is damaged: take another one of its set.") from error
