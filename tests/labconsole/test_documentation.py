"""The documentation of the console: contents, headings, links and the search in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.documentation import Documentation, anchor_of, target_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def documentation() -> Documentation:
    return Documentation()


def test_the_documentation_of_the_checkout_is_found(documentation: Documentation) -> None:
    assert documentation.folder == ROOT / "docs"
    assert [chapter.title for chapter in documentation.chapters[:3]] == ["", "Tutorials", "How-to recipes"]
    page = documentation.page("how-to/rotate-a-certificate.md")
    assert page is not None and page.title == "Rotate a certificate or a root before it expires"
    assert documentation.page("how-to/nothing.md") is None


def test_search_finds_sections_with_all_words_and_titles_first(documentation: Documentation) -> None:
    hits = documentation.search("low-water mark")
    assert hits and all("low-water" in f"{hit.section.title} {hit.section.text}".lower() for hit in hits)
    (best, *others) = documentation.search("Trust bundles")
    assert best.section.title == "Trust bundles"
    assert others
    assert documentation.search("low-water xylophone") == []
    assert documentation.search("  ") == []


def test_a_hit_names_the_heading_of_its_section(tmp_path: Path) -> None:
    (tmp_path / "contents.toml").write_text('[[sections]]\ntitle = ""\npages = ["one.md"]\n')
    (tmp_path / "one.md").write_text("# One\n\nfirst\n\n## Its `second` part\n\n```\n# no heading\nzebra\n```\n")
    (hit,) = Documentation(tmp_path).search("zebra")
    assert hit.target == "one.md#its-second-part"
    assert [section.title for section in hit.page.sections] == ["One", "Its second part"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Start it", "start-it"),
        ("One number, two meanings: 0x210A", "one-number-two-meanings-0x210a"),
        ("`keypool.fill` and [a link](x.md)", "keypoolfill-and-a-link"),
        ("TLS is done by Python's ssl", "tls-is-done-by-pythons-ssl"),
    ],
)
def test_anchors_are_those_of_the_site(heading: str, anchor: str) -> None:
    markdown = pytest.importorskip("markdown")
    assert anchor_of(heading) == anchor
    assert f'id="{anchor}"' in markdown.markdown(f"## {heading}", extensions=["toc"])


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("how-to/install.md", "../glossary.md#run", "glossary.md#run"),
        ("how-to/install.md", "find-runs.md", "how-to/find-runs.md"),
        ("how-to/install.md", "#start-it", "how-to/install.md#start-it"),
        ("index.md", "how-to/install.md", "how-to/install.md"),
    ],
)
def test_links_lead_from_page_to_page(page: str, link: str, target: str) -> None:
    assert target_of(page, link) == target
