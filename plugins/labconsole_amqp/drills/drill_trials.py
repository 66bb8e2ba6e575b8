"""The trials `amqp.rotation-drill` and `amqp.revocation-drill`: certificates change while messages flow."""

from __future__ import annotations

import shutil
import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

from labconsole.model.trial import (
    Curve,
    DerivedTable,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
)
from labconsole_amqp.drills.drill_evaluation import (
    REVOCATION_METRICS,
    ROTATION_METRICS,
    evaluate_revocation,
    evaluate_rotation,
)
from labconsole_amqp.drills.drill_parameters import DrillParameters, RevocationParameters, RotationParameters
from labconsole_amqp.drills.drill_pki import create_pki
from labconsole_amqp.drills.drill_roles import OperatorSettings
from labconsole_amqp.trial import curves, latency
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.message_table import message_tables
from labconsole_amqp.trial.messaging_run import SENDER_ROLE, MessagingRun

_OPERATOR_ROLE = "labconsole_amqp.drills.drill_roles:OperatorRole"
_REVOKED_SENDER_ROLE = "labconsole_amqp.drills.drill_roles:RevokedSenderRole"

_FOLDER = "labconsole-drill-"
_STALE_S = 86_400.0

P = TypeVar("P", bound=DrillParameters)


def _remove_stale(parent: Path) -> None:
    """Remove what drills that were killed have left, after a day."""
    oldest = time.time() - _STALE_S
    for folder in parent.glob(f"{_FOLDER}*"):
        with suppress(OSError):  # another user's, or removed meanwhile
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder)


class _Drill(Trial[P]):
    """Messages at a rate over the embedded broker, with a certificate database that is created for the run."""

    series: ClassVar[tuple[Series, ...]] = AmqpTrial.series
    definitions: ClassVar[int] = AmqpTrial.definitions
    live: ClassVar[tuple[LiveChannel, ...]] = AmqpTrial.live
    sender_role: ClassVar[str] = SENDER_ROLE

    @abstractmethod
    def steps(self, parameters: P) -> dict[str, Any]:
        """What the operators do, as `OperatorSettings` without directory and beginning."""

    def run(self, parameters: P, context: RunContext) -> None:
        with TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True) as folder:
            _remove_stale(Path(folder).parent)
            create_pki(Path(folder))
            settings = OperatorSettings(
                directory=Path(folder), before_s=parameters.before, **self.steps(parameters)
            ).model_dump(mode="json")
            run = MessagingRun(parameters.messaging(), context, Path(folder))
            try:
                if run.begin((RoleSpec("operators", _OPERATOR_ROLE, settings),), self.sender_role):
                    run.conduct()
            finally:
                run.stop()  # no role is left that could use the folder

    def curves(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return curves.curves(parameters.messaging(), samples, events)

    def distributions(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Distribution, ...]:
        return latency.distributions(parameters.messaging(), samples, events)

    def derived(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
        return message_tables(parameters.messaging(), samples, events)

    def warnings(self, parameters: P) -> tuple[str, ...]:
        return ("Embedded broker, which follows the certificate database; what other brokers do is in the guide.",)


class RotationDrill(_Drill[RotationParameters]):
    """Replaces a certificate or a root in mid-run."""

    kind: ClassVar[str] = "amqp.rotation-drill"
    title: ClassVar[str] = "Rotation drill"
    description: ClassVar[str] = (
        "What does the rotation of a certificate cost while messages flow, and when is the old one refused?"
    )
    parameters: ClassVar[type[Parameters]] = RotationParameters
    metrics: ClassVar[tuple[MetricKind, ...]] = ROTATION_METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("lost", "reconnect_time", "old_refused_after")

    def steps(self, parameters: RotationParameters) -> dict[str, Any]:
        return {"rotate": parameters.rotate, "overlap_s": parameters.overlap}

    def evaluate(self, parameters: RotationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluate_rotation(parameters, samples, events)


class RevocationDrill(_Drill[RevocationParameters]):
    """Revokes a sender's certificate in mid-run."""

    kind: ClassVar[str] = "amqp.revocation-drill"
    title: ClassVar[str] = "Revocation drill"
    description: ClassVar[str] = (
        "How long does a revoked sender stay connected, and how many of its messages are accepted until then?"
    )
    parameters: ClassVar[type[Parameters]] = RevocationParameters
    metrics: ClassVar[tuple[MetricKind, ...]] = REVOCATION_METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("time_to_close", "time_to_refuse", "accepted_after_revocation")
    sender_role: ClassVar[str] = _REVOKED_SENDER_ROLE

    def steps(self, parameters: RevocationParameters) -> dict[str, Any]:
        return {"revoke": parameters.revoke}

    def evaluate(self, parameters: RevocationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluate_revocation(parameters, samples, events)
