"""Runs Vanetza's socktap as a peer: packets to and from it by TCP on loopback, and its verdict on each.

socktap writes a line for each packet that its CAM application or its router's security dropped. It reads the lengths,
Ethernet headers and packets of a TCP connection to a port of this process: no other station can be heard.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole_v2x.messages.its_time import LEAP_SECONDS_SINCE_2004
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Certificate
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.stations.capture import BROADCAST, ethernet_frame

ACCEPTED = "accepted"
DROPPED = "dropped"
STATION_ID = 4711
LATITUDE, LONGITUDE = 488_500_000, 23_500_000
"""socktap's position, in 0.1 microdegree."""
MAC = b"\2\0\0\0\0\x77"
STEP_S = 10.0
"""The longest time for a start, a verdict, a packet or the exit."""
MOST_RUN_S = 300
"""It is stopped after this time, should the test process be gone."""
_OWN_MAC = b"\2\0\0\0\0\1"
_VERDICTS = {"received a packet with decodable content": ACCEPTED, "dropped packet because of Decap_": DROPPED}
_FRAME_HEADER = 14


def vanetza_now() -> int:
    """Return the current time in us as socktap counts it: since 2004 like ITS time, but without leap seconds."""
    return its_now() - LEAP_SECONDS_SINCE_2004 * 1_000_000


class Socktap:
    """A running socktap with a ticket; a context manager, which stops it."""

    def __init__(
        self,
        program: str,
        folder: Path,
        ticket: Certificate,
        key: SoftwareKey,
        authorities: Sequence[Certificate] = (),
        *,
        application: str = "ca",
        interval_ms: int = 100,
    ) -> None:
        """Start it; its files are written to `folder`, which exists.

        Raises:
            AssertionError: it does not connect; the message is its output.
        """
        (folder / "ticket.cert").write_bytes(ticket.octets)
        (folder / "ticket.pem").write_bytes(
            key.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        chain = [folder / f"authority-{number}.cert" for number in range(len(authorities))]
        for path, certificate in zip(chain, authorities, strict=True):
            path.write_bytes(certificate.octets)
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(STEP_S)
            self._output, terminal = os.openpty()  # to a terminal, it writes each line at once
            command: list[str | Path] = [
                *("timeout", "--kill-after=5", str(MOST_RUN_S)),
                *(program, "--applications", application, "--station-id", str(STATION_ID)),
                *("--cam-interval", str(interval_ms), "--mac-address", MAC.hex(":")),
                *("--link-layer", "tcp", "--tcp-connect", f"127.0.0.1:{server.getsockname()[1]}"),
                *("--positioning", "static", f"--latitude={LATITUDE / 1e7}", f"--longitude={LONGITUDE / 1e7}"),
                *("--security", "certs-v3", "--crypto-backend", "OpenSSL"),
                *("--certificate", folder / "ticket.cert", "--certificate-key", folder / "ticket.pem"),
            ]
            if chain:
                command += ["--certificate-chain", *chain]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
            os.close(terminal)
            self._lines = ""
            self._received = b""
            try:
                self._connection = server.accept()[0]
            except TimeoutError as error:
                self._read_output(0.0)
                self._stop()
                raise AssertionError(f"socktap does not connect: {self._lines}") from error
        self._connection.settimeout(STEP_S)

    def __enter__(self) -> Socktap:
        """Return itself, started already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process, and wait for its exit."""
        self._connection.close()
        self._stop()

    def verdict(self, packet: bytes) -> str:
        """Return what socktap does with a secured CAM: "accepted" or "dropped".

        Raises:
            AssertionError: it reports neither, or a drop for another reason than security; the message is its output.
        """
        self._lines = ""
        frame = ethernet_frame(packet, _OWN_MAC)
        self._connection.sendall(len(frame).to_bytes(2, "big") + frame)
        deadline = time.monotonic() + STEP_S
        while (left := deadline - time.monotonic()) > 0:
            self._read_output(left)
            written = self._lines.rpartition("\n")[0]  # whole lines only
            for text, verdict in _VERDICTS.items():
                if text in written:
                    return verdict
            if "dropped packet because of" in written:
                break
        raise AssertionError(f"socktap reports no verdict: {self._lines}")

    def packet(self) -> bytes:
        """Return the next GeoNetworking packet that socktap sent; raises TimeoutError or ConnectionError."""
        while (packet := self._next_received()) is None:
            self._receive()
        return packet

    def next_packet(self) -> bytes:
        """Return the next packet that socktap sends from now on."""
        while select.select([self._connection], [], [], 0.0)[0]:
            self._receive()
        while self._next_received() is not None:
            pass
        return self.packet()

    def _receive(self) -> None:
        octets = self._connection.recv(65536)
        if not octets:
            raise ConnectionError("socktap closed the connection")
        self._received += octets

    def _next_received(self) -> bytes | None:
        end = 2 + int.from_bytes(self._received[:2], "big")
        if len(self._received) < max(end, 3):
            return None
        frame, self._received = self._received[2:end], self._received[end:]
        assert frame[:_FRAME_HEADER] == ethernet_frame(b"", MAC, BROADCAST)
        return frame[_FRAME_HEADER:]

    def _read_output(self, timeout_s: float) -> None:
        if select.select([self._output], [], [], timeout_s)[0]:
            with suppress(OSError):  # the process is gone
                self._lines += os.read(self._output, 65536).decode()

    def _stop(self) -> None:
        self._process.terminate()  # `timeout` passes it on, and kills after 5 s
        self._process.wait(STEP_S)
        os.close(self._output)
