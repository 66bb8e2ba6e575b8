"""The files that two owners exchange: proposals, acceptances, and bundles of runs with their signature."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.clock import wall_now
from labconsole.model.metrics import Evaluation, Metric
from labconsole.processes import this_process
from labconsole.security.x509 import cms
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from tests.labconsole.agreements.two_owners import Owner, sender_profile


@dataclass(frozen=True)
class Files:
    """A proposal of State A, its SHA-256, and the file of an acceptance."""

    proposal: Path
    acceptance: Path
    sha256: str
    id: str


def propose(a: Owner, *more: str | Path, folder: Path, **parameters: Any) -> Files:
    """State A proposes that State B receives; its text is in `proposal.json`."""
    profile = sender_profile(folder / "sender.toml", numbered=True, **parameters)
    file = folder / "proposal.pem"
    said = json.loads(a.does("agreements", "propose", profile, file, "--identity", "a-signer", "--json", *more))
    content = cms.verify(file.read_bytes()).content
    (folder / "proposal.json").write_bytes(content)
    return Files(file, folder / "acceptance.pem", hashlib.sha256(content).hexdigest(), said["id"])


def accept(b: Owner, files: Files, *more: str) -> str:
    """State B accepts what it has read."""
    accepting = ("agreements", "accept", files.proposal, files.acceptance, "--identity", "b-signer")
    return b.does(*accepting, "--confirmed", files.sha256, *more)


def agree(a: Owner, b: Owner, folder: Path, *more: str, **parameters: object) -> Files:
    """Both owners agree that State A sends and State B receives."""
    files = propose(a, *more, folder=folder, **parameters)
    accept(b, files)
    a.does("agreements", "conclude", files.acceptance)
    return files


def profile_of(owner: Owner, id: str) -> dict[str, Any]:
    """The saved profile of an agreement."""
    return tomllib.loads((owner.folder / "profiles" / f"{id}.toml").read_text())


def add_run(database: Path, parameters: Mapping[str, Any] | None = None) -> None:
    """A finished run."""
    campaign = NewCampaign("demo", "Demo", "", 1, (NewScenario("Test 1", "swim", parameters or {}),), ((0, 1),))
    with Store.open(database) as store:
        [run_id] = store.add_campaign(campaign, this_process(), wall_now())
        store.replace_evaluation(run_id, Evaluation((Metric("lost", 1.0, ""),)))
        store.run_ended(run_id, RunStatus.FINISHED, "", wall_now())


def bundle_of(owner: Owner, file: Path, trial: str) -> Path:
    """A signed bundle with a run of this trial."""
    add_run(owner.folder / "runs.db", {"trial_id": trial})
    owner.does("bundle", "1", file, "--sign", f"{owner.folder.name}-signer")
    return file


def swap(file: Path, folder: Path, owner: Owner) -> None:
    """Put another bundle in the place of a signed one."""
    owner.does("bundle", "1", folder / "other.lcz", "--db", owner.folder / "runs.db")
    file.write_bytes((folder / "other.lcz").read_bytes() + b" ")
