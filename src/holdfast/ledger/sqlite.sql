-- The ledger of one home: durable records that are not prose. Unlike the index it cannot be rebuilt.

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
CREATE TABLE audit (                       -- every decision, each row chained to the previous row
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
CREATE TABLE claims (                      -- work in progress; an old row was left by a process that died
  subject TEXT PRIMARY KEY,
  holder  TEXT NOT NULL,
  time    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (                 -- requests that may come twice and are done once
  agent  TEXT NOT NULL,
  key    TEXT NOT NULL,
  digest TEXT NOT NULL,                    -- of the request: another one under the same key is a mistake
  status INTEGER,                          -- of the answer; null while the request is in progress
  answer TEXT NOT NULL,                    -- JSON: ids to make the answer from again, never a text
  time   INTEGER NOT NULL,
  PRIMARY KEY (agent, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);

-- name: from_version_4
CREATE TABLE grants (                      -- what an agent reaches beside its own memory
  agent   TEXT NOT NULL REFERENCES agents (name),
  kind    TEXT NOT NULL CHECK (kind IN ('project', 'session', 'repository')),
  pattern TEXT NOT NULL,
  created INTEGER NOT NULL,
  PRIMARY KEY (agent, kind, pattern)
) STRICT, WITHOUT ROWID;
-- Agents from before there were grants go on as they did; their roles limit them as before.
INSERT INTO grants (agent, kind, pattern, created)
SELECT name, kind, pattern, unixepoch() FROM agents,
  (SELECT 'project' AS kind, '*' AS pattern UNION ALL SELECT 'session', '*' UNION ALL SELECT 'repository', '*/*')
WHERE role <> 'operator';

-- name: from_version_5
CREATE TABLE request_count (               -- how many requests an agent made of the gateway on its last day
  agent    TEXT PRIMARY KEY,
  day      INTEGER NOT NULL,               -- days since 1970, in UTC
  requests INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- name: from_version_6
CREATE TABLE audit_checkpoint (            -- where the removed rows of the audit end
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  number     INTEGER NOT NULL,             -- of the last removed row; all before it were removed too
  hash       TEXT NOT NULL,                -- of that row: the chain goes on from it
  first_time TEXT NOT NULL,                -- of the first removed row
  last_time  TEXT NOT NULL,
  made       TEXT NOT NULL,
  signature  TEXT NOT NULL                 -- over the other columns, with the key in audit.key
) STRICT;
CREATE TABLE audit_shipped (               -- up to which row the audit was shipped
  target TEXT PRIMARY KEY,                 -- a digest of the address
  number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- name: from_version_7
CREATE TABLE file_sources (                -- who last wrote a file of an agent's tree
  scope   TEXT NOT NULL,                   -- the folder of its scope
  file    TEXT NOT NULL,                   -- a digest of its path in the tree
  inode   INTEGER NOT NULL,                -- of the file that was written, as are the next two: another one is not its writer's
  changed INTEGER NOT NULL,                -- nanoseconds since 1970
  size    INTEGER NOT NULL,
  origin  TEXT NOT NULL,
  agent   TEXT,
  client  TEXT,
  session TEXT,
  trust   TEXT,                            -- of the writers before, if that is less than the origin's
  time    INTEGER NOT NULL,
  PRIMARY KEY (scope, file)
) STRICT, WITHOUT ROWID;

-- name: from_version_8
CREATE TABLE web_sessions (                -- people who are signed in to the console
  digest  TEXT PRIMARY KEY,                -- SHA-256 of the cookie, which is nowhere
  token   TEXT NOT NULL,                   -- the public part of the token; '' for the owner of the home
  created INTEGER NOT NULL,                -- seconds since 1970, as all times here
  used    INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sign_in_codes (               -- links that let the owner of the home in, once
  digest  TEXT PRIMARY KEY,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

-- name: as_version_5
CREATE TEMP TABLE IF NOT EXISTS grants (agent, kind, pattern, created);

-- name: as_version_6
CREATE TEMP TABLE IF NOT EXISTS request_count (agent, day, requests);

-- name: as_version_7
CREATE TEMP TABLE IF NOT EXISTS audit_checkpoint (one, number, hash, first_time, last_time, made, signature);
CREATE TEMP TABLE IF NOT EXISTS audit_shipped (target, number);

-- name: as_version_8
CREATE TEMP TABLE IF NOT EXISTS file_sources (scope, file, inode, changed, size, origin, agent, client, session, trust, time);

-- name: as_version_9
CREATE TEMP TABLE IF NOT EXISTS web_sessions (digest, token, created, used, expires);
CREATE TEMP TABLE IF NOT EXISTS sign_in_codes (digest, expires);

-- name: checkpoint
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
SELECT id, uses FROM usage WHERE id IN (SELECT value FROM json_each(:ids));

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
DELETE FROM usage WHERE id = :id RETURNING id;

-- name: shown
SELECT note, version FROM told WHERE session = :session AND note <> '';

-- name: show_note
INSERT INTO told (session, note, version, time) VALUES (:session, :note, :version, :time)
ON CONFLICT (session, note) DO UPDATE SET version = excluded.version, time = excluded.time
WHERE version <> excluded.version
RETURNING note;

-- name: begin_context
-- (notes that its first prompt was shown a moment ago stay if they belong to this context)
DELETE FROM told WHERE time < :before OR (session = :session AND note <> '' AND NOT (time BETWEEN :since AND :now AND EXISTS (
  SELECT 1 FROM prompts WHERE prompts.session = :session AND count = 1 AND prompts.time BETWEEN :since AND :now
)));

-- name: has_begun
SELECT 1 FROM told WHERE session = :session AND note = '';

-- name: forget_old_prompts
DELETE FROM prompts WHERE time < :before;

-- name: count_prompt
INSERT INTO prompts (session, count, last, time) VALUES (:session, 1, :last, :time)
ON CONFLICT (session) DO UPDATE SET count = count + 1, last = excluded.last, time = excluded.time
WHERE last <> excluded.last
RETURNING count;

-- name: forget_prompts
DELETE FROM prompts WHERE session = :session AND NOT (count = 1 AND time BETWEEN :since AND :now);

-- name: forget_shown
DELETE FROM told WHERE note = :id;

-- name: mentions
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
LEFT JOIN receipts r ON r.id = p.receipt -- a digest still counts if its receipt is missing or damaged
WHERE NOT :ended OR instr(coalesce(r.receipt, ''), '"state": "begun"') = 0;

-- name: purged_rows
SELECT p.digest, p.receipt FROM json_each(:digests) j JOIN purged p ON p.digest = j.value;

-- name: purged_counts
SELECT receipt, count(*) FROM purged WHERE NOT (digest >= 'r' AND digest < 's') GROUP BY receipt;

-- name: shown_to
SELECT count(*), group_concat(DISTINCT session) FROM briefed
WHERE note IN (SELECT value FROM json_each(:ids));

-- name: forget_history
DELETE FROM briefed WHERE note = :id;

-- name: forget_decisions
DELETE FROM decisions WHERE subject = :id;

-- name: add_history
INSERT INTO briefed (note, version, session, client, time) VALUES (:note, :version, :session, :client, :time)
ON CONFLICT (note, version, session) DO NOTHING;

-- name: forget_old_history
DELETE FROM briefed WHERE time < :before;

-- name: history
SELECT version, session, client, time FROM briefed WHERE note = :note ORDER BY time DESC, session;

-- name: shown_by_day
SELECT time / 86400, count(*) FROM briefed
WHERE time >= :since AND (:ids IS NULL OR note IN (SELECT value FROM json_each(:ids))) GROUP BY 1;

-- name: used_by_day
SELECT counted / 86400, count(*) FROM usage
WHERE counted >= :since AND uses > 0 AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) GROUP BY 1;

-- name: shown_lately
SELECT note, max(time), count(*) FROM briefed
WHERE time >= :since AND (:ids IS NULL OR note IN (SELECT value FROM json_each(:ids)))
GROUP BY note ORDER BY 2 DESC, 1 LIMIT :most;

-- name: used_lately
SELECT id, counted, uses FROM usage
WHERE counted >= :since AND uses > 0 AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
ORDER BY 2 DESC, 1 LIMIT :most;

-- name: decide
INSERT INTO decisions (time, action, subject, detail) VALUES (:time, :action, :subject, :detail);

-- name: decisions
SELECT action, detail, time FROM decisions WHERE subject = :subject ORDER BY id DESC;

-- Agents and their tokens. Only the public part of a token and a digest are stored, never the token itself.

-- name: agents.list
SELECT name, role, tenant, created FROM agents WHERE :name IS NULL OR name = :name ORDER BY name;

-- name: agents.tokens
SELECT agent, id, created, expires, revoked FROM tokens WHERE :agent IS NULL OR agent = :agent ORDER BY number;

-- name: agents.find_tokens
SELECT tokens.id, tokens.digest, tokens.expires, tokens.revoked, agents.name, agents.role, agents.tenant,
  (SELECT json_group_array(json_array(kind, pattern)) FROM grants WHERE grants.agent = agents.name), tokens.created
FROM tokens JOIN agents ON agents.name = tokens.agent WHERE tokens.id IN (SELECT value FROM json_each(:ids));

-- name: agents.count_expiring
-- (by agent: a token that was replaced and ends after its grace needs no new one)
SELECT count(*) FROM (
  SELECT max(coalesce(expires, 9223372036854775807)) AS last FROM tokens WHERE revoked IS NULL GROUP BY agent
) AS ends WHERE last > :now AND last <= :until;

-- name: agents.same_but_for_case
SELECT name FROM agents WHERE lower(name) = lower(:name) AND name <> :name LIMIT 1;

-- name: agents.sharing_sessions
SELECT name FROM agents WHERE name <> :name AND (
  substr(lower(:name), 1, length(name) + 1) = lower(name) || '.'
  OR substr(lower(name), 1, length(:name) + 1) = lower(:name) || '.'
) LIMIT 1;

-- name: agents.grants
SELECT agent, kind, pattern FROM grants WHERE :agent IS NULL OR agent = :agent ORDER BY agent, kind, pattern;

-- name: agents.put_grant
INSERT INTO grants (agent, kind, pattern, created) VALUES (:agent, :kind, :pattern, :now) ON CONFLICT DO NOTHING;

-- name: agents.remove_grant
DELETE FROM grants WHERE agent = :agent AND kind = :kind AND pattern = :pattern RETURNING 1;

-- name: agents.remove_grants
DELETE FROM grants WHERE agent = :agent;

-- name: agents.any
SELECT 1 FROM agents LIMIT 1;

-- name: agents.count_valid
SELECT count(*) FROM tokens WHERE agent = :agent AND revoked IS NULL;

-- name: agents.put
INSERT INTO agents (name, role, tenant, created) VALUES (:name, :role, 'default', :now)
ON CONFLICT (name) DO UPDATE SET role = excluded.role;

-- name: agents.put_token
INSERT INTO tokens (id, agent, digest, created, expires) VALUES (:id, :agent, :digest, :now, :expires);

-- name: agents.touch_token
UPDATE tokens SET id = id WHERE id = :id RETURNING 1;

-- name: agents.token_lifetime
SELECT expires - created FROM tokens WHERE agent = :agent ORDER BY number DESC LIMIT 1;

-- name: agents.end_tokens
UPDATE tokens SET expires = :end
WHERE agent = :agent AND revoked IS NULL AND id <> :id AND (expires IS NULL OR expires > :end);

-- name: agents.revoke_tokens
UPDATE tokens SET revoked = :now WHERE agent = :agent AND revoked IS NULL AND id <> :id RETURNING id;

-- name: agents.revoke_older
UPDATE tokens SET revoked = :time WHERE agent = :agent AND revoked IS NULL AND created <= :time;

-- The audit. Columns are read as bytes: values that another program wrote may not be text.

-- name: audit.head
SELECT count, CAST(hash AS BLOB) FROM audit_head;

-- name: audit.append
INSERT INTO audit (number, time, tenant, agent, action, outcome, metadata, hash)
VALUES (:number, :time, :tenant, :agent, :action, :outcome, :metadata, :hash);

-- name: audit.move_head
UPDATE audit_head SET count = :count, hash = :hash;

-- name: audit.take_unmarked
UPDATE audit_head SET marked = count WHERE marked <> count;

-- name: audit.hash_of
SELECT CAST(hash AS BLOB) FROM audit WHERE number = :number;

-- name: audit.walk
SELECT number, CAST(time AS BLOB), CAST(tenant AS BLOB), CAST(agent AS BLOB), CAST(action AS BLOB), CAST(outcome AS BLOB),
  CAST(metadata AS BLOB), CAST(hash AS BLOB) FROM audit WHERE number >= :first ORDER BY number LIMIT :most;

-- name: audit.list
SELECT number, CAST(time AS BLOB), CAST(tenant AS BLOB), CAST(agent AS BLOB), CAST(action AS BLOB), CAST(outcome AS BLOB),
  CAST(metadata AS BLOB), CAST(hash AS BLOB) FROM audit
WHERE (:before IS NULL OR number < :before)
  AND (:agent IS NULL OR agent = :agent)
  AND (:action IS NULL OR action = :action)
  AND (:outcome IS NULL OR outcome = :outcome)
  AND (:since IS NULL OR time >= :since)
  AND (:until IS NULL OR time < :until)
  AND (:token IS NULL OR instr(metadata, '"token":"' || :token || '"') > 0)
  AND (:address IS NULL OR instr(metadata, '"address":"' || :address || '"') > 0)
ORDER BY number DESC LIMIT :most;

-- name: audit.range
SELECT (SELECT min(number) FROM audit WHERE :since IS NULL OR time >= :since),
  (SELECT max(number) FROM audit WHERE :until IS NULL OR time < :until);

-- name: audit.checkpoint
SELECT number, CAST(hash AS BLOB), CAST(first_time AS BLOB), CAST(last_time AS BLOB), CAST(made AS BLOB),
  CAST(signature AS BLOB) FROM audit_checkpoint;

-- name: audit.is_removable
-- (the newest row stays, and so does every row that the mark does not cover)
SELECT 1 FROM audit, audit_head WHERE audit.number = :number AND audit.hash = :hash AND audit.number < audit_head.marked
  AND NOT EXISTS (SELECT 1 FROM audit_checkpoint WHERE number >= :number);

-- name: audit.put_checkpoint
INSERT INTO audit_checkpoint (one, number, hash, first_time, last_time, made, signature)
VALUES (1, :number, :hash, :first_time, :last_time, :made, :signature)
ON CONFLICT (one) DO UPDATE SET number = excluded.number, hash = excluded.hash, first_time = excluded.first_time,
  last_time = excluded.last_time, made = excluded.made, signature = excluded.signature;

-- name: audit.remove
DELETE FROM audit WHERE number <= :number;

-- name: audit.position
SELECT number FROM audit_shipped WHERE target = :target;

-- name: audit.put_position
INSERT INTO audit_shipped (target, number) VALUES (:target, :number)
ON CONFLICT (target) DO UPDATE SET number = excluded.number WHERE number < excluded.number;

-- name: audit.last
SELECT number, CAST(hash AS BLOB) FROM audit ORDER BY number DESC LIMIT 1;

-- Work that agents have done, reviews of pull requests, and claims of reviews.

-- name: done.find
SELECT 1 FROM done WHERE agent = :agent AND kind = :kind AND subject = :subject;

-- name: done.masked
SELECT subject FROM done WHERE agent = :agent AND kind = :kind AND subject >= 'purged:' AND subject < 'purged;';

-- name: done.find_any
SELECT 1 FROM done WHERE kind = :kind AND subject = :subject LIMIT 1;

-- name: done.masked_any
SELECT subject FROM done WHERE kind = :kind AND subject >= 'purged:' AND subject < 'purged;';

-- name: done.subjects
SELECT number, kind, subject FROM done WHERE agent = coalesce(:agent, agent);

-- name: done.subjects_of_others
SELECT number, kind, subject FROM done WHERE agent <> :agent;

-- name: done.mask
UPDATE OR REPLACE done SET subject = :subject WHERE number = :number;

-- name: done.remove
DELETE FROM done WHERE number = :number;

-- name: done.record
INSERT INTO done (agent, kind, subject, time) VALUES (:agent, :kind, :subject, :now)
ON CONFLICT (agent, kind, subject) DO NOTHING RETURNING number;

-- name: done.list
SELECT number, agent, kind, subject, time FROM done
WHERE (:before IS NULL OR number < :before)
  AND (:agent IS NULL OR agent = :agent)
  AND (:kind IS NULL OR kind = :kind)
ORDER BY number DESC LIMIT :most;

-- name: done.page
SELECT source, number, agent, kind, subject, time FROM (
  SELECT 0 AS source, number, agent, kind, subject, time FROM done
  UNION ALL
  SELECT 1, number, agent, :review, owner || '/' || repo || '#' || pr_number, reviewed_at FROM reviewed_prs
)
WHERE (:agent IS NULL OR agent = :agent)
  AND (:kind IS NULL OR kind = :kind)
  AND (:subject IS NULL OR subject = CASE source WHEN 1 THEN lower(:subject) ELSE :subject END)
  AND (:time IS NULL OR (time, source, number) < (:time, :source, :number))
ORDER BY time DESC, source DESC, number DESC LIMIT :most;

-- name: reviews.find
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE agent = :agent AND owner = :owner AND repo = :repo AND pr_number = :pr;

-- name: reviews.find_any
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE owner = :owner AND repo = :repo AND pr_number = :pr LIMIT 1;

-- name: reviews.record
INSERT INTO reviewed_prs (agent, owner, repo, pr_number, reviewed_at) VALUES (:agent, :owner, :repo, :pr, :now)
ON CONFLICT (agent, owner, repo, pr_number) DO NOTHING RETURNING number;

-- name: reviews.list
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE (:before IS NULL OR number < :before)
  AND (:agent IS NULL OR agent = :agent)
ORDER BY number DESC LIMIT :most;

-- name: reviews.find_claim
SELECT holder, time FROM claims WHERE subject = :subject;

-- name: reviews.claim
INSERT INTO claims (subject, holder, time) VALUES (:subject, :holder, :now)
ON CONFLICT (subject) DO UPDATE SET holder = excluded.holder, time = excluded.time;

-- name: reviews.release
DELETE FROM claims WHERE subject = :subject AND holder = :holder;

-- Idempotency keys.

-- name: quotas.count_request
INSERT INTO request_count (agent, day, requests) SELECT :agent, :day, 1 WHERE :most > 0
ON CONFLICT (agent) DO UPDATE SET requests = CASE day WHEN excluded.day THEN requests + 1 ELSE 1 END, day = excluded.day
WHERE day <> excluded.day OR requests < :most
RETURNING requests;

-- name: quotas.requests
SELECT requests FROM request_count WHERE agent = :agent AND day = :day;

-- name: keys.remove_old
DELETE FROM idempotency WHERE time < :before;

-- name: keys.find
SELECT digest, status, answer, time FROM idempotency WHERE agent = :agent AND key = :key;

-- name: keys.begin
-- (until there is an answer, the column names the process that works on it)
INSERT INTO idempotency (agent, key, digest, status, answer, time) VALUES (:agent, :key, :digest, NULL, :process, :now)
ON CONFLICT (agent, key) DO UPDATE SET answer = excluded.answer, time = excluded.time;

-- name: keys.finish
UPDATE idempotency SET status = :status, answer = :answer WHERE agent = :agent AND key = :key AND digest = :digest;

-- name: keys.drop
DELETE FROM idempotency WHERE agent = :agent AND key = :key AND digest = :digest AND status IS NULL;

-- Writers of files.

-- name: file_sources.put
INSERT INTO file_sources (scope, file, inode, changed, size, origin, agent, client, session, trust, time)
VALUES (:scope, :file, :inode, :changed, :size, :origin, :agent, :client, :session, :trust, :time)
ON CONFLICT (scope, file) DO UPDATE SET inode = excluded.inode, changed = excluded.changed, size = excluded.size,
  origin = excluded.origin, agent = excluded.agent, client = excluded.client, session = excluded.session,
  trust = excluded.trust, time = excluded.time;

-- name: file_sources.find
SELECT f.scope, f.file, f.inode, f.changed, f.size, f.origin, f.agent, f.client, f.session, f.trust, f.time
FROM json_each(:scopes) s JOIN json_each(:files) p ON p.key = s.key
  JOIN file_sources f ON f.scope = s.value AND f.file = p.value;

-- name: file_sources.list
SELECT scope, file, inode, changed, size, origin, agent, client, session, trust, time FROM file_sources ORDER BY scope, file;

-- name: file_sources.remove
DELETE FROM file_sources WHERE scope = :scope AND file = :file;

-- All rows, out of this ledger and into it (see transfer.py).

-- name: transfer.links
SELECT alias, project FROM links ORDER BY alias;

-- name: transfer.add_links
INSERT INTO links (alias, project) VALUES (:alias, :project) ON CONFLICT DO NOTHING;

-- name: transfer.places
SELECT id, nonce, path FROM places ORDER BY id;

-- name: transfer.add_places
INSERT INTO places (id, nonce, path) VALUES (:id, :nonce, :path) ON CONFLICT DO NOTHING;

-- name: transfer.keys
SELECT name, value FROM keys ORDER BY name;

-- name: transfer.add_keys
INSERT INTO keys (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING;

-- name: transfer.receipts
SELECT id, time, receipt FROM receipts ORDER BY id;

-- name: transfer.add_receipts
INSERT INTO receipts (id, time, receipt) VALUES (:id, :time, :receipt) ON CONFLICT DO NOTHING;

-- name: transfer.purged
SELECT digest, receipt FROM purged ORDER BY digest;

-- name: transfer.add_purged
INSERT INTO purged (digest, receipt) VALUES (:digest, :receipt) ON CONFLICT DO NOTHING;

-- name: transfer.usage
SELECT id, uses, counted FROM usage ORDER BY id;

-- name: transfer.add_usage
INSERT INTO usage (id, uses, counted) VALUES (:id, :uses, :counted) ON CONFLICT DO NOTHING;

-- name: transfer.told
SELECT session, note, version, time FROM told ORDER BY session, note;

-- name: transfer.add_told
INSERT INTO told (session, note, version, time) VALUES (:session, :note, :version, :time) ON CONFLICT DO NOTHING;

-- name: transfer.prompts
SELECT session, count, last, time FROM prompts ORDER BY session;

-- name: transfer.add_prompts
INSERT INTO prompts (session, count, last, time) VALUES (:session, :count, :last, :time) ON CONFLICT DO NOTHING;

-- name: transfer.briefed
SELECT note, version, session, client, time FROM briefed ORDER BY note, version, session;

-- name: transfer.add_briefed
INSERT INTO briefed (note, version, session, client, time) VALUES (:note, :version, :session, :client, :time) ON CONFLICT DO NOTHING;

-- name: transfer.decisions
SELECT time, action, subject, detail FROM decisions ORDER BY id;

-- name: transfer.add_decisions
INSERT INTO decisions (time, action, subject, detail) VALUES (:time, :action, :subject, :detail);

-- name: transfer.agents
SELECT name, role, created FROM agents ORDER BY name;

-- name: transfer.add_agents
INSERT INTO agents (name, role, tenant, created) VALUES (:name, :role, 'default', :created) ON CONFLICT DO NOTHING;

-- name: transfer.tokens
SELECT id, agent, digest, created, expires, revoked FROM tokens ORDER BY number;

-- name: transfer.add_tokens
INSERT INTO tokens (id, agent, digest, created, expires, revoked) VALUES (:id, :agent, :digest, :created, :expires, :revoked) ON CONFLICT DO NOTHING;

-- name: transfer.grants
SELECT agent, kind, pattern, created FROM grants ORDER BY agent, kind, pattern;

-- name: transfer.add_grants
INSERT INTO grants (agent, kind, pattern, created) VALUES (:agent, :kind, :pattern, :created) ON CONFLICT DO NOTHING;

-- name: transfer.done
SELECT agent, kind, subject, time FROM done ORDER BY number;

-- name: transfer.add_done
INSERT INTO done (agent, kind, subject, time) VALUES (:agent, :kind, :subject, :time) ON CONFLICT DO NOTHING;

-- name: transfer.reviewed_prs
SELECT agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs ORDER BY number;

-- name: transfer.add_reviewed_prs
INSERT INTO reviewed_prs (agent, owner, repo, pr_number, reviewed_at) VALUES (:agent, :owner, :repo, :pr_number, :reviewed_at) ON CONFLICT DO NOTHING;

-- name: transfer.claims
SELECT subject, holder, time FROM claims ORDER BY subject;

-- name: transfer.add_claims
INSERT INTO claims (subject, holder, time) VALUES (:subject, :holder, :time) ON CONFLICT DO NOTHING;

-- name: transfer.idempotency
SELECT agent, key, digest, status, answer, time FROM idempotency ORDER BY agent, key;

-- name: transfer.add_idempotency
INSERT INTO idempotency (agent, key, digest, status, answer, time) VALUES (:agent, :key, :digest, :status, :answer, :time) ON CONFLICT DO NOTHING;

-- name: transfer.begin_audit
SELECT 1;

-- name: transfer.add_audit
INSERT INTO audit (number, time, tenant, agent, action, outcome, metadata, hash) VALUES (:number, :time, :tenant, :agent, :action, :outcome, :metadata, :hash);

-- name: transfer.move_audit
UPDATE audit_head SET count = :count, hash = :hash WHERE count = :old_count AND hash = :old_hash RETURNING count;

-- name: transfer.begin_audit_after
UPDATE audit_head SET count = :number, hash = :hash WHERE count = 0 AND NOT EXISTS (SELECT 1 FROM audit_checkpoint)
RETURNING count;
INSERT INTO audit_checkpoint (one, number, hash, first_time, last_time, made, signature)
SELECT 1, :number, :hash, :first_time, :last_time, :made, :signature FROM audit_head WHERE count = :number
ON CONFLICT DO NOTHING;

-- name: web_sessions.put
INSERT INTO web_sessions (digest, token, created, used, expires) VALUES (:digest, :token, :now, :now, :expires);

-- name: web_sessions.find
SELECT token, created, used, expires FROM web_sessions WHERE digest = :digest;

-- name: web_sessions.touch
UPDATE web_sessions SET used = :now WHERE digest = :digest AND used < :now;

-- name: web_sessions.remove
DELETE FROM web_sessions WHERE digest = :digest;

-- name: web_sessions.remove_ended
DELETE FROM web_sessions WHERE expires <= :now OR used <= :idle_since;

-- name: sign_in_codes.put
INSERT INTO sign_in_codes (digest, expires) VALUES (:digest, :expires);

-- name: sign_in_codes.take
DELETE FROM sign_in_codes WHERE digest = :digest AND expires > :now RETURNING expires;

-- name: sign_in_codes.remove_ended
DELETE FROM sign_in_codes WHERE expires <= :now;
