"""The routes of the HTTP API, one module per subject."""

from __future__ import annotations

from holdfast.server.route import Route
from holdfast.server.routes import (
    activity,
    admin,
    agents,
    bulk,
    dispatch,
    done,
    facts,
    files,
    gateway_memory,
    github_reviews,
    history,
    notes,
    operator,
    purges,
    recall,
    relations,
    scaffolds,
    settings,
    system,
    trust,
)

ROUTES: tuple[Route, ...] = (
    *notes.ROUTES, *purges.ROUTES, *relations.ROUTES, *trust.ROUTES, *recall.ROUTES, *activity.ROUTES, *facts.ROUTES,
    *history.ROUTES, *files.ROUTES, *scaffolds.ROUTES, *operator.ROUTES, *bulk.ROUTES, *admin.ROUTES, *gateway_memory.ROUTES,
    *dispatch.ROUTES, *github_reviews.ROUTES, *done.ROUTES, *agents.ROUTES, *settings.ROUTES, *system.ROUTES,
)  # fmt: skip
