"""The live signing service on kryoptic: its keys are wrapped with 0x210B (RFC 5649), which SoftHSM2 does not have."""

from __future__ import annotations

from pathlib import Path

from labconsole.security.secrets import Secret
from labconsole.security.token.mechanisms import WrapMechanism
from labconsole.security.token.named_tokens import save_configuration
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_store import store_path
from tests.helpers.kryoptic_token import make_kryoptic_token
from tests.labconsole_keypool.live_lab import LiveLab

PIN = Secret("1234-user")


def test_a_live_run_signs_with_keys_that_kryoptic_wrapped_with_0x210b(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    save_configuration("kryo", make_kryoptic_token(tmp_path / "token", "kryo", PIN, Secret("5678-officer")))
    outcome = LiveLab(tmp_path / "run", secrets={"pin kryo": PIN}).run(
        token="kryo",
        key_kind="p-256",
        generate="before",
        arrivals="constant",
        rate=60.0,
        requests=60,
        pool_at_start=60,
        keys_at_start=20,
        low_water=10,
    )
    assert outcome.failure is None
    assert outcome.figures["processed"] == 60 and outcome.sources["pool"] == 40
    assert outcome.verdicts["no key used twice"] == outcome.verdicts["store linked"] == "pass"
    with KeyReader(store_path("lab")) as store:
        assert {wrapper.mechanism for wrapper in store.wrappers()} == {WrapMechanism.KEY_WRAP_KWP}
