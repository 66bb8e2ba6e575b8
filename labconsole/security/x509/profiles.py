"""Certificate profiles: what a certificate is for decides its extensions (RFC 5280, 4.2)."""

from __future__ import annotations

from enum import StrEnum


class CertificateProfile(StrEnum):
    """What a certificate is for."""

    ROOT = "root"
    INTERMEDIATE = "intermediate"
    TLS_SERVER = "tls-server"
    TLS_CLIENT = "tls-client"
    MESSAGE_SIGNING = "message-signing"
    MESSAGE_ENCRYPTION = "message-encryption"
    STATE = "state"
    """TLS client that signs messages and is encrypted to, with one key: the lab's States in AMQP trials."""
    OCSP_RESPONDER = "ocsp-responder"
