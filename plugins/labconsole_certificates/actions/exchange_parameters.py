"""Forms of the actions of the exchange between States: trust bundles, and the proofs by a handshake."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labconsole.trial import Parameters
from labconsole_certificates.exchange.remote_proving import LOOPBACK


class ProveParameters(Parameters):
    """Two States that are to connect to each other, both ways."""

    state_a: Annotated[str, Field(title="One State", description="Name of a State of this console", min_length=1)]
    state_b: Annotated[str, Field(title="Other State", description="Name of a State of this console", min_length=1)]


Here = Annotated[
    str, Field(title="State here", description="Name of a State of this console, whose key is used", min_length=1)
]
Elsewhere = Annotated[str, Field(title="Other State", description="Name of the State at the other end", min_length=1)]


class ConnectParameters(Parameters):
    """A State of this console that is to connect to another one's server."""

    state_a: Here
    state_b: Elsewhere
    host: Annotated[
        str, Field(title="Host", description="Where the other State waits: host name or IP address", min_length=1)
    ]
    port: Annotated[int, Field(title="Port", description="TCP port at that host", ge=1, le=65_535)] = 5671
    server_name: Annotated[
        str,
        Field(
            title="Name of its server",
            description="Name that the server's certificate must have. Empty: that of the certificate known here, else "
            "the host",
            json_schema_extra={"empty": "As its certificate says, else the host"},
        ),
    ] = ""
    foreign: Annotated[
        bool,
        Field(
            title="No console but another TLS server",
            description="Such as an AMQPS broker: nothing is sent to it, and it counts as proven if it asks for the "
            "client's certificate and does not refuse it within 3 s",
        ),
    ] = False


class ListenParameters(Parameters):
    """A State of this console that is to wait for another one's connection."""

    state_a: Here
    state_b: Elsewhere
    address: Annotated[
        str,
        Field(
            title="Address",
            description="IP address of this computer at which it waits: 127.0.0.1 is for this computer only, 0.0.0.0 "
            "for all its networks",
            min_length=1,
        ),
    ] = LOOPBACK
    port: Annotated[int, Field(title="Port", description="TCP port; 0: any free one", ge=0, le=65_535)] = 5671
    wait_s: Annotated[
        int,
        Field(
            title="Wait at most",
            description="How long it waits for the one connection",
            ge=1,
            le=86_400,
            json_schema_extra={"unit": "s"},
        ),
    ] = 300
