-- The ledger of one home: durable records that are not prose. Unlike the index it cannot be made again.

-- name: schema
CREATE TABLE links (                       -- ids that a project went by, each leading straight to the one it has
  alias   TEXT PRIMARY KEY,
  project TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_project ON links (project);
CREATE TABLE places (                      -- where a marker or a checkout was last seen
  id    TEXT PRIMARY KEY,
  nonce TEXT NOT NULL,
  path  BLOB NOT NULL                      -- bytes: a path need not be text
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  id      TEXT PRIMARY KEY,
  uses    INTEGER NOT NULL,
  counted INTEGER NOT NULL                 -- seconds since 1970
) STRICT, WITHOUT ROWID;

-- name: from_version_1
CREATE TABLE told (                        -- which version of a note a session was shown
  session TEXT NOT NULL,
  note    TEXT NOT NULL,
  version TEXT NOT NULL,
  time    INTEGER NOT NULL,                -- seconds since 1970
  PRIMARY KEY (session, note)
) STRICT, WITHOUT ROWID;
CREATE INDEX told_by_note ON told (note);
CREATE TABLE prompts (
  session TEXT PRIMARY KEY,
  count   INTEGER NOT NULL,
  last    TEXT NOT NULL,                   -- a digest of the last prompt: two hooks may hear the same one
  time    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- name: from_version_2
CREATE TABLE briefed (                     -- to whom a version of a note was told, as long as anybody may ask
  note    TEXT NOT NULL,
  version TEXT NOT NULL,
  session TEXT NOT NULL,
  client  TEXT NOT NULL,
  time    INTEGER NOT NULL,                -- when it was first told
  PRIMARY KEY (note, version, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX briefed_by_time ON briefed (time);
CREATE TABLE decisions (                   -- what a person decided about a memory: approved, rejected, let a secret pass
  id      INTEGER PRIMARY KEY,
  time    INTEGER NOT NULL,
  action  TEXT NOT NULL,
  subject TEXT NOT NULL,                   -- the note, by its id
  detail  TEXT NOT NULL                    -- JSON: names of rules, scopes and keys, never a text
) STRICT;
CREATE INDEX decisions_by_subject ON decisions (subject);
CREATE TABLE receipts (                    -- of what was purged
  id      TEXT PRIMARY KEY,
  time    INTEGER NOT NULL,
  receipt TEXT NOT NULL                    -- JSON: what was removed and how that was checked, never a text
) STRICT, WITHOUT ROWID;
CREATE TABLE purged (                      -- what must not come back, by a digest that only this home can make
  digest  TEXT PRIMARY KEY,
  receipt TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (                        -- what those digests are made with
  name    TEXT PRIMARY KEY,
  value   BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- name: from_version_3
CREATE TABLE agents (                      -- who may come in through the gateway
  name    TEXT PRIMARY KEY,
  role    TEXT NOT NULL,
  tenant  TEXT NOT NULL,
  created INTEGER NOT NULL                 -- seconds since 1970, as all times of these tables but the audit's
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
  number  INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,            -- its public part
  agent   TEXT NOT NULL REFERENCES agents (name),
  digest  BLOB NOT NULL,                   -- SHA-256 of all of it; the token itself is nowhere
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER
) STRICT;
CREATE INDEX tokens_by_agent ON tokens (agent);
CREATE TABLE audit (                       -- every decision, each row chained to the one before
  number   INTEGER PRIMARY KEY,
  time     TEXT NOT NULL,
  tenant   TEXT NOT NULL,
  agent    TEXT NOT NULL,
  action   TEXT NOT NULL,
  outcome  TEXT NOT NULL CHECK (outcome IN ('allowed', 'denied')),
  metadata TEXT NOT NULL,                  -- JSON: the role, and names and ids; never a text
  hash     TEXT NOT NULL
) STRICT;
CREATE TABLE audit_head (                  -- where the chain ends, so that a row cut off there is missed
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  count  INTEGER NOT NULL,
  hash   TEXT NOT NULL,
  marked INTEGER NOT NULL                  -- how many there were when the file beside the ledger was last written
) STRICT;
INSERT INTO audit_head (one, count, hash, marked) VALUES (1, 0, '', 0);
CREATE TABLE done (                        -- what an agent has done and need not do again
  agent   TEXT NOT NULL,
  kind    TEXT NOT NULL,
  subject TEXT NOT NULL,
  time    INTEGER NOT NULL,
  number  INTEGER PRIMARY KEY,
  UNIQUE (agent, kind, subject)
) STRICT;
CREATE TABLE reviewed_prs (
  agent       TEXT NOT NULL,
  owner       TEXT NOT NULL,
  repo        TEXT NOT NULL,
  pr_number   INTEGER NOT NULL,
  reviewed_at INTEGER NOT NULL,
  number      INTEGER PRIMARY KEY,
  UNIQUE (agent, owner, repo, pr_number)
) STRICT;
CREATE TABLE claims (                      -- who is at it now; one that is old was left by somebody who died
  subject TEXT PRIMARY KEY,
  holder  TEXT NOT NULL,
  time    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (                 -- requests that may come twice and are done once
  agent  TEXT NOT NULL,
  key    TEXT NOT NULL,
  digest TEXT NOT NULL,                    -- of the request: another one under the same key is a mistake
  status INTEGER,                          -- of the answer; none while somebody is at it
  answer TEXT NOT NULL,                    -- JSON: ids to make the answer from again, never a text
  time   INTEGER NOT NULL,
  PRIMARY KEY (agent, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);

-- name: as_version_2
CREATE TEMP TABLE IF NOT EXISTS told (session, note, version, time);

-- name: as_version_3
CREATE TEMP TABLE IF NOT EXISTS briefed (note, version, session, client, time);
CREATE TEMP TABLE IF NOT EXISTS decisions (id, time, action, subject, detail);
CREATE TEMP TABLE IF NOT EXISTS receipts (id, time, receipt);
CREATE TEMP TABLE IF NOT EXISTS purged (digest, receipt);
CREATE TEMP TABLE IF NOT EXISTS keys (name, value);

-- name: as_version_4
CREATE TEMP TABLE IF NOT EXISTS agents (name, role, tenant, created);
CREATE TEMP TABLE IF NOT EXISTS tokens (number, id, agent, digest, created, expires, revoked);
CREATE TEMP TABLE IF NOT EXISTS audit (number, time, tenant, agent, action, outcome, metadata, hash);
CREATE TEMP TABLE IF NOT EXISTS audit_head (one, count, hash, marked);
CREATE TEMP TABLE IF NOT EXISTS done (agent, kind, subject, time, number);
CREATE TEMP TABLE IF NOT EXISTS reviewed_prs (agent, owner, repo, pr_number, reviewed_at, number);
CREATE TEMP TABLE IF NOT EXISTS claims (subject, holder, time);
CREATE TEMP TABLE IF NOT EXISTS idempotency (agent, key, digest, status, answer, time);

-- name: move_to_main_file
PRAGMA wal_checkpoint(PASSIVE);

-- name: canonical
SELECT project FROM links WHERE alias = :alias;

-- name: link
INSERT INTO links (alias, project) VALUES (:alias, :project)
ON CONFLICT (alias) DO UPDATE SET project = excluded.project WHERE project = :instead;

-- name: lead_on
UPDATE links SET project = (SELECT project FROM links WHERE alias = :alias) WHERE project = :alias;

-- name: relink
INSERT INTO links (alias, project) VALUES (:alias, :project)
ON CONFLICT (alias) DO UPDATE SET project = excluded.project;

-- name: adopted
SELECT alias FROM links WHERE project = :project AND alias >= 'adopted:' AND alias < 'adopted;' ORDER BY alias;

-- name: links
SELECT alias, project FROM links ORDER BY alias;

-- name: places
SELECT id, nonce, path FROM places ORDER BY id;

-- name: place
SELECT nonce, path FROM places WHERE id = :id;

-- name: put_place
INSERT INTO places (id, nonce, path) VALUES (:id, :nonce, :path)
ON CONFLICT (id) DO UPDATE SET nonce = excluded.nonce, path = excluded.path;

-- name: count
INSERT INTO usage (id, uses, counted) VALUES (:id, 1, :now)
ON CONFLICT (id) DO UPDATE SET uses = uses + 1, counted = excluded.counted
WHERE abs(excluded.counted - counted) >= 60
RETURNING id;

-- name: uses
SELECT id, uses FROM usage WHERE id = :id;

-- name: show
INSERT INTO usage (id, uses, counted) VALUES (:id, 0, :time)
ON CONFLICT (id) DO UPDATE SET counted = max(counted, excluded.counted);

-- name: last_used
SELECT id, max(time) FROM (
  SELECT id, counted AS time FROM usage WHERE id IN (SELECT value FROM json_each(:ids))
  UNION ALL SELECT note, max(time) FROM told WHERE note IN (SELECT value FROM json_each(:ids)) GROUP BY note
  UNION ALL SELECT note, max(time) FROM briefed WHERE note IN (SELECT value FROM json_each(:ids)) GROUP BY note
) GROUP BY id;

-- name: forget
DELETE FROM usage WHERE id = :id;

-- name: told
SELECT note, version FROM told WHERE session = :session AND note <> '';

-- name: tell
INSERT INTO told (session, note, version, time) VALUES (:session, :note, :version, :time)
ON CONFLICT (session, note) DO UPDATE SET version = excluded.version, time = excluded.time
WHERE version <> excluded.version
RETURNING note;

-- name: new_context
-- (what its first prompt was told a moment ago stays, where that counts)
DELETE FROM told WHERE time < :before OR (session = :session AND note <> '' AND NOT (time BETWEEN :fresh AND :now AND EXISTS (
  SELECT 1 FROM prompts WHERE prompts.session = :session AND count = 1 AND prompts.time BETWEEN :fresh AND :now
)));

-- name: begun
SELECT 1 FROM told WHERE session = :session AND note = '';

-- name: old_prompts
DELETE FROM prompts WHERE time < :before;

-- name: prompted
INSERT INTO prompts (session, count, last, time) VALUES (:session, 1, :last, :time)
ON CONFLICT (session) DO UPDATE SET count = count + 1, last = excluded.last, time = excluded.time
WHERE last <> excluded.last
RETURNING count;

-- name: no_prompts
DELETE FROM prompts WHERE session = :session AND NOT (count = 1 AND time BETWEEN :fresh AND :now);

-- name: untell
DELETE FROM told WHERE note = :id;

-- name: told_to
SELECT (SELECT count(*) FROM told WHERE note = :id) + (SELECT count(*) FROM briefed WHERE note = :id)
  + (SELECT count(*) FROM decisions WHERE subject = :id);

-- name: key
SELECT value FROM keys WHERE name = :name;

-- name: add_key
INSERT INTO keys (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE length(keys.value) <> length(excluded.value);

-- name: put_receipt
INSERT INTO receipts (id, time, receipt) VALUES (:id, :time, :receipt)
ON CONFLICT (id) DO UPDATE SET receipt = excluded.receipt;

-- name: receipts
SELECT id, CAST(receipt AS BLOB), time FROM receipts
WHERE (:id IS NULL OR id = :id) AND (:last IS NULL OR (time, id) < (SELECT r.time, r.id FROM receipts r WHERE r.id = :last))
ORDER BY time DESC, id DESC LIMIT :most;

-- name: add_purged
INSERT INTO purged (digest, receipt) VALUES (:digest, :receipt)
ON CONFLICT (digest) DO UPDATE SET receipt = excluded.receipt;

-- name: drop_purged
DELETE FROM purged WHERE digest = :digest;

-- name: purged_known
SELECT p.digest, p.receipt FROM json_each(:digests) j JOIN purged p ON p.digest = j.value
LEFT JOIN receipts r ON r.id = p.receipt -- one that is gone or damaged lets nothing pass
WHERE NOT :ended OR instr(coalesce(r.receipt, ''), '"state": "begun"') = 0;

-- name: purged_rows
SELECT p.digest, p.receipt FROM json_each(:digests) j JOIN purged p ON p.digest = j.value;

-- name: purged_counts
SELECT receipt, count(*) FROM purged WHERE NOT (digest >= 'r' AND digest < 's') GROUP BY receipt;

-- name: briefed_to
SELECT count(*), count(DISTINCT session), group_concat(DISTINCT session), max(time) FROM briefed
WHERE note IN (SELECT value FROM json_each(:ids));

-- name: unbrief
DELETE FROM briefed WHERE note = :id;

-- name: undecide
DELETE FROM decisions WHERE subject = :id;

-- name: add_briefed
INSERT INTO briefed (note, version, session, client, time) VALUES (:note, :version, :session, :client, :time)
ON CONFLICT (note, version, session) DO NOTHING;

-- name: old_briefed
DELETE FROM briefed WHERE time < :before;

-- name: briefed
SELECT version, session, client, time FROM briefed WHERE note = :note ORDER BY time DESC, session;

-- name: decide
INSERT INTO decisions (time, action, subject, detail) VALUES (:time, :action, :subject, :detail);

-- name: decisions
SELECT action, detail, time FROM decisions WHERE subject = :subject ORDER BY id DESC;
