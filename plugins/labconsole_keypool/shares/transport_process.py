"""The process that `wrapper_transfer` starts: exports wrapper keys from one token, or loads them into it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from labconsole.security.secret_value import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.security.token.module_process import answer
from labconsole_keypool.shares.exported_wrappers import ExportedWrappers
from labconsole_keypool.shares.secret_sharing import Share
from labconsole_keypool.shares.transport import export_wrappers, held_by, load_wrappers


@dataclass(frozen=True)
class _Named:
    serial: str
    mechanism: WrapMechanism


@dataclass(frozen=True)
class _Stored:
    kind: KeyKind
    private: bytes


def _respond(question: dict[str, Any]) -> dict[str, Any]:
    configuration = TokenConfiguration.model_validate(question["configuration"])
    with open_token(question["name"], configuration, Secret(question["pin"])) as token:
        return _export(token, question) if question["do"] == "export" else _load(token, question)


def _export(token: Token, question: dict[str, Any]) -> dict[str, Any]:
    wrappers = [_Named(serial, WrapMechanism(mechanism)) for serial, mechanism in question["wrappers"]]
    carried, shares = export_wrappers(token, held_by(token, wrappers), question["shares"], question["threshold"])
    return {"carried": carried.as_data(), "shares": [share.to_bytes().hex() for share in shares]}


def _load(token: Token, question: dict[str, Any]) -> dict[str, Any]:
    carried = ExportedWrappers.from_data(question["carried"])
    shares = [Share.from_bytes(bytes.fromhex(share)) for share in question["shares"]]
    proof = {
        serial: _Stored(KeyKind(kind), bytes.fromhex(private)) for serial, (kind, private) in question["proof"].items()
    }
    return {"loaded": list(load_wrappers(token, carried, shares, proof))}


if __name__ == "__main__":
    sys.exit(answer(_respond))
