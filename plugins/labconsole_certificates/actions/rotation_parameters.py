"""Forms of the actions that are the steps of a rotation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labconsole.trial import Parameters
from labconsole_certificates.operations.fields import CertificateChoice, SuccessorKeyParameters
from labconsole_certificates.rotation.steps import OVERLAP_DAYS

RotationNumber = Annotated[int, Field(title="Rotation", description="Its number in the list of rotations", ge=1)]


class BeginRotationParameters(Parameters):
    """A certificate that is to be replaced."""

    certificate: CertificateChoice
    overlap_days: Annotated[
        int,
        Field(
            title="Overlap",
            description="For so long the old one holds beside the new one after the switch",
            ge=0,
            le=3_650,
            json_schema_extra={"unit": "days"},
        ),
    ] = OVERLAP_DAYS


class RotationParameters(Parameters):
    """A rotation."""

    rotation: RotationNumber


class PrepareRotationParameters(SuccessorKeyParameters, RotationParameters):
    """The successor that is to be made."""

    valid_days: Annotated[
        int | None,
        Field(
            title="Valid for",
            description="Days from now; none: as long as the old one was",
            ge=1,
            le=36_500,
            json_schema_extra={"unit": "days", "empty": "As the old one"},
        ),
    ] = None


class ConfirmRotationParameters(RotationParameters):
    """A peer that has confirmed."""

    peer: Annotated[str, Field(title="State", description="Who says that it trusts the successor", min_length=1)]


class SwitchRotationParameters(RotationParameters):
    """The switch to the successor."""

    wait_for_peers: Annotated[
        bool, Field(title="Only if all peers have confirmed", description="Others would refuse the successor")
    ] = True


class FinishRotationParameters(RotationParameters):
    """The end of the old one."""

    wait_for_overlap: Annotated[
        bool, Field(title="Only after the overlap", description="Until then peers may still use the old one")
    ] = True
