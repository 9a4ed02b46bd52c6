"""Traffic: requests and their latency in the last hour."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.responses import Response

from holdfast.server.web.page import Page, Visit


async def get_traffic(visit: Visit) -> Response:
    """Show the page; htmx asks for its tables again every 10 seconds, unless the person has paused that."""
    series = await visit.call("GET /traffic")
    points = [_describe_point(one) for one in series["points"]]
    template = "traffic-tables.html" if visit.is_fragment else "traffic.html"
    return await visit.render(template, points=points, is_paused="paused" in visit.query, **_sum_up(points))


def _describe_point(point: dict[str, Any]) -> dict[str, Any]:
    """Return a point with its Unix time and its rates per second."""
    rates = {f"{name}_rate": point[name] / point["seconds"] for name in ("succeeded", "client_errors", "server_errors")}
    return {**point, **rates, "unix_time": int(datetime.fromisoformat(point["time"]).timestamp())}


def _sum_up(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the totals of all points, and the last point."""
    failed = sum([one["client_errors"] + one["server_errors"] for one in points])
    total = failed + sum([one["succeeded"] for one in points])
    return {"total": total, "failed": failed, "last": points[-1] if points else None}


PAGES = (Page("GET", "/ui/traffic", get_traffic),)
