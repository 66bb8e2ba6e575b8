"""Regions of certificates: places inside them, and regions inside regions."""

import pytest

from labconsole_v2x.security.regions import contains, distance_m, unproven_inside
from labconsole_v2x.security.structures import Circle, Rectangle, Region

DEGREE = 10_000_000
GRAZ = Circle(470_700_000, 154_400_000, 10_000)
STYRIA = (Rectangle(478_000_000, 135_000_000, 466_000_000, 162_000_000),)
L_SHAPE = ((0, 0), (0, 4 * DEGREE), (DEGREE, 4 * DEGREE), (DEGREE, DEGREE), (4 * DEGREE, DEGREE), (4 * DEGREE, 0))


def test_distance_of_one_degree_is_that_of_the_mean_sphere() -> None:
    assert distance_m((0, 0), (DEGREE, 0)) == pytest.approx(111_195, abs=1)
    assert distance_m((60 * DEGREE, 0), (60 * DEGREE, DEGREE)) == pytest.approx(55_597, rel=1e-4)


@pytest.mark.parametrize(
    ("region", "place", "inside"),
    [
        (GRAZ, (470_700_000 + 890_000, 154_400_000), True),  # 9.9 km north
        (GRAZ, (470_700_000 + 910_000, 154_400_000), False),  # 10.1 km north
        (STYRIA, (466_000_000, 162_000_000), True),
        (STYRIA, (465_999_999, 150_000_000), False),
        (L_SHAPE, (3 * DEGREE, DEGREE // 2), True),
        (L_SHAPE, (3 * DEGREE, 3 * DEGREE), False),
        (L_SHAPE, (DEGREE, 2 * DEGREE), True),
        ((), (0, 0), False),
        (frozenset({40}), (470_700_000, 154_400_000), None),
    ],
)
def test_place_is_inside_region(region: Region, place: tuple[int, int], inside: bool | None) -> None:
    assert contains(region, place) is inside


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        (Circle(470_700_000 + 400_000, 154_400_000, 5_500), GRAZ),
        (GRAZ, STYRIA),
        ((Rectangle(471_000_000, 154_600_000, 470_500_000, 154_200_000),), GRAZ),
        ((Rectangle(470, 470, 460, 480), Rectangle(5, 5, 1, 9)), (Rectangle(500, 0, 0, 1000),)),
        (((100, 100), (100, 200), (200, 150)), (Rectangle(200, 100, 100, 200),)),
        ((Rectangle(3 * DEGREE, 1, 2 * DEGREE, DEGREE - 1),), L_SHAPE),
        (((1, 1), (1, DEGREE - 1), (3 * DEGREE, 5)), L_SHAPE),
        (L_SHAPE, L_SHAPE),
        (frozenset({40}), frozenset({40, 276})),
    ],
)
def test_nested_region_is_proven_inside(inner: Region, outer: Region) -> None:
    assert unproven_inside(inner, outer) is None


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        (Circle(470_700_000 + 400_000, 154_400_000, 5_600), GRAZ),
        (STYRIA, GRAZ),
        (Circle(470_700_000, 161_900_000, 10_000), STYRIA),
        ((Rectangle(470, 470, 460, 480), Rectangle(5, 5, 1, 9)), (Rectangle(500, 400, 0, 1000),)),
        ((Rectangle(3 * DEGREE, 1, 2 * DEGREE, 3 * DEGREE),), L_SHAPE),
        (((1, 1), (3 * DEGREE, 5), (1, 3 * DEGREE)), L_SHAPE),  # all corners inside, one edge cuts the corner
        ((Rectangle(3 * DEGREE, 2 * DEGREE, 2 * DEGREE, 3 * DEGREE),), L_SHAPE),
        (frozenset({40, 756}), frozenset({40, 276})),
        (GRAZ, frozenset({40})),
        (frozenset({40}), STYRIA),
        ((), STYRIA),
        (tuple((500 + k, 500 + k * k) for k in range(200)), (*((0, k) for k in range(100)), *L_SHAPE[1:])),
    ],
)
def test_region_that_is_not_proven_inside_is_refused(inner: Region, outer: Region) -> None:
    assert unproven_inside(inner, outer)
