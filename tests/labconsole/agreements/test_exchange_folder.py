"""The exchange folder with bad luck, and with an owner who means harm: what an agent reads, copies and writes there."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labconsole.agreements import agreement_service, exchange_folder
from labconsole.agreements.agreement_service import AgreementService, agreed_secrets
from labconsole.agreements.exchange_folder import ExchangeFolder
from labconsole.clock import wall_now
from labconsole.engine.queue import RunQueue
from labconsole.model.plugin import Plugins
from labconsole.output.bundle_format import signature_path
from labconsole.paths import HOME_VARIABLE
from labconsole.processes import this_process
from labconsole.security.pki.reader import PkiReader
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunStatus
from labconsole.store.run_store import Store
from tests.labconsole.agreements.agreement_files import agree, bundle_of, swap
from tests.labconsole.agreements.two_owners import Owner, Watched, statuses

News = Callable[[], list[str]]


@pytest.fixture
def news(owners: tuple[Owner, Owner], shared: Path, monkeypatch: pytest.MonkeyPatch) -> News:
    """What State B's agent finds in the folder that is new."""
    _, b = owners
    monkeypatch.setenv(HOME_VARIABLE, str(b.folder))
    monkeypatch.setattr(exchange_folder, "_AGAIN_S", 0.0)
    Store.open(b.folder / "runs.db").close()
    folder = ExchangeFolder(shared, b.folder / "runs.db", Plugins.discover())

    def found() -> list[str]:
        with PkiReader.open(b.pki) as reader:
            return [sentence for _, sentence in folder.news(reader.snapshot())]

    return found


def test_a_folder_that_is_gone_for_a_time_is_read_again(shared: Path, news: News) -> None:
    shared.rename(shared.with_name("away"))
    assert news() == [
        f"{shared} cannot be read (No such file or directory): check it. What arrives there waits until it can."
    ]
    shared.with_name("away").rename(shared)
    (shared / "notes.pem").write_text("text")
    assert [one.startswith("notes.pem: Neither a proposal") for one in news()] == [True]


def test_a_bundle_that_the_disk_has_no_room_for_is_imported_later(
    owners: tuple[Owner, Owner], tmp_path: Path, shared: Path, news: News, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = owners
    bundle_of(a, shared / "results.lcz", agree(a, b, tmp_path).id)

    def full(*_files: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", full)
        [said] = [one for one in news() if "results" in one]
        assert said.startswith("results.lcz: It cannot be copied (No space left on device). It is tried again")
    assert ["is imported" in one for one in news() if "results" in one] == [True]
    assert statuses(b) == [RunStatus.FINISHED]


def test_a_bundle_that_was_changed_is_not_copied(
    owners: tuple[Owner, Owner], tmp_path: Path, shared: Path, news: News, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = owners
    swap(bundle_of(a, shared / "results.lcz", agree(a, b, tmp_path).id), tmp_path, a)
    copied: list[Path] = []
    monkeypatch.setattr(shutil, "copyfile", lambda source, target: copied.append(source))
    assert ["It is not the bundle that a-signer of State A signed" in one for one in news()] == [True]
    assert not copied


def test_the_name_of_a_file_cannot_pretend_to_be_a_report(shared: Path, news: News) -> None:
    (shared / "a\nAgreement 0123456789abcdef: run 1 has finished.pem").write_text("text")
    [said] = news()
    assert said.startswith("a<U+000A>Agreement")


def test_a_link_in_the_folder_is_never_written_through(
    owners: tuple[Owner, Owner], tmp_path: Path, shared: Path, news: News, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = owners
    files = agree(a, b, tmp_path)
    other = tmp_path / "settings"
    other.write_text("of State B")
    database = b.folder / "runs.db"

    def finished(queue: RunQueue, campaign: NewCampaign, *_rest: Any) -> None:
        """A run whose bundle another owner expects."""
        with Store.open(database) as store:
            [run_id] = store.add_campaign(campaign, this_process(), wall_now())
            store.run_ended(run_id, RunStatus.FINISHED, "", wall_now())
        with Reader(database) as reader:
            bundle = shared / f"{files.id}-receiver-{reader.run(run_id).row.uuid[:8]}.lcz"
        for path in (bundle, signature_path(bundle)):
            path.symlink_to(other)

    monkeypatch.setattr(agreement_service, "run_campaign", finished)
    context = Watched("run 1 has finished")
    AgreementService(shared, "b-signer", database, context).serve()
    assert any("run 1 has finished" in one for one in context.said), context.said
    assert other.read_text() == "of State B"
    written = [path for path in shared.iterdir() if path.name.startswith(files.id)]
    assert len(written) == 2 and not any(path.is_symlink() for path in written)
    assert not [path for path in shared.iterdir() if path.name.startswith(".")]


def test_an_agreement_without_its_profile_does_not_keep_an_agent_from_starting(
    owners: tuple[Owner, Owner], tmp_path: Path, news: News
) -> None:
    a, b = owners
    files = agree(a, b, tmp_path)
    (b.folder / "profiles" / f"{files.id}.toml").unlink()
    assert agreed_secrets() == ()
