"""The live histogram and frames: quantiles within their error, sums of roles, and the way over the pipe."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labconsole.engine.protocol import ChannelFrame, LiveFrame, LogHistogram, Usage, decode_line, encode_line


@pytest.mark.parametrize("fraction", [0.01, 0.5, 0.9, 0.99, 0.999, 1.0])
def test_quantiles_are_within_their_error(fraction: float) -> None:
    values = np.random.default_rng(1).lognormal(13, 1.5, 50_000).astype(np.int64)
    histogram = LogHistogram()
    for part in np.array_split(values, 7):
        histogram.add(part)
    exact = np.quantile(values, fraction, method="inverted_cdf")
    found = histogram.quantile(fraction)
    assert histogram.count == 50_000 and found == pytest.approx(exact, rel=0.0115)


def test_what_was_added_since_an_earlier_state() -> None:
    histogram = LogHistogram()
    histogram.add(np.array([5, 50, 500]))
    earlier = LogHistogram(histogram.bins)
    histogram.add(np.array([50, 0]))
    since = histogram.minus(earlier)
    assert since.count == 2 and since.plus(earlier).bins == histogram.bins
    assert LogHistogram().quantile(0.5) is None


def test_frames_of_two_roles_add_up_and_survive_the_pipe() -> None:
    one, two = LogHistogram(), LogHistogram()
    one.add(np.array([1000, 2000]))
    two.add(np.array([4000]))
    both = ChannelFrame(2, 1000, 2000, one, 60, 90).plus(ChannelFrame(1, 4000, 4000, two, 50, 80)).plus(ChannelFrame())
    assert (both.count, both.minimum, both.maximum, both.histogram.count) == (3, 1000, 4000, 3)
    assert (both.first_ns, both.last_ns) == (50, 90)
    frame = LiveFrame(7, 5, 3, 9, {"latency": both}, {"worker": Usage(12.5, 10**8)}, "latency")
    back = LiveFrame.from_json(json.loads(encode_line(frame.to_json())))
    assert (back.t_ns, back.begin_ns, back.done, back.total, back.usage) == (7, 5, 3, 9, frame.usage)
    assert back.channels["latency"].histogram.bins == both.histogram.bins
    assert (back.progress, back.channels["latency"].first_ns, back.channels["latency"].last_ns) == ("latency", 50, 90)


@pytest.mark.parametrize("line", [b'{"t":"live","t_', b"hello\n", b"\xff\xfe\n", b"[1]\n", b'{"x":1}\n', b""])
def test_line_that_is_not_a_message_decodes_to_none(line: bytes) -> None:
    """A kill cuts a line off; a library prints before the protocol begins."""
    assert decode_line(line) is None


def test_a_fine_histogram_gives_back_its_values_at_equal_distances_in_rank() -> None:
    values = np.random.default_rng(5).lognormal(13, 1, 20_000).astype(np.int64)
    fine = LogHistogram(per_octave=512)
    fine.add(values[:7_000])
    other = LogHistogram(per_octave=512)
    other.add(values[7_000:])
    both = fine.plus(other)
    assert both.spread(50_000) == pytest.approx(np.sort(values), rel=0.001)
    few = both.spread(100)
    assert few == pytest.approx(np.quantile(values, (np.arange(100) + 0.5) / 100), rel=0.01)
    assert both.quantile(0.99) == pytest.approx(np.quantile(values, 0.99, method="inverted_cdf"), rel=0.001)
    assert both.minus(fine).spread(50_000) == pytest.approx(np.sort(values[7_000:]), rel=0.001)
    assert len(LogHistogram().spread(10)) == 0
