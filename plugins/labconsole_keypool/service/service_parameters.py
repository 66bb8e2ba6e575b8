"""The parameters of the live signing service on PKCS#11 tokens."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Origin
from labconsole.operations.configured_tokens import token_name
from labconsole.profiles.timing_profile import timing_names
from labconsole.security.token.configuration import LAB
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import LABELS, ArrivalPattern, CaKey, GenerateWhen, RequestContent, TokenUse
from labconsole_keypool.service.keypool_parameters import (
    KEYS,
    POOL,
    REQUESTS,
    SERVICE,
    Arrivals,
    Batch,
    KeypoolParameters,
    KeysAtStart,
    LowWater,
    Rate,
    Requests,
    key_count,
    left_at_refill,
)

_TOKENS = "Tokens"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def _processes(title: str, description: str, least: int, **shown_if: str) -> Any:
    return parameter(title, description, ge=least, le=50, group=_TOKENS, unit="processes", shown_if=shown_if)


class ServiceParameters(KeypoolParameters):
    """One scenario of the live signing service: real keys in real tokens, in real time."""

    arrivals: Arrivals = ArrivalPattern.CONSTANT
    requests: Requests = 100
    rate: Rate = 10.0
    timing: str = parameter(
        "Emulate a device",
        "Let every operation take as long as this timing profile says; empty: as fast as the token is",
        default="",
        group=SERVICE,
        choices=lambda: ["", *timing_names()],
    )
    emulation_speed: float = parameter(
        "Speed of the emulation",
        "How many times faster than the device all goes, arrivals too; figures are in its time",
        default=1.0,
        ge=1,
        le=100,
        group=SERVICE,
        shown_if={"timing": timing_names},
    )
    keys_at_start: KeysAtStart = 10
    low_water: LowWater = 20
    batch: Batch = 10

    key_kind: KeyKind = parameter(
        "Kind of keys",
        "RSA keys are slow to generate: that is what a pool is for. P-256 keys are there at once",
        default=KeyKind.RSA_2048,
        group=KEYS,
        labels=LABELS["key_kind"],
    )
    pool_at_start: Annotated[
        int, key_count("In the pool", "Wrapped key pairs in the key store at the start; missing ones are made before")
    ] = 40
    generate: GenerateWhen = parameter(
        "Generate keys",
        "When the generators make keys for the pool",
        default=GenerateWhen.IDLE,
        group=KEYS,
        labels=LABELS["generate"],
        shown_if=POOL,
    )
    pool_limit: Annotated[
        int, key_count("Pool up to", "Generators stop when the key store has so many new keys", least=0)
    ] = 100_000
    token_capacity: Annotated[
        int,
        key_count("Token holds", "Key pairs that fit into the token's RAM; the source's device holds 12,033", least=1),
    ] = 12_033
    key_store: str = parameter(
        "Key store",
        "Name of the database of wrapped keys; it is created when it is not there",
        default="lab",
        group=KEYS,
        shown_if=POOL,
    )
    keys_per_wrapper: Annotated[
        int, key_count("Keys per wrapper", "Key pairs that one wrapper key wraps; then the next one is made", least=1)
    ] = 10_000

    content: RequestContent = parameter(
        "Content",
        "What requests ask to be signed",
        default=RequestContent.DIGESTS,
        group=REQUESTS,
        labels=LABELS["content"],
    )
    request_folder: str = parameter(
        "Folder of requests",
        (
            "Each file *.xml in it is a SignRequest; its answer is written next to it (*.response.xml). "
            "As many requests arrive as have no answer yet"
        ),
        default="",
        group=REQUESTS,
        kind="folder",
        shown_if={"content": "folder"},
    )

    ca: CaKey = parameter(
        "Key of the CA",
        "Where the key that signs each request's certificate is stored",
        default=CaKey.LAB,
        group=SERVICE,
        labels=LABELS["ca"],
    )

    token: Annotated[str, token_name(group=_TOKENS)] = LAB
    further_tokens: str = parameter(
        "Further tokens",
        ("Names of more tokens, with commas between them; `lab-2`, `lab-3` ... are further ones of the console"),
        default="",
        group=_TOKENS,
    )
    token_use: TokenUse = parameter(
        "With several tokens",
        "What each of them does",
        default=TokenUse.BOTH,
        group=_TOKENS,
        labels=LABELS["token_use"],
    )
    signers: Annotated[
        int, _processes("Signers", "Processes that sign; they share the signing threads, and the tokens in turn", 1)
    ] = 1
    generators: Annotated[
        int, _processes("Generators", "Processes that generate keys; they share the tokens in turn", 1, **POOL)
    ] = 1

    @field_validator("request_folder")
    @classmethod
    def _named_for_folder(cls, folder: str, info: ValidationInfo) -> str:
        if not folder and info.data.get("content") is RequestContent.FOLDER:
            raise ValueError("requests from a folder need its path: set `request_folder`, or choose another `content`")
        return folder

    @field_validator("token_capacity")
    @classmethod
    def _holds_the_keys(cls, capacity: int, info: ValidationInfo) -> int:
        for keys, name in (
            (info.data.get("keys_at_start", 0), "`keys_at_start` is"),
            (left_at_refill(info) + info.data.get("batch", 0), "`low_water` and `batch` together are"),
        ):
            if keys > capacity:
                raise ValueError(f"{name} {keys:,} key pairs, more than this token holds: enter fewer")
        return capacity

    @field_validator("key_store")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if _NAME.fullmatch(name) is None:
            raise ValueError("the name of a key store has letters, digits, - and _, and begins with a letter or digit")
        return name

    @field_validator("further_tokens")
    @classmethod
    def _are_names(cls, further: str, info: ValidationInfo) -> str:
        names = [str(info.data.get("token", LAB)), *_names(further)]
        wrong = next((name for name in names if _NAME.fullmatch(name) is None), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is not a name of a token: write names with commas between them")
        if len(set(names)) < len(names):
            raise ValueError("each token is named once, the first one under `token`")
        return further

    @field_validator("token_use")
    @classmethod
    def _needs_two(cls, use: TokenUse, info: ValidationInfo) -> TokenUse:
        if use is TokenUse.SPLIT and not _names(info.data.get("further_tokens", "")):
            raise ValueError("one token to generate and another one to sign are two: name one in `further_tokens`")
        return use

    @field_validator("signers")
    @classmethod
    def _have_threads(cls, signers: int, info: ValidationInfo) -> int:
        if signers > info.data.get("threads", signers):
            raise ValueError("each signer needs a thread at least: raise `threads`, or have fewer signers")
        return signers

    @property
    def origin(self) -> Origin:
        return Origin.EMULATED if self.timing else Origin.MEASURED

    @property
    def speed(self) -> float:
        return self.emulation_speed if self.timing else 1.0

    @property
    def tokens(self) -> tuple[str, ...]:
        """Names of all tokens, in order."""
        return (self.token, *_names(self.further_tokens))

    @property
    def generating_tokens(self) -> tuple[str, ...]:
        """Names of the tokens that generate keys."""
        return self.tokens[:1] if self.token_use is TokenUse.SPLIT else self.tokens

    @property
    def signing_tokens(self) -> tuple[str, ...]:
        """Names of the tokens that sign."""
        return self.tokens[1:] if self.token_use is TokenUse.SPLIT else self.tokens


def _names(comma_separated: str) -> list[str]:
    return [name.strip() for name in comma_separated.split(",") if name.strip()]
