"""Choices as a form shows them, by the parameter's name; profiles and command line keep the values."""

from __future__ import annotations

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
