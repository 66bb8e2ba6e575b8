"""Runs of an agreement: whether they had the parameters that both owners agreed upon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labconsole.agreements.agreement_files import agreed_proposal
from labconsole.agreements.review import console_run, counterpart_of
from labconsole.analysis.parameter_texts import value_text
from labconsole.model.trial import TRIAL_ID, Trial


def departures(trial: Trial[Any], values: Mapping[str, Any]) -> tuple[str, ...] | None:
    """How a run with these parameters departs from its agreement, one sentence each; None: there is no agreement.

    Raises UserError: the agreement's files are damaged, or of another version of the trial.
    """
    proposal = agreed_proposal(str(values.get(TRIAL_ID, "")))
    if proposal is None:
        return None
    accepter = console_run(trial, proposal.parameters)
    part = trial.console_part(trial.parameters.of_stored(values))
    agreed = accepter if part is not None and part.role == accepter.part.role else counterpart_of(accepter)
    titles = {name: field.title or name for name, field in trial.parameters.model_fields.items()}
    return tuple(
        f"{titles[name]} was {value_text(values.get(name))}, and {value_text(value)} was agreed upon."
        for name, value in agreed.values.items()
        if name not in agreed.part.own and values.get(name) != value
    )
