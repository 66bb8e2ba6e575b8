"""The colours of both themes, named by meaning; contrast of texts 4.5:1 (WCAG AA), of lines 3:1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colours:
    """One theme's colours as `#rrggbb`. Those named for a meaning suit text on `window` and `base`."""

    window: str
    """Background of the window."""
    base: str
    """Background of tables, inputs and cards."""
    alternate: str
    """Every second row of a table."""
    sunken: str
    """Background of tracks and inactive segments."""
    border: str
    """Lines between areas, frames of cards."""
    control_border: str
    """Frames of inputs (3:1 on `base`)."""
    text: str
    muted: str
    """Captions, units, help."""
    disabled: str
    """Text of disabled controls."""
    accent: str
    """Background of the primary button and of selections; `on_accent` is the text on it."""
    on_accent: str
    accent_hover: str
    """The primary button under the pointer."""
    link: str
    """Accent as text."""
    good: str
    warning: str
    bad: str
    good_ground: str
    """Background of a message; the meaning's own colour is readable on it."""
    warning_ground: str
    bad_ground: str
    info_ground: str
    scroll: str
    """Handles of scroll bars."""
    grid: str
    """Grid lines of plots."""
    series: tuple[str, ...]
    """Eight colours for measured series, after Okabe and Ito, moved until every pair is at least 14 apart
    (CIE76) for normal, protan, deutan and tritan vision."""


LIGHT = Colours(
    window="#f3f5f8",
    base="#ffffff",
    alternate="#f7f9fb",
    sunken="#e6eaf0",
    border="#d3dae3",
    control_border="#828d9c",
    text="#18212d",
    muted="#515d6d",
    disabled="#8b95a3",
    accent="#1b5a9e",
    on_accent="#ffffff",
    accent_hover="#154a84",
    link="#1b5a9e",
    good="#17683f",
    warning="#875000",
    bad="#b3261e",
    good_ground="#e3f3ea",
    warning_ground="#fdf1dc",
    bad_ground="#fcebe9",
    info_ground="#e6eff9",
    scroll="#b6c0cc",
    grid="#c9d1db",
    series=("#005db3", "#c77105", "#6d9573", "#a52575", "#975a20", "#348ad3", "#1a3782", "#4e4e3a"),
)

DARK = Colours(
    window="#151a21",
    base="#1c232c",
    alternate="#212934",
    sunken="#2a333f",
    border="#333e4b",
    control_border="#75839a",
    text="#e7ecf2",
    muted="#a6b2c1",
    disabled="#6b7889",
    accent="#2b70c0",
    on_accent="#ffffff",
    accent_hover="#2463ab",
    link="#86bdf7",
    good="#6fd19b",
    warning="#f2bd63",
    bad="#ff9a91",
    good_ground="#17352a",
    warning_ground="#3a2e17",
    bad_ground="#44211f",
    info_ground="#1b3049",
    scroll="#46525f",
    grid="#3d4856",
    series=("#038ad5", "#dd6715", "#64e694", "#b27386", "#ffc848", "#b3e8ff", "#a79bca", "#f2fce4"),
)
