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
MASK = "********"  # shown instead of a secret
STORES = ("postgresql://", "postgres://")  # schemes of the URL of a store
ADDRESSES = ("embedder", "url", "store", "store_read", "otel_endpoint", "audit_ship")  # fields that may contain a password


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
    check: Callable[[Any], str] | None = None  # returns what the value must be, or "" if it is that


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
    by_token: bool = False  # whether a token says who the caller is: each turn it writes names it, and has at most its trust
    most_notes: int = 0  # quota of the caller: how many notes, and
    most_bytes: int = 0  # how many bytes it may keep; 0 for any number

    def __repr__(self) -> str:
        """Return the settings without keys and passwords."""
        secret = dict.fromkeys(("embed_key", "github_token", "webhook_key", "audit_ship_key", "token"))
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
        return 'a list of addresses and networks, such as "10.0.0.0/8"'
    return ""


SETTINGS = (
    Setting("memory.enabled", "enabled", bool, "off: writes are refused, reads answer empty", env="HOLDFAST_ENABLED"),
    Setting("project.id", "project", str, "the project's id, instead of finding it out", env="HOLDFAST_PROJECT"),
    Setting("session.id", "session", str, "the session whose notes are meant", env="HOLDFAST_SESSION"),
    Setting("agent.name", "agent", str, "the agent whose notes are meant", env="HOLDFAST_AGENT"),
    Setting(
        "agent.scaffolds",
        "scaffolds",
        str,
        "trees of files an agent keeps, made at its first boot: continuity, wiki",
        env="HOLDFAST_SCAFFOLDS",
    ),
    Setting("client.name", "client", str, "the program that is asking, kept with each version", env="HOLDFAST_CLIENT"),
    Setting("project.isolate_worktrees", "isolate_worktrees", bool, "give each git worktree a memory of its own"),
    Setting("notes.max_bytes", "note_bytes", int, "the cap for one note", minimum=1, maximum=10 * 1024 * 1024),
    Setting(
        "notes.inline_versions",
        "inline_versions",
        int,
        "most older versions in a note's own file; the rest are in history files",
        minimum=1,
        maximum=10_000,
    ),
    Setting(
        "notes.inline_bytes",
        "inline_bytes",
        int,
        "most bytes of older versions in a note's own file",
        minimum=1024,
        maximum=16 * 1024 * 1024,
    ),
    Setting("retention.project_days", "project_days", int, "archive project notes not updated or used for so long; 0 never"),
    Setting("retention.session_days", "session_days", int, "archive session notes not updated or used for so long; 0 never"),
    Setting("retention.trash_days", "trash_days", int, "how long a forgotten note can be restored", minimum=1),
    Setting(
        "brief.entries",
        "brief_entries",
        int,
        "most whole notes of a scope in a start briefing; 0: no limit",
        minimum=0,
        maximum=100,
    ),
    Setting(
        "brief.scope_chars",
        "brief_scope_chars",
        int,
        "most characters of one scope's whole notes in a start briefing; 0: no limit",
        minimum=0,
        maximum=9000,
    ),
    Setting("brief.total_chars", "brief_total_chars", int, "most characters of a start briefing", minimum=750, maximum=9000),
    Setting(
        "hooks.prompt_chars", "prompt_chars", int, "most characters added to a prompt; 0 adds nothing", minimum=0, maximum=9000
    ),
    Setting("hooks.reminder", "reminder", int, "remind an agent to save what matters every so many prompts; 0 never"),
    Setting("hooks.capture", "capture", bool, "keep sessions word for word when a client's hook says where they stand"),
    Setting("history.tools", "tool_turns", bool, "keep tool calls and their results when a transcript is imported or captured"),
    Setting(
        "trust.quarantine",
        "quarantine",
        tuple,
        "origins whose notes are not briefed before a person approved them: a list of agent, tool, import, web",
        choices=ORIGINS[1:],
    ),
    Setting(
        "lock.seconds", "lock_seconds", int, "how long to wait for another writer before saying Busy", minimum=1, maximum=3600
    ),
    Setting("search.embedder", "embedder", str, "what makes vectors: default, none, or others", env="HOLDFAST_EMBEDDER"),
    Setting("search.key", "embed_key", str, "the key of an embedding endpoint", env="HOLDFAST_EMBED_KEY"),
    Setting(
        "audit.mode",
        "audit_mode",
        str,
        "what becomes of a decision that cannot be written down: best-effort or strict",
        env="HOLDFAST_AUDIT_MODE",
        choices=("best-effort", "strict"),
    ),
    Setting(
        "audit.keep_days",
        "audit_keep_days",
        int,
        "the gateway removes older rows of the audit, with a signed checkpoint; 0 keeps them for ever, else at least 7",
        check=_check_keep_days,
    ),
    Setting(
        "audit.ship",
        "audit_ship",
        str,
        "where the gateway ships the audit to: file:/PATH, syslog:unix:/PATH, syslog:udp://HOST:PORT or a https:// webhook",
        env="HOLDFAST_AUDIT_SHIP",
        check=_check_ship,
    ),
    Setting(
        "audit.ship_key", "audit_ship_key", str, "the bearer token for the webhook of audit.ship", env="HOLDFAST_AUDIT_SHIP_KEY"
    ),
    Setting(
        "store.url", "store", str, "the postgresql:// address that memory is kept at, not in this home", env="HOLDFAST_STORE"
    ),
    Setting("store.read_url", "store_read", str, "a replica of it, for questions", env="HOLDFAST_STORE_READ"),
    Setting("store.tenant", "tenant", str, "whose memory is meant, of all that are kept there", env="HOLDFAST_TENANT"),
    Setting(
        "store.connections", "store_connections", int, "most connections that one process has to it", minimum=1, maximum=1000
    ),
    Setting(
        "store.statement_seconds", "store_seconds", int, "how long the database may take for one step", minimum=1, maximum=3600
    ),
    Setting(
        "serve.operator_token_file",
        "operator_token_file",
        str,
        "the file with the first operator's token; if it is missing, the first start writes one there",
        env="HOLDFAST_OPERATOR_TOKEN_FILE",
    ),
    Setting("quota.notes", "quota_notes", int, "notes that each agent of the gateway may keep; 0 for any number", minimum=0),
    Setting(
        "quota.bytes",
        "quota_bytes",
        int,
        "bytes of notes and files that each agent may keep, with history; 0 for any number",
        minimum=0,
    ),
    Setting(
        "quota.requests_per_day",
        "quota_requests",
        int,
        "requests that each agent may make of the gateway on a day; 0 for any",
        minimum=0,
    ),
    Setting("serve.rate", "serve_rate", int, "requests a second that one token may make of the gateway; 0 for any number"),
    Setting(
        "serve.at_once", "serve_at_once", int, "requests the gateway answers at a time; half of them for one token", minimum=2
    ),
    Setting(
        "serve.body_bytes", "serve_body_bytes", int, "most bytes of one request's body", minimum=1024, maximum=64 * 1024 * 1024
    ),
    Setting(
        "serve.trusted_proxies",
        "trusted_proxies",
        tuple,
        "proxies whose X-Forwarded-For or Forwarded names the client: a list of addresses and networks",
        check=_check_networks,
    ),
    Setting("gateway.url", "url", str, "the gateway that commands and `holdfast mcp` ask, not this home", env="HOLDFAST_URL"),
    Setting("gateway.token", "token", str, "the token they come in with", env="HOLDFAST_TOKEN"),
    Setting("github.api", "github_api", str, "where reviews are posted", env="HOLDFAST_GITHUB_API"),
    Setting("github.token", "github_token", str, "the token they are posted with", env="HOLDFAST_GITHUB_TOKEN"),
    Setting("dispatch.webhook", "webhook", str, "the address that dispatches are handed to", env="HOLDFAST_WEBHOOK"),
    Setting("dispatch.key", "webhook_key", str, "the bearer token that goes with them", env="HOLDFAST_WEBHOOK_KEY"),
    Setting(
        "otel.endpoint",
        "otel_endpoint",
        str,
        "the OTLP/HTTP collector that the gateway sends traces to; needs holdfast[otel]",
        env="OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    Setting("otel.service_name", "otel_service", str, "the name of the gateway in traces", env="OTEL_SERVICE_NAME"),
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
        raise ConfigError(f"{url[:200]!r} is not the address of a gateway", "Write it as http://HOST:PORT or https://HOST")
    return url


def find_home(home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Return the path of the home, without reading config.toml."""
    env = os.environ if environ is None else environ
    root = os.fspath(home) if home is not None else env.get("HOLDFAST_HOME") or _default_home(env)
    if is_store(root):
        raise ConfigError("a home is a folder, and this is the address of a store", "Name it with --store or HOLDFAST_STORE")
    if not root or "\0" in root:
        raise ConfigError("the home's path is empty or has a NUL in it", "Set HOLDFAST_HOME to a folder")
    if root == "~" or root.startswith("~/"):  # from a file or a service, where no shell expands it
        root = (env.get("HOME") or os.path.expanduser("~")) + root[1:]
    try:
        return os.path.abspath(root)
    except FileNotFoundError:  # relative, in a folder that was removed
        raise ConfigError(f"the home {root!r} is in a folder that is gone", "Set HOLDFAST_HOME to a full path") from None


def disable_telemetry() -> None:
    """Turn off the telemetry of onnxruntime; call this before it is imported."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def find_setting_source(setting: Setting, home: str, environ: Mapping[str, str] | None = None) -> str:
    """Return where the value of a setting comes from: the environment variable, config.toml or the default."""
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
    """Return the setting of an embedder with passwords in its URL hidden."""
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

    near = difflib.get_close_matches(name, [setting.name for setting in SETTINGS], 1, 0.4)
    hint = f"Did you mean {near[0]}?" if near else "`holdfast config` lists them"
    raise ConfigError(f"there is no setting {name!r}", hint)


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
    does = phrase("config", f"it: `holdfast config {setting.name} VALUE`")
    return Template("Correct ", does, f", or unset {setting.env}" if setting.env else "")


def _default_home(env: Mapping[str, str]) -> str:
    user = env.get("HOME") or _home_of_user()  # an empty HOME counts as unset; otherwise the home would be /.holdfast
    if not os.path.isabs(user):
        raise ConfigError("no home directory is known", "Set HOLDFAST_HOME to a folder")
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
        raise ConfigError(f"{path} is not a regular file", "Remove it")
    with open(fd, "rb") as file:
        data = file.read(1024 * 1024)
    import tomllib

    try:
        return _flatten(tomllib.loads(data.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "Correct the line, or remove the file") from None


def _make_read_error(path: str, error: OSError) -> HoldfastError:
    """Return the error for a config.toml that cannot be read; it names the home if that is the cause."""
    import errno

    home, mine = os.path.dirname(path), os.geteuid()
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return from_os(error, f"cannot read {path}")
    if error.errno not in (errno.EACCES, errno.EPERM):
        return ConfigError(f"{path}: {error.strerror}", "Make it a plain file, or remove it")
    try:
        owner = os.stat(home).st_uid
    except OSError:
        fix = "Let this user enter the folders above it, or set HOLDFAST_HOME to a folder of your own"
        return DiskTrouble(f"the home {home} cannot be reached: {error.strerror}", fix)
    if owner != mine:
        fix = "Run as its owner, chown it, or set HOLDFAST_HOME to a folder of your own"
        return DiskTrouble(f"the home {home} belongs to user {owner}, not to you ({mine})", fix)
    if not os.access(home, os.X_OK):
        return DiskTrouble(f"the home {home} cannot be entered: {error.strerror}", "Let its owner enter it: chmod u+rwx")
    if os.stat(path).st_uid != mine:
        return ConfigError(f"{path} belongs to user {os.stat(path).st_uid}, not to you ({mine})", "chown it, or remove it")
    return ConfigError(f"{path}: {error.strerror}", "Make the file readable, or remove it")


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by their dotted names."""
    flattened: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flattened.update(_flatten(value, f"{prefix}{name}."))
        else:
            flattened[prefix + name] = value
    return flattened
