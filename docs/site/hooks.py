"""Hooks of `mkdocs build`: contents, the console's own font, and a search index for pages opened from the disk."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
CONTENTS = ROOT / "docs" / "contents.toml"
FONTS = ROOT / "resources" / "fonts"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the contents that the window shows, too."""
    nav: list[object] = []
    for section in tomllib.loads(CONTENTS.read_text("utf-8"))["sections"]:
        nav += [{section["title"]: section["pages"]}] if section["title"] else section["pages"]
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the fonts of the console, so that no page asks the network for one."""
    for font in sorted(FONTS.iterdir()):
        files.append(File.generated(config, f"site/{font.name}", abs_src_path=str(font)))
    return files


@event_priority(-100)  # after the search plugin
def on_post_build(config: MkDocsConfig) -> None:
    """Turn the index into a script: a page opened from the disk may load scripts, but no JSON and no worker."""
    folder = Path(config.site_dir, "search")
    index = folder / "search_index.json"
    (folder / "search_index.js").write_text(f"var searchIndex = {index.read_text('utf-8')};\n", "utf-8")
    index.unlink()
