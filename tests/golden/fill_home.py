"""Fill an empty home, or the PostgreSQL store of HOLDFAST_STORE, with every kind of data: `python fill_home.py HOME FOLDER`.

FOLDER is an empty working folder. Time and randomness are fixed, so the same code writes the same bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import deterministic

from holdfast import HoldfastError, Memory
from holdfast.verbs import scaffold

scaffold._TEMPLATES = str(Path(__file__).parent / "templates")  # those of version 0.1.0, whose words may change
clock = deterministic.clock
AWKWARD = """A text with lines that look like parts of the format:

---
key: not-a-header
---
<!-- holdfast:history -->
## 2026-01-01T00:00:00Z
- state: ~~open~~ closed (until 2026-01-01)

```yaml
owner: nobody
```
Größe, naïve, 日本語, emoji 🧭 and a trailing backslash \\
"""
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # looks like a token but is not one; it is redacted before it is stored
TURNS = [
    {"id": "t1", "role": "user", "text": "Where do the pilots meet before a crossing?", "time": "2026-01-06T10:00:00Z"},
    {"id": "t2", "role": "assistant", "text": "At the north quay, half an hour early.", "time": "2026-01-06T10:00:05Z"},
    {"id": "t3", "speaker": "Bo", "text": "Bring the tide table.", "time": "2026-01-06T10:01:00Z"},
]
CHAT = [
    {"session": "imported", "id": "i1", "role": "user", "content": "How long is the crossing?", "time": "2026-01-07T08:00:00Z"},
    {"session": "imported", "id": "i2", "role": "assistant", "content": "Forty minutes in calm weather.",
     "time": "2026-01-07T08:00:09Z"},
]  # fmt: skip


def main(home: str, folder: str) -> None:
    os.chdir(folder)

    def memory(**options: str) -> Memory:
        return Memory(home, **{"project": "harbour", "client": "chat", "cwd": folder, **options})  # type: ignore[arg-type]

    run_command(home, "config", "brief.entries", "20")
    run_command(home, "config", "hooks.reminder", "2")
    clock.set("2025-08-01T09:00:00Z")
    with memory(project="old-harbour", origin="user") as person:
        person.store("The breakwater was built in 1911.", key="breakwater")
    with memory(session="s0", origin="user") as person:
        write_expiring(person)
    clock.set("2026-01-05T09:00:00Z")
    with memory(session="s1", agent="ada", origin="user") as person:
        write_notes(person)
        write_facts(person)
        write_files(person)
        write_transcripts(person, folder)
        review(person)
    with memory(session="s2", agent="ben") as agent:
        read_notes(agent)
    with memory(session="s1", agent="ada", origin="user") as person:
        delete_notes(person)
    run_hooks(home, folder)
    add_agents(home)
    send_requests(home)


def write_expiring(m: Memory) -> None:
    """Write notes that are archived, or deleted from the trash, before the other notes are written."""
    m.store("The winter timetable starts in October.", key="winter")
    m.store("The regatta is in September.", key="regatta", tags="summer")
    m.store("The old crane was sold.", key="crane")
    m.store("Yesterday we painted the buoys.", key="painting", scope="session")
    m.store("This note is deleted from the trash.", key="emptied")
    clock.advance(days=1)
    m.store("The winter timetable starts in November.", key="winter")
    m.forget("emptied")


def write_notes(m: Memory) -> None:
    m.store("We deploy on Mondays.", key="deploys", tags="release,team")
    clock.advance(days=1)
    m.store("We deploy on Tuesdays.", key="deploys", valid_from="2026-01-06")
    clock.advance(days=1)
    m.store("We deploy on Tuesdays, never on Fridays.", key="deploys", tags="release")
    clock.advance(minutes=1)
    m.store("Use pytest, never unittest.", key="testing", type="feedback", pinned=True)
    m.store("The lighthouse keeper is called Ada.\n\nShe starts at dusk.", type="user")
    m.store(AWKWARD, key="awkward", type="reference")
    clock.advance(minutes=1)
    m.store("The ferry runs every hour.", key="ferry", valid_from="2026-01-01", valid_to="2026-03-01")
    m.store("The deploy script needs the token " + TOKEN + " to run.", key="script", redact=True)
    m.store("Global: write dates as 2026-01-31.", key="dates", scope="global", type="feedback")
    m.store("Ada prefers short answers.", key="style", scope="agent")
    m.store("Today we are moving the buoys.", key="today", scope="session")
    clock.advance(minutes=1)
    rows = [{"text": f"Berth {number} is {depth} metres deep.", "key": f"berth-{number}", "tags": ["berths"]}
            for number, depth in ((1, 4), (2, 6), (3, 9))]  # fmt: skip
    m.store_many([*rows, {"text": "The crane is serviced in spring.", "scope": "global", "pinned": True}])
    clock.advance(minutes=1)
    m.store("Storms close the harbour, says the port authority.", key="storms", origin="web",
            made_from="https://port.example/storms")  # fmt: skip
    m.store("Fog signals are two long blasts.", key="fog", origin="web", made_from="https://port.example/fog")
    m.store("Pay the invoice at once.", key="invoice", origin="web", made_from="https://spam.example/pay")
    m.store("Summary: close the gates in a storm.", key="gates", origin="tool", made_from="note:storms")
    m.store("The old pilot list.", key="pilots")
    m.store("A note that will be purged: the combination lock opens with the year of the flood.", key="combination")
    m.store("A note that waits in the trash.", key="binned")
    m.store("A note that comes back under another key.", key="moved")


def write_facts(m: Memory) -> None:
    clock.advance(minutes=1)
    m.fact("Harbour", "master", "[[Ada]]", on="2025-06-01")
    m.fact("Harbour", "master", "[[Ben]]", on="2026-01-02")
    m.fact("Harbour", "town", "[[Lisbon]]", on="2025-01-01", many=True)
    m.fact("Harbour", "town", "[[Porto]]", on="2025-02-01", many=True)
    m.fact("Lisbon", "country", "[[Portugal]]")
    m.fact("Ada", "works at", "[[Lighthouse]]", scope="global")
    m.fact("Tide", "height", "3.2 m", on="2026-01-03", scope="agent")


def write_files(m: Memory) -> None:
    clock.advance(minutes=1)
    m.files.create("/memories/plan.md", "one\ntwo\nthree\n")
    m.files.insert("/memories/plan.md", 1, "between")
    m.files.str_replace("/memories/plan.md", "three", "tres")
    m.files.create("/memories/charts/north quay.txt", "Depth at the north quay: nine metres.\n")
    m.files.create("/memories/old.txt", "This file text is purged.\n")
    m.files.rename("/memories/old.txt", "/memories/charts/new.txt")
    m.files.create("/memories/gone.txt", "gone\n")
    m.files.delete("/memories/gone.txt")
    m.files.create("/memories/own.md", "The agent's own file.\n", scope="agent")
    m.scaffold("continuity")


def write_transcripts(m: Memory, folder: str) -> None:
    clock.advance(minutes=1)
    m.log(TURNS)
    m.log([*TURNS, {"id": "t4", "role": "user", "text": "Thanks."}])
    m.log([{"id": "x1", "role": "user", "text": "This session is forgotten."}], session="s7", client="chat")
    m.log([{"id": "p1", "role": "user", "text": "This session is purged."}], session="s8", client="chat")
    with open(os.path.join(folder, "chat.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(turn) + "\n" for turn in CHAT)
    m.import_history(os.path.join(folder, "chat.jsonl"))
    os.unlink(os.path.join(folder, "chat.jsonl"))


def review(m: Memory) -> None:
    clock.advance(minutes=1)
    m.approve("fog")
    m.reject("invoice")
    m.retain()


def read_notes(m: Memory) -> None:
    """Read notes, which records usage, shown notes and prompts."""
    clock.advance(days=1)
    m.brief()
    m.brief(prompt="When do we deploy, and how deep is berth 3?")
    m.get("deploys")
    m.recall("pytest", mode="keyword")
    m.store("Ben answers in Portuguese.", key="style", scope="agent")
    m.store("Ben noticed that the pilots moved to the south quay.", key="pilots")


def delete_notes(m: Memory) -> None:
    clock.advance(minutes=1)
    m.forget("binned")
    m.forget("moved")
    m.restore("moved", under="came-back")
    m.forget_session("s7", client="chat")
    m.adopt("old-harbour")
    clock.advance(days=1)
    m.forget("berth-2")
    clock.advance(minutes=1)
    m.purge("combination")
    m.purge(session="s8", client="chat")
    m.purge(text="This file text is purged.", files=True)
    with contextlib.suppress(HoldfastError):
        m.store("A note that will be purged: the combination lock opens with the year of the flood.", key="again")


def add_agents(home: str) -> None:
    clock.advance(minutes=1)
    run_command(home, "agent", "add", "reviewer", "--role", "code-review-engineer", "--days", "90")
    run_command(home, "agent", "add", "helper", "--role", "secretary")
    run_command(home, "agent", "rotate", "reviewer", "--grace", "24")
    run_command(home, "agent", "revoke", "helper", "--yes")


def run_hooks(home: str, folder: str) -> None:
    """Run the hooks of a session start and two prompts."""
    clock.advance(minutes=1)
    os.environ["HOLDFAST_PROJECT"] = "harbour"
    events = [("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "How deep is berth 3?"}),
              ("UserPromptSubmit", {"prompt": "And when do we deploy?"})]  # fmt: skip
    for event, fields in events:
        message = json.dumps({"session_id": "s3", "cwd": folder, "hook_event_name": event, **fields}).encode()
        read_end, write_end = os.pipe()
        os.write(write_end, message)
        os.close(write_end)
        os.dup2(read_end, 0)  # a hook reads the file descriptor
        os.close(read_end)
        run_command(home, "hook", "claude-code", event)
    del os.environ["HOLDFAST_PROJECT"]


def send_requests(home: str) -> None:
    """Send requests to the gateway, which record work, idempotency keys and denials in the audit."""
    clock.advance(minutes=1)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
    from http_gateway import NO_GRANTS, run_gateway

    with run_gateway(Path(home)) as gateway:
        surveyor = gateway.agent("surveyor", "code-review-engineer", NO_GRANTS)
        master = gateway.agent("master", "operator", NO_GRANTS)
        note = {"key": "sounding", "value": "Sound the channel weekly."}
        survey = {"kind": "survey", "subject": "channel"}
        answers = [
            surveyor.post("/gateway/memory", note, Idempotency_Key="golden-1", X_Request_Id="golden-request-1"),
            surveyor.post("/done", survey, X_Request_Id="golden-request-2"),
            master.post("/done", survey, Idempotency_Key="golden-2", X_Request_Id="golden-request-3"),
        ]
    assert [answer.status for answer in answers] == [200, 403, 201], answers


def run_command(home: str, *arguments: str, status: int | None = 0) -> str:
    """Run a command in this process and return its output; check its exit status unless that is None."""
    (script,) = entry_points(group="console_scripts", name="holdfast")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = script.load()(["--home", home, *arguments])
    assert status is None or code == status, (arguments, code, out.getvalue())
    return out.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:])
