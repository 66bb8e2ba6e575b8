"""The payloads of a run: repeated or cut to drawn sizes, mixed, and what a receiver accepts of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.validation_faults import fault_sentence
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.run_payloads import load_payloads, resized, size_shares
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.payload import load_payload

UNIFORM: dict[str, Any] = {"message_sizes": "uniform", "smallest_size": 10, "largest_size": 1_000}


def test_sizes_are_the_payload_repeated_or_cut() -> None:
    payloads = load_payloads(AmqpParameters(payload="small", **UNIFORM))
    text = load_payload("small").data
    assert len(payloads.bodies) == 32
    assert {len(body) for body in payloads.bodies} == set(AmqpParameters(**UNIFORM).drawn_sizes)
    assert all((text * 100).startswith(body) for body in payloads.bodies)
    assert payloads.largest == max(payloads.bodies, key=len)
    assert [source.data for source in payloads.sources] == [text]


@pytest.mark.parametrize("size", range(1, 9))
def test_a_text_is_not_cut_within_a_character(size: int) -> None:
    data = "aé€".encode()  # 1, 2 and 3 octets
    body = resized(data, size, as_string=True)
    assert len(body) == size
    assert (data * 2).startswith(body.rstrip(b" "))
    assert len(body.decode().rstrip()) >= 1
    assert resized(data, size, as_string=False) == (data * 2)[:size]


def test_a_mix_has_the_three_payloads_as_they_are() -> None:
    parameters = AmqpParameters(message_sizes="mix", share_fpl_tac=0, payload="/no/such/file")
    payloads = load_payloads(parameters)
    assert payloads.bodies == (load_payload("small").data, load_payload("fpl-fixm").data)
    assert size_shares(parameters) == {11: pytest.approx(6 / 7), 42_708: pytest.approx(1 / 7)}


def test_a_receiver_expects_the_payload_of_the_number_and_any_where_it_knows_none() -> None:
    numbered, without = (load_payloads(AmqpParameters(numbered=on, **UNIFORM)) for on in (True, False))
    number = message_number(0, 3)
    own = numbered.of_message(number)
    other = next(body for body in numbered.bodies if body != own)
    assert numbered.expects(own, number) and not numbered.expects(other, number)
    assert numbered.expects(other, None), "a message without its number"
    assert without.expects(own, number) and without.expects(other, number)
    for payloads in (numbered, without):
        assert not payloads.expects(own[:-1] + b"?", number)
        assert not payloads.expects(own + b"?", None)


def test_sizes_of_a_missing_file_are_not_known(tmp_path: Path) -> None:
    assert size_shares(AmqpParameters(payload=str(tmp_path / "none"), **UNIFORM)) is None
    assert size_shares(AmqpParameters(payload="fpl-tac")) == {237: 1.0}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"message_sizes": "uniform", "smallest_size": 500, "largest_size": 400},
            "largest_size: it is below the smallest payload: set it to 500 or more, or `smallest_size` lower.",
        ),
        (
            {"message_sizes": "log-normal", "median_size": 20_000},
            "median_size: it is not between the smallest and the largest payload: set it to 100 to 10000.",
        ),
        (
            {"message_sizes": "mix", "share_small": 0, "share_fpl_tac": 0, "share_fpl_fixm": 0},
            "share_fpl_fixm: all shares are 0: set one of them higher.",
        ),
    ],
    ids=("range", "median", "shares"),
)
def test_sizes_that_cannot_be_drawn_are_refused_only_where_they_matter(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AmqpParameters.model_validate(settings)
    assert fault_sentence(caught.value, AmqpParameters) == sentence
    AmqpParameters.model_validate({**settings, "message_sizes": "payload"})
