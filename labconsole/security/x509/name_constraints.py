"""Limits of the names that a CA may certify (nameConstraints, RFC 5280, 4.2.1.10): created, and checked for issuing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole.security.x509.extensions import extension_of

_ALL_ADDRESSES = [x509.IPAddress(ipaddress.ip_network(network)) for network in ("0.0.0.0/0", "::/0")]
_HOST = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def limits(permitted: Sequence[x509.GeneralName]) -> x509.NameConstraints:
    """nameConstraints of a CA that may name nothing outside `permitted`, of each form of name in it.

    Where hosts are permitted and no address is, all addresses are excluded: no host is certified by its address then.
    """
    hosts = any(isinstance(name, x509.DNSName) for name in permitted)
    addresses = any(isinstance(name, x509.IPAddress) for name in permitted)
    return x509.NameConstraints(
        permitted_subtrees=list(permitted), excluded_subtrees=_ALL_ADDRESSES if hosts and not addresses else None
    )


def outside_name_constraints(
    subject: x509.Name, names: Sequence[x509.GeneralName], authorities: Iterable[x509.Certificate]
) -> tuple[x509.GeneralName, x509.Certificate] | None:
    """The first name of a certificate that one of the CAs above it may not certify, and that CA; None if all may be.

    `subject` counts as a directory name; its common name as a host where it looks like one and `names` has no host, as
    OpenSSL does.
    """
    named = [*names, *_hosts_of(subject, names)] + ([x509.DirectoryName(subject)] if subject.rdns else [])
    for authority in authorities:
        limit = extension_of(authority.extensions, x509.NameConstraints)
        for name in named:
            if limit is not None and not _may_certify(limit, name):
                return name, authority
    return None


def _hosts_of(subject: x509.Name, names: Sequence[x509.GeneralName]) -> Iterator[x509.DNSName]:
    if not any(isinstance(name, x509.DNSName) for name in names):
        for attribute in subject.get_attributes_for_oid(NameOID.COMMON_NAME):
            if isinstance(attribute.value, str) and _HOST.fullmatch(attribute.value):
                yield x509.DNSName(attribute.value)


def _may_certify(limit: x509.NameConstraints, name: x509.GeneralName) -> bool:
    """Whether `name` is within a permitted subtree of its form, if there are any, and in no excluded one."""
    permitted = [tree for tree in limit.permitted_subtrees or () if type(tree) is type(name)]
    excluded = [tree for tree in limit.excluded_subtrees or () if type(tree) is type(name)]
    if any(_within(name, tree) for tree in excluded):
        return False
    return not permitted or any(_within(name, tree) for tree in permitted)


def _within(name: x509.GeneralName, tree: x509.GeneralName) -> bool:
    match name, tree:
        case x509.DNSName(), x509.DNSName():
            return not tree.value or f".{name.value.lower()}".endswith(f".{tree.value.lower().removeprefix('.')}")
        case x509.RFC822Name(), x509.RFC822Name() if "@" in tree.value:
            return name.value.lower() == tree.value.lower()
        case x509.RFC822Name(), x509.RFC822Name():
            return _host_within(name.value.rpartition("@")[2], tree.value)
        case x509.UniformResourceIdentifier(), x509.UniformResourceIdentifier():
            return _host_within(urlsplit(name.value).hostname or "", tree.value)
        case x509.IPAddress(), x509.IPAddress():
            return _address_within(name, tree)
        case x509.DirectoryName(), x509.DirectoryName():
            return name.value.rdns[: len(tree.value.rdns)] == tree.value.rdns
        case _:
            return name == tree


def _host_within(host: str, tree: str) -> bool:
    """Of e-mail addresses and URIs: `.example` for all hosts below example, `example` for that host alone."""
    return host.lower().endswith(tree.lower()) if tree.startswith(".") else host.lower() == tree.lower()


def _address_within(name: x509.IPAddress, tree: x509.IPAddress) -> bool:
    network = ipaddress.ip_network(str(tree.value))
    address = ipaddress.ip_network(str(name.value))
    return address.version == network.version and network.supernet_of(address)  # type: ignore[arg-type]
