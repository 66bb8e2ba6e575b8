"""Regions of certificates: whether a place is inside, and whether a region is proven to be inside another one.

IEEE 1609.2, 5.1.2.4 and 6.4.17. Distances are those on a sphere with the earth's mean radius, within 0.6 % of the
ellipsoid's. Rectangles and polygons have straight edges in latitude and longitude; none crosses the 180th meridian.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import asin, ceil, cos, degrees, hypot, radians, sin

from labconsole_v2x.security.structures import Circle, Rectangle, Region

EARTH_RADIUS_M = 6_371_008.8
MAX_EDGE_PAIRS = 10_000
"""A polygon with more pairs of edges to compare is not checked: a foreign certificate could take seconds otherwise."""

Corners = Sequence[tuple[int, int]]


def distance_m(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the distance in m of two places, latitude and longitude in 0.1 microdegree."""
    latitude_1, longitude_1, latitude_2, longitude_2 = (radians(value / 1e7) for value in (*first, *second))
    north = sin((latitude_2 - latitude_1) / 2)
    east = sin((longitude_2 - longitude_1) / 2)
    chord = hypot(north, east * (cos(latitude_1) * cos(latitude_2)) ** 0.5)
    return 2 * EARTH_RADIUS_M * asin(min(1.0, chord))


def contains(region: Region, place: tuple[int, int]) -> bool | None:
    """Return whether a place is inside, its edge included; None for countries, whose borders this console lacks."""
    if isinstance(region, frozenset):
        return None
    if isinstance(region, Circle):
        return distance_m((region.latitude, region.longitude), place) <= region.radius
    if not region:
        return False
    if rectangles := _rectangles(region):
        return any(r.south <= place[0] <= r.north and r.west <= place[1] <= r.east for r in rectangles)
    return _in_polygon(_corners(region), place)


def unproven_inside(inner: Region, outer: Region) -> str | None:
    """Return why `inner` is not proven to be inside `outer`; None where it is.

    Exact: circle in circle, rectangle in circle, in rectangle and in polygon, polygon in rectangle and in polygon,
    countries in countries. A circle in rectangles or a polygon, and a polygon in a circle, are taken by their bounding
    rectangle; each rectangle must be inside one of the outer rectangles. Countries and geometry never compare.
    """
    if not inner or not outer:
        return "an empty region"
    if inner == outer:
        return None
    if isinstance(inner, frozenset) or isinstance(outer, frozenset):
        if isinstance(inner, frozenset) and isinstance(outer, frozenset):
            missing = sorted(inner - outer)
            return f"countries {missing} are not among the issuer's" if missing else None
        return "a list of countries and a geometric region cannot be compared"
    if isinstance(outer, Circle):
        centre = (outer.latitude, outer.longitude)
        if isinstance(inner, Circle):
            inside = distance_m((inner.latitude, inner.longitude), centre) + inner.radius <= outer.radius
        else:
            inside = all(_rectangle_in_circle(rectangle, outer) for rectangle in _bounds(inner))
        return None if inside else "it exceeds the issuer's circle"
    if outer_rectangles := _rectangles(outer):
        inside = all(any(_nested(small, large) for large in outer_rectangles) for small in _bounds(inner))
        return None if inside else "it is not inside one rectangle of the issuer's region"
    polygon = _corners(outer)
    shapes = [_corners(inner)] if _is_polygon(inner) else [_corner_list(r) for r in _bounds(inner)]
    if any(len(shape) * len(polygon) > MAX_EDGE_PAIRS for shape in shapes):
        return "the polygons have too many corners to compare"
    inside = all(_polygon_in_polygon(shape, polygon) for shape in shapes)
    return None if inside else "it is not inside the issuer's polygon"


def _is_polygon(region: Region) -> bool:
    return isinstance(region, tuple) and not _rectangles(region)


def _rectangles(region: Region) -> tuple[Rectangle, ...]:
    """Return a rectangular region's rectangles; none for other regions."""
    return tuple(part for part in region if isinstance(part, Rectangle)) if isinstance(region, tuple) else ()


def _corners(region: Region) -> Corners:
    return [part for part in region if isinstance(part, tuple)] if isinstance(region, tuple) else []


def _corner_list(r: Rectangle) -> Corners:
    return [(r.north, r.west), (r.north, r.east), (r.south, r.east), (r.south, r.west)]


def _bounds(region: Region) -> tuple[Rectangle, ...]:
    """Return rectangles that cover a region: its own, or the bounding one of a circle or polygon."""
    if isinstance(region, Circle):
        north = ceil(degrees(region.radius / EARTH_RADIUS_M) * 1e7)
        ratio = sin(region.radius / EARTH_RADIUS_M) / max(cos(radians(region.latitude / 1e7)), 1e-9)
        east = 1_800_000_000 if ratio >= 1 else ceil(degrees(asin(ratio)) * 1e7)
        latitude, longitude = region.latitude, region.longitude
        return (Rectangle(latitude + north, longitude - east, latitude - north, longitude + east),)
    if rectangles := _rectangles(region):
        return rectangles
    latitudes, longitudes = zip(*_corners(region), strict=True)
    return (Rectangle(max(latitudes), min(longitudes), min(latitudes), max(longitudes)),)


def _nested(small: Rectangle, large: Rectangle) -> bool:
    return (
        large.south <= small.south <= small.north <= large.north
        and large.west <= small.west <= small.east <= large.east
    )


def _rectangle_in_circle(r: Rectangle, circle: Circle) -> bool:
    """Return whether all corners are inside: with less than 90 degrees of longitude to each, no edge leaves it."""
    near = all(abs(longitude - circle.longitude) < 900_000_000 for longitude in (r.west, r.east))
    return near and all(contains(circle, corner) for corner in _corner_list(r))


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _between(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    """Return whether `c` is on the edge from `a` to `b`."""
    return (
        _turn(a, b, c) == 0
        and min(a[0], b[0]) <= c[0] <= max(a[0], b[0])
        and min(a[1], b[1]) <= c[1] <= max(a[1], b[1])
    )


def _in_polygon(polygon: Corners, place: tuple[int, int]) -> bool:
    inside = False
    for a, b in pairwise([*polygon, polygon[0]]):
        if _between(a, b, place):
            return True
        if (a[0] > place[0]) != (b[0] > place[0]) and (_turn(a, b, place) > 0) == (b[0] > a[0]):
            inside = not inside
    return inside


def _polygon_in_polygon(inner: Corners, outer: Corners) -> bool:
    """Return whether `inner` is inside and touches no edge of `outer` (what touches it counts as not proven)."""
    inner_edges, outer_edges = pairwise([*inner, inner[0]]), list(pairwise([*outer, outer[0]]))
    for (a, b), (c, d) in product(inner_edges, outer_edges):
        crosses = (_turn(a, b, c) > 0) != (_turn(a, b, d) > 0) and (_turn(c, d, a) > 0) != (_turn(c, d, b) > 0)
        if crosses or _between(a, b, c) or _between(a, b, d) or _between(c, d, a) or _between(c, d, b):
            return False
    return _in_polygon(outer, inner[0])
