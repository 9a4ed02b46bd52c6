"""Settings of the gateway: what each is and where it comes from, and a change of one in config.toml."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from holdfast import config
from holdfast.errors import ConfigError, Denied, NotFound, Refused, UsageError
from holdfast.server.idempotency import REPLAY_WHOLE
from holdfast.server.models import RequestModel, ResponseModel, or_none
from holdfast.server.route import JSON, AuthorizedRequest, Route
from holdfast.verbs import settings
from holdfast.verbs.settings import SettingValue

_MANAGE = "settings.manage"
_WHERE = "the request"


class ChangeSetting(RequestModel, kw_only=True):
    name: Annotated[str, Meta(description="The name of the setting, such as lock.seconds.", pattern="^[a-z_]+[.][a-z_]+$")]
    value: Annotated[
        str,
        Meta(description="The value; separate list items with commas. Leave it out to restore the default.", max_length=2000),
    ] | UnsetType = UNSET  # fmt: skip


class SettingList(ResponseModel, kw_only=True):
    settings: list[SettingValue]
    may_change: Annotated[bool, Meta(description="Whether requests may change settings that are not `at_the_machine`.")]


def list_settings(request: AuthorizedRequest, params: RequestModel) -> SettingList:
    _check_own_tenant(request)
    gateway = request.gateway
    return SettingList(settings=settings.describe(gateway.home, gateway.given), may_change=not gateway.config().store)


def change_setting(request: AuthorizedRequest, params: ChangeSetting) -> SettingValue:
    """Change one setting; the gateway reads config.toml again before the next request."""
    _check_own_tenant(request)
    gateway = request.gateway
    now = _find(request, params.name)
    if now.at_the_machine:
        raise Refused(f"{now.name} can only be changed on the server's machine", "Change it in config.toml there")
    if gateway.config().store:
        raise Refused("a server on PostgreSQL does not change settings over HTTP", "Change config.toml on the server's machine")
    if now.source not in ("default", settings.FILE_NAME):
        raise Refused(f"{now.name} is set by {now.source}, which overrides config.toml", "Change it there")
    setting = config.find_setting(now.name)
    value = or_none(params.value)
    _check_value(setting, value)
    settings.change(gateway.home, setting, value, _WHERE)
    return _find(request, params.name)


def _check_value(setting: config.Setting, value: str | None) -> None:
    """Raise `UsageError` for a value that does not fit: a `ConfigError` would blame the file."""
    try:
        if value is not None:
            config.parse_value(setting, value, _WHERE)
    except ConfigError as error:
        raise UsageError(str(error.text).removeprefix(f"{_WHERE}: "), "Send a valid value") from None


def _find(request: AuthorizedRequest, name: str) -> SettingValue:
    for one in settings.describe(request.gateway.home, request.gateway.given):
        if one.name == name:
            return one
    raise NotFound("there is no such setting", "`GET /v1/settings` lists them")


def _check_own_tenant(request: AuthorizedRequest) -> None:
    """Raise `Denied` for the operator of another tenant: these settings are about every tenant."""
    gateway = request.gateway
    if gateway.config_of(request.caller) != gateway.config():
        raise Denied("settings apply to all tenants of this server", "Ask the administrator of the server")


_EXAMPLE = {
    "name": "lock.seconds", "value": "30", "default": "30", "source": "default",
    "description": "how long to wait for another writer before saying Busy", "kind": "number", "choices": [], "minimum": 1,
    "maximum": 3600, "env": "", "is_secret": False, "needs_restart": False, "at_the_machine": False,
    "command": "holdfast config lock.seconds VALUE",
}  # fmt: skip

ROUTES = (
    Route(
        "GET", "/v1/settings", list_settings,
        action=_MANAGE, summary="list settings with their values and where each value comes from; secrets are masked",
        answers=SettingList, answer_example={"settings": [_EXAMPLE], "may_change": True},
    ),
    Route(
        "PUT", "/v1/settings/{name}", change_setting,
        action=_MANAGE, summary="change a setting in config.toml, or remove it to restore the default",
        params=ChangeSetting, reads=JSON, example={"value": "60"}, answers=SettingValue, answer_example=_EXAMPLE,
        replay=REPLAY_WHOLE, problems=("not_found",),
    ),
)  # fmt: skip
