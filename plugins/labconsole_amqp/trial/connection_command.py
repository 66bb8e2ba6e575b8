"""`labconsole test-connection`: connects to an external broker as a run would, and says how far it came."""

from __future__ import annotations

import argparse

from pydantic import ValidationError

from labconsole.cli.arguments import parse_settings
from labconsole.cli.exit_codes import BAD_USAGE, FINISHED
from labconsole.cli.secret_prompts import ask
from labconsole.profiles.profile import override
from labconsole.profiles.profile_file import ProfileError, fault_sentence
from labconsole_amqp.choices import BrokerChoice
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.connection_check import check_connection
from labconsole_amqp.trial.identities import secret_requests


def test_connection(arguments: argparse.Namespace) -> int:
    """Print each step that succeeded. Raises UserError: the one that did not; ProfileError, KeyboardInterrupt."""
    settings = parse_settings(arguments.settings)
    if settings is None:
        return BAD_USAGE
    given = {"host": arguments.host, "port": arguments.port, "address": arguments.queue}
    values = {key: override(text, key, AmqpParameters) for key, text in {**settings, **given}.items()}
    try:
        parameters = AmqpParameters.model_validate({**values, "broker": BrokerChoice.EXTERNAL})
    except ValidationError as error:
        raise ProfileError(f"The connection cannot be tested: {fault_sentence(error, AmqpParameters)}") from error
    check_connection(parameters, ask(secret_requests(parameters)), lambda sentence: print(sentence, flush=True))
    return FINISHED
