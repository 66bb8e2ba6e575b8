"""How far a tracker follows the stations of a run (A-PSN-01): its links, compared with who sent under which names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from labconsole.model.trial import Metric, Samples, Verdict
from labconsole_v2x.attacks.attack_metrics import metric
from labconsole_v2x.attacks.attack_parameters import FOLLOWED_S, AttackParameters
from labconsole_v2x.attacks.listener_role import observations
from labconsole_v2x.attacks.tracking import (
    Link,
    Reason,
    Track,
    TrackingScore,
    link_by_identifiers,
    link_by_motion,
    score,
    tracks_of,
)
from labconsole_v2x.choices import UNCHANGED, Unchanged
from labconsole_v2x.live.joined_packets import JoinedPackets

LEAST_LINKED = 95.0
"""In %, of the changes: with these, what was left unchanged links pseudonyms. A path history may be lost on the air."""
LEAST_HEARD = 95.0
"""In %, of the changes that stations made: a tracker that has heard fewer proves nothing."""


class TrackedStations:
    """The pseudonyms of a run as its tracker heard them, and how it links them."""

    def __init__(self, packets: JoinedPackets, samples: Samples) -> None:
        columns = (packets.stations[name].tolist() for name in ("source", "ticket", "station"))
        self._station_of = {(source, ticket): station for source, ticket, station in zip(*columns, strict=True)}
        until_ns = packets.until_ns - round(FOLLOWED_S * 1e9)
        changed_ns = packets.stations["from_ns"]
        self.made = int(np.count_nonzero((changed_ns > 0) & (changed_ns < until_ns)))
        """Changes of all stations that count, heard or not."""
        # Stations of other runs share a multicast group; nothing is known of them.
        heard = tracks_of(observations(samples))
        self._tracks = [
            track for track in heard if self._station(track) is not None and track.first.time_us * 1000 < until_ns
        ]
        self.by_identifiers = link_by_identifiers(self._tracks)
        self.by_motion = link_by_motion(self._tracks)

    def _station(self, track: Track) -> Hashable:
        first = track.first
        return self._station_of.get((int.from_bytes(first.mac, "big"), int.from_bytes(first.digest or b"", "big")))

    def score(self, links: Sequence[Link]) -> TrackingScore:
        """How many changes of all stations these links find."""
        return score(self._tracks, links, self._station)


def tracking_metrics(tracked: TrackedStations) -> Iterator[Metric]:
    """The success of the tracker, by identifiers and by motion."""
    scores = {"identifiers": tracked.score(tracked.by_identifiers), "motion": tracked.score(tracked.by_motion)}
    for by, found in scores.items():
        if found.changes:
            yield metric(f"linked_by_{by}", found.success_rate, found.changes)
            yield metric("wrong_links", found.wrong, found.linked + found.wrong, by=by)


def tracking_verdict(parameters: AttackParameters, tracked: TrackedStations) -> Verdict:
    """Whether identifiers link pseudonyms if, and only if, one of them was left unchanged."""
    left, links = parameters.unchanged, tracked.by_identifiers
    if left is not Unchanged.NONE:
        links = [link for link in links if link.reason is Reason[left.name]]
    found = tracked.score(links)
    name = (
        "no identifier links pseudonyms" if left is Unchanged.NONE else "the tracker links by what was left unchanged"
    )
    if not found.changes or found.changes < tracked.made * LEAST_HEARD / 100:
        sentence = f"The tracker has heard {found.changes:,} of {tracked.made:,} changes; at least {LEAST_HEARD:g} % "
        return Verdict(name, "unknown", f"{sentence}are needed.", {"changes": found.changes, "made": tracked.made})
    passed = found.linked == 0 if left is Unchanged.NONE else found.success_rate >= LEAST_LINKED
    reasons = Counter(str(link.reason) for link in links)
    if left is not Unchanged.NONE:
        sentence = (
            f"{UNCHANGED[left.value]} left unchanged: it links {found.linked:,} of {found.changes:,} changes; at "
        )
        sentence += f"least {LEAST_LINKED:g} % must be."
    elif passed:
        sentence = f"None of {found.changes:,} changes is linked by an identifier."
    else:
        named = ", ".join(f"{reason} ({count:,})" for reason, count in sorted(reasons.items()))
        sentence = f"{found.linked:,} of {found.changes:,} changes are linked: {named}."
    data = {"changes": found.changes, "made": tracked.made, "linked": found.linked, "wrong": found.wrong, **reasons}
    return Verdict(name, "pass" if passed else "fail", sentence, data)
