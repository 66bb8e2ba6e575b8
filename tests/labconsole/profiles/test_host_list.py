"""Host lists: the placement that a file of lines or of TOML asks for, and the line of each mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labconsole.model.placement import Placement, RoleRequest
from labconsole.profiles.host_list import read_host_list
from labconsole.profiles.profile import ProfileError

Read = Callable[..., Placement]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes a host list, and reads it."""

    def read(text: str, name: str = "hosts.start") -> Placement:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_host_list(path)

    return read


def test_hosts_of_the_same_roles_share_them(read: Read) -> None:
    placement = read("# the testbed\nobu-1\tsender-*\n\n  obu-2 sender-* # next to obu-1\nserver broker receiver-*\n")
    assert placement == Placement(
        roles=(
            RoleRequest(role="sender-*", host=("obu-1", "obu-2")),
            RoleRequest(role="broker", host="server"),
            RoleRequest(role="receiver-*", host="server"),
        )
    )


def test_hosts_without_roles_share_all_that_no_other_line_names(read: Read) -> None:
    placement = read("box-1\nbox-2 *\nserver broker\nbox-3\n")
    broker, sender = placement.request("broker"), placement.request("sender-1")
    assert broker is not None and broker.hosts == ("server",), "although the lines before it match any role"
    assert sender is not None and sender.hosts == ("box-1", "box-2", "box-3")


@pytest.mark.parametrize("header", ["", "hosts."])
def test_a_list_in_toml_has_the_keys_of_the_profile_s_table(read: Read, header: str) -> None:
    top = "[hosts]\n" if header else ""
    text = f'{top}scheduler = "tls://192.0.2.1:8786"\n[[{header}roles]]\nrole = "sender-*"\ntag = "obu"\n'
    expected = Placement(scheduler="tls://192.0.2.1:8786", roles=(RoleRequest(role="sender-*", tag="obu"),))
    assert read(text, "list.toml") == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# none\n\n", "names no hosts"),
        ("obu-1\nobu_2 sender-*\n", "hosts.start, line 2: 'obu_2' cannot be the name of a host"),
        ("obu-1,obu-2\n", "hosts.start, line 1: 'obu-1,obu-2' cannot be the name of a host"),
        ("a sender-*\nb\na receiver sender-*\n", "line 3: a has the roles sender-* already, by line 1"),
        ("a sender sender\n", "line 1: a has the roles sender already, by line 1"),
        ("\n[[roles]]\nhost = 'a'\n", "line 2: '[[roles]]' cannot be the name of a host"),
    ],
)
def test_each_mistake_in_lines_is_named_with_its_line(read: Read, text: str, sentence: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read(text)
    assert sentence in str(caught.value) and "hosts.start" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("local = 3\n", "names no hosts"),
        ("roles = [\n", "is not valid TOML: "),
        ("\nlocla = 3\n", "list.toml, line 2: there is no key locla; did you mean local?"),
        ("local = 1\n[hosts]\nlocal = 2\n", "list.toml, line 2: there is no key hosts; "),
        (
            "[[roles]]\ncores = 1\n\n[[roles]]\nrole = 'a'\ncores = -1\n",
            "list.toml, line 6: roles.1.cores: input should be greater than or equal to 0 (it is -1).",
        ),
        (
            "[hosts]\nlocal = 1\n[[hosts.roles]]\nhost = 3\n",
            "list.toml, line 4: roles.0.host: give the name of a host, or a list of names.",
        ),
        ("roles = [{ cores = -1 }]\n", "list.toml: roles.0.cores: input should be greater"),
        ("hosts = 3\n", "list.toml: input should be a table."),
    ],
)
def test_each_mistake_in_toml_is_named_with_its_line(read: Read, text: str, sentence: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read(text, "list.toml")
    assert sentence in str(caught.value) and "list.toml" in str(caught.value)


def test_a_list_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"The host list .*missing.start cannot be read: No such file"):
        read_host_list(tmp_path / "missing.start")
    (tmp_path / "binary.start").write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileError, match=r"The host list .*binary.start is not a text file"):
        read_host_list(tmp_path / "binary.start")
