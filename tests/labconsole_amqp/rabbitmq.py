"""A RabbitMQ broker for a test (Debian's rabbitmq-server, AMQP 1.0 plugin), on loopback."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles
from labconsole_amqp.link.connection import Endpoint, connect

_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_START_S = 60.0
# Should the test run itself be killed, nothing stays behind.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")

USER, PASSWORD = "lab", "lab password"


@dataclass(frozen=True)
class RabbitMq:
    """A running broker. Queues are addressed as `/amq/queue/<name>`; `tls_port` is None without certificates.

    `USER` with `PASSWORD` may come in, and on the TLS port every client certificate with a common name in `clients`.
    """

    host: str
    port: int
    tls_port: int | None

    @staticmethod
    def address(queue: str) -> str:
        """The AMQP 1.0 address of a queue that was declared."""
        return f"/amq/queue/{queue}"


def available() -> bool:
    """Whether the server is installed."""
    return _SERVER.exists() and shutil.which("epmd") is not None


@contextmanager
def rabbitmq_broker(
    folder: Path,
    *,
    queues: Sequence[str] = ("q",),
    clients: Sequence[str] = (),
    ca_file: Path | None = None,
    identity: IdentityFiles | None = None,
) -> Iterator[RabbitMq]:
    """Start a broker with its data in `folder`, wait until it serves, and end it with all processes.

    With `ca_file` and `identity` it listens with TLS too, requires a client certificate, and takes SASL EXTERNAL.
    """
    home = folder / "rabbitmq"
    home.mkdir(parents=True)
    port, tls_port, epmd_port, dist_port = _free_ports(4)
    secure = ca_file is not None and identity is not None
    (home / "enabled_plugins").write_text("[rabbitmq_amqp1_0,rabbitmq_auth_mechanism_ssl].\n")
    (home / "definitions.json").write_text(json.dumps(_definitions(queues, clients)))
    lines = [
        f"listeners.tcp.local = 127.0.0.1:{port}",
        f"load_definitions = {home / 'definitions.json'}",
        "loopback_users = none",
        "log.console = false",
        "log.file.level = warning",
        "auth_mechanisms.1 = PLAIN",
        "auth_mechanisms.2 = EXTERNAL",
        "vm_memory_high_watermark.absolute = 1GB",
        "disk_free_limit.absolute = 1MB",
    ]
    if ca_file is not None and identity is not None:
        lines += [
            f"listeners.ssl.local = 127.0.0.1:{tls_port}",
            f"ssl_options.cacertfile = {ca_file}",
            f"ssl_options.certfile = {identity.certificate}",
            f"ssl_options.keyfile = {identity.key}",
            "ssl_options.verify = verify_peer",
            "ssl_options.fail_if_no_peer_cert = true",
            "ssl_cert_login_from = common_name",
        ]
    (home / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"lab{secrets.token_hex(4)}@localhost",
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_BASE": str(home),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
        # The start script then becomes the Erlang machine, instead of a shell that waits for it.
        "RUNNING_UNDER_SYSTEMD": "true",
        "NOTIFY_SOCKET": str(home / "unused"),
    }
    # Our own port mapper, in the foreground: a node without one would start a daemon that outlives it.
    epmd = subprocess.Popen([*_WITH_US, "epmd", "-port", str(epmd_port), "-address", "127.0.0.1"], env=environment)
    with (home / "output").open("wb") as output:
        server = subprocess.Popen(
            [*_WITH_US, str(_SERVER)], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=home
        )
    try:
        _await_amqp(Endpoint("127.0.0.1", port, username=USER, password=PASSWORD), server, home)
        yield RabbitMq("127.0.0.1", port, tls_port if secure else None)
    finally:
        for process in (server, epmd):
            process.kill()
            process.wait()


def _definitions(queues: Sequence[str], clients: Sequence[str]) -> dict[str, object]:
    users = [{"name": USER, "password": PASSWORD, "tags": ""}]
    users += [{"name": name, "password": secrets.token_hex(16), "tags": ""} for name in clients]
    rights = {"vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": users,
        "vhosts": [{"name": "/"}],
        "permissions": [{"user": user["name"], **rights} for user in users],
        "queues": [
            {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}} for name in queues
        ],
    }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def _await_amqp(endpoint: Endpoint, server: subprocess.Popen[bytes], home: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            connect(endpoint).close()
            return
        except UserError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                logs = "\n".join(file.read_text(errors="replace") for file in (home / "log").glob("*.log"))
                raise RuntimeError(
                    f"RabbitMQ did not start: {error}\n{(home / 'output').read_text()}\n{logs}"
                ) from error
            time.sleep(0.2)
