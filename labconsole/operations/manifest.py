"""The manifest of the built-in operations, of the same form as that of a plugin."""

from __future__ import annotations

from labconsole.model.plugin import OperationEntry, Plugin, PluginPage


def _operation(target: str, command: str, help: str) -> OperationEntry:
    """An operation of this package."""
    return OperationEntry(f"labconsole.operations.{target}", command, help)


OWN = Plugin(
    name="console",
    title="The console",
    description="Tokens (HSM): list, add and remove them, see what they can do, initialise them. Hosts: enrol and list "
    "them, serve as scheduler or agent. Agreements: propose a trial to another owner's console, accept one. Runs: "
    "write them to a bundle.",
    command_groups={
        "hosts": "computers that run roles of this console's trials: enrol one, list them",
        "agreements": "trials with another owner's console: propose one, show it, accept it, conclude the agreement",
    },
    pages={
        "hosts": PluginPage("Hosts", "labconsole_ui.views.hosts.hosts_page:HostsPage"),
        "agreements": PluginPage("Agreements", "labconsole_ui.views.agreements.agreements_page:AgreementsPage"),
    },
    operations={
        "runs.bundle": _operation("bundles:ExportBundle", "bundle", "write runs to one file, for another database"),
        "tokens.doctor": _operation("token_doctor:CheckToken", "hsm doctor", "inspect a token and try its mechanisms"),
        "tokens.list": _operation("configured_tokens:ListTokens", "hsm tokens", "list the tokens"),
        "keypool.add-token": _operation(
            "configured_tokens:AddToken", "hsm add", "add a token, or replace its configuration"
        ),
        "tokens.remove": _operation(
            "configured_tokens:RemoveToken",
            "hsm remove",
            "remove a token's configuration; nothing in the token changes",
        ),
        "keypool.initialise-token": _operation(
            "token_initialisation:InitialiseToken", "hsm init", "reinitialise a token: destroys every key in it"
        ),
        "hosts.enrol": _operation("hosts:EnrolHost", "hosts enrol", "make the file with which a host joins"),
        "hosts.list": _operation("hosts:ListHosts", "hosts list", "list the hosts, with the offsets of their clocks"),
        "hosts.collect": _operation(
            "host_samples:CollectSamples", "hosts collect", "bring the samples that runs have left on hosts"
        ),
        "hosts.discard": _operation(
            "host_samples:DiscardSamples", "hosts discard", "remove samples of deleted runs from hosts"
        ),
        "hosts.summarise": _operation(
            "host_samples:SummariseSamples", "hosts summarise", "summarise a campaign's samples host by host"
        ),
        "hosts.scheduler": _operation("hosts:RunScheduler", "scheduler", "bring this console's hosts together"),
        "hosts.agent": _operation(
            "agent:RunAgent", "agent", "let this computer run roles for a console, or serve agreements"
        ),
        "runs.plot-data": OperationEntry("labconsole.operations.plot_data:ReadPlotData"),
        "agreements.propose": _operation(
            "agreements:Propose", "agreements propose", "write a signed proposal of a trial of two consoles"
        ),
        "agreements.show": _operation(
            "agreements:ShowProposal",
            "agreements show",
            "show what a proposal would run here, and reasons to refuse it",
        ),
        "agreements.accept": _operation(
            "agreements:Accept", "agreements accept", "accept a proposal, and save what this console runs as a profile"
        ),
        "agreements.conclude": _operation(
            "agreements:Conclude", "agreements conclude", "check an acceptance, and save what this console runs"
        ),
    },
)
"""Two names begin with `keypool`, whose plugin had them in version 0.1.0: names do not change."""
