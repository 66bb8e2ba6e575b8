"""Apache Qpid Broker-J: obtained by Maven, configured by one JSON file, with its store Berkeley DB Java Edition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

from labconsole.security.private_files import write_private
from real_brokers import java_archives
from real_brokers.java_archives import Archive
from real_brokers.settings import (
    HOST,
    LARGEST_MESSAGE,
    BrokerSettings,
    Program,
    RealBroker,
    TlsFiles,
    write_java_stores,
)

_ARCHIVE = Archive(
    "org.apache.qpid:apache-qpid-broker-j:9.2.1:tar.gz:bin",
    "bfbfbcffc6a8ad904f97edc6dcebc688f232b582843b9cb1f240decb8b8a181a",
    "qpid-broker/9.2.1",
)
_HOST_NAME = "labconsole"
"""Of the virtual host, which has the queues."""
_ANONYMOUS = "ANONYMOUS"
"""The name of clients without identity."""


class BrokerJ(RealBroker):
    """Broker-J 9.2: messages in direct memory, durable ones also in the store."""

    title: ClassVar[str] = "Apache Qpid Broker-J"

    def install(self, software: Path) -> None:
        java_archives.install(_ARCHIVE, software)

    def configure(self, settings: BrokerSettings, software: Path) -> list[Program]:
        stores = write_java_stores(settings)
        file = settings.configuration / "broker.json"
        write_private(file, json.dumps(_broker(settings, stores), indent=2).encode())
        libraries = java_archives.folder_of(_ARCHIVE, software) / "lib" / "*"
        memory = ["-Xmx512m", "-XX:MaxDirectMemorySize=1536m"]
        given = f"-Dderby.stream.error.file={settings.log / 'derby.log'}"
        start = [given, "-cp", str(libraries), "org.apache.qpid.server.Main"]
        options = ["-st", "Memory", "-icp", str(file), "-prop", f"qpid.work_dir={settings.data}"]
        return [Program([java_archives.java(), *memory, *start, *options], java_archives.environment())]

    def version(self, settings: BrokerSettings) -> str:
        return _ARCHIVE.coordinates.split(":")[2]


def _broker(settings: BrokerSettings, stores: TlsFiles) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": "plain", "type": "Anonymous"}
    if settings.user:
        user = {"name": settings.user, "type": "managed", "password": settings.password}
        # The broker refuses PLAIN without TLS unless its configuration says that this is meant.
        plain = {"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": [user]}
    return {
        "name": "labconsole",
        "modelVersion": "9.1",
        "context": {"qpid.max_message_size": str(LARGEST_MESSAGE)},
        "authenticationproviders": [plain, {"name": "external", "type": "External"}],
        "keystores": [
            {
                "name": "broker",
                "type": "FileKeyStore",
                "keyStoreType": "pkcs12",
                "storeUrl": str(stores.key),
                "password": stores.password,
            }
        ],
        "truststores": [
            {
                "name": "authorities",
                "type": "FileTrustStore",
                "trustStoreType": "pkcs12",
                "storeUrl": str(stores.trust),
                "password": stores.password,
            }
        ],
        "ports": [
            _port("plain", settings.port, transports=["TCP"], authenticationProvider="plain"),
            _port(
                "tls",
                settings.tls_port,
                transports=["SSL"],
                authenticationProvider="external",
                keyStore="broker",
                trustStores=["authorities"],
                needClientAuth=True,
            ),
        ],
        "accesscontrolproviders": [
            {
                "name": "clients",
                "type": "RuleBased",
                "priority": 1,
                "rules": _rules([settings.user or _ANONYMOUS, *settings.clients]),
                "defaultResult": "DENIED",
            }
        ],
        "virtualhostnodes": [
            {
                "name": _HOST_NAME,
                "type": "Memory",
                "defaultVirtualHostNode": True,
                "virtualHostInitialConfiguration": json.dumps(_virtual_host(settings)),
            }
        ],
        "brokerloggers": [_logger()],
    }


def _port(name: str, number: int, **more: object) -> dict[str, Any]:
    aliases = [{"name": kind, "type": kind} for kind in ("nameAlias", "defaultAlias", "hostnameAlias")]
    return {
        "name": name,
        "type": "AMQP",
        "port": str(number),
        "bindingAddress": HOST,
        "protocols": ["AMQP_1_0"],
        "virtualhostaliases": aliases,
        **more,
    }


def _rules(names: list[str]) -> list[dict[str, Any]]:
    return [
        {"identity": name, "operation": "ALL", "objectType": "ALL", "attributes": {}, "outcome": "ALLOW"}
        for name in names
    ]


def _virtual_host(settings: BrokerSettings) -> dict[str, Any]:
    """The virtual host with its queues. Their ids stay the same, since the store knows messages by the queue's id."""
    return {
        "type": "BDB",
        "name": _HOST_NAME,
        "id": str(uuid5(NAMESPACE_URL, _HOST_NAME)),
        "modelVersion": "9.1",
        "storePath": str(settings.data / "messages"),
        "queues": [
            {
                "name": queue,
                "id": str(uuid5(NAMESPACE_URL, f"{_HOST_NAME}/{queue}")),
                "type": "standard",
                "durable": True,
                "overflowPolicy": "PRODUCER_FLOW_CONTROL",
                "maximumQueueDepthMessages": settings.depth,
            }
            for queue in settings.queues
        ],
    }


def _logger() -> dict[str, Any]:
    rules = [("Root", "ROOT", "WARN"), ("Qpid", "org.apache.qpid.*", "INFO"), ("Operation", "qpid.message.*", "INFO")]
    return {
        "name": "console",
        "type": "Console",
        "brokerloginclusionrules": [
            {"name": name, "type": "NameAndLevel", "loggerName": logger, "level": level}
            for name, logger, level in rules
        ],
    }
