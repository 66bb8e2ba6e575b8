"""The format of a bundle (`.lcz`): a zip file with a manifest and, for each run, its rows, chunks and files.

    manifest.json                      format, version, when and by which console; campaigns, scenarios, runs
    runs/<uuid>/run.json               the rows of the run, as the database holds them
    runs/<uuid>/series/<number>        chunks of its series, in the order of run.json: for each a header, the payload
    runs/<uuid>/attachments/<number>   the same of its attachments, with bytes in place of rows
    runs/<uuid>/artefacts/<name>

Its members are stored without zip compression (payloads are compressed), so it never unpacks to more than its own size.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from labconsole.errors import UserError
from labconsole.model.metrics import Direction, VerdictKind
from labconsole.model.placement import checked_placement
from labconsole.model.series import BYTES, FILE_NAME, Level, Origin
from labconsole.store import attachments, chunks
from labconsole.store.encoding import time_from_text, time_to_text
from labconsole.store.errors import StoreError
from labconsole.store.records import RunStatus
from labconsole.store.samples import StoredChunk, series_columns

FORMAT: Final = "labconsole bundle"
VERSION: Final = 5
MANIFEST = "manifest.json"
LARGEST_JSON = 256 * 1024 * 1024
"""The most bytes of the manifest, and of the rows of one run."""
_CHUNK = struct.Struct("<QQQ32s")
"""Before each payload: sequence number, rows, bytes of the payload, hash in the chain."""
_DTYPE = re.compile(rf"[iu][1248]|f[248]|{BYTES}")


class BundleError(UserError):
    """A file that cannot be imported as a bundle; nothing of it was."""


def signature_path(bundle: Path) -> Path:
    """The file next to `bundle` that has its signature (`labconsole.agreements.signed_bundles`)."""
    return bundle.with_name(f"{bundle.name}.p7s")


def run_member(uuid: str) -> str:
    """The member with the rows of a run."""
    return f"runs/{uuid}/run.json"


def series_member(uuid: str, number: int) -> str:
    """The member with the chunks of series `number` of a run."""
    return f"runs/{uuid}/series/{number}"


def attachment_member(uuid: str, number: int) -> str:
    """The member with the chunks of attachment `number` of a run."""
    return f"runs/{uuid}/attachments/{number}"


def has_chunks(member: str) -> bool:
    """Whether this member has chunks of a series or an attachment."""
    return "/series/" in member or "/attachments/" in member


def artefact_member(uuid: str, name: str) -> str:
    """The member with an artefact of a run."""
    return f"runs/{uuid}/artefacts/{name}"


def _json_of(kind: type) -> AfterValidator:
    """Text that is JSON of this kind."""

    def check(text: str) -> str:
        try:
            value = json.loads(text)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not isinstance(value, kind):
            raise ValueError(f"it is not JSON {kind.__name__}")
        return text

    return AfterValidator(check)


def _one_of(names: type[StrEnum]) -> AfterValidator:
    return AfterValidator(lambda text: str(names(text)))


def _checked(holds: Callable[[str], bool], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not holds(text):
            raise ValueError(f"it is not {what}")
        return text

    return AfterValidator(check)


def _is_columns(text: str) -> bool:
    try:
        columns = series_columns(text)
    except StoreError:
        return False
    stored = json.loads(text)  # name, dtype, unit and title of each, and nothing else of a `Column`
    if not all(len(fields) == 4 and all(isinstance(field, str) for field in fields) for fields in stored):
        return False
    names = {column.name for column in columns}
    return len(names) == len(columns) > 0 and all(_DTYPE.fullmatch(column.dtype) for column in columns)


def _is_time(text: str) -> bool:
    try:
        return time_to_text(time_from_text(text)) == text
    except OverflowError:  # in UTC it is before the year 1 or after 9999
        return False


_Text = Annotated[str, _checked(lambda text: "\0" not in text, "text")]
_Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Object = Annotated[str, _json_of(dict)]
_List = Annotated[str, _json_of(list)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
_Time = Annotated[str, _checked(_is_time, "a time in UTC")]
_Final = Annotated[str, _one_of(RunStatus), _checked(lambda text: RunStatus(text).final, "the status of an ended run")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


_M = TypeVar("_M", bound=_Model)


class CampaignRow(_Model):
    """Row of table `campaign`."""

    name: _Text
    title: _Text
    profile_text: _Text
    order_seed: _Number
    sites: _List
    created: _Time


class ScenarioRow(_Model):
    """Row of table `scenario`."""

    position: _Count
    name: _Text
    kind: _Text
    parameters: _Object
    thresholds: _Object
    placement: Annotated[str, AfterValidator(checked_placement)] = "{}"


class RunEntry(_Model):
    """A run in the manifest: `campaign` counts its campaigns, `scenario` is the position in that."""

    uuid: _Uuid
    campaign: _Count
    scenario: _Count


class Campaign(_Model):
    """A campaign in the manifest with those of its scenarios that have runs in the bundle."""

    row: CampaignRow
    scenarios: list[ScenarioRow]


class Manifest(_Model):
    """The manifest of a bundle."""

    format: Literal["labconsole bundle"]
    version: Literal[1, 2, 3, 4, 5]
    console: _Text
    written: _Time
    campaigns: Annotated[list[Campaign], Field(max_length=10_000)]
    runs: Annotated[list[RunEntry], Field(min_length=1, max_length=10_000)]


class RunColumns(_Model):
    """Row of table `run`."""

    uuid: _Uuid
    repeat: _Count
    position: _Count
    status: _Final
    reason: _Text
    seed: _Number
    created: _Time
    started: _Time | None
    ended: _Time | None
    provenance: _Object
    warnings: _List
    definitions: _Count = 1


class SeriesRow(_Model):
    """Row of table `series`; `link` is the head of its hash chain."""

    role: _Text
    name: _Text
    title: _Text
    origin: Annotated[str, _one_of(Origin)]
    columns: Annotated[str, _checked(_is_columns, "a list of columns")]
    chunks: _Count
    rows: _Count
    link: _Sha256


class EventRow(_Model):
    """Row of table `event`."""

    role: _Text
    seq: _Number
    t_ns: _Number
    source: _Text
    level: Annotated[str, _one_of(Level)]
    name: _Text
    message: _Text
    data: _Object


class MetricRow(_Model):
    """Row of table `metric`."""

    position: _Count
    name: _Text
    value: float
    unit: _Text
    direction: Annotated[str, _one_of(Direction)]
    origin: Annotated[str, _one_of(Origin)]
    labels: _Object
    samples: _Number
    not_judged: _Text = ""
    uncertainty: Annotated[float, Field(ge=0)] = 0.0


class VerdictRow(_Model):
    """Row of table `verdict`."""

    position: _Count
    name: _Text
    result: Literal["pass", "fail", "unknown", "warning", "not applicable"]
    reason: _Text
    evidence: _Object
    kind: Annotated[str, _one_of(VerdictKind)] = VerdictKind.FINDING


class ArtefactRow(_Model):
    """Row of table `artefact`."""

    name: Annotated[str, _checked(lambda text: FILE_NAME.fullmatch(text) is not None, "the name of an artefact")]
    media_type: _Text
    sha256: _Sha256


class RoleRow(_Model):
    """Row of table `role`."""

    name: _Text
    host: _Text
    clock_domain: _Text


class RoleFileRow(_Model):
    """Row of table `role_file`."""

    role: _Text
    key: _Text
    name: _Text
    size: _Count
    sha256: _Sha256


class AttachmentRow(_Model):
    """Row of table `attachment`; `link` is the head of its hash chain, `sha256` is None where it was cut."""

    role: _Text
    name: Annotated[str, _checked(lambda text: FILE_NAME.fullmatch(text) is not None, "the name of an attachment")]
    media_type: _Text
    chunks: _Count
    size: _Count
    link: _Sha256
    sha256: _Sha256 | None


class EvidenceRow(_Model):
    """Row of table `evidence`."""

    digest: _Sha256
    sealed: _Time


class TagRow(_Model):
    """Row of table `tag`."""

    name: _Text


class NoteRow(_Model):
    """Row of table `note`."""

    text: _Text
    changed: _Time


class RunRows(_Model):
    """All rows of a run but its chunks, by table."""

    run: RunColumns
    series: list[SeriesRow]
    event: list[EventRow]
    metric: list[MetricRow]
    verdict: list[VerdictRow]
    artefact: list[ArtefactRow]
    role: list[RoleRow] = []
    role_file: list[RoleFileRow] = []
    attachment: list[AttachmentRow] = []
    evidence: Annotated[list[EvidenceRow], Field(min_length=1, max_length=1)]
    tag: list[TagRow]
    note: Annotated[list[NoteRow], Field(max_length=1)]


def chunk_bytes(chunk: StoredChunk) -> bytes:
    """A chunk as stored in the member of a series or attachment."""
    return _CHUNK.pack(chunk.seq, chunk.rows, len(chunk.payload), chunk.sha256) + chunk.payload


def chunk_size(chunk: StoredChunk) -> int:
    """Bytes of a chunk as stored in the member of a series or attachment."""
    return _CHUNK.size + len(chunk.payload)


def chunks_of_series(read: Callable[[int], bytes], run_uuid: str, series: SeriesRow) -> Iterator[StoredChunk]:
    """The chunks of a series member, each verified by the hash chain and its columns.

    `read` gives the next so many bytes of the member. Raises BundleError.
    """
    columns = series_columns(series.columns)
    link = chunks.first_link(run_uuid, series.role, series.name, columns)
    what = f"Series {series.name} from {series.role} of run {run_uuid} is damaged"
    return _chunks(read, series, series.rows, link, chunks.row_bytes(columns), what)


def chunks_of_attachment(read: Callable[[int], bytes], run_uuid: str, file: AttachmentRow) -> Iterator[StoredChunk]:
    """The chunks of an attachment's member, as `chunks_of_series`. Raises BundleError."""
    link = attachments.first_link(run_uuid, file.role, file.name, file.media_type)
    what = f"Attachment {file.name} from {file.role} of run {run_uuid} is damaged"
    return _chunks(read, file, file.size, link, 1, what)


def _chunks(
    read: Callable[[int], bytes], declared: SeriesRow | AttachmentRow, total: int, link: bytes, width: int, what: str
) -> Iterator[StoredChunk]:
    """The chunks that are `declared`, with `total` rows of `width` bytes or more, chained to `link`."""
    rows = 0
    for number in range(declared.chunks):
        header = read(_CHUNK.size)
        if len(header) < _CHUNK.size:
            raise BundleError(f"{what}: {declared.chunks} chunks are declared, {number} are there.")
        seq, count, size, sha256 = _CHUNK.unpack(header)
        if seq != number or size > chunks.LARGEST_CHUNK or count * width > chunks.LARGEST_CHUNK:
            raise BundleError(f"{what}: chunk {number} is not what it should be.")
        payload = read(size)
        link = chunks.next_link(link, seq, count, payload)
        if link != sha256:
            raise BundleError(f"{what}: the hash of chunk {number} is wrong.")
        yield StoredChunk(seq, count, sha256, payload)
        rows += count
    if read(1) or rows != total or link.hex() != declared.link:
        raise BundleError(f"{what}: it does not end as declared.")


def check_decoding(chunk: StoredChunk, series: SeriesRow) -> None:
    """Raise BundleError unless the payload of a chunk holds its rows."""
    try:
        chunks.decode(series_columns(series.columns), chunk.rows, chunk.payload)
    except chunks.ChunkError as error:
        raise BundleError(f"Chunk {chunk.seq} of series {series.name} is damaged: {error}.") from error


def unpacked(chunk: StoredChunk, file: AttachmentRow) -> bytes:
    """The bytes of an attachment's chunk. Raises BundleError unless its payload holds them."""
    try:
        return chunks.unpack(chunk.rows, chunk.payload)
    except chunks.ChunkError as error:
        raise BundleError(f"Chunk {chunk.seq} of attachment {file.name} is damaged: {error}.") from error


def parsed_manifest(data: bytes) -> Manifest:
    """The manifest of a bundle. Raises BundleError for another format, a newer version, or damage."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BundleError("It is not a bundle of the lab console.")
    version = found.get("version")
    if isinstance(version, int) and version > VERSION:
        raise BundleError(
            f"It was written by a newer lab console (bundle version {version}, this one reads up to {VERSION}): update "
            "the console."
        )
    return _parsed(Manifest, data)


def parsed_rows(data: bytes) -> RunRows:
    """The rows of a run. Raises BundleError for damage."""
    return _parsed(RunRows, data)


def _parsed(model: type[_M], data: bytes) -> _M:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BundleError(f"It is damaged or foreign ({where}: {first['msg']}).") from error
