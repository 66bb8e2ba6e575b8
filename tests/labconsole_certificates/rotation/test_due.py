"""Certificates that expire soon are reported 90, 30 and 7 days ahead."""

from __future__ import annotations

from datetime import timedelta

import pytest

from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.rotation import steps
from labconsole_certificates.rotation.plan import Due, due
from tests.labconsole_certificates.rotation.rotation_console import Lab


def _due(lab: Lab, days_before_the_end: float) -> list[Due]:
    at = lab.broker.certificate.not_valid_after_utc - timedelta(days=days_before_the_end)
    return [one for one in due(lab.store.snapshot(), at) if one.record.id == lab.broker.id]


@pytest.mark.parametrize(
    ("days", "notice"), [(91, None), (90, 90), (30.5, 90), (30, 30), (8, 30), (7, 7), (0, 7), (-1, 0)]
)
def test_notice_is_given_three_times(kept_lab: Lab, days: float, notice: int | None) -> None:
    assert [one.notice for one in _due(kept_lab, days)] == ([] if notice is None else [notice])


def test_replaced_and_revoked_certificates_are_not_due(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.broker), NewKey())
    assert [one.rotation for one in _due(lab, 5)] == [rotation]

    steps.finish(lab.store, steps.switch(lab.store, rotation), wait_for_overlap=False)
    assert _due(lab, 5) == []


def test_due_list_is_sorted_and_leaves_out_other_states(lab: Lab) -> None:
    at = lab.broker.certificate.not_valid_after_utc - timedelta(days=1)
    found = due(lab.store.snapshot(), at)

    assert [one.record.id for one in found] == [lab.client.id, lab.broker.id]
    with lab.store.change() as change:
        change.update_state(lab.a.id, local=False)
    assert [one.record.id for one in due(lab.store.snapshot(), at)] == [lab.broker.id]
