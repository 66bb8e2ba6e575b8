"""When requests arrive: each pattern by its definition in the thesis, and files of arrivals with and without faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labconsole.errors import UserError
from labconsole_keypool.choices import ArrivalPattern
from labconsole_keypool.service.arrivals import TABLE_4_1_DELAYS_MS
from tests.helpers.arrivals import make_arrivals

MS = 1_000_000
HOUR_NS = 3_600_000 * MS


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The path of a CSV file that a test writes."""
    return tmp_path / "arrivals.csv"


class TestTable41:
    @pytest.mark.parametrize(
        ("first", "last", "delay_ms"),
        [(1, 100, 1000), (101, 200, 800), (901, 1000, 90), (1401, 1500, 10), (1501, 1600, 20), (2901, 3000, 1000)],
    )
    def test_each_request_is_followed_by_the_delay_of_its_step(self, first: int, last: int, delay_ms: int) -> None:
        delays_ms = np.diff(make_arrivals(ArrivalPattern.TABLE_4_1, tail_requests=1)) / MS
        assert (delays_ms[first - 1 : last] == delay_ms).all()

    def test_has_its_own_requests_whatever_was_asked_for(self) -> None:
        times = make_arrivals(ArrivalPattern.TABLE_4_1, requests=7, rate=3.0)
        assert times.dtype == np.int64
        assert (len(times), times[0], times[-1]) == (3000, 0, 1_072_000 * MS)

    def test_is_ten_times_shorter_at_time_scale_ten(self) -> None:
        usual, fast = (
            make_arrivals(ArrivalPattern.TABLE_4_1, tail_requests=9, time_scale=scale) for scale in (1.0, 10.0)
        )
        assert (usual == fast * 10).all()

    def test_is_followed_by_the_tail_of_fig_4_2(self) -> None:
        times = make_arrivals(ArrivalPattern.TABLE_4_1, tail_requests=2000, tail_rate=4.0)
        assert len(times) == 5000
        assert times[3000] - times[2999] == 1000 * MS
        assert (np.diff(times[3000:]) == 250 * MS).all()


class TestRates:
    def test_constant(self) -> None:
        times = make_arrivals(ArrivalPattern.CONSTANT, rate=26.3, requests=1000)
        assert times[-1] == round(999 / 26.3 * 1e9)
        assert np.ptp(np.diff(times)) <= 1

    def test_poisson_has_its_rate_and_exponential_gaps_and_follows_its_seed(self) -> None:
        times = make_arrivals(ArrivalPattern.POISSON, rate=40.0, requests=50_000)
        gaps_s = np.diff(times) / 1e9
        assert gaps_s.mean() == pytest.approx(1 / 40, rel=0.02)
        assert gaps_s.std() == pytest.approx(1 / 40, rel=0.02)
        assert (times == make_arrivals(ArrivalPattern.POISSON, rate=40.0, requests=50_000)).all()
        assert (times != make_arrivals(ArrivalPattern.POISSON, rate=40.0, requests=50_000, seed=2))[1:].all()

    def test_a_year_at_most(self) -> None:
        with pytest.raises(UserError, match=r"3,000 requests would arrive after 34,7\d\d days; take a higher rate"):
            make_arrivals(ArrivalPattern.CONSTANT, rate=1e-6)


class TestBusinessDay:
    def test_has_the_peak_for_two_hours_half_of_it_in_business_hours_and_a_quarter_otherwise(self) -> None:
        times = make_arrivals(ArrivalPattern.BUSINESS_DAY, requests=1_665_000, rate=50.0)
        per_hour = np.histogram(times / HOUR_NS, np.arange(25))[0]
        assert per_hour == pytest.approx(3600 * np.repeat([12.5, 25, 50, 12.5], [8, 7, 2, 7]), abs=2)
        # The week that it is repeated for "would be sufficient for signing over 6 million Tax declarations".
        assert 7 * len(times) > 6_000_000

    def test_with_fewer_requests_is_shorter_at_the_same_rates(self) -> None:
        times = make_arrivals(ArrivalPattern.BUSINESS_DAY, requests=3330, rate=50.0)
        assert times[-1] / HOUR_NS == pytest.approx(24 * 3330 / 1_665_000, rel=0.001)
        assert np.diff(times).min() == pytest.approx(20 * MS, abs=1)
        assert np.diff(times).max() == pytest.approx(80 * MS, abs=1)


class TestFile:
    @pytest.mark.parametrize("header", ["", "count,delay_ms\n", "\ufeffCount, Delay_ms\r\n"])
    def test_rows_are_requests_each_followed_by_its_delay(self, written: Path, header: str) -> None:
        written.write_text(header + "2,100\n\n3,0.5\n1,0\n", encoding="utf-8")
        times = make_arrivals(ArrivalPattern.CSV, csv=written, tail_requests=1)
        assert (times / MS).tolist() == [0, 100, 200, 200.5, 201, 201.5, 201.5]

    def test_table_4_1_as_a_file_is_table_4_1(self, written: Path) -> None:
        written.write_text("".join(f"100,{delay}\n" for delay in TABLE_4_1_DELAYS_MS), encoding="utf-8")
        assert (make_arrivals(ArrivalPattern.CSV, csv=written) == make_arrivals(ArrivalPattern.TABLE_4_1)).all()

    @pytest.mark.parametrize(
        ("text", "line", "cause"),
        [
            ("", 1, "no row"),
            ("count,delay_ms\n", 1, "no row"),
            ("100,20\nmany,20\n", 2, "count must be a whole number from 1 on (it is 'many')"),
            ("count,delay_ms\n100,soon\n", 2, "delay must be a number of ms from 0 on (it is 'soon')"),
            ("requests,pause\n100,20\n", 1, "count must be"),
            ("100,20\ncount,delay_ms\n", 2, "count must be"),
            ("-100,20\n", 1, "(it is '-100')"),
            ("0,20\n", 1, "count must be"),
            ("1.5,20\n", 1, "count must be"),
            ("100,-20\n", 1, "(it is '-20')"),
            ("100,nan\n", 1, "delay must be"),
            ("100,inf\n", 1, "delay must be"),
            ("100,\n", 1, "(it is '')"),
            (",20\n", 1, "(it is '')"),
            ("100\n", 1, "1 columns"),
            ("100;20\n", 1, "1 columns"),
            ("100,20,3\n", 1, "3 columns"),
            ("1999999,1\n1,1\n1,1\n", 3, "more than 2,000,000 requests"),
            (f"{'9' * 5000},1\n", 1, "count must be"),
            ("1,1\n" + '"' + "x" * 200_000 + '",1\n', 1, "not CSV text"),
        ],
    )
    def test_a_fault_is_one_sentence_that_names_file_and_line(
        self, written: Path, text: str, line: int, cause: str
    ) -> None:
        written.write_text(text, encoding="utf-8")
        with pytest.raises(UserError) as caught:
            make_arrivals(ArrivalPattern.CSV, csv=written)
        sentence = str(caught.value)
        assert str(written) in sentence
        assert f"line {line}:" in sentence
        assert cause in sentence
        assert sentence.endswith(".")
        assert len(sentence) < len(str(written)) + 200

    def test_file_that_is_not_text_is_refused(self, written: Path) -> None:
        with pytest.raises(UserError, match=r"cannot be read: No such file or directory\.$"):
            make_arrivals(ArrivalPattern.CSV, csv=written)
        written.write_bytes(b"100,20\n\xff\xfe\x00,1\n")
        with pytest.raises(UserError, match="not CSV text"):
            make_arrivals(ArrivalPattern.CSV, csv=written)
        with pytest.raises(UserError, match=r"choose the file\.$"):
            make_arrivals(ArrivalPattern.CSV)
