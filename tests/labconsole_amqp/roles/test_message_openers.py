"""The openers of a receiver: the signer's certificate is read once, and one that has expired is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles import message_protection
from labconsole_amqp.roles.message_openers import MessageOpeners
from labconsole_amqp.roles.role_settings import RoleSettings
from tests.labconsole_amqp.lab_pki import LabCa


class Context:
    """As much of a role's context as the openers use."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def file(self, key: str) -> None:
        """No copies: files are read in place."""

    def event(self, name: str, message: str, *_: Any, **data: Any) -> None:
        self.sentences.append(message)


@pytest.mark.parametrize(("days", "reported"), [((-1, 30), 0), ((-30, -1), 1)], ids=("valid", "expired"))
def test_the_signer_is_read_once_and_reported_once_expired(
    days: tuple[int, int], reported: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = LabCa(tmp_path).issue("signer", days=days, of_rsa=True).certificate
    read: list[Path] = []
    load = message_protection.load_certificates
    monkeypatch.setattr(message_protection, "load_certificates", lambda path: read.append(path) or load(path))
    parameters = AmqpParameters.model_validate({"test": 3, "envelope": "cms"})
    settings = RoleSettings(parameters=parameters, role="receiver", peer_certificate=signer, sender_name="CN=signer")
    openers, context = MessageOpeners(b"payload"), Context()
    for _ in range(2):
        openers.use(settings, None, context)  # type: ignore[arg-type]
    assert read == [signer]
    assert [sentence for sentence in context.sentences if "expired on" in sentence] == context.sentences
    assert len(context.sentences) == reported
