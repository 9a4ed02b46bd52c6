"""The text of docs/api.md before its routes."""
# ruff: noqa: E501  (a row of a table is one line)

from __future__ import annotations

INTRODUCTION = """\
# HTTP API

<!-- Made by `python -m holdfast.cli.docs_pages docs` from src/holdfast/server; change it there. -->

The routes of `holdfast serve`. [Run a server](deploy.md) starts one; [Agents, roles and audit](gateway.md) makes tokens.
`/openapi.json` is the same as an OpenAPI 3.1 document.

```sh
curl -sS http://127.0.0.1:8710/v1/notes -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"text": "Use pytest.", "key": "testing", "scope": "agent"}'
```

## Requests

- **Token**: every route needs `Authorization: Bearer TOKEN`, except `/healthz`, `/readyz`, `/openapi.json` and `/problems/{code}`.
  The token determines the agent. No field or header changes it.
- **Action**: the agent's [role](gateway.md#roles) must allow the action of the route.
- **Project and session**: name them in the fields `project` and `session`, or in the headers `X-Holdfast-Project` and
  `X-Holdfast-Session`. Both need a [grant](gateway.md#grants). The server's own folder and environment are not used.
  A write to a project without its name is rejected.
- **Scope**: a request that names no scope covers all scopes of the role, unless the field has a default.
- **Fields**: an unknown field and a field that occurs twice are rejected, in a query, a body and a line of an import.
- **Aliases**: `content` for `text`, `memory_type` for `type`, `search_mode` for `mode` and `sort_by` for `sort`, in a query, a body and a
  line of an import. An alias that differs from its field is rejected. Answers use the names of the fields.
- **Request id**: send `X-Request-Id`, or the server makes one. Each response and each log line has it.
- **Tenant**: on PostgreSQL the token determines the [tenant](gateway.md#several-tenants-on-postgresql).

## Errors

An error is `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `code`, `fix`, `request_id`. The `code` is
stable. A request that does not match its schema has `errors`, each with a `pointer` and a `detail`. [Error codes](#error-codes) lists all.

- `fix` names a request of this API. A fix that only the server's administrator can apply begins with `On the server:`.
- No message contains the path of the home; `HOME` stands for it. The server's log has the path.
- With the header `X-Holdfast-Hints: parts` an error also has `parts`: detail and fix as data, for another interface to word.

## Order of checks

Nothing of the body is parsed or stored before the token is known.

| Check | Default limit | Rejected with |
|---|---|---|
| head of the request arrives | 30 seconds | connection closed |
| one `Host`: loopback or `--allow-host`; `Origin`, if sent: the same host or `--allow-origin` | | 421, 403 |
| path without unnecessary percent-encoding, such as `/gateway%2fmemory` | | 400 |
| each `X-Holdfast-` header at most once | | 422 |
| a valid bearer token | | 401 |
| [quotas](gateway.md#quotas) of the agent | none | 429 `quota_exceeded` |
| `serve.rate`: requests per second of one token; concurrent requests of one token | 100; half of `serve.at_once` | 429 with `Retry-After` |
| the role allows the action | | 403 |
| body: `serve.body_bytes`; pause between two parts; total time | 16 MiB; 30 seconds; 300 seconds | 413, 408 |
| `serve.at_once`: concurrent requests of all tokens | 64 | 429 with `Retry-After` |
| the role and grants allow the scope, project and session; an audit row is written | | 403 |
| JSON: levels; values | 32; 200,000 | 413 |
| schema of the route | | 422 |
| the operation itself | | see [errors](errors.md) |

- Rates and limits are counted by each server process.
- A request that waits for its body, or for its response to be read, counts only for its own token. Slow clients do not block others.
- A process accepts as many connections as `ulimit -n` allows, minus up to 256 for files and databases. Then it logs
  `connections full` (once a minute), and new connections wait.
- During an import, token and role are checked before each batch.
- Only origins given with `--allow-origin` get `Access-Control-*` headers. A page from another port of the same machine is a foreign origin.

## Repeat a write safely

Send `Idempotency-Key: ANYTHING` with a write. The same request with the same key within a day is not executed again. It gets the
first answer, with `Idempotency-Replayed: true`.

- A repeated error has `"replayed": true` in its body.
- The ledger stores ids and a digest of the key, no text. A note in a repeated answer is therefore the current note; if it was
  deleted, only its names. A token is not shown again (409).
- While the first request runs, a second one with its key gets 409 with `Retry-After`.
- After a failed import or upload you can use the key again.
- After a killed process you can use the key again immediately on an embedded home; on PostgreSQL after two minutes, for an import
  after ten.

## Change a note only if it is unchanged

A note has an `ETag`. `PUT` and `DELETE` with `If-Match: ETAG` change only this version. `If-None-Match: *` only creates a new note.
Otherwise the answer is 412.

## Lists and pages

`/v1/notes`, `/v1/notes/{scope}/{key}/history`, `/v1/trash`, `/v1/facts`, `/v1/facts/subjects`, `/v1/history/sessions`, `/v1/review`,
`/v1/operator/messages`, `/v1/receipts`, `/done`, `/audit` and `/agents` return pages. Pass `next` of an answer as `cursor`, until `next` is null. Other lists
are complete. `Memory(url)` reads all pages.

Use a cursor only with its own list. An invalid cursor, or one of a scope that you cannot access, is rejected.

A note that changes while you read pages moves to the front and may be missing from all pages. `/v1/export` returns each note once.

## Import and export

```sh
curl -sS http://127.0.0.1:8710/v1/export -H "Authorization: Bearer $TOKEN" > notes.jsonl
curl -sS http://127.0.0.1:8710/v1/import -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/x-ndjson' \\
  -H 'Idempotency-Key: import-1' --data-binary @notes.jsonl
```

- An import answers with lines: `{"progress": ...}` after every few hundred notes, then `{"done": ...}`. Each batch is stored
  completely or not at all. Only if the disk fails, another writer keeps a scope busy, or the same note is changed or purged at that
  moment, can lines of one scope be stored and those of another scope not.
- An invalid line ends the import with `{"failed": ..., "problem": ...}`, or with a plain problem if it is in the first batch.
  `line` is the number of the first invalid line. Notes of earlier batches are kept; sending everything again does not change them.
- A line goes to the `scope` of the request, or else to its own `scope`, or else to `project`. The request determines the project,
  session and agent. The role must have each scope.
- Imported notes have the trust of an `import`, or less if the line says so. With `own=true` they have the trust of the caller.
- An export has every version of each note; an import stores the current one. If files made by hand cannot be imported
  ([which](secrets.md#export)), the last line of an export is `{"left_out": {"count": ..., "notes": [...]}}`. An import skips this line.
- `/v1/history/import` takes another program's transcript unchanged, as lines or as one JSON document, of any length. No turn is
  stored twice. Secrets are replaced by the names of their rules.

## Purged texts

A text that an agent purged cannot be stored again in the scopes that the purge covered. A text that the operator purged cannot be
stored anywhere, until the operator allows it with `again`. The error is `purged` (422).

## Texts for a model

The reader of an answer may be a model. Answers are composed accordingly:

| Answer | Hidden characters | Secrets | Quarantined notes |
|---|---|---|---|
| `/v1/brief`, `/dispatch` | shown as marks | names of their rules | left out |
| `/gateway/memory` | shown as marks, `hidden` names the kinds | names of their rules | marked |
| every other read | unchanged, `hidden` names the kinds | names of their rules, unless the role has `memory.export` | marked |
| `/v1/export` | unchanged | names of their rules, listed in `redacted` | marked |

The first two rows write `<`, `>` and fences as JSON escapes, so that stored text cannot act as markup. Fixes of `/v1/check` are
commands for the server's machine.

## Keys and values

`/gateway/memory` is the caller's scope `agent` as keys and values, for platforms with their own key names.

```text
GET /gateway/memory?key=Deploy%20Steps

{"memory": [{"key": "Deploy Steps", "value": "Push the tag.", "updated_at": "2026-05-02T09:00:00Z",
             "note": "deploy-steps--glibiljplioagopdfdhlgloaapachidl"}]}
```

- `note` is the key of the note, for `/v1/notes/agent/{key}`. A key that is a valid note key is used unchanged. Lists, hits and
  notes show both: `key` and `name`.
- Keys that differ in one character or its case are different keys. Keys are converted to Unicode NFC.
- Control, bidirectional and invisible characters, spaces other than U+0020, a space at either end, and keys that look like secrets
  are rejected with 422.
- The note's file stores the key as `name`. If a person changes that line, lists show the note key; `GET` with the original key still
  finds the note, and the next `POST` restores the line.

Design: [ADR 0040](adr/0040-map-platform-keys-to-note-keys.md). On PostgreSQL there are also [SQL views](operations.md#sql-views).
"""
