"""The operations of M of N control: export wrapper keys of a token with shares, and load them into another.

The console's process imports this for forms and questions: modules that load a PKCS#11 library are imported by `run`
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole.security.token.configuration import LAB
from labconsole.security.token.errors import TokenError
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.choices import LABELS
from labconsole_keypool.device.pool_operations import StoreName, TokenName
from labconsole_keypool.shares.exported_wrappers import ExportedWrappers, read_wrapper_file, write_wrapper_file
from labconsole_keypool.shares.secret_sharing import MOST_SHARES, Share, ShareError, collection_progress, combine_shares
from labconsole_keypool.shares.share_files import ShareForm, from_text, read_share, to_text, write_shares
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import ClaimedKey, WrapperKey
from labconsole_keypool.store.key_store import store_path

if TYPE_CHECKING:
    from labconsole.security.token.cryptoki.opening import Token

SHARE_KEY = "share-{number}"
"""Key of the secret with a share's text, from 1 on."""

_WRAPPER_FILE = "wrappers.json"


class ExportParameters(Parameters):
    """The wrapper keys to export, their token, and the number of shares."""

    token: TokenName = LAB
    key_store: StoreName = "lab"
    shares: int = parameter("Shares", "Into how many the transport key is split", default=3, ge=2, le=MOST_SHARES)
    needed: int = parameter("Needed", "How many of them load the wrapper keys again", default=2, ge=2, le=MOST_SHARES)
    form: ShareForm = parameter(
        "Form",
        ("Words are shown once, to be written down; files stay next to the wrapper keys until they are moved apart"),
        default=ShareForm.WORDS,
        labels=LABELS["form"],
    )
    directory: Path = parameter(
        "Directory",
        (
            f"Where {_WRAPPER_FILE} goes (and files of shares); created if it is not there. Files that are"
            " there stay, and end the export"
        ),
        default=Path("~/wrapper-keys"),
    )


class ExportShares(Operation[ExportParameters]):
    """Wraps a key store's wrapper keys by a transport key, and splits that into shares."""

    name: ClassVar[str] = "keypool.export-shares"
    title: ClassVar[str] = "Export wrapper keys as shares"
    description: ClassVar[str] = (
        "Wraps the key store's wrapper keys by a new transport key, writes them to a file, and splits the transport key"
        " into shares. So many of them as are needed load the wrapper keys into another token; fewer reveal nothing."
    )
    parameters: ClassVar[type[Parameters]] = ExportParameters
    isolated: ClassVar[bool] = True

    def secrets(self, parameters: ExportParameters) -> tuple[SecretRequest, ...]:
        return (find_configuration(parameters.token).pin_request(parameters.token),)

    def run(self, parameters: ExportParameters, context: OperationContext) -> Result:
        from labconsole_keypool.shares.transport import export_wrappers, held_by

        wrappers = _wrappers(parameters.key_store)
        with _opened(parameters.token, context) as token:
            held = held_by(token, wrappers)
            if not held:
                raise TokenError(
                    f"The token {parameters.token} holds no wrapper key of the key store {parameters.key_store}: take"
                    " the token that filled it, or fill it first."
                )
            carried, shares = export_wrappers(token, held, parameters.shares, parameters.needed)
        file = _write_export(parameters, carried, shares, context)
        others = len(wrappers) - len(held)
        left = f" {_keys(others)} {'is' if others == 1 else 'are'} in other tokens." if others else ""
        text = (
            f"{_keys(len(held))} of the token {parameters.token} went to {file}; {parameters.needed} of"
            f" {parameters.shares} shares load them.{left}"
        )
        counts = {"wrapper_keys": len(held), "shares": parameters.shares, "needed": parameters.needed}
        return Result((text,), {"token": parameters.token, "file": str(file), **counts})


class LoadParameters(Parameters):
    """The wrapper keys to load, and their token."""

    token: TokenName = "lab-2"
    file: Path = parameter(
        "Wrapper keys",
        f"The file {_WRAPPER_FILE} that was made with the shares",
        default=Path("~/wrapper-keys") / _WRAPPER_FILE,
    )
    share_files: tuple[Path, ...] = parameter(
        "Files of shares", "Files with shares; the others are asked for", default=()
    )
    key_store: StoreName = "lab"


class LoadShares(Operation[LoadParameters]):
    """Loads carried wrapper keys into a token with enough shares."""

    name: ClassVar[str] = "keypool.load-shares"
    title: ClassVar[str] = "Load wrapper keys from shares"
    description: ClassVar[str] = (
        "Restores the transport key from shares, loads the wrapper keys of the file into the token, and sees that each"
        " unwraps a key of the key store. All are loaded or none."
    )
    parameters: ClassVar[type[Parameters]] = LoadParameters
    isolated: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("tokens",)

    def secrets(self, parameters: LoadParameters) -> tuple[SecretRequest, ...]:
        needed = read_wrapper_file(parameters.file.expanduser()).threshold
        asked = range(1, needed - len(parameters.share_files) + 1)
        return (
            find_configuration(parameters.token).pin_request(parameters.token),
            *(
                SecretRequest(
                    SHARE_KEY.format(number=number), f"share {number} of {len(asked)} (its words)", SecretSource()
                )
                for number in asked
            ),
        )

    def run(self, parameters: LoadParameters, context: OperationContext) -> Result:
        from labconsole_keypool.shares.transport import load_wrappers

        carried = read_wrapper_file(parameters.file.expanduser())
        shares = [read_share(path.expanduser()) for path in parameters.share_files] + _entered_shares(context)
        context.say(f"{collection_progress(shares).sentence}.")
        combine_shares(shares)  # before the token is opened
        proof = _proof(parameters.key_store, carried)
        with _opened(parameters.token, context) as token:
            new = load_wrappers(token, carried, shares, proof)
        there = len(carried.wrappers) - len(new)
        known = f" {_keys(there)} {'was' if there == 1 else 'were'} there already." if there else ""
        tried = _tried(len(proof), len(carried.wrappers))
        text = f"{_keys(len(new))} loaded into the token {parameters.token}.{known}{tried}"
        return Result((text,), {"token": parameters.token, "loaded": len(new), "already_there": there})


def _opened(name: str, context: OperationContext) -> Token:
    """The token, open in this process. Raises TokenError, UserError."""
    from labconsole.security.token.cryptoki.opening import open_token

    configuration = find_configuration(name)
    return open_token(name, configuration, context.secret(configuration.pin_request(name).key))


def _wrappers(key_store: str) -> list[WrapperKey]:
    """The key store's wrapper keys that have wrapped a key. Raises StoreError: there is no such key store."""
    with KeyReader(store_path(key_store)) as reader:
        return [wrapper for wrapper in reader.wrappers() if wrapper.pairs]


def _write_export(
    parameters: ExportParameters, carried: ExportedWrappers, shares: Sequence[Share], context: OperationContext
) -> Path:
    """Write the file of wrapper keys and deliver the shares, all or nothing; returns the file."""
    directory = parameters.directory.expanduser()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise TokenError(f"{directory} cannot be created ({error.strerror}): name another directory.") from error
    file = directory / _WRAPPER_FILE
    write_wrapper_file(file, carried)
    with ExitStack() as undo:
        undo.callback(file.unlink, missing_ok=True)
        if parameters.form is ShareForm.FILES:
            write_shares(directory, shares, parameters.form)
        undo.pop_all()
    if parameters.form is ShareForm.WORDS:
        for share in shares:
            context.hand_over(f"Share {share.index} of {share.total}", Secret(to_text(share, parameters.form)))
    return file


def _entered_shares(context: OperationContext) -> list[Share]:
    """The shares that the operator typed or chose in the dialog. Raises ShareError."""
    shares: list[Share] = []
    for number in range(1, MOST_SHARES + 1):
        if (text := context.secret(SHARE_KEY.format(number=number))) is None:
            continue  # left empty
        try:
            shares.append(from_text(text.reveal()))
        except ShareError as error:
            raise ShareError(f"Entry {number}: {error}") from error
    return shares


def _proof(key_store: str, carried: ExportedWrappers) -> dict[str, ClaimedKey]:
    """A key of the store for each wrapper key that has one, to be tried. Raises StoreError."""
    path = store_path(key_store)
    if not path.exists():
        return {}
    with KeyReader(path) as reader:
        samples = {one.serial: reader.sample_of(one.serial) for one in carried.wrappers}
    return {serial: sample for serial, sample in samples.items() if sample is not None}


def _tried(proven: int, carried: int) -> str:
    if proven == carried:
        return " Each unwraps a key of the key store."
    return f" {proven} of {carried} were tried with a key of the key store; it has none for the others."


def _keys(number: int) -> str:
    return f"{number} wrapper key{'' if number == 1 else 's'}"
