"""When a station's CAMs are due: at a fixed rate, or by the generation rules of EN 302 637-2, 6.1.3."""

from __future__ import annotations

from math import hypot

from labconsole_v2x.stations.routes import Movement

T_CHECK_MS, T_MIN_MS, T_MAX_MS, N_CAM = 100, 100, 1000, 3
"""T_CheckCamGen, T_GenCamMin, T_GenCamMax, N_GenCam."""
_HEADING_DEGREES, _POSITION_M, _SPEED_M_S = 4.0, 4.0, 0.5
_MS = 1_000_000


class CamTiming:
    """Due times of one CAM service, on the clock of `labconsole.clock.now_ns`, and which of them give a CAM.

    At a fixed rate each gives one, unless DCC asks for a longer interval.
    """

    def __init__(self, offset_ns: int, rate: float) -> None:
        """The first due time is `offset_ns` after the beginning."""
        self.due_ns = offset_ns
        """The next due time."""
        self._first_ns = offset_ns
        self._number = 0
        self.interval_ns = 1e9 / rate
        """Between two due times."""
        self._last_ns: int | None = None
        self.held_back = False
        """Whether the last due time would have given a CAM without DCC."""

    def begin(self, begin_ns: int) -> None:
        """Set the beginning, before the first due time."""
        self._first_ns += begin_ns
        self.due_ns = self._first_ns

    def generates(self, movement: Movement, off_ms: int) -> bool:
        """Whether the due time gives a CAM; `off_ms` is the least interval that DCC allows, 0 without it."""
        # Due times are whole ns: an interval that equals the least one may be 1 ns shorter.
        self.held_back = self._last_ns is not None and self.due_ns - self._last_ns < off_ms * _MS - 1
        if not self.held_back:
            self._last_ns = self.due_ns
        return not self.held_back

    def advance(self) -> None:
        """Go to the next due time; they do not drift."""
        self._number += 1
        self.due_ns = self._first_ns + round(self._number * self.interval_ns)


class RuleTiming(CamTiming):
    """The rules for vehicles: checked each 100 ms, a CAM where the motion has changed enough or 1 s has passed."""

    def __init__(self, offset_ns: int) -> None:
        super().__init__(offset_ns, 1000 / T_CHECK_MS)
        self._last: Movement | None = None
        self._t_ms = float(T_MAX_MS)
        self._by_time = 0

    def generates(self, movement: Movement, off_ms: int) -> bool:
        """As `CamTiming`; `off_ms` is T_GenCam_DCC."""
        elapsed_ms = T_MAX_MS if self._last_ns is None else (self.due_ns - self._last_ns) / _MS
        changed = self._last is not None and _changed(self._last, movement)
        due = elapsed_ms >= T_MIN_MS and (changed or elapsed_ms >= self._t_ms)
        self.held_back = due and elapsed_ms < min(off_ms, T_MAX_MS)
        if not due or self.held_back:
            return False
        if changed:
            self._t_ms, self._by_time = elapsed_ms, 0
        else:
            self._by_time += 1
            if self._by_time >= N_CAM:
                self._t_ms = T_MAX_MS
        self._last, self._last_ns = movement, self.due_ns
        return True


def _changed(last: Movement, now: Movement) -> bool:
    turned = abs((now.heading - last.heading + 180) % 360 - 180)
    driven = hypot(now.east_m - last.east_m, now.north_m - last.north_m)
    return turned > _HEADING_DEGREES or driven > _POSITION_M or abs(now.speed - last.speed) > _SPEED_M_S
