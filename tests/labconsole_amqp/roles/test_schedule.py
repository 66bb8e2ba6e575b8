"""The schedule of messages: by number or time, in a closed or an open loop, and their phases."""

from __future__ import annotations

import numpy as np

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.schedule import commanded, full_speed, open_loop, open_loop_command, whole_run
from labconsole_amqp.series import Phase

MS = 1_000_000


def test_without_phases_a_number_of_messages_is_due_at_once_or_at_the_rate() -> None:
    closed = whole_run(AmqpParameters(count=7, warm_up=3), 5 * MS)
    assert (closed.due(5 * MS), closed.over(9, 10**15), closed.over(10, 0)) == (10, False, True)
    opened = whole_run(AmqpParameters(loop="open", rate=100.0, count=4), 5 * MS)
    assert [opened.due(at * MS) for at in (5, 14, 15, 34, 90)] == [1, 1, 2, 3, 4]
    assert opened.due_ns(np.arange(3)).tolist() == [5 * MS, 15 * MS, 25 * MS]
    assert opened.phases(np.array([5 * MS])).tolist() == [Phase.WHOLE]


def test_a_phase_at_full_speed_ends_by_time_and_its_first_300_ms_are_warm_up() -> None:
    schedule = full_speed(AmqpParameters(loop="both", full_speed=0.5), 1000 * MS)
    assert schedule.due(0) > 10**9
    assert (schedule.over(10**9, 1799 * MS), schedule.over(0, 1800 * MS)) == (False, True)
    assert schedule.phases(np.array([1000, 1299, 1300, 1801]) * MS).tolist() == [1, 1, 2, 2]


def test_an_open_loop_has_the_messages_that_are_due_in_it_and_its_first_200_ms_are_warm_up() -> None:
    schedule = open_loop(1000 * MS, first=40, rate=250.0, seconds=1.0)
    assert schedule.count == 300
    phases = schedule.phases(schedule.due_ns(np.arange(40, 340)))
    assert (np.count_nonzero(phases == Phase.OPEN_LOOP_WARM_UP), np.count_nonzero(phases == Phase.OPEN_LOOP)) == (
        50,
        250,
    )
    assert (schedule.over(339, 10**15), schedule.over(340, 0)) == (False, True)


def test_a_commanded_open_loop_begins_after_the_roles_own_t0_whatever_its_clock() -> None:
    command = open_loop_command(300 * MS, first=[40, 50], rate=250.0, seconds=1.0)
    assert commanded(command, 1000 * MS, 50) == open_loop(1300 * MS, 50, 250.0, 1.0)
    assert commanded(command, 7 * MS, 40) == open_loop(307 * MS, 40, 250.0, 1.0)
