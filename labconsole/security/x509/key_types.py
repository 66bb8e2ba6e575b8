"""The types of key pairs that certificates are made for, and how one signs with them."""

from __future__ import annotations

from enum import StrEnum


class KeyType(StrEnum):
    """Types of key pairs; ML-DSA is FIPS 204, in certificates RFC 9881."""

    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"
    P_256 = "p-256"
    P_384 = "p-384"
    ED25519 = "ed25519"
    ML_DSA_44 = "ml-dsa-44"
    ML_DSA_65 = "ml-dsa-65"
    ML_DSA_87 = "ml-dsa-87"
