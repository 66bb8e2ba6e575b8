"""Fields and checks that several of the key pool's forms share."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationInfo

from labconsole.errors import UserError
from labconsole.model.parameters import parameter
from labconsole.model.trial import STORED
from labconsole.profiles.timing_profile import load_timing, sign_names, timing_names
from labconsole_keypool.choices import LABELS, SignTime


def sign_time(group: str) -> Any:
    """The field of the name of a profile's time to sign; `timing` is before it."""
    return parameter(
        "Signing time (Si)",
        "Which of the profile's times to sign a request, with one thread; the source measured several",
        group=group,
        kind="choice",
        choices=sign_names,
        labels=LABELS["sign"],
        shown_if={"timing": timing_names},
    )


def is_stored(info: ValidationInfo) -> bool:
    """Whether these are the parameters of a stored run: its timing profile may have been changed or removed since."""
    return bool(info.context and info.context.get(STORED))


def known_timing(timing: str, info: ValidationInfo) -> str:
    """The name of a timing profile that can be read. Raises ValueError: there is none, or it is faulty."""
    if not timing or is_stored(info):
        return timing
    names = timing_names()
    if timing not in names:
        raise ValueError(f"no timing profile is called {timing}; there are: {', '.join(names)}")
    try:
        load_timing(timing)
    except UserError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return timing


def known_sign_time(sign: str, info: ValidationInfo) -> str:
    """A name of `[sign]` in the timing profile; its first one where it has not the usual one. Raises ValueError."""
    timing = None if is_stored(info) else info.data.get("timing")
    names = tuple(load_timing(timing).sign) if timing else (sign,)
    if sign in names:
        return str(sign)
    if sign == SignTime.MALMO:
        return names[0]
    raise ValueError(f"timing profile {timing} has no signing time {sign}; there are: {', '.join(names)}")
