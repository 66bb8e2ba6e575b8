"""The modules that stations compile are those of ETSI's texts, parsed beforehand."""

from __future__ import annotations

import ast

import pytest

from labconsole import paths
from labconsole_v2x.messages.asn1_modules import Release, parsed


@pytest.mark.parametrize("release", [1, 2])
def test_parsed_modules_are_those_of_the_texts(release: Release) -> None:
    stored = ast.literal_eval(paths.resource("asn1", f"release-{release}.parsed").read_text("utf-8"))
    assert stored == parsed(release), "write them again: python -m labconsole_v2x.messages.asn1_modules"
