"""Files of timing profiles of one kind, one of which may extend another: the console's, and the operator's own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError

from labconsole.errors import UserError
from labconsole.model.validation_faults import fault_sentence, nearest
from labconsole.paths import data_dir, profiles_dir
from labconsole.security.private_files import write_private

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
M = TypeVar("M", bound=BaseModel)


class TimingFiles(Generic[M]):
    """The profiles in the folder `folder`, each of which `model` describes."""

    def __init__(self, folder: str, model: type[M], *, own: Collection[str] = ()) -> None:
        """`own` keys are never taken from a profile that is extended: they say where all values together come from."""
        self._folder = folder
        self._model = model
        self._own = own

    def names(self) -> tuple[str, ...]:
        """Names of all profiles, sorted: those that come with the console, and the operator's own."""
        return tuple(sorted(self._files()))

    def load(self, name: str) -> M:
        """Read the profile called `name`.

        Raises:
            UserError: there is none of that name, or it is not valid: a sentence for each field that is missing.
        """
        tables = self._tables(name)
        try:
            return self._model.model_validate(tables)
        except ValidationError as error:
            raise UserError(f"Timing profile {name}: {self._fault(error)}") from error

    def save(self, name: str, profile: M, *, replace: bool = False) -> Path:
        """Write an operator's own profile, whole or not at all, and return its path.

        Raises:
            UserError: the name is a published one's, or taken, or no name; or the file cannot be written.
        """
        if _NAME.fullmatch(name) is None:
            raise UserError(f"{name!r} is not a name of a timing profile: use letters, digits, - and _.")
        path = self._own_folder() / f"{name}.toml"
        if (profiles_dir() / self._folder / path.name).exists():
            raise UserError(f"The timing profile {name} comes with the console: choose another name.")
        if path.exists() and not replace:
            raise UserError(f"There is a timing profile {name} already: choose another name, or replace it.")
        content = tomli_w.dumps(profile.model_dump(mode="json", exclude_none=True, exclude_defaults=True))
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(path, content.encode())
        except OSError as error:
            raise UserError(f"Timing profile {name} cannot be written: {error.strerror or error}.") from error
        return path

    def _own_folder(self) -> Path:
        return data_dir() / "profiles" / self._folder

    def _files(self) -> dict[str, Path]:
        """The files by name. A published name always means the built-in file, also where the operator has one."""
        folders = (self._own_folder(), profiles_dir() / self._folder)
        return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}

    def _tables(self, name: str, extended_by: tuple[str, ...] = ()) -> dict[str, object]:
        """The tables of a profile's file over those of the profile that it extends."""
        files = self._files()
        if name not in files:
            raise UserError(f"No timing profile is called {name}{nearest(name, files)}")
        if name in extended_by:
            raise UserError(f"The timing profile {name} extends itself: correct `extends` in {files[name]}.")
        try:
            tables = dict(_parsed(files[name].read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UserError(f"The timing profile {files[name]} cannot be read: {error}.") from error
        base = tables.pop("extends", None)
        if base is None:
            return tables
        extended = self._tables(str(base), (*extended_by, name))
        return {key: value for key, value in extended.items() if key not in self._own} | tables

    def _fault(self, error: ValidationError) -> str:
        """A sentence for each field that is missing; otherwise one for the first fault."""
        missing = [".".join(map(str, fault["loc"])) for fault in error.errors() if fault["type"] == "missing"]
        if not missing:
            return fault_sentence(error, self._model)
        fields = self._model.model_fields
        sentences = []
        for name in missing:
            wanted = fields[name].description if name in fields else None
            sentences.append(f"the key {name} is missing{f': {wanted}' if wanted else ''}.")
        return " ".join([sentences[0], *(sentence[0].upper() + sentence[1:] for sentence in sentences[1:])])


@lru_cache(maxsize=64)
def _parsed(text: str) -> dict[str, object]:
    """The tables of a profile's text, parsed once: a campaign's form reads the same few profiles a hundred times."""
    return tomllib.loads(text)
