"""The table of commands: name, arguments, options and handler of each.

The parser, the help, shell completion and docs/cli.md all come from it. Plain objects: every command loads this module.
"""

from __future__ import annotations

from holdfast.cli.command import Arg, Command, Option

_WRITE_SCOPE = Option("--scope", "SCOPE", "where it belongs, if not to the project", choices="SCOPES")
_READ_SCOPE = Option("--scope", "SCOPE", "only there, not everywhere you may see", choices="SCOPES")
_READ_SCOPE_OR_ALL = Option(
    "--scope",
    "SCOPE",
    "only there, not everywhere you may see; all: every project, agent and session of the home",
    choices=("session", "project", "agent", "global", "all"),
)
_TYPE_FILTER = Option("--type", "TYPE", "only of this type", choices="TYPES")
_TAG_FILTER = Option("--tag", "TAG", "only with this tag; give it again, or a comma list, for several", repeatable=True)
_ORIGIN = Option("--origin", "ORIGIN", "who it came from, if not from you", choices="ORIGINS")
_FROM = Option(
    "--from", "SOURCE", "what it came from: an address, a path, note:KEY; give it again for several", repeatable=True
)  # fmt: skip
_SOURCE = Option("--source", "SOURCE", "what came from it: an address, path, session:ID, client:NAME, origin:web, note:KEY")
_AS_OF = Option("--as-of", "DATE", "what was true then")
_KNOWN_AT = Option("--known-at", "DATE", "what was recorded by then")
_TREE_SCOPE = Option("--scope", "SCOPE", "whose tree, if not the agent's or, without one, the project's", choices="SCOPES")
_YES = Option("--yes", "", "do not ask")
_DIFF = Option("--diff", "", "show every file in full, also those that are new")
_REDACT = Option("--redact", "", "keep it with [REDACTED:rule] in place of a secret; otherwise it is refused")
_ALLOW_SECRET = Option("--allow-secret", "WHY", "keep a secret as it is; that you did and why is recorded")
_KEY = Arg("KEY", "the note's key", completion="keys")
_GRANT_KIND = Arg("KIND", "project, session or repository")
_AGENT = Arg("NAME", "which agent", completion="agents")
_SESSION = Option("--session", "ID", "without a key: the transcript of this session")
_CLIENT = Option("--client", "NAME", "with --session: only of this program")

SECTIONS: tuple[tuple[str, tuple[Command, ...]], ...] = (  # the commands by section of the help
    ("Remember and recall", (
        Command(
            "store", "notes:store", "keep a text; on a key that exists it becomes the current version",
            args=(Arg("TEXT", "the text, or - to read it from stdin"),),
            options=(
                Option("--key", "KEY", "its name: a-z, 0-9 and '-'; made from the text if you give none"),
                _WRITE_SCOPE, Option("--type", "TYPE", "what it is, if not about the project", choices="TYPES"),
                Option("--tag", "TAG", "a tag; give it again, or a comma list, for several", repeatable=True),
                Option("--valid-from", "DATE", "true from then on, not from now"),
                Option("--valid-to", "DATE", "true until then; afterwards no longer recalled or briefed, but kept"),
                Option("--pin", "", "brief it first and never archive it"),
                Option("--unpin", "", "take the pin away"),
                _ORIGIN, _FROM,
                Option("--expected", "VERSION", "the version you saw; if it is another by now, exit 4"),
                Option("--again", "", "take back what was purged: otherwise it is refused"),
                _REDACT, _ALLOW_SECRET,
            ),
            example='holdfast store "Use pytest, never unittest" --key testing --type feedback --tag ci-cd',
        ),
        Command(
            "recall", "notes:recall", "find what is known about something",
            args=(Arg("QUERY", "what to look for; may be left out with --mode recent", required=False, join_rest=True),),
            options=(
                _READ_SCOPE_OR_ALL, _TYPE_FILTER, _TAG_FILTER,
                Option("--limit", "N", "at most so many, 1 to 100; otherwise 10", is_integer=True),
                _AS_OF, _KNOWN_AT,
                Option(
                    "--mode", "MODE",
                    "how to look, if not keyword, which answers at once; hybrid and semantic load the models first",
                    choices="MODES",
                ),
                Option("--sort", "SORT", "what comes first, if not relevance", choices="SORTS"),
                Option("--kind", "KIND", "only such", choices="PARTS"),
                Option("--now", "DATE", "when it is, for questions such as `last week`; means --mode hybrid"),
                Option("--explain", "", "why each hit is where it is; means --mode hybrid, unless you give another"),
                Option("--archived", "", "only archived notes"),
            ),
            example="holdfast recall which database --as-of 2026-03-15",
        ),
        Command(
            "get", "notes:get", "print one note", args=(_KEY,),
            options=(_READ_SCOPE, _AS_OF, _KNOWN_AT, Option("--history", "", "every version, newest first")),
            example="holdfast get testing --history",
        ),
        Command(
            "list", "notes:list_notes", "list the notes you may see, newest first",
            options=(
                _READ_SCOPE, _TYPE_FILTER, _TAG_FILTER, Option("--limit", "N", "at most so many", is_integer=True),
                Option("--trash", "", "what was forgotten or archived and can be restored"),
                Option("--archived", "", "notes that were archived: not updated or used for long"), _SOURCE,
            ),
            example="holdfast list --type feedback",
        ),
        Command(
            "edit", "edit:edit", "change a note in your editor (VISUAL or EDITOR)", args=(_KEY,),
            options=(_READ_SCOPE, _REDACT, _ALLOW_SECRET),
            example="holdfast edit testing",
        ),
        Command(
            "import", "import_notes:import_notes",
            "keep many notes at once, or none, naming the bad one; interrupted, run it again",
            args=(Arg("FILE", "one JSON object a line: text, key, scope, type, tags, ...; - for stdin", completion="files"),),
            options=(
                Option("--scope", "SCOPE", "where all go; otherwise each where it says, or to the project", choices="SCOPES"),
                Option("--origin", "ORIGIN", "who they came from, if not import", choices="ORIGINS"), _REDACT,
            ), example="holdfast import notes.jsonl --scope global",
        ),
        Command(
            "export", "export:export", "print every note with its versions, one JSON object a line; secrets are left out",
            options=(_READ_SCOPE, Option("--output", "FILE", "write them to this file, which only you can read")),
            example="holdfast export --output notes.jsonl",
        ),
    )),
    ("Facts", (
        Command(
            "fact", "facts:fact", "state a dated fact; the one it replaces is struck through and kept",
            args=(
                Arg("SUBJECT", "what it is about"), Arg("LABEL", "which property of it"),
                Arg("VALUE", "the value; [[Name]] links to another subject"),
            ),
            options=(
                Option("--on", "DATE", "since when; otherwise today"),
                Option("--many", "", "beside the values it has, not in their place"), _WRITE_SCOPE, _ORIGIN, _FROM, _REDACT,
            ),
            example="holdfast fact Telegram status enabled --on 2026-03-27",
        ),
        Command(
            "facts", "facts:facts", "what is stated, now or as of a day",
            args=(Arg("SUBJECT", "only about this", required=False),),
            options=(
                Option("--label", "LABEL", "only this property"), _AS_OF,
                Option("--history", "", "everything that ever was stated"), _READ_SCOPE,
            ),
            example="holdfast facts Telegram --as-of 2026-03-20",
        ),
        Command(
            "graph", "facts:graph", "what is linked with something by [[Name]] in facts, or how two things are",
            args=(Arg("ENTITY", "what it is about, by any of its names"),),
            options=(
                Option("--depth", "N", "so many links away; otherwise 1", is_integer=True),
                Option("--to", "ENTITY", "the shortest way to this one"), _AS_OF,
                Option("--format", "FORMAT", "how to draw it, if not as text", choices=("text", "mermaid", "dot")), _READ_SCOPE,
            ),
            example="holdfast graph Telegram --depth 2 --as-of 2026-03-20",
        ),
    )),
    ("History", (
        Command(
            "log", "history:log", "keep what was said in a session, word for word and once",
            args=(Arg("FILE", 'lines of JSON such as {"role": "user", "text": "..."}; - for stdin'),),
            options=(
                Option("--session", "ID", "whose turns they are (HOLDFAST_SESSION)"),
                Option("--client", "NAME", "the program it was said in (HOLDFAST_CLIENT)"), _WRITE_SCOPE, _REDACT,
            ),
            example="holdfast log turns.jsonl --session 7f3a",
        ),
        Command(
            "import-history", "history:import_history", "keep the transcripts of Claude Code, Codex, Gemini or a chat",
            args=(Arg("PATH", "transcripts, or folders of them", repeatable=True),),
            options=(Option("--client", "NAME", "the program that wrote them, instead of finding it out"), _WRITE_SCOPE),
            example="holdfast import-history transcripts/",
        ),
        Command(
            "expand", "history:expand", "what was said around a turn",
            args=(Arg("TURN", "the citation that a hit shows, or a turn's id"),),
            options=(
                Option("--before", "N", "so many turns before it, 0 to 1000; otherwise 3", is_integer=True),
                Option("--after", "N", "so many turns after it, 0 to 1000; otherwise 3", is_integer=True),
                Option("--session", "ID", "of this session, if several have a turn of that id"),
            ),
            example="holdfast expand projects/demo/transcripts/chat/c1.jsonl:12-12 --before 5",
        ),
    )),
    ("Forget", (
        Command(
            "forget", "forget:forget", "put a note in the trash; it can be restored for 30 days",
            args=(Arg("KEY", "the note's key", required=False, completion="keys"),),
            options=(
                _READ_SCOPE, _SESSION, _CLIENT, _SOURCE, Option("--dry-run", "", "with --source: only show"), _YES,
                Option("--revert", "", "with --source: take back the last text that did not come from it"),
                Option("--everywhere", "", "with --source: all scopes there are"),
            ),
            example="holdfast forget testing",
        ),
        Command(
            "restore", "forget:restore", "bring back what was forgotten or archived",
            args=(Arg("KEY", "the note's key", required=False, completion="trash"),),
            options=(
                _READ_SCOPE, Option("--as", "KEY", "under another key, if this one has been taken since"), _SESSION, _CLIENT,
            ),
            example="holdfast restore testing",
        ),
        Command(
            "purge", "forget:purge", "remove a note, a session or a text for good, everywhere, with a receipt",
            args=(Arg("KEY", "the note's key", required=False, completion="keys"),),
            options=(
                _READ_SCOPE,
                Option("--transcripts", "", "with a key: also the turns of your sessions that say what the note says"),
                _SESSION, _CLIENT,
                Option("--text", "-", "a text wherever it stands, read from stdin; always -, so that no shell remembers it"),
                Option("--files", "", "with --text: also out of files of the tree, which are otherwise only named"), _YES,
            ),
            example="holdfast purge testing --yes",
        ),
        Command(
            "receipts", "forget:receipts", "what was purged, how that was checked, and what is left to do",
            args=(Arg("ID", "only this one, in full", required=False),), example="holdfast receipts",
        ),
        Command(
            "clear", "forget:clear", "forget every note of one scope",
            options=(Option("--scope", "SCOPE", "which one; must be said", choices="SCOPES"), _YES),
            example="holdfast clear --scope session --session 7f3a --yes",
        ),
        Command(
            "retain", "maintenance:retain", "archive notes not updated or used for long; empty old trash",
            options=(Option("--dry-run", "", "only show what would be archived"),), example="holdfast retain --dry-run",
        ),
    )),
    ("Files", (
        Command(
            "search", "files:search", "find pieces of notes and files: path, lines, snippet",
            args=(Arg("QUERY", "what to look for", join_rest=True),),
            options=(
                Option("--limit", "N", "at most so many, 1 to 100; otherwise 10", is_integer=True),
                Option(
                    "--mode", "MODE",
                    "how to look, if not keyword, which answers at once; hybrid and semantic load the models first",
                    choices="SEARCH_MODES",
                ),
            ),
            example="holdfast search heartbeat",
        ),
        Command(
            "read", "files:read", "read a piece of a note or file by the path a hit shows",
            args=(Arg("PATH", "the path, with or without its lines: global/notes/a.md:7-9"),),
            example="holdfast read global/notes/testing.md:7-9",
        ),
        Command(
            "file view", "files:view", "show a file of the tree, or the names in a folder",
            args=(Arg("PATH", "from /memories, the root of the scope's tree"),),
            options=(Option("--lines", "FROM-TO", "only these lines"), _WRITE_SCOPE), example="holdfast file view /memories",
        ),
        Command(
            "file create", "files:create", "write a file, new or in the place of the old one",
            args=(Arg("PATH", "where"), Arg("TEXT", "the text, or - to read it from stdin")), options=(_WRITE_SCOPE, _REDACT),
            example='holdfast file create plan.md "# Plan"',
        ),
        Command(
            "file str-replace", "files:str_replace", "replace a text that stands exactly once in a file",
            args=(Arg("PATH", "which file"), Arg("OLD", "the text that stands there"), Arg("NEW", "the text to put")),
            options=(_WRITE_SCOPE, _REDACT), example="holdfast file str-replace plan.md Plan Goals",
        ),
        Command(
            "file insert", "files:insert", "insert text after a line; 0 is the start",
            args=(
                Arg("PATH", "which file"), Arg("LINE", "after which line"),
                Arg("TEXT", "the text, or - to read it from stdin"),
            ),
            options=(_WRITE_SCOPE, _REDACT), example='holdfast file insert plan.md 1 "- rest"',
        ),
        Command(
            "file delete", "files:delete", "remove a file, or a folder with all in it", args=(Arg("PATH", "which"),),
            options=(_WRITE_SCOPE,), example="holdfast file delete plan.md",
        ),
        Command(
            "file rename", "files:rename", "move a file or folder, never over another",
            args=(Arg("OLD", "from where"), Arg("NEW", "to where")), options=(_WRITE_SCOPE,),
            example="holdfast file rename plan.md goals.md",
        ),
    )),
    ("An agent's own files", (
        Command(
            "scaffold", "files:scaffold", "put a tree of template files where they are missing; what is there stays",
            args=(Arg("NAME", "continuity or wiki", completion="scaffolds"),), options=(_TREE_SCOPE,),
            example="holdfast scaffold continuity --scope agent --agent reviewer",
        ),
        Command(
            "boot", "files:boot", "print what an agent that keeps continuity reads when it starts",
            options=(
                Option("--cap", "N", "at most so many characters, 1500 to 9000; otherwise 6000", is_integer=True), _TREE_SCOPE,
            ),
            example="holdfast boot --cap 3000",
        ),
    )),
    ("Agents", (
        Command(
            "install", "install:install", "let a coding agent use this memory; shows the changes first, and asks",
            args=(Arg("CLIENT", "which one; without it, those found on this machine", required=False, completion="clients"),),
            options=(
                _YES, Option("--dry-run", "", "only show what would be changed"), _DIFF,
                Option("--print", "", "show what to paste, and where"),
                Option("--auto-memory", "", "also keep what the client's model writes by itself on this project's shelf"),
                Option("--gateway", "", "also install the skill update-memory, if no gateway or store is configured"),
            ),
            example="holdfast install --dry-run",
        ),
        Command(
            "uninstall", "install:uninstall", "take out what install put in; every file is again as it was",
            args=(Arg("CLIENT", "which one; without it, all that are installed", required=False, completion="clients"),),
            options=(
                _YES, Option("--dry-run", "", "only show what would be changed"), _DIFF,
                Option("--all", "", "in every project, where the install is in the project's own files"),
            ),
            example="holdfast uninstall --dry-run",
        ),
        Command(
            "render", "install:render", "put the briefing into a block of a file that an agent reads",
            args=(Arg("FILE", "which file; it is made if it is not there", completion="files"),),
            options=(Option("--remove", "", "take the block out again"),), example="holdfast render AGENTS.md",
        ),
        Command(
            "mcp", "mcp:mcp", "serve memory to an agent over MCP: on stdin and stdout until it hangs up, or over HTTP",
            options=(
                Option("--http", "", "streamable HTTP on loopback instead"),
                Option("--port", "N", "with --http: the port, if not 8711; 0 for any that is free", is_integer=True),
                Option("--no-token", "", "with --http: let in every user of this machine, to read and write this home"),
            ),
            example="holdfast mcp --http --port 0",
        ),
        Command(
            "serve", "serve:serve", "the gateway: an HTTP API and MCP for many agents, each with a token and a role",
            options=(
                Option("--host", "ADDRESS", "where to listen, if not on 127.0.0.1"),
                Option("--port", "N", "the port, if not 8710; 0 for any that is free", is_integer=True),
                Option(
                    "--allow-host", "NAME", "a name it goes by besides loopback's; give it again for several", repeatable=True
                ),
                Option("--allow-origin", "ORIGIN", "pages that may ask, such as https://a.example", repeatable=True),
                Option(
                    "--trusted-proxy", "NETWORK", "a proxy whose X-Forwarded-For names the client, such as 10.0.0.0/8",
                    repeatable=True,
                ),
                Option("--workers", "N", "so many processes on one port; limits are each one's", is_integer=True),
                Option("--json-logs", "", "the log as JSON also on a terminal"),
                Option(
                    "--operator-token-file", "PATH",
                    "the first operator's token is read from this file, or written there if the file is missing",
                ),
            ),
            example="holdfast serve --port 0",
        ),
        Command(
            "ui", "ui:ui", "open the web console of this home in a browser, signed in",
            options=(
                Option("--port", "N", "the port, if not any that is free", is_integer=True),
                Option("--no-browser", "", "print the sign-in link, and open nothing"),
            ),
            example="holdfast ui --no-browser",
        ),
        Command(
            "prove", "prove:prove", "run a client's real program in a private home, and show what reached the model",
            args=(Arg("CLIENT", "which program", completion="clients"),),
            options=(
                Option("--program", "PATH", "the program, if not the one on the PATH"),
                Option("--seconds", "N", "stop it after so long; otherwise 120", is_integer=True),
                Option("--keep", "DIR", "a new folder for every request and every call of Holdfast"),
            ),
            example="holdfast prove CLIENT --keep proof",
        ),
        Command(
            "hook", "brief:hook", "what a client's hook runs: told on stdin what happened, it tells the model",
            args=(Arg("CLIENT", "which client", completion="clients"), Arg("EVENT", "its own name of the event")), raw=True,
            example="holdfast hook CLIENT start",
        ),
    )),
    ("The gateway", (
        Command(
            "agent add", "agents:add_agent", "let an agent in; its token is shown this once",
            args=(Arg("NAME", "what it is called; its memory is kept under this name"),),
            options=(
                Option("--role", "ROLE", "what it may do: code-review-engineer, secretary, operator, or one of your own"),
                Option("--days", "N", "the token ends after so many; otherwise it does not", is_integer=True),
                Option("--project", "PATTERN", "a project it reaches, such as acme-*; give it again for more", repeatable=True),
                Option("--session", "PATTERN", "a session it reaches beside its own; likewise", repeatable=True),
                Option("--repository", "PATTERN", "a repository it may review, such as acme/*; likewise", repeatable=True),
            ),
            example="holdfast agent add reviewer --role code-review-engineer --repository 'acme/*' --days 90",
        ),
        Command("agent list", "agents:list_agents", "who may come in, in which role", example="holdfast agent list"),
        Command(
            "agent rotate", "agents:rotate_token", "a new token for an agent; the old one ends", args=(_AGENT,),
            options=(
                Option("--days", "N", "the new one ends after so many; otherwise it lasts as long as the old", is_integer=True),
                Option("--grace", "HOURS", "how long the old one still works; otherwise not at all", is_integer=True),
            ),
            example="holdfast agent rotate reviewer --grace 24",
        ),
        Command(
            "agent revoke", "agents:revoke_agent", "end every token of an agent, at once; what it has kept stays",
            args=(_AGENT,), options=(_YES,), example="holdfast agent revoke reviewer",
        ),
        Command(
            "agent grant", "agents:add_grant", "let an agent reach a project, session or repository",
            args=(_AGENT, _GRANT_KIND, Arg("PATTERN", "its name; * is any number of characters")),
            example="holdfast agent grant reviewer project 'acme-*'",
        ),
        Command(
            "agent ungrant", "agents:remove_grant", "take a grant back, from the agent's next request on",
            args=(_AGENT, _GRANT_KIND, Arg("PATTERN", "exactly as it was granted")),
            example="holdfast agent ungrant reviewer project 'acme-*'",
        ),
        Command(
            "agent grants", "agents:list_grants", "what an agent reaches: its grants and those of its role", args=(_AGENT,),
            example="holdfast agent grants reviewer",
        ),
        Command("role list", "agents:list_roles", "what each role may do", example="holdfast role list"),
        Command(
            "role check", "agents:check_roles", "whether files of roles are right; each mistake with its line",
            args=(Arg("FILE", "only this one, wherever it stands", required=False, completion="files"),),
            example="holdfast role check",
        ),
        Command(
            "audit list", "ledger:list_audit", "what was decided, the newest first",
            options=(
                Option("--agent", "NAME", "only of this agent"), Option("--action", "ACTION", "only this action"),
                Option("--outcome", "OUTCOME", "only such", choices=("allowed", "denied")),
                Option("--since", "DATE", "from then on"), Option("--until", "DATE", "before then"),
                Option("--before", "N", "only rows before this number: the next page", is_integer=True),
                Option("--limit", "N", "at most so many, 1 to 1000; otherwise 50", is_integer=True),
            ),
            example="holdfast audit list --outcome denied",
        ),
        Command(
            "audit verify", "ledger:verify_audit", "whether any row was changed, put in or taken out; exit 1 if so",
            options=(
                Option("--known", "HEAD", "a head that was printed before: all up to it must still be the same"),
                Option("--file", "FILE", "an exported or shipped file instead of the ledger; - for stdin"),
            ),
            example="holdfast audit verify",
        ),
        Command(
            "audit export", "ledger:export_audit", "rows, oldest first, each as a line of JSON that can be verified elsewhere",
            options=(
                Option("--since", "DATE", "from then on"), Option("--until", "DATE", "before then"),
                Option("--format", "FORMAT", "jsonl, which is the only one", choices=("jsonl",)),
                Option("--output", "FILE", "a new file instead of stdout"),
            ),
            example="holdfast audit export --since 2026-05-01",
        ),
        Command(
            "audit prune", "ledger:prune_audit",
            "remove rows that are older than a date, with a signed checkpoint that proves what was removed",
            options=(Option("--before", "DATE", "remove rows before then; those of the last 7 days always stay"), _YES),
            example="holdfast audit prune --before 2026-01-01",
        ),
        Command(
            "done list", "ledger:list_done",
            "list the work that agents recorded, newest first, such as reviews of pull requests",
            options=(
                Option("--agent", "NAME", "only of this agent"),
                Option("--kind", "KIND", "only this kind; a review of a pull request is github.review"),
                Option("--subject", "SUBJECT", "only this subject, such as owner/repo#7"),
                Option("--cursor", "CURSOR", "the next page, as the page before named it"),
                Option("--limit", "N", "at most this many, 1 to 1000 (default 50)", is_integer=True),
            ),
            example="holdfast done list --kind github.review",
        ),
        Command(
            "done exists", "ledger:check_done", "say whether an agent did this; exit 1 if not",
            args=(
                Arg("KIND", "the kind of work; a review of a pull request is github.review"),
                Arg("SUBJECT", "what it was done to, such as owner/repo#7"),
            ),
            options=(Option("--agent", "NAME", "only by this agent"),),
            example="holdfast done exists github.review acme/shop#7",
        ),
    )),
    ("Look after it", (
        Command(
            "brief", "brief:brief", "print what an agent is told when it starts, or with a prompt",
            options=(
                Option("--prompt", "TEXT", "what bears on this and was not shown to the session yet"),
                Option("--again", "", "with --prompt: also what was shown to the session"),
                Option("--cap", "N", "at most so many characters, 750 to 9000", is_integer=True),
                Option("--explain", "", "why each note is in or out; not counted as shown"),
            ),
            example="holdfast brief --explain",
        ),
        Command(
            "status", "maintenance:status", "where memory for this folder lives and how much there is",
            example="holdfast status",
        ),
        Command(
            "review", "review:review", "what waits for a person before it is told: approve, reject or edit it",
            options=(
                Option("--approve", "KEY", "let it be told"), Option("--reject", "KEY", "forget it"),
                Option("--undo", "KEY", "take an approval back, or restore what was rejected"), _READ_SCOPE,
                Option("--everywhere", "", "of every agent, project and session"),
            ), example="holdfast review",
        ),
        Command(
            "trace", "review:trace", "where a note came from, to whom it was told, what was made from it", args=(_KEY,),
            options=(_READ_SCOPE,), example="holdfast trace testing",
        ),
        Command(
            "project list", "setup:list_projects", "the projects of this home, and where each was last seen",
            example="holdfast project list",
        ),
        Command(
            "project adopt", "setup:adopt_project", "let the memory of one project be found from another",
            args=(
                Arg("OLD", "the project whose memory is meant", completion="projects"),
                Arg(
                    "NEW", "the project that should find it; otherwise that of this folder", required=False,
                    completion="projects",
                ),
            ),
            example="holdfast project adopt app-1a2b3c4d5e6f",
        ),
        Command(
            "doctor", "maintenance:doctor", "what is wrong, each with the command that mends it; exit 1 on a problem",
            example="holdfast doctor",
        ),
        Command(
            "migrate", "maintenance:migrate", "bring the PostgreSQL of --store up to this version; many may at once",
            example="holdfast migrate --store postgresql://localhost/memory",
        ),
        Command(
            "copy", "maintenance:copy", "bring all memory from one place to another, byte for byte; run it again to go on",
            args=(
                Arg("SRC", "a home's folder or postgresql:// URL", completion="files"),
                Arg("DST", "likewise", completion="files"),
            ),
            example="holdfast copy ~/.holdfast postgresql://localhost/memory",
        ),
        Command("reindex", "maintenance:reindex", "build the index anew from the files", example="holdfast reindex"),
        Command(
            "embed", "maintenance:embed", "give everything its vectors now, not a few with each hybrid recall",
            example="holdfast embed",
        ),
        Command(
            "resident", "maintenance:resident",
            "stay, hold the models, and answer other commands' recalls in full until stopped",
            example="holdfast resident",
        ),
        Command(
            "bench speed", "bench:speed", "how fast it is, as ratios to floors measured in the same run",
            options=(
                Option("--quick", "", "1,000 and 10,000 notes only: less than a minute; otherwise some minutes"),
                Option("--sizes", "N,N", "how many notes, each in a home of its own; otherwise 1000,10000,100000"),
                Option("--passages", "N,N", "how many turns, for hybrid recall; a million takes a quarter of an hour"),
                Option("--seed", "N", "another seed, other texts", is_integer=True),
            ), example="holdfast bench speed --quick",
        ),
        Command(
            "bench retrieval", "bench:retrieval", "how well recall finds what answers a question, on files of cases",
            args=(
                Arg("FILE", "cases as JSON lines, plain or .gz: see docs/benchmarks.md", repeatable=True, completion="files"),
            ),
            options=(
                Option("--mode", "MODE", "one leg alone, if not both (hybrid)", choices=("hybrid", "keyword", "semantic")),
                Option("--half", "HALF", "only the even cases or the odd ones; of one case, its questions", choices=("A", "B")),
                Option("--limit-cases", "N", "only the first N cases of each file", is_integer=True),
                Option("--plot", "FILE", "draw it, too (needs matplotlib: pip install 'holdfast[bench]')"),
            ), example="holdfast bench retrieval cases.jsonl --mode keyword",
        ),
        Command(
            "bench context", "bench:context", "how much of what an agent needs its hooks show it, and at what cost",
            args=(Arg("FILE", "a corpus as JSON: see docs/benchmarks.md", repeatable=True, completion="files"),),
            options=(
                Option(
                    "--situation", "SITUATION", "only without another process (keyword), or only with a resident one (hybrid)",
                    choices=("keyword", "hybrid", "both"),
                ),
                Option("--large", "", "first store the project notes of the other files in the same project"),
            ), example="holdfast bench context corpus.json --situation keyword",
        ),
        Command(
            "bench load", "bench:load", "requests per second of the gateway, compared with a plain FastAPI service",
            options=(
                Option("--agents", "N,N", "number of agents, each with its own token; default 1,16,100"),
                Option("--notes", "N,N", "number of notes; default 10000"),
                Option("--workers", "N,N", "number of gateway processes; default 1"),
                Option("--seconds", "N", "time for each kind of request, on 16 connections; default 4"),
                Option("--store", "URL", "on PostgreSQL, in a tenant of its own; otherwise on a home of its own"),
            ), example="holdfast bench load --agents 16 --workers 2",
        ),
        Command(
            "bench console", "bench:console", "server time of the console's pages, as ratios to the API calls they rest on",
            options=(Option("--notes", "N,N", "number of notes; default 10000"),),
            example="holdfast bench console --notes 100000",
        ),
    )),
    ("Set up", (
        Command(
            "init", "setup:init", "make the home, and say which project this folder is",
            options=(Option("--marker", "", "give this folder an id that moves with it (.holdfast/project.json)"),),
            example="holdfast init --marker",
        ),
        Command(
            "config", "config:config", "show the settings and where each comes from, or change one",
            args=(
                Arg("NAME", "which one", required=False, completion="settings"),
                Arg("VALUE", "its new value, written to config.toml", required=False),
            ),
            options=(Option("--unset", "", "take it out of config.toml"),),
            example="holdfast config retention.project_days 365",
        ),
        Command(
            "path", "setup:path", "print where something is",
            args=(
                Arg(
                    "WHAT", "home, shelf, notes, files, config, index, ledger, a note's key, or plugin and a client",
                    required=False, completion="paths",
                ),
                Arg(
                    "CLIENT", "of plugin: the client whose plugin it is; it is written anew", required=False,
                    completion="clients",
                ),
            ),
            options=(_READ_SCOPE,), example="holdfast path testing",
        ),
        Command(
            "completion", "completion:completion", "print a script that teaches your shell to complete holdfast",
            args=(Arg("SHELL", "bash, zsh or fish", completion="shells"),), example="source <(holdfast completion bash)",
        ),
        Command("demo", "demo:demo", "a guided tour on a temporary home", example="holdfast demo"),
        Command(
            "help", "help:show_help", "show help, for everything or for one command",
            args=(Arg("COMMAND", "which one", required=False, join_rest=True, completion="commands"),),
            example="holdfast help store",
        ),
    )),
)  # fmt: skip

_HIDDEN_COMMANDS = (Command("_complete", "completion:complete", "what could come next; asked by the shell", raw=True),)

COMMANDS: dict[str, Command] = {command.name: command for _, commands in SECTIONS for command in commands}
COMMAND_GROUPS = {  # the first word of each command of two words, and what the group is about
    "file": "an agent's own files",
    "agent": "who may come in by the gateway",
    "role": "what they may do",
    "audit": "what was decided",
    "project": "the projects of this home",
    "done": "which work agents recorded",
    "bench": "measure",
}


def find_command(name: str) -> Command | None:
    """Return the command of that name, including commands that help does not list."""
    return COMMANDS.get(name) or next((command for command in _HIDDEN_COMMANDS if command.name == name), None)
