"""The manifest of the V2X plugin: ETSI ITS messages, their security, and what was heard on the road."""

from __future__ import annotations

from labconsole.model.plugin import OperationEntry, Plugin, PluginPage

plugin = Plugin(
    name="v2x",
    title="V2X (ETSI ITS)",
    description="What do signing and verifying cost between vehicles, in latency and loss?",
    trials={
        "v2x.live": "labconsole_v2x.live.live_trial:LiveTrial",
        "v2x.attack": "labconsole_v2x.attacks.attack_trial:AttackTrial",
        "v2x.benchmark": "labconsole_v2x.benchmark.benchmark_trial:BenchmarkTrial",
        "v2x.use-cases": "labconsole_v2x.use_cases.use_case_trial:UseCaseTrial",
        "v2x.simulation": "labconsole_v2x.simulation.simulation_trial:SimulationTrial",
    },
    panels={
        "v2x.live": "labconsole_v2x.panel.live_panel:make_live_panel",
        "v2x.attack": "labconsole_v2x.panel.attack_panel:make_attack_panel",
        "v2x.benchmark": "labconsole_v2x.panel.benchmark_panel:make_benchmark_panel",
        "v2x.use-cases": "labconsole_v2x.panel.use_cases.use_case_panel:make_use_case_panel",
        "v2x.simulation": "labconsole_v2x.panel.simulation_panel:make_simulation_panel",
    },
    operations={
        "v2x.inspect": OperationEntry(
            "labconsole_v2x.inspection.inspect_operation:InspectCapture",
            "v2x inspect",
            "judge the signature, chain, profile and time of each packet of a capture",
        ),
        "v2x.timing": OperationEntry(
            "labconsole_v2x.simulation.timing_from_benchmark:CreateStackTiming",
            "v2x timing",
            "create a timing profile of this computer, for simulated stations, from a run of v2x.benchmark",
        ),
        "v2x.serve-authorities": OperationEntry(
            "labconsole_v2x.pki.authorities_operation:ServeAuthorities",
            "v2x authorities",
            "serve root CA, EA, AA and distribution centre of a lab until Ctrl+C; all is created the first time",
        ),
        "v2x.certify-authority": OperationEntry(
            "labconsole_v2x.pki.root.root_operations:CertifyAuthority",
            "v2x certify-authority",
            "get the first or next certificate of an EA or AA from its root CA",
        ),
        "v2x.accept-authority": OperationEntry(
            "labconsole_v2x.pki.root.root_operations:AcceptAuthority",
            "v2x accept-authority",
            "have a root CA certify the holder of a key as EA or AA",
        ),
        "v2x.register": OperationEntry(
            "labconsole_v2x.pki.station_operations:RegisterStation",
            "v2x register",
            "create a station's canonical key, and register it at the EA of a lab",
        ),
        "v2x.enrol": OperationEntry(
            "labconsole_v2x.pki.station_operations:Enrol",
            "v2x enrol",
            "get an enrolment credential for a station from an EA",
        ),
        "v2x.authorize": OperationEntry(
            "labconsole_v2x.pki.station_operations:Authorize",
            "v2x authorize",
            "get authorization tickets for an enrolled station from an AA",
        ),
        "v2x.issue-lists": OperationEntry(
            "labconsole_v2x.pki.lists.list_operations:IssueLists",
            "v2x issue-lists",
            "sign the ECTL, CTL and CRL of a lab, and revoke certificates",
        ),
        "v2x.trust": OperationEntry(
            "labconsole_v2x.pki.lists.list_operations:FollowLists",
            "v2x trust",
            "fetch trust and revocation lists, and show what a station trusts then",
        ),
    },
    profiles=(
        "v2x-demo",
        "v2x-low-load",
        "v2x-medium-load",
        "v2x-high-load",
        "v2x-loads",
        "v2x-1500-per-second",
        "v2x-benchmark",
        "v2x-use-cases",
        "v2x-attacks-live",
        "v2x-attacks-content",
        "v2x-attacks-tracking",
        "v2x-attacks-published",
        "v2x-testbed-published",
        "v2x-neighbours",
    ),
    published=(
        "preserve-d3.2",
        "preserve-d3.2-testbed",
        "preserve-d3.2-benchmark",
        "preserve-d3.2-attacks",
        "preserve-d3.2-simulated",
        "preserve-d3.2-use-cases",
    ),
    table_shapes=(
        "labconsole_v2x.source_tables:LIVE_TABLES",
        "labconsole_v2x.source_tables:TESTBED_TABLES",
        "labconsole_v2x.source_tables:BENCHMARK_TABLES",
        "labconsole_v2x.source_tables:ATTACK_TABLES",
        "labconsole_v2x.source_tables:SIMULATED_TABLES",
        "labconsole_v2x.source_tables:NEIGHBOUR_TABLES",
    ),
    outlines={"preserve": "labconsole_v2x.trial_report:PRESERVE"},
    command_groups={"v2x": "ETSI ITS: captured packets and their security, authorities and certificates of stations"},
    pages={
        "inspection": PluginPage(
            title="Inspect captures",
            factory="labconsole_v2x.panel.inspection_page:InspectionPage",
            opens=(".pcap", ".pcapng", ".oer", ".coer", ".cert"),
        )
    },
)
