"""A SoftHSM token `office` in tests, whose keys sign messages for the State Alpha."""

from __future__ import annotations

import shutil
from pathlib import Path

from labconsole.security.pki.records import Origin, TokenKey
from labconsole.security.secrets import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.remote_private_key import make_token_key
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import issue
from tests.labconsole.security.pki.pki_lab import VALID, named
from tests.labconsole_amqp.states import States

OFFICE = "office"
PIN = Secret("1234-user")
_CONFIGURATION = "configuration.json"


def create_office(folder: Path) -> None:
    """Create the token in a folder, which tests copy: a process of its own initialises it."""
    configuration = make_softhsm_token(folder, OFFICE, PIN, Secret("5678-officer"))
    (folder / _CONFIGURATION).write_text(configuration.model_dump_json())


def copy_office(template: Path, folder: Path) -> None:
    """Have a copy of the token, configured under its name in the test's home."""
    shutil.copytree(template, folder)
    configuration = TokenConfiguration.model_validate_json((folder / _CONFIGURATION).read_text())
    environment = softhsm.environment(softhsm.write_configuration(folder))
    save_configuration(OFFICE, configuration.model_copy(update={"environment": environment}))


def in_token(states: States, name: str, kind: KeyKind, label: str = "") -> None:
    """An identity of Alpha whose key is in the token `office`; with `label` the database names that key instead."""
    public_key = make_token_key(OFFICE, name, kind, PIN)
    profile = CertificateProfile.MESSAGE_SIGNING
    certificate = issue(states.alpha.issuer, public_key, named(name), (), profile, VALID)
    with states.store.change() as change:
        change.add_key(states.alpha.state.id, name, public_key, TokenKey(OFFICE, label or name))
        change.name_identity(name, change.add_certificate(certificate, origin=Origin.ISSUED, profile=profile).id)
