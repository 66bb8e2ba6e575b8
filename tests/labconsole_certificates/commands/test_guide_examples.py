"""The documentation's terminal examples of certificates are executed as they are, one after another, by an operator."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.security.pki.reader import PkiReader
from labconsole.security.x509.fingerprints import grouped

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "certificates-on-the-terminal.md"
_ANSWERS_S = 60
_METHODS = ("CSR method", "No-CSR method", "Pinning", "Trust bundles", "OCSP", "Rotation")


def examples() -> dict[str, list[str]]:
    """The code blocks of the page, by the heading above them: their lines without comments."""
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^## (.+)\n\n(?:(?!#|```).*\n)*?```\n((?:.+\n)+?)```$", page, re.MULTILINE)
    assert len(blocks) == page.count("```") // 2, "a block has no heading of its own"
    return {title: [line for line in block.splitlines() if line] for title, block in blocks}


class Operator:
    """The operator at the terminal: confirms, and types fingerprints as the other State reads them out."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.questions: list[str] = []

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        question = self._capsys.readouterr().err
        self.questions.append(question)
        if "(yes/no)" in question or "type yes" in question:
            return "yes\n"
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        state = next(state for state in snapshot.states if f"bundle of {state.name}" in question)
        return f"{grouped(snapshot.roots_of(state.id)[-1].sha256)}\n"


class Shell:
    """Executes the lines of the examples: `labconsole` in this process, what ends with `&` in one of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._background: list[subprocess.Popen[str]] = []

    def __call__(self, line: str) -> None:
        words = shlex.split(line, comments=True)
        if words[:2] == ["kill", "%1"]:
            self._background[0].send_signal(signal.SIGINT)
            return
        assert words.pop(0) == "labconsole", line
        if words[-1] == "&":
            self._begin(words[:-1])
            return
        allowed = 1 if words[-2:] == ["||", "true"] else 0
        code = main(words[:-2] if allowed else words)
        assert code in (0, allowed), f"{line}: exit code {code}"

    def _begin(self, words: list[str]) -> None:
        begin = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        run = f"{begin}from labconsole.cli.main import main; sys.exit(main({words!r}))"
        process = subprocess.Popen(
            [sys.executable, "-P", "-u", "-c", run], cwd=self._directory, stdout=subprocess.PIPE, text=True
        )
        self._background.append(process)
        assert process.stdout is not None
        assert process.stdout.readline(), words  # it says that it waits

    @contextmanager
    def block(self) -> Iterator[None]:
        """What was begun in a block has ended well at its end."""
        try:
            yield
        finally:
            while self._background:
                process = self._background.pop()
                said, _nothing = process.communicate(timeout=_ANSWERS_S)
                assert process.returncode == 0, said


def test_guide_has_an_example_for_every_method() -> None:
    assert [method for method in _METHODS if not any(method in title for title in examples())] == []


@pytest.mark.nightly
def test_examples_of_the_guide_run_unchanged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nightly: alone finds that the commands of the guide, one after another, do not end as its text says.

    That each line is accepted is judged in CI by `test_documents.py`, and what the commands do by `test_commands.py`.
    """
    operator, shell = Operator(capsys), Shell(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", operator)
    monkeypatch.setattr("labconsole.cli.secret_prompts.getpass", lambda _question: "by another way than the file")
    for lines in examples().values():
        with shell.block():
            for line in lines:
                shell(line)
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    assert {(proof.client, proof.server) for proof in snapshot.proofs} == {(1, 2), (2, 1)}
    assert [rotation.status for rotation in snapshot.rotations] == ["finished"]
    assert snapshot.states[1].domain == "b.example b-two.example"
    yes = [question for question in operator.questions if "(yes/no)" in question or "type yes" in question]
    assert len(yes) == 4  # three times trust, and the domain
