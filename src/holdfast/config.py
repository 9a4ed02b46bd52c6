"""Settings from the environment, config.toml and the defaults; no other module reads the environment."""

from __future__ import annotations

import os
import stat

from holdfast.base.record import Record
from holdfast.errors import ConfigError, DiskTrouble, Template, from_os, phrase
from holdfast.models import ORIGINS, SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from holdfast.errors import HoldfastError


AGENTS = (  # variables that coding agents set for the commands they run
    "HOLDFAST_CLIENT", "CLAUDECODE", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "GEMINI_CLI",
    "QWEN_CODE", "OPENCODE", "CURSOR_AGENT", "COPILOT_CLI", "AI_AGENT",
)  # fmt: skip
MASK = "********"  # shown in place of a secret
STORES = ("postgresql://", "postgres://")  # schemes of the URL of a store
ADDRESSES = ("embedder", "reranker", "url", "store", "store_read", "otel_endpoint", "audit_ship")  # URLs, maybe with a password


class Setting(Record):
    """One setting: its name in config.toml, the environment variable that overrides it, and a description."""

    name: str
    field: str
    kind: type
    description: str
    env: str = ""
    minimum: int = 0
    maximum: int = 10**9
    choices: tuple[str, ...] = ()  # of the value, or of each item of a list
    check: Callable[[Any], str] | None = None  # returns what the value must be; "" if it is valid


class Config(Record):
    """The values of all settings."""

    home: str
    enabled: bool = True
    project: str | None = None
    session: str | None = None
    agent: str | None = None
    client: str | None = None
    isolate_worktrees: bool = False
    note_bytes: int = 64 * 1024
    inline_versions: int = 20
    inline_bytes: int = 256 * 1024
    project_days: int = 90
    session_days: int = 14
    trash_days: int = 30
    brief_entries: int = 0
    brief_scope_chars: int = 0
    brief_total_chars: int = 6300
    prompt_chars: int = 1500
    reminder: int = 15
    capture: bool = False
    tool_turns: bool = False
    scaffolds: str | None = None
    lock_seconds: int = 30
    embedder: str = "default"
    embed_key: str | None = None
    reranker: str = "none"
    rerank_key: str | None = None
    operator_token_file: str | None = None
    quota_notes: int = 0
    quota_bytes: int = 0
    quota_requests: int = 0
    serve_rate: int = 100
    serve_at_once: int = 64
    serve_body_bytes: int = 16 * 1024 * 1024
    github_api: str = "https://api.github.com"
    github_token: str | None = None
    webhook: str | None = None
    webhook_key: str | None = None
    otel_endpoint: str | None = None
    otel_service: str = "holdfast"
    url: str | None = None
    token: str | None = None
    audit_mode: str = "best-effort"
    audit_keep_days: int = 0
    audit_ship: str | None = None
    audit_ship_key: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    store: str | None = None
    store_read: str | None = None
    tenant: str = "default"
    store_connections: int = 10
    store_seconds: int = 30
    quarantine: tuple[str, ...] = ("web", "import")
    unknown: tuple[str, ...] = ()
    # not settings: the gateway sets these for each caller
    allowed_scopes: tuple[str, ...] = SCOPES  # kinds of scopes that the caller's role allows
    read_only: bool = False  # whether the caller's role only allows reading
    by_token: bool = False  # whether the caller is identified by a token: its turns carry its name and at most its trust
    most_notes: int = 0  # quota of the caller: notes and bytes; 0: no limit
    most_bytes: int = 0

    def __repr__(self) -> str:
        """Return the settings without keys and passwords."""
        secret = dict.fromkeys(("embed_key", "rerank_key", "github_token", "webhook_key", "audit_ship_key", "token"))
        hidden = {name: hide_password(value) for name in ADDRESSES if (value := getattr(self, name))}
        shown = self.replace(**secret, **hidden)
        return repr(shown) if shown != self else super().__repr__()


def _check_keep_days(days: int) -> str:
    return "" if days == 0 or days >= 7 else "0 or at least 7"


def _check_ship(address: str) -> str:
    starts = ("file:/", "syslog:unix:/", "syslog:udp://", "https://", "http://")
    return "" if not address or address.startswith(starts) else "file:/PATH, syslog:unix:/PATH, syslog:udp://HOST:PORT or a URL"


def _check_networks(networks: tuple[str, ...]) -> str:
    from ipaddress import ip_network

    try:
        [ip_network(network, strict=False) for network in networks]
    except ValueError:
        return 'a list of IP addresses and networks, such as "10.0.0.0/8"'
    return ""


SETTINGS = (
    Setting(
        "memory.enabled",
        "enabled",
        bool,
        "Switch memory on or off; when off, writes are rejected and reads return nothing",
        env="HOLDFAST_ENABLED",
    ),
    Setting("project.id", "project", str, "ID of the project, instead of detecting it", env="HOLDFAST_PROJECT"),
    Setting("session.id", "session", str, "ID of the session", env="HOLDFAST_SESSION"),
    Setting("agent.name", "agent", str, "Name of the agent", env="HOLDFAST_AGENT"),
    Setting(
        "agent.scaffolds",
        "scaffolds",
        str,
        "File trees that are created when an agent first boots: continuity, wiki",
        env="HOLDFAST_SCAFFOLDS",
    ),
    Setting("client.name", "client", str, "Name of the calling program, recorded with each version", env="HOLDFAST_CLIENT"),
    Setting("project.isolate_worktrees", "isolate_worktrees", bool, "Give each git worktree its own memory"),
    Setting("notes.max_bytes", "note_bytes", int, "Maximum size of a note, in bytes", minimum=1, maximum=10 * 1024 * 1024),
    Setting(
        "notes.inline_versions",
        "inline_versions",
        int,
        "Maximum number of older versions in the file of a note; the rest go to history files",
        minimum=1,
        maximum=10_000,
    ),
    Setting(
        "notes.inline_bytes",
        "inline_bytes",
        int,
        "Maximum size of older versions in the file of a note, in bytes; the rest go to history files",
        minimum=1024,
        maximum=16 * 1024 * 1024,
    ),
    Setting(
        "retention.project_days",
        "project_days",
        int,
        "Archive project notes that were not updated or used for this many days; 0: never",
    ),
    Setting(
        "retention.session_days",
        "session_days",
        int,
        "Archive session notes that were not updated or used for this many days; 0: never",
    ),
    Setting("retention.trash_days", "trash_days", int, "Days for which a forgotten note can be restored", minimum=1),
    Setting(
        "brief.entries",
        "brief_entries",
        int,
        "Maximum number of whole notes per scope in a start briefing; 0: no limit",
        minimum=0,
        maximum=100,
    ),
    Setting(
        "brief.scope_chars",
        "brief_scope_chars",
        int,
        "Maximum characters of whole notes per scope in a start briefing; 0: no limit",
        minimum=0,
        maximum=9000,
    ),
    Setting("brief.total_chars", "brief_total_chars", int, "Maximum characters of a start briefing", minimum=750, maximum=9000),
    Setting(
        "hooks.prompt_chars",
        "prompt_chars",
        int,
        "Maximum characters added to a prompt; 0: add nothing",
        minimum=0,
        maximum=9000,
    ),
    Setting("hooks.reminder", "reminder", int, "Remind an agent to save what matters after every N prompts; 0: never"),
    Setting("hooks.capture", "capture", bool, "Store sessions word for word when a client's hook names the transcript"),
    Setting(
        "history.tools", "tool_turns", bool, "Store tool calls and their results when a transcript is imported or captured"
    ),
    Setting(
        "trust.quarantine",
        "quarantine",
        tuple,
        "Origins whose notes are not briefed until a person approves them; a list of agent, tool, import, web",
        choices=ORIGINS[1:],
    ),
    Setting(
        "lock.seconds",
        "lock_seconds",
        int,
        "Seconds to wait for another writer before the error `busy`",
        minimum=1,
        maximum=3600,
    ),
    Setting(
        "search.embedder", "embedder", str, "Model for vectors: default, none, or another embedder", env="HOLDFAST_EMBEDDER"
    ),
    Setting("search.key", "embed_key", str, "API key of the embedding endpoint", env="HOLDFAST_EMBED_KEY"),
    Setting(
        "search.reranker",
        "reranker",
        str,
        "Model that reads the best passages together with the question: none, or a reranker",
        env="HOLDFAST_RERANKER",
    ),
    Setting("search.rerank_key", "rerank_key", str, "API key of the rerank endpoint", env="HOLDFAST_RERANK_KEY"),
    Setting(
        "audit.mode",
        "audit_mode",
        str,
        "What to do if a decision cannot be written to the audit: best-effort (continue) or strict (reject the request)",
        env="HOLDFAST_AUDIT_MODE",
        choices=("best-effort", "strict"),
    ),
    Setting(
        "audit.keep_days",
        "audit_keep_days",
        int,
        "Delete audit rows older than this many days, with a signed checkpoint; 0: never, otherwise at least 7",
        check=_check_keep_days,
    ),
    Setting(
        "audit.ship",
        "audit_ship",
        str,
        "Destination of shipped audit rows: file:/PATH, syslog:unix:/PATH, syslog:udp://HOST:PORT or an https:// webhook",
        env="HOLDFAST_AUDIT_SHIP",
        check=_check_ship,
    ),
    Setting("audit.ship_key", "audit_ship_key", str, "Bearer token of the audit.ship webhook", env="HOLDFAST_AUDIT_SHIP_KEY"),
    Setting("store.url", "store", str, "postgresql:// URL of the store to use instead of this home", env="HOLDFAST_STORE"),
    Setting("store.read_url", "store_read", str, "postgresql:// URL of a replica for searches", env="HOLDFAST_STORE_READ"),
    Setting("store.tenant", "tenant", str, "Tenant in the PostgreSQL store", env="HOLDFAST_TENANT"),
    Setting(
        "store.connections", "store_connections", int, "Maximum PostgreSQL connections of a process", minimum=1, maximum=1000
    ),
    Setting(
        "store.statement_seconds",
        "store_seconds",
        int,
        "Seconds after which a PostgreSQL statement is cancelled",
        minimum=1,
        maximum=3600,
    ),
    Setting(
        "serve.operator_token_file",
        "operator_token_file",
        str,
        "File with the first operator's token; if missing, the first start creates it",
        env="HOLDFAST_OPERATOR_TOKEN_FILE",
    ),
    Setting("quota.notes", "quota_notes", int, "Maximum number of notes of each agent of the gateway; 0: no limit", minimum=0),
    Setting(
        "quota.bytes",
        "quota_bytes",
        int,
        "Maximum bytes of notes and files of each agent, with history; 0: no limit",
        minimum=0,
    ),
    Setting(
        "quota.requests_per_day",
        "quota_requests",
        int,
        "Maximum requests of each agent per day; 0: no limit",
        minimum=0,
    ),
    Setting("serve.rate", "serve_rate", int, "Maximum requests per second of a token; 0: no limit"),
    Setting(
        "serve.at_once",
        "serve_at_once",
        int,
        "Maximum requests that run at the same time; a single token gets at most half",
        minimum=2,
    ),
    Setting(
        "serve.body_bytes",
        "serve_body_bytes",
        int,
        "Maximum size of a request body, in bytes",
        minimum=1024,
        maximum=64 * 1024 * 1024,
    ),
    Setting(
        "serve.trusted_proxies",
        "trusted_proxies",
        tuple,
        "Proxies whose X-Forwarded-For or Forwarded header is trusted; a list of IP addresses and networks",
        check=_check_networks,
    ),
    Setting(
        "gateway.url",
        "url",
        str,
        "URL of a gateway that commands and `holdfast mcp` use instead of this home",
        env="HOLDFAST_URL",
    ),
    Setting("gateway.token", "token", str, "Token for the gateway", env="HOLDFAST_TOKEN"),
    Setting("github.api", "github_api", str, "URL of the GitHub API", env="HOLDFAST_GITHUB_API"),
    Setting("github.token", "github_token", str, "Token for the GitHub API", env="HOLDFAST_GITHUB_TOKEN"),
    Setting("dispatch.webhook", "webhook", str, "URL that dispatches are sent to", env="HOLDFAST_WEBHOOK"),
    Setting("dispatch.key", "webhook_key", str, "Bearer token for the dispatch webhook", env="HOLDFAST_WEBHOOK_KEY"),
    Setting(
        "otel.endpoint",
        "otel_endpoint",
        str,
        "URL of the OTLP/HTTP collector for traces; needs holdfast[otel]",
        env="OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    Setting("otel.service_name", "otel_service", str, "Service name of the gateway in traces", env="OTEL_SERVICE_NAME"),
)


def load(home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Return the settings from the environment, config.toml and the defaults, in this order of precedence.

    `home` may be the URL of a PostgreSQL store; the other settings then come from the default home.
    """
    if is_store(home):
        settings = load(None, environ)
        return settings if settings.store == home else settings.replace(store=home, store_read=None)
    env = os.environ if environ is None else environ
    root = find_home(home, env)
    table = _read_toml(os.path.join(root, "config.toml"))
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        given = env.get(setting.env) if setting.env else None
        if given is not None and given != "":
            values[setting.field] = parse_value(setting, given, setting.env)
        elif setting.name in table:
            values[setting.field] = check_value(setting, table.pop(setting.name), "config.toml")
        table.pop(setting.name, None)
    values["project"] = values.get("project") or None  # "" in config.toml means that none is set
    return Config(home=root, unknown=tuple(sorted(table)), **values)


def is_store(home: object) -> bool:
    """Return whether this is the URL of a PostgreSQL store instead of a folder."""
    return isinstance(home, str) and home.startswith(STORES)


def check_gateway_url(url: str) -> str:
    """Return the URL of a gateway; raise ConfigError if it is not one, so that no local home is used in its place."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url[:200]!r} is not the URL of a gateway", "Write it as http://HOST:PORT or https://HOST")
    return url


def find_home(home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Return the path of the home, without reading config.toml."""
    env = os.environ if environ is None else environ
    root = os.fspath(home) if home is not None else env.get("HOLDFAST_HOME") or _default_home(env)
    if is_store(root):
        raise ConfigError("the home must be a folder, not a postgresql:// URL", "Give the URL with --store or HOLDFAST_STORE")
    if not root or "\0" in root:
        raise ConfigError("the path of the home is empty or contains NUL", "Set HOLDFAST_HOME to a folder")
    if root == "~" or root.startswith("~/"):  # from a file or a service, where no shell expands it
        root = (env.get("HOME") or os.path.expanduser("~")) + root[1:]
    try:
        return os.path.abspath(root)
    except FileNotFoundError:  # relative, in a folder that was removed
        raise ConfigError(f"the home {root!r} is in a folder that was deleted", "Set HOLDFAST_HOME to a full path") from None


def disable_telemetry() -> None:
    """Turn off the telemetry of onnxruntime; call this before it is imported."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def find_setting_source(setting: Setting, home: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the source of a setting's value: the environment variable, config.toml or the default."""
    env = os.environ if environ is None else environ
    if setting.env and env.get(setting.env):
        return setting.env
    return "config.toml" if setting.name in _read_toml(os.path.join(home, "config.toml")) else "default"


def read_config_file_id(home: str) -> tuple[int, int, int] | None:
    """Return the id of config.toml, which changes with the file; None if there is no file."""
    try:
        found = os.stat(os.path.join(home, "config.toml"))
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def hide_password(embedder: str) -> str:
    """Return the setting of an embedder or reranker with passwords in its URL hidden."""
    start, scheme, rest = embedder.partition("://")
    if not scheme:
        kind, colon, rest = embedder.partition(":")
        return f"{kind}:{MASK}" if colon and "@" in rest and kind.strip().lower() == "endpoint" else embedder
    user, at, host_part = rest.rpartition("@")  # at the last @: a password that is not encoded may contain @ or /
    cut = min([host_part.find(mark) for mark in "?#" if mark in host_part], default=len(host_part))
    return (
        start
        + scheme
        + (MASK + at if user or at else "")
        + host_part[:cut]
        + (host_part[cut] + MASK if cut < len(host_part) else "")
    )


def allows_colour(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether output may be coloured: not with NO_COLOR or a dumb terminal."""
    env = os.environ if environ is None else environ
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def copy_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment, to look up variables of other programs."""
    return dict(os.environ if environ is None else environ)


def runs_in_agent(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether a coding agent runs this command; agents set variables for the commands they run."""
    env = os.environ if environ is None else environ
    return any(env.get(name) for name in AGENTS)


def find_user_home(environ: Mapping[str, str] | None = None) -> str:
    """Return the user's home directory."""
    return os.path.dirname(_default_home(os.environ if environ is None else environ))


def find_cache_folder(environ: Mapping[str, str] | None = None) -> str:
    """Return the folder of files that can be made again, such as prepared weights of models."""
    env = os.environ if environ is None else environ
    cache = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # a relative path is to be ignored
        cache = os.path.join(find_user_home(env), ".cache")
    return os.path.join(cache, "holdfast")


def find_models_folder(environ: Mapping[str, str] | None = None) -> str:
    """Return the folder of installed models: in the user's data, not in the home, so that copies of a home stay small."""
    env = os.environ if environ is None else environ
    data = env.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):  # a relative path is to be ignored
        data = os.path.join(find_user_home(env), ".local", "share")
    return os.path.join(data, "holdfast", "models")


def find_editor(environ: Mapping[str, str] | None = None) -> str:
    """Return the user's editor."""
    env = os.environ if environ is None else environ
    return env.get("VISUAL") or env.get("EDITOR") or "vi"


def find_setting(name: str) -> Setting:
    """Return the setting of a name; the error suggests the nearest one."""
    for setting in SETTINGS:
        if setting.name == name:
            return setting
    import difflib

    near = difflib.get_close_matches(name, [setting.name for setting in SETTINGS], 1, 0.6)
    hint = f"Did you mean {near[0]}?" if near else "Run `holdfast config` for the list of settings"
    raise ConfigError(f"unknown setting {name!r}", hint)


def parse_value(setting: Setting, text: str, where: str) -> Any:
    """Return the value of a text from the environment or the command line."""
    if setting.kind is bool:
        word = text.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        raise ConfigError(f"{where}: {setting.name} must be true or false, not {text!r}", _format_fix(setting))
    if setting.kind is int:
        try:
            return check_value(setting, int(text), where)
        except ValueError:
            raise ConfigError(f"{where}: {setting.name} must be a whole number, not {text!r}", _format_fix(setting)) from None
    if setting.kind is tuple:
        return check_value(setting, [part.strip() for part in text.split(",") if part.strip()], where)
    return check_value(setting, text, where)


def check_value(setting: Setting, value: object, where: str) -> Any:
    """Return the value if it has the setting's type and is in its range; raise ConfigError otherwise."""
    if setting.kind is tuple:
        if not isinstance(value, list) or not all(_is_item(setting, item) for item in value):
            message = f"{where}: {setting.name} must be a list of {', '.join(setting.choices) or 'texts'}, not {value!r}"
            raise ConfigError(message, _format_fix(setting))
        return _check_further(setting, tuple(value), where)
    if type(value) is not setting.kind:
        message = f"{where}: {setting.name} must be {setting.kind.__name__}, not {type(value).__name__}"
        raise ConfigError(message, _format_fix(setting))
    if setting.choices and value not in setting.choices:
        known = " or ".join(setting.choices)
        raise ConfigError(f"{where}: {setting.name} must be {known}, not {value!r}", _format_fix(setting))
    if isinstance(value, int) and not isinstance(value, bool) and not setting.minimum <= value <= setting.maximum:
        raise ConfigError(
            f"{where}: {setting.name} must be {setting.minimum} to {setting.maximum}, not {value}", _format_fix(setting)
        )
    return _check_further(setting, value, where)


def _is_item(setting: Setting, item: object) -> bool:
    return item in setting.choices if setting.choices else isinstance(item, str)


def _check_further(setting: Setting, value: Any, where: str) -> Any:
    wanted = setting.check(value) if setting.check is not None else ""
    if wanted:
        shown = list(value) if isinstance(value, tuple) else value
        raise ConfigError(f"{where}: {setting.name} must be {wanted}, not {shown!r}", _format_fix(setting))
    return value


def _format_fix(setting: Setting) -> Template:
    does = phrase("config", f"it with `holdfast config {setting.name} VALUE`")
    return Template("Correct ", does, f", or unset {setting.env}" if setting.env else "")


def _default_home(env: Mapping[str, str]) -> str:
    user = env.get("HOME") or _home_of_user()  # an empty HOME counts as unset; otherwise the home would be /.holdfast
    if not os.path.isabs(user):
        raise ConfigError("cannot find the home directory of this user", "Set HOLDFAST_HOME to a folder")
    return os.path.join(user, ".holdfast")


def _home_of_user() -> str:
    """Return the home directory from the password database; "" if the user is not there."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _read_toml(path: str) -> dict[str, Any]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # never wait for a writer if it is a pipe
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _make_read_error(path, error) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ConfigError(f"{path} is not a regular file", "Delete it")
    with open(fd, "rb") as file:
        data = file.read(1024 * 1024)
    import tomllib

    try:
        return _flatten(tomllib.loads(data.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "Correct the line, or delete the file") from None


def _make_read_error(path: str, error: OSError) -> HoldfastError:
    """Return the error for a config.toml that cannot be read; it names the home if that is the cause."""
    import errno

    home, mine = os.path.dirname(path), os.geteuid()
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return from_os(error, f"cannot read {path}")
    if error.errno not in (errno.EACCES, errno.EPERM):
        return ConfigError(f"{path}: {error.strerror}", "Replace it with a regular file, or delete it")
    try:
        owner = os.stat(home).st_uid
    except OSError:
        fix = "Give this user access to the parent folders, or set HOLDFAST_HOME to another folder"
        return DiskTrouble(f"cannot access the home {home}: {error.strerror}", fix)
    if owner != mine:
        fix = "Run as its owner, change its owner (chown), or set HOLDFAST_HOME to another folder"
        return DiskTrouble(f"the home {home} belongs to user {owner}, not to you ({mine})", fix)
    if not os.access(home, os.X_OK):
        return DiskTrouble(f"cannot open the home {home}: {error.strerror}", f"Run `chmod u+rwx {home}`")
    if os.stat(path).st_uid != mine:
        return ConfigError(
            f"{path} belongs to user {os.stat(path).st_uid}, not to you ({mine})", "Change its owner (chown), or delete it"
        )
    return ConfigError(f"{path}: {error.strerror}", "Make the file readable (chmod u+r), or delete it")


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by their dotted names."""
    flattened: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flattened.update(_flatten(value, f"{prefix}{name}."))
        else:
            flattened[prefix + name] = value
    return flattened
