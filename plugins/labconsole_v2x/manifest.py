"""The manifest of the V2X plugin: ETSI ITS messages, their security, and what was heard on the road."""

from __future__ import annotations

from labconsole.model.plugin import OperationEntry, Plugin, PluginPage

plugin = Plugin(
    name="v2x",
    title="V2X (ETSI ITS)",
    description="What do signing and verifying cost between vehicles, in latency and loss?",
    operations={
        "v2x.inspect": OperationEntry(
            "labconsole_v2x.inspection.inspect_operation:InspectCapture",
            "v2x inspect",
            "judge the signature, chain, profile and time of each packet of a capture",
        ),
    },
    command_groups={"v2x": "ETSI ITS: captured packets and their security"},
    pages={
        "inspection": PluginPage(
            title="Inspect captures",
            factory="labconsole_v2x.panel.inspection_page:InspectionPage",
            opens=(".pcap", ".pcapng", ".oer", ".coer", ".cert"),
        )
    },
)
