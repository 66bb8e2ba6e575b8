"""What the tests of a folder share and no fixture ends in time: it ends with the folder's last test in this process."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

_RESOURCES = pytest.StashKey[ExitStack]()


@pytest.fixture(scope="session")
def folder_resources(request: pytest.FixtureRequest) -> ExitStack:
    """What is entered here is closed, the newest first, after the last test of a folder.

    Processes would otherwise take time of all tests that follow, and their cost would count to one of those.
    """
    return request.session.stash.setdefault(_RESOURCES, ExitStack())


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close them once the fixtures of the last test are."""
    resources = item.session.stash.get(_RESOURCES, None)
    if resources is not None and (nextitem is None or nextitem.path.parent != item.path.parent):
        resources.close()
