"""The choices of the key pool's parameters, and their labels."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class KeySource(StrEnum):
    """Where the key pair of a request comes from: made ahead of time, or generated for it."""

    POOL = "pool"
    GENERATED = "generated"


class KeyOrigin(IntEnum):
    """Where a request's key pair came from, by the letters of Appendix B; `NONE`: the request was dropped."""

    NONE = 0
    TOKEN_RAM = 1
    """A: it was in the token's RAM at T0."""
    TOKEN_STORE = 2
    """B: it was in the token's store at T0."""
    POOL = 3
    """C: it was loaded from the pool outside and unwrapped."""
    GENERATED = 4
    """D: it was generated for this request."""


class ArrivalPattern(StrEnum):
    """When signing requests arrive (`labconsole_keypool.service.arrivals` defines each)."""

    TABLE_4_1 = "table-4-1"
    CONSTANT = "constant"
    POISSON = "poisson"
    CSV = "csv"
    BUSINESS_DAY = "business-day"


class Refill(StrEnum):
    """When wrapped keys are loaded into the token.

    When empty: a batch when the last key was taken, usable as a whole (Fig. 4-3). Parallel: during the signing, as soon
    as fewer keys than the low-water mark are left, each usable once it is unwrapped (section 3.2).
    """

    WHEN_EMPTY = "when-empty"
    PARALLEL = "parallel"


class SignTime(StrEnum):
    """A signing time of a timing profile: of a site (2.10.4), of section 4.6, or while keys are unwrapped (2.10.5)."""

    MALMO = "malmo"
    STOCKHOLM = "stockholm"
    STOCKHOLM_BASE_RATE = "stockholm-base-rate"
    WHILE_UNWRAPPING = "while-unwrapping"


class GenerateWhen(StrEnum):
    """When the generators of the live service make keys (section 3.2: in idle time, while no request waits)."""

    IDLE = "idle"
    BEFORE = "before"
    NEVER = "never"


class RequestContent(StrEnum):
    """The content of live requests: random digests, or the tasks of a SignRequest (Appendix A), an invented one or one
    of a folder of files."""

    DIGESTS = "digests"
    SIGN_REQUESTS = "sign-requests"
    FOLDER = "folder"


class CaKey(StrEnum):
    """Where the key of the CA is stored: in the signer's memory, as in the source, or in its token."""

    LAB = "lab"
    TOKEN = "token"


class TokenUse(StrEnum):
    """The use of several tokens (section 3.4): each for everything, or the first generates and the others sign."""

    BOTH = "both"
    SPLIT = "split"


LABELS: dict[str, dict[str, str]] = {
    "keys": {"pool": "From the pool: made ahead of time", "generated": "Without a pool: generated for each request"},
    "arrivals": {
        "table-4-1": "Table 4-1: 1 to 100 per second",
        "constant": "Constant rate",
        "poisson": "Poisson: random around a rate",
        "business-day": "Business day with a peak of two hours",
        "csv": "CSV file of counts and delays",
    },
    "sign": {
        "malmo": "Malmö (Table 2-9)",
        "stockholm": "Stockholm (Table 2-8)",
        "stockholm-base-rate": "Stockholm, base rate tests (section 4.6)",
        "while-unwrapping": "While keys are unwrapped (Table 2-11)",
    },
    "key_generation": {"shortest": "Shortest of the profile", "longest": "Longest of the profile"},
    "refill": {"parallel": "Parallel to signing", "when-empty": "When the token is empty"},
    "key_kind": {
        "rsa-2048": "RSA-2048",
        "rsa-3072": "RSA-3072",
        "rsa-4096": "RSA-4096",
        "p-256": "P-256: a pool gains nothing",
    },
    "generate": {
        "idle": "Before the run, and while no request waits",
        "before": "Before the run only",
        "never": "Never: what is in the pool must do",
    },
    "token_use": {"both": "Every token does both", "split": "The first generates, the others sign"},
    "content": {
        "digests": "Random digests",
        "sign-requests": "SignRequests (OASIS DSS, Appendix A)",
        "folder": "SignRequests from a folder of files",
    },
    "form": {"words": "Words, shown once", "files": "Files"},
    "ca": {"lab": "In the signer's memory, as in the source", "token": "In the token"},
}
