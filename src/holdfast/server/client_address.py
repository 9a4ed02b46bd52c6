"""The address of the client behind a connection: the connection's own, unless a proxy that the settings trust names another."""

from __future__ import annotations

import functools
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.datastructures import Headers

_MAX_HOPS = 32  # that are looked at, from the last proxy on
_MAX_CHARS = 100  # of an address with its port; a longer text is none
_FORWARDED_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;"\s]*))', re.IGNORECASE)


def find_client_address(peer: str, headers: Headers, trusted_proxies: tuple[str, ...]) -> str:
    """Return the address of the client as text; "" if the connection has none.

    Proxies append the address they were reached from. So the list is read from its end: the first address that is not a
    trusted proxy's is the client's. What is before it was written by the client itself, and is ignored; so is the whole list
    if the connection does not come from a trusted proxy.
    """
    nearest = _parse_address(peer)
    if nearest is None or not trusted_proxies:
        return str(nearest or "")
    networks = parse_networks(trusted_proxies)
    for hop in _list_hops(headers):
        if not any(nearest in network for network in networks):
            break
        address = _parse_address(hop)
        if address is None:  # "unknown", or what no proxy writes
            break
        nearest = address
    return str(nearest)


def came_by_https(scheme: str, peer: str, headers: Headers, trusted_proxies: tuple[str, ...]) -> bool:
    """Return whether the client's own connection is encrypted, as the connection or a proxy that the settings trust says."""
    if scheme == "https":
        return True
    nearest = _parse_address(peer)
    is_trusted = nearest is not None and any(nearest in network for network in parse_networks(trusted_proxies))
    return is_trusted and headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower() == "https"


@functools.lru_cache(maxsize=8)
def parse_networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks of the setting, which config.py has checked."""
    return tuple([ip_network(text, strict=False) for text in texts])


def _list_hops(headers: Headers) -> list[str]:
    """Return the addresses in X-Forwarded-For, or else in Forwarded, the last proxy's first."""
    hops = [hop for line in headers.getlist("x-forwarded-for") for hop in line.split(",")]
    if not hops:
        parts = [part for line in headers.getlist("forwarded") for part in line.split(",")]
        found = [_FORWARDED_FOR.search(part) for part in parts]
        hops = [(match[1] or match[2] or "") if match else "" for match in found]
    return [hop.strip()[: _MAX_CHARS + 1] for hop in hops[: -_MAX_HOPS - 1 : -1]]


@functools.lru_cache(maxsize=1024)
def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address without its port and brackets; an IPv4 address inside an IPv6 one as itself."""
    text = text.strip().strip('"')
    if len(text) > _MAX_CHARS:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or IPv6Address(int(address))  # without the name of an interface
    return address
