"""RabbitMQ as the system's package has it, with its plugins for AMQP 1.0 and for client certificates."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
from pathlib import Path
from typing import Any, ClassVar

import system_packages
from labconsole.security.private_files import write_private
from processes import SetupError
from real_brokers.settings import HOST, LARGEST_MESSAGE, BrokerSettings, Program, RealBroker, write_pem_files
from system_packages import Need

_PLUGINS = ("rabbitmq_amqp1_0", "rabbitmq_auth_mechanism_ssl")
_ANONYMOUS = "anonymous"
_NODE = "labconsole@localhost"
"""Always the same, since the store has the node's name; the port mapper is the broker's own."""

_ERLANG = (
    "-kernel inet_dist_use_interface {127,0,0,1}",
    *(f"+sbwt{schedulers} none" for schedulers in ("", "dcpu", "dio")),
)
"""Arguments of the Erlang machine: known to this computer alone, and its schedulers do not wait busily."""


class RabbitMq(RealBroker):
    """RabbitMQ 3: the queues are classic ones; senders are slowed down when its memory is full."""

    title: ClassVar[str] = "RabbitMQ"

    def install(self, software: Path) -> None:
        need = Need("RabbitMQ", _is_installed, "rabbitmq-server", "rabbitmq", "RabbitMQ with Erlang", essential=True)
        system_packages.ensure([need])

    def configure(self, settings: BrokerSettings, software: Path) -> list[Program]:
        home = settings.configuration
        for name, text in {
            "enabled_plugins": f"[{','.join(_PLUGINS)}].\n",
            "definitions.json": json.dumps(_definitions(settings)),
            "rabbitmq.conf": _configuration(settings),
        }.items():
            write_private(home / name, text.encode())
        mapper_port, distribution_port = _free_ports(2)
        environment = {
            **{name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
            "HOME": str(settings.folder),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(mapper_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": _NODE,
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_BASE": str(settings.folder),
            "RABBITMQ_MNESIA_BASE": str(settings.data),
            "RABBITMQ_LOG_BASE": str(settings.log),
            "RABBITMQ_PID_FILE": str(settings.data / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(_ERLANG),
            # The start script then becomes the Erlang machine, instead of a shell that waits for it.
            "RUNNING_UNDER_SYSTEMD": "true",
            "NOTIFY_SOCKET": str(home / "unused"),
        }
        # Its own port mapper, in the foreground: a node without one would start a daemon that outlives it.
        mapper = [_tool("epmd"), "-port", str(mapper_port), "-address", HOST]
        return [Program(mapper, environment), Program([_tool("rabbitmq-server")], environment)]

    def version(self, settings: BrokerSettings) -> str:
        log = "\n".join(file.read_text("utf-8", errors="replace") for file in sorted(settings.log.glob("*.log")))
        started = re.findall(r"Starting RabbitMQ (\S+) on Erlang (\S+)", log)
        return f"{started[-1][0]} (Erlang {started[-1][1]})" if started else "of unknown version"

    def address(self, queue: str) -> str:
        return f"/amq/queue/{queue}"


def _is_installed() -> bool:
    return system_packages.has_rabbitmq() and shutil.which("epmd") is not None


def _tool(name: str) -> str:
    """The path of a program of RabbitMQ or Erlang. Raises SetupError.

    Of the server the script itself is preferred: what Debian puts on the search path changes to another user.
    """
    own = next((path for path in map(Path, system_packages.RABBITMQ) if path.name == name and path.is_file()), None)
    found = str(own) if own else shutil.which(name)
    if found is None:
        raise SetupError(f"there is no {name} on the search path: install RabbitMQ with Erlang and start again.")
    return found


def _configuration(settings: BrokerSettings) -> str:
    files = write_pem_files(settings)
    lines = {
        "listeners.tcp.local": f"{HOST}:{settings.port}",
        "listeners.ssl.local": f"{HOST}:{settings.tls_port}",
        "load_definitions": settings.configuration / "definitions.json",
        "loopback_users": "none",
        "log.console": "false",
        "log.file.level": "info",
        "auth_mechanisms.1": "PLAIN",
        "auth_mechanisms.2": "EXTERNAL",
        "amqp1_0.default_user": "none" if settings.user else _ANONYMOUS,
        "max_message_size": LARGEST_MESSAGE,
        "vm_memory_high_watermark.absolute": "1GB",
        "disk_free_limit.absolute": "1MB",
        "ssl_options.cacertfile": files.trust,
        "ssl_options.certfile": files.certificate,
        "ssl_options.keyfile": files.key,
        "ssl_options.password": files.password,
        "ssl_options.verify": "verify_peer",
        "ssl_options.fail_if_no_peer_cert": "true",
        "ssl_options.versions.1": "tlsv1.3",
        "ssl_options.versions.2": "tlsv1.2",
        "ssl_cert_login_from": "common_name",
    }
    return "".join(f"{name} = {value}\n" for name, value in lines.items())


def _definitions(settings: BrokerSettings) -> dict[str, Any]:
    """Users, rights and queues. A user for a certificate gets a password that is stored nowhere else.

    The store keeps users of earlier starts: those that are not wanted now lose their rights and passwords.
    """
    wanted = {settings.user or _ANONYMOUS, *settings.clients}
    known = settings.data / "users.json"
    names = sorted(wanted | (set(json.loads(known.read_text("utf-8"))) if known.is_file() else set()))
    write_private(known, json.dumps(names).encode())
    passwords = {name: secrets.token_urlsafe(32) for name in names}
    if settings.user and settings.password:
        passwords[settings.user] = settings.password
    granted, refused = (dict.fromkeys(("write", "read"), pattern) for pattern in (".*", ""))
    return {
        "users": [{"name": name, "password": passwords[name], "tags": ""} for name in names],
        "vhosts": [{"name": "/"}],
        "permissions": [
            {"user": name, "vhost": "/", "configure": "", **(granted if name in wanted else refused)} for name in names
        ],
        "queues": [
            {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
            for name in settings.queues
        ],
    }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [int(sock.getsockname()[1]) for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports
