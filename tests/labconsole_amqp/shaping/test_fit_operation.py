"""`labconsole fit-link` finds settings of a link, and says where none gives the rate."""

from __future__ import annotations

import pytest

from labconsole.errors import UserError
from labconsole.model.operation import Result
from labconsole_amqp.shaping.fit_operation import FitLink, FitLinkParameters


class Context:
    """What the operation uses of its context."""

    stop_requested = False

    def progress(self, done: int, total: int) -> None:
        assert 0 < done <= total


def fitted(**values: float) -> Result:
    return FitLink().run(FitLinkParameters.model_validate(values), Context())  # type: ignore[arg-type]


def test_each_setting_comes_near_to_the_rate() -> None:
    result = fitted(rate=3.5, size=42_756)
    assert [one["setting"] for one in result.data["settings"]] == ["link_delay", "link_window", "link_loss"]
    for one in result.data["settings"]:
        assert one["rate"] == pytest.approx(3.5, rel=0.15)
    assert result.data["link_alone"] == pytest.approx(5.64, abs=0.05)
    assert "a real link needs less loss" in result.text


@pytest.mark.parametrize(
    "size", [1, 1 << 18, *(pytest.param(size, marks=pytest.mark.nightly) for size in (11, 237, 1 << 20))]
)
def test_messages_of_any_size_are_calculated(size: int) -> None:
    alone = 2e6 / 8 * 1448 / 1500 / size
    result = fitted(rate=alone / 2, size=size)
    assert result.data["link_alone"] == pytest.approx(alone, rel=0.02)
    assert any(one["rate"] == pytest.approx(alone / 2, rel=0.05) for one in result.data["settings"])


def test_a_rate_that_no_setting_gives_is_said() -> None:
    result = fitted(rate=0.5, size=237)
    assert not result.passed and result.data["settings"] == []
    assert "window or loss gives 0.5 msg/s by itself" in result.text


def test_more_than_the_link_carries_is_refused() -> None:
    with pytest.raises(UserError, match=r"carries 5\.64 messages of 42,756 B a second without any delay"):
        fitted(rate=6.0, size=42_756)
