"""The placement of roles on hosts: which request counts, which hosts suit it, and how it is stored and shown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.placement import HostFacts, Placement, RoleRequest, checked_placement
from labconsole.store.encoding import to_json

SPREAD = Placement(
    scheduler="tls://192.0.2.10:8786",
    roles=(RoleRequest(role="sender-*", tag="obu", cores=2), RoleRequest(role="*", host=("host-b", "host-c"))),
)


def test_the_first_request_that_matches_a_role_counts() -> None:
    sender, rest = SPREAD.roles
    assert SPREAD.request("sender-3") is sender
    assert SPREAD.request("receiver") is rest
    assert Placement(roles=(sender,)).request("receiver") is None


@pytest.mark.parametrize(
    ("host", "hosts"),
    [("", {"host-a", "host-b", "host-c"}), ("host-b", {"host-b"}), (("host-b", "host-c"), {"host-b", "host-c"})],
)
def test_a_request_names_any_host_or_one_or_several(host: str | tuple[str, ...], hosts: set[str]) -> None:
    request = RoleRequest(host=host)
    assert {name for name in ("host-a", "host-b", "host-c") if HostFacts(name, 1).suits(request)} == hosts


@pytest.mark.parametrize(("cores", "suits"), [(0, True), (3, True), (4, True), (5, False)])
def test_a_host_suits_a_request_for_as_many_cores_as_it_has(cores: int, suits: bool) -> None:
    assert HostFacts("host-a", 4).suits(RoleRequest(cores=cores)) is suits


def test_a_stored_placement_is_complete_and_reads_back_the_same() -> None:
    stored = SPREAD.stored()
    assert Placement.of_stored(stored) == SPREAD
    assert stored.keys() == Placement.model_fields.keys()
    assert stored["roles"][1] == {"role": "*", "host": ["host-b", "host-c"], "tag": "", "cores": 0, "interface": ""}
    assert checked_placement(to_json(stored)) == to_json(stored)


def test_a_placement_that_was_stored_before_roles_could_finish_their_work_lets_them_stop() -> None:
    stored = {name: value for name, value in SPREAD.stored().items() if name != "lost_console"}
    assert checked_placement(to_json(stored)) == to_json(stored)
    assert Placement.of_stored(stored) == SPREAD and SPREAD.lost_console == "stop"


def test_a_placement_without_roles_is_stored_as_an_empty_table() -> None:
    assert Placement(local=3).stored() == {}
    assert Placement.of_stored({}) is None
    assert checked_placement("{}") == "{}"


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (Placement(), ""),
        (Placement(roles=(RoleRequest(role="broker"),)), "broker: any host"),
        (SPREAD, "sender-*: tag obu, cores 2; *: host host-b or host-c; scheduler tls://192.0.2.10:8786"),
        (Placement(local=1, roles=(RoleRequest(interface="eth1"),)), "*: interface eth1; 1 local host"),
        (Placement(local=3, roles=(RoleRequest(host="local-2"),)), "*: host local-2; 3 local hosts"),
        (Placement(roles=(RoleRequest(),), lost_console="finish"), "*: any host; finished without the console"),
    ],
)
def test_a_placement_is_shown_in_words(placement: Placement, text: str) -> None:
    assert str(placement) == text


@pytest.mark.parametrize("host", [3, [3], ["a", ""], {"a": 1}, None])
def test_a_host_is_a_name_or_a_list_of_names(host: Any) -> None:
    with pytest.raises(ValidationError, match="list"):
        RoleRequest(host=host)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "hosts of roles: input should be a table"),
        ('{"roles": [{"hots": "a"}]}', "hosts of roles: there is no key roles.0.hots; did you mean host?"),
        ('{"local": 21}', "hosts of roles: local: input should be less than or equal to 20"),
        ("{", "hosts of roles: invalid JSON"),
    ],
)
def test_text_that_is_not_a_placement_is_refused_in_one_line(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        checked_placement(text)
    assert str(caught.value).startswith(sentence) and "\n" not in str(caught.value)
