"""A folder of sign requests feeds the live service, and each answer is a whole file next to its request."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole_keypool.messages.sign_request import sample
from labconsole_keypool.service.request_folder import RequestFolder
from labconsole_keypool.service.service_parameters import ServiceParameters
from tests.helpers.role_threads import RoleThreads
from tests.labconsole_keypool.live_lab import LiveLab

MAJOR = "{urn:oasis:names:tc:dss:1.0:core:schema}ResultMajor"


def result_of(answer: Path) -> str:
    root = etree.fromstring(answer.read_bytes())
    assert root.get("Profile")
    major = root.find(f".//{MAJOR}")
    assert major is not None and major.text
    return str(major.text).rpartition(":")[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three requests, of which one cannot be read; and a file that is not a request."""
    made = tmp_path / "requests"
    made.mkdir()
    (made / "a.xml").write_bytes(sample(1))
    (made / "b.xml").write_bytes(b"<no request")
    (made / "c.xml").write_bytes(sample(3))
    (made / "notes.txt").write_text("x")
    return made


def test_every_file_is_served_and_its_answer_written_next_to_it(tmp_path: Path, folder: Path) -> None:
    outcome = LiveLab(tmp_path / "run", launcher=RoleThreads()).run(
        key_kind="p-256",
        keys="generated",
        arrivals="constant",
        rate=50.0,
        requests=1,
        content="folder",
        request_folder=str(folder),
    )
    assert outcome.failure is None
    assert (outcome.figures["processed"], outcome.figures["failed"]) == (2, 1)
    assert sorted(path.name for path in folder.iterdir()) == [
        *("a.response.xml", "a.xml", "b.response.xml", "b.xml", "c.response.xml", "c.xml", "notes.txt")
    ]
    results = [result_of(folder / f"{name}.response.xml") for name in "abc"]
    assert results == ["Success", "RequesterError", "Success"]
    assert outcome.artefacts["sign-response.xml"] == (folder / "a.response.xml").read_bytes()


def test_only_requests_without_an_answer_are_served(folder: Path) -> None:
    (folder / "a.response.xml").write_bytes(b"answer")
    requests = RequestFolder(folder)
    assert (len(requests), requests.read(1)) == (2, b"<no request")
    requests.answer(2, b"third")
    requests.close()
    assert (folder / "c.response.xml").read_bytes() == b"third"
    assert (folder / "a.response.xml").read_bytes() == b"answer"
    (folder / "b.xml").unlink()
    assert requests.read(1) == b"", "it is refused as a request that cannot be read"


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda folder: None, "has no sign request: put files in it whose names end with .xml"),
        (lambda folder: (folder / "a.xml", folder / "a.response.xml"), "Every sign request in .* has its answer"),
    ],
)
def test_a_folder_without_work_is_a_sentence(tmp_path: Path, prepare: object, sentence: str) -> None:
    for path in prepare(tmp_path) or ():  # type: ignore[operator]
        path.write_bytes(b"")
    with pytest.raises(UserError, match=sentence):
        RequestFolder(tmp_path)
    with pytest.raises(UserError, match=r"nowhere cannot be read: No such file"):
        RequestFolder(tmp_path / "nowhere")
    with pytest.raises(ValidationError, match="requests from a folder need its path"):
        ServiceParameters(content="folder")


def test_an_answer_that_cannot_be_written_is_a_sentence(folder: Path) -> None:
    requests = RequestFolder(folder)
    (folder / ".a.response.xml.part").mkdir()
    requests.answer(1, b"answer")
    with pytest.raises(UserError, match=r"a\.response\.xml\.part cannot be written: "):
        requests.close()


WRITE = """
import sys
from pathlib import Path
from labconsole_keypool.service.request_folder import RequestFolder

requests = RequestFolder(Path(sys.argv[1]))
for number in range(1, len(requests) + 1):
    requests.answer(number, b"x" * 2_000_000 + b"end")
print("writing", flush=True)
requests.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills by a signal")
def test_a_kill_leaves_whole_answers_only(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02d}.xml").write_bytes(b"x")
    with subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        while not any(tmp_path.glob("*.response.xml")):
            pass
        process.send_signal(signal.SIGKILL)
    answers = list(tmp_path.glob("*.response.xml"))
    assert answers and all(path.read_bytes().endswith(b"xend") for path in answers)
    if len(answers) < 40:
        assert len(RequestFolder(tmp_path)) == 40 - len(answers), "the rest is served by the next run"
