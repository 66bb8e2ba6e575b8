"""Fonts for names in any script, on Linux; standard library only, because the bootstrap reads it too.

The console brings Inter along, which has Latin, Greek and Cyrillic. Other scripts in a certificate (a State may write
its name in Thai or Chinese) are drawn with the system's fonts, and as empty boxes where there are none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# What is to be drawn -> names of font files that have it (glob patterns), and the package of Debian and Ubuntu.
SCRIPTS = {
    "Chinese, Japanese, Korean": (
        ("*CJK*", "SourceHanSans*", "wqy-microhei*", "unifont*"),
        "fonts-wqy-microhei",
    ),
    "Arabic, Thai, and the scripts of India and South-East Asia": (
        ("NotoSansThai*", "NotoSansKhmer*", "unifont*"),
        "fonts-noto-core",
    ),
}


def folders() -> list[Path]:
    """Return where a Linux system and its user keep fonts, as far as these folders exist."""
    home = Path.home()
    places = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts")
    return [place for place in places if place.is_dir()]


def there(patterns: Iterable[str]) -> bool:
    """Say whether a font file of one of these names is installed; takes milliseconds."""
    wanted = tuple(patterns)
    return any(file.match(pattern) for place in folders() for file in place.rglob("*.[to]t[fc]") for pattern in wanted)


def missing() -> list[str]:
    """Return the scripts of `SCRIPTS` that no font is installed for; meaningful on Linux only."""
    return [script for script, (patterns, _) in SCRIPTS.items() if not there(patterns)]
