"""Apache ActiveMQ Artemis: obtained by Maven, configured without its console, started without its scripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import escape

from labconsole.security.private_files import write_private
from real_brokers import java_archives
from real_brokers.java_archives import Archive
from real_brokers.settings import HOST, BrokerSettings, Program, RealBroker, TlsFiles, write_java_stores

_ARCHIVE = Archive(
    "org.apache.activemq:apache-artemis:2.44.0:tar.gz:bin",
    "1030320a8d1af6376361cd750bef12ef3cf7babc7a363bc6097340961d1e3e29",
    "apache-artemis-2.44.0",
)
_ROLE = "clients"
_BUFFERS = "tcpSendBufferSize=1048576;tcpReceiveBufferSize=1048576"
_AMQP = f"protocols=AMQP;amqpCredits=1000;amqpLowCredits=300;amqpDuplicateDetection=false;{_BUFFERS}"

_BROKER = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>labconsole</name>
    <persistence-enabled>true</persistence-enabled>
    <journal-type>NIO</journal-type>
    <journal-pool-files>10</journal-pool-files>
    <journal-directory>{data}/journal</journal-directory>
    <bindings-directory>{data}/bindings</bindings-directory>
    <paging-directory>{data}/paging</paging-directory>
    <large-messages-directory>{data}/large-messages</large-messages-directory>
    <acceptors>
      <acceptor name="plain">{plain}</acceptor>
      <acceptor name="tls">{tls}</acceptor>
    </acceptors>
    <security-settings>
      <security-setting match="#">
        <permission type="send" roles="{role}"/>
        <permission type="consume" roles="{role}"/>
        <permission type="browse" roles="{role}"/>
      </security-setting>
    </security-settings>
    <address-settings>
      <address-setting match="#">
        <auto-create-queues>false</auto-create-queues>
        <auto-create-addresses>false</auto-create-addresses>
        <max-delivery-attempts>-1</max-delivery-attempts>
        <address-full-policy>BLOCK</address-full-policy>
        <max-size-messages>{depth}</max-size-messages>
      </address-setting>
    </address-settings>
    <addresses>
{queues}
    </addresses>
  </core>
</configuration>
"""
_QUEUE = (
    '      <address name="{name}"><anycast><queue name="{name}"><durable>true</durable></queue></anycast></address>'
)

_BOOTSTRAP = """<?xml version="1.0" encoding="UTF-8"?>
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="tls"/>
  <server configuration="{broker}"/>
</broker>
"""

_MANAGEMENT = """<?xml version="1.0" encoding="UTF-8"?>
<management-context xmlns="http://activemq.apache.org/schema"/>
"""

_LOGIN = """plain {{
  org.apache.activemq.artemis.spi.core.security.jaas.{plain};
}};
tls {{
  org.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule required
    org.apache.activemq.jaas.textfiledn.user="certificate-users.properties"
    org.apache.activemq.jaas.textfiledn.role="roles.properties";
}};
"""
_ANYONE = f"""GuestLoginModule required
    org.apache.activemq.jaas.guest.user="anonymous"
    org.apache.activemq.jaas.guest.role="{_ROLE}\""""
_USER = """PropertiesLoginModule required
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties\""""

# Without the last two lines it would log each message.
_LOG = """rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5level [%logger] %msg%n
logger.audit.name = org.apache.activemq.audit
logger.audit.level = OFF
"""


class Artemis(RealBroker):
    """Artemis 2.44: messages in memory, durable ones also in a journal, large ones (100 KB) in files."""

    title: ClassVar[str] = "Apache ActiveMQ Artemis"

    def install(self, software: Path) -> None:
        java_archives.install(_ARCHIVE, software)

    def configure(self, settings: BrokerSettings, software: Path) -> list[Program]:
        stores = write_java_stores(settings)
        users = {settings.user: settings.password or ""} if settings.user else {}
        members = ",".join(_property_value(name) for name in (*users, *settings.clients))
        for name, text in {
            "broker.xml": _broker(settings, stores),
            "bootstrap.xml": _BOOTSTRAP.format(broker=(settings.configuration / "broker.xml").as_uri()),
            "management.xml": _MANAGEMENT,
            "login.config": _LOGIN.format(plain=_USER if users else _ANYONE),
            "users.properties": _properties(users),
            "certificate-users.properties": _properties({name: _subject_pattern(name) for name in settings.clients}),
            "roles.properties": f"{_ROLE}={members}\n",
            "log4j2.properties": _LOG,
        }.items():
            write_private(settings.configuration / name, text.encode())
        home, etc = java_archives.folder_of(_ARCHIVE, software), settings.configuration
        properties = {
            "artemis.home": home,
            "artemis.instance": settings.folder,
            "artemis.instance.etc": etc,
            "data.dir": settings.data,
            "java.security.auth.login.config": etc / "login.config",
            "log4j2.configurationFile": etc / "log4j2.properties",
            "log4j2.disableJmx": "true",
        }
        opened = ["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"]
        given = [f"-D{name}={value}" for name, value in properties.items()]
        start = ["-cp", str(home / "lib" / "artemis-boot.jar"), "org.apache.activemq.artemis.boot.Artemis", "run"]
        command = [java_archives.java(), "-Xms512M", "-Xmx2G", *opened, *given, *start]
        return [Program(command, java_archives.environment())]

    def version(self, settings: BrokerSettings) -> str:
        return _ARCHIVE.coordinates.split(":")[2]


def _broker(settings: BrokerSettings, stores: TlsFiles) -> str:
    mechanism = "PLAIN" if settings.user else "ANONYMOUS"
    plain = f"tcp://{HOST}:{settings.port}?{_AMQP};saslMechanisms={mechanism};securityDomain=plain"
    secure = (
        f"sslEnabled=true;enabledProtocols=TLSv1.2,TLSv1.3;needClientAuth=true;keyStoreType=PKCS12;"
        f"keyStorePath={stores.key};keyStorePassword={stores.password};trustStoreType=PKCS12;"
        f"trustStorePath={stores.trust};trustStorePassword={stores.password}"
    )
    tls = f"tcp://{HOST}:{settings.tls_port}?{_AMQP};saslMechanisms=EXTERNAL;securityDomain=tls;{secure}"
    return _BROKER.format(
        data=escape(str(settings.data)),
        plain=escape(plain),
        tls=escape(tls),
        role=_ROLE,
        depth=settings.depth,
        queues="\n".join(_QUEUE.format(name=escape(name)) for name in settings.queues),
    )


def _subject_pattern(name: str) -> str:
    """A regular expression, as the login module wants it, for a subject with this common name.

    Java writes a value with a comma in quotation marks: a subject with one is refused, so that no other value of it can
    contain what looks like a common name.
    """
    return f'/([^"]*, )?CN={re.escape(name)}(, [^"]*)?/'


def _properties(values: dict[str, str]) -> str:
    """A file of Java properties."""
    return "".join(f"{_property_key(key)}={_property_value(value)}\n" for key, value in values.items())


def _property_key(text: str) -> str:
    return re.sub(r"([\\\s=:#!])", r"\\\1", text)


def _property_value(text: str) -> str:
    return text.replace("\\", "\\\\")
