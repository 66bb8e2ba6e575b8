"""Operations on the key pool: fill it, purge it.

The console's process imports this for forms and questions: modules that load a PKCS#11 library are imported by `run`
alone, in the operation's own process.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from labconsole.analysis.number_format import format_duration
from labconsole.clock import now_ns
from labconsole.model.operation import Confirmation, Operation, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.operations.configured_tokens import token_name
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.configuration import LAB
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.choices import LABELS
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import Counts
from labconsole_keypool.store.key_store import KeyStore, store_path

TokenName = Annotated[str, token_name()]
StoreName = Annotated[
    str,
    parameter("Key store", "Name of the database of wrapped keys", pattern="[A-Za-z0-9][A-Za-z0-9_-]*"),
]


class FillParameters(Parameters):
    """The target size of the pool."""

    keys: int = parameter(
        "Keys in the pool",
        "Wrapped key pairs that wait in the key store at the end; those there are count",
        default=100,
        ge=1,
        le=1_000_000,
        unit="keys",
    )
    key_kind: KeyKind = parameter("Kind of keys", "What is made", default=KeyKind.RSA_2048, labels=LABELS["key_kind"])
    token: TokenName = LAB
    key_store: StoreName = "lab"
    keys_per_wrapper: int = parameter(
        "Keys per wrapper",
        "Key pairs that one wrapper key wraps; then the next one is made",
        default=10_000,
        ge=1,
        le=1_000_000,
        unit="keys",
    )


class FillPool(Operation[FillParameters]):
    """Generates key pairs in a token and stores them wrapped until the pool holds so many."""

    name: ClassVar[str] = "keypool.fill"
    title: ClassVar[str] = "Fill the pool"
    description: ClassVar[str] = (
        "Generates key pairs in the token, wraps the private keys, and stores them until the pool holds so many. "
        "If it is cancelled, the generated key pairs stay."
    )
    parameters: ClassVar[type[Parameters]] = FillParameters
    isolated: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("keys",)

    def secrets(self, parameters: FillParameters) -> tuple[SecretRequest, ...]:
        return (find_configuration(parameters.token).pin_request(parameters.token),)

    def run(self, parameters: FillParameters, context: OperationContext) -> Result:
        from labconsole.security.token.cryptoki.opening import open_token
        from labconsole_keypool.device.emulation import Device
        from labconsole_keypool.device.generator import Generator

        kind, begun_ns = parameters.key_kind, now_ns()
        configuration = find_configuration(parameters.token)
        request = configuration.pin_request(parameters.token)
        pin = context.secret(request.key) or request.resolve()
        with (
            open_token(parameters.token, configuration, pin) as token,
            KeyStore.open(store_path(parameters.key_store)) as store,
        ):
            missing = parameters.keys - store.counts(kind).new
            if missing <= 0:
                held = parameters.keys - missing
                return _filled(
                    parameters, f"The pool {parameters.key_store} holds {_pairs(held)}: none was made.", held
                )
            context.say(f"Generating {missing:,} key pairs in the token {parameters.token} ...")
            context.progress(0, missing)
            generator = Generator(token, store, Device(), kind, parameters.keys_per_wrapper)
            made = generator.make(
                missing, lambda: context.stop_requested, lambda stored: context.progress(stored, missing)
            )
            held = store.counts(kind).new
        took = format_duration((now_ns() - begun_ns) / 1e9)
        text = f"The pool {parameters.key_store} holds {_pairs(held)}; made in {took}: {made:,}."
        return _filled(parameters, text, held, made)


class PurgeParameters(Parameters):
    """The pool to empty."""

    key_store: StoreName = "lab"
    token: TokenName = LAB


class PurgePool(Operation[PurgeParameters]):
    """Makes every key that waits in a pool invalid, and erases its wrapped private key."""

    name: ClassVar[str] = "keypool.purge"
    title: ClassVar[str] = "Purge the pool"
    description: ClassVar[str] = (
        "Every key that waits in the key store becomes invalid, and its wrapped private key is erased. What was signed "
        "stays on record."
    )
    parameters: ClassVar[type[Parameters]] = PurgeParameters
    writes: ClassVar[tuple[str, ...]] = ("keys",)

    def confirmation(self, parameters: PurgeParameters) -> Confirmation:
        with KeyReader(store_path(parameters.key_store)) as reader:
            waiting = reader.counts().new
        return Confirmation(
            find_configuration(parameters.token).label,
            f"{_pairs(waiting)} in the key store {parameters.key_store} will be lost.",
        )

    def run(self, parameters: PurgeParameters, context: OperationContext) -> Result:
        with KeyStore.open(store_path(parameters.key_store)) as store:
            purged = store.purge()
        text = f"{_pairs(purged)} of the key store {parameters.key_store} became invalid; it holds no new ones."
        return Result((text,), {"key_store": parameters.key_store, "purged": purged})


def counts_of(key_store: str) -> Counts:
    """Number of keys of each status in the key store; zeros if it does not exist yet. Raises StoreError."""
    path = store_path(key_store)
    if not path.exists():
        return Counts(0, 0, 0, 0)
    with KeyReader(path) as reader:
        return reader.counts()


def _filled(parameters: FillParameters, text: str, held: int, made: int = 0) -> Result:
    data = {"key_store": parameters.key_store, "token": parameters.token, "held": held, "made": made}
    return Result((text,), data)


def _pairs(number: int) -> str:
    return f"{number:,} key pair{'' if number == 1 else 's'}"
