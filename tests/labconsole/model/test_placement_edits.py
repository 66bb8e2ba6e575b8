"""Edits of a placement: what was placed last counts, and what stays here has no host."""

from __future__ import annotations

from labconsole.model.placement import HostFacts, Placement, RoleRequest, fault_of
from labconsole.model.placement_edits import grouped, kept_here, placed

NAMES = ("broker", "receiver-0", "sender-0", "sender-1", "sender-2")


def request(role: str, host: str = "", **more: object) -> RoleRequest:
    return RoleRequest.model_validate({"role": role, "host": host, **more})


def hosts_of(placement: Placement) -> dict[str, str]:
    """The host that each role asks for; empty: this computer."""
    found = {name: placement.request(name) for name in NAMES}
    return {name: "" if one is None else str(one.host) for name, one in found.items()}


def test_roles_are_grouped_by_their_names_without_numbers() -> None:
    assert grouped(("receiver", "stations-1-8", "stations-9-15", "sender-0")) == {
        "receiver": ("receiver",),
        "stations-*": ("stations-1-8", "stations-9-15"),
        "sender-*": ("sender-0",),
    }


def test_one_role_comes_before_the_request_of_its_group() -> None:
    group = placed(Placement(), request("sender-*", "a"), NAMES)
    assert hosts_of(placed(group, request("sender-1", "b"), NAMES)) == {
        "broker": "",
        "receiver-0": "",
        "sender-0": "a",
        "sender-1": "b",
        "sender-2": "a",
    }


def test_a_group_replaces_what_its_roles_asked_for() -> None:
    placement = Placement(roles=(request("sender-1", "b"), request("broker", "c"), request("sender-*", "a")))
    assert [one.role for one in placed(placement, request("sender-*", tag="obu"), NAMES).roles] == [
        "broker",
        "sender-*",
    ]


def test_a_pattern_that_overlaps_comes_later() -> None:
    placement = Placement(roles=(request("*-0", "a"), request("*", "b")))
    assert [one.role for one in placed(placement, request("sender-*", "c"), NAMES).roles] == ["sender-*", "*-0", "*"]


def test_requests_for_roles_of_other_parameters_are_kept() -> None:
    placement = Placement(roles=(request("clock", "a"),))
    assert [one.role for one in placed(placement, request("broker", "b"), NAMES).roles] == ["clock", "broker"]


def test_a_role_that_stays_here_leaves_the_others_where_they_were() -> None:
    placement = Placement(roles=(request("sender-1", "b"), request("*", "a")))
    assert hosts_of(kept_here(placement, "sender-1", NAMES)) == {
        "broker": "a",
        "receiver-0": "a",
        "sender-0": "a",
        "sender-1": "",
        "sender-2": "a",
    }
    assert kept_here(Placement(roles=(request("sender-*"),)), "sender-*", NAMES).roles == ()


def test_a_request_that_no_host_suits_names_what_there_is() -> None:
    hosts = [HostFacts("a", 4, ("obu",), ("lo",)), HostFacts("b", 2)]
    assert fault_of(request("sender-*", tag="obu", cores=4), hosts) == ""
    assert fault_of(request("sender-*", tag="obu", cores=8), hosts) == (
        "No host suits the roles sender-* (tag obu, cores 8): there are a (obu, 4 cores); b (no tags, 2 cores)."
    )


def test_of_many_hosts_that_do_not_suit_some_are_named() -> None:
    hosts = [HostFacts(f"obu-{number}", 4) for number in range(200)]
    fault = fault_of(request("*", cores=8), hosts)
    assert "obu-4 (no tags, 4 cores); 195 others." in fault and "obu-5" not in fault


def test_a_role_that_stays_here_brings_back_no_request_that_did_not_count() -> None:
    placement = Placement(roles=(request("sender-1", "b"), request("*", "a")))
    assert [one.role for one in kept_here(placement, "broker", NAMES).roles] == [
        "sender-1",
        "receiver-0",
        "sender-0",
        "sender-2",
    ]
