-- The ledger in PostgreSQL: the same statements as in the .sql files of SQLite beside this one, those of a part under its name.
-- Nothing here names a tenant: each transaction is one tenant's, and row-level security shows and takes no other's rows.

-- name: canonical
SELECT project FROM links WHERE alias = :alias;

-- name: link
INSERT INTO links (alias, project) VALUES (:alias, :project)
ON CONFLICT (tenant, alias) DO UPDATE SET project = excluded.project WHERE links.project = :instead::text;

-- name: lead_on
UPDATE links SET project = (SELECT l.project FROM links l WHERE l.alias = :alias) WHERE project = :alias;

-- name: relink
INSERT INTO links (alias, project) VALUES (:alias, :project)
ON CONFLICT (tenant, alias) DO UPDATE SET project = excluded.project;

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
ON CONFLICT (tenant, id) DO UPDATE SET nonce = excluded.nonce, path = excluded.path;

-- name: count
INSERT INTO usage (id, uses, counted) SELECT unnest(:ids::text[]), 1, :now::bigint
ON CONFLICT (tenant, id) DO UPDATE SET uses = usage.uses + 1, counted = excluded.counted
WHERE abs(excluded.counted - usage.counted) >= 60
RETURNING id;

-- name: uses
SELECT id, uses FROM usage WHERE id = ANY(:ids::text[]);

-- name: show
INSERT INTO usage (id, uses, counted) VALUES (:id, 0, :time)
ON CONFLICT (tenant, id) DO UPDATE SET counted = greatest(usage.counted, excluded.counted);

-- name: last_used
SELECT id, max(time) FROM (
  SELECT id, counted AS time FROM usage WHERE id = ANY(ARRAY(SELECT json_array_elements_text(:ids::json)))
  UNION ALL SELECT note, max(time) FROM told
    WHERE note = ANY(ARRAY(SELECT json_array_elements_text(:ids::json))) GROUP BY note
  UNION ALL SELECT note, max(time) FROM briefed
    WHERE note = ANY(ARRAY(SELECT json_array_elements_text(:ids::json))) GROUP BY note
) AS uses GROUP BY id;

-- name: forget
DELETE FROM usage WHERE id = :id;

-- name: told
SELECT note, version FROM told WHERE session = :session AND note <> '';

-- name: tell
INSERT INTO told (session, note, version, time) VALUES (:session, :note, :version, :time)
ON CONFLICT (tenant, session, note) DO UPDATE SET version = excluded.version, time = excluded.time
WHERE told.version <> excluded.version
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
ON CONFLICT (tenant, session) DO UPDATE SET count = prompts.count + 1, last = excluded.last, time = excluded.time
WHERE prompts.last <> excluded.last
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
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value WHERE length(keys.value) <> length(excluded.value);

-- name: put_receipt
INSERT INTO receipts (id, time, receipt) VALUES (:id, :time, :receipt)
ON CONFLICT (tenant, id) DO UPDATE SET receipt = excluded.receipt;

-- name: receipts
SELECT id, receipt, time FROM receipts
WHERE (:id::text IS NULL OR id = :id)
  AND (:last::text IS NULL OR (time, id) < (SELECT r.time, r.id FROM receipts r WHERE r.id = :last))
ORDER BY time DESC, id DESC LIMIT nullif(:most::bigint, -1);

-- name: any_purged
SELECT EXISTS (SELECT FROM receipts), EXISTS (SELECT FROM purged WHERE digest >= 'r' AND digest < 's');

-- name: add_purged
INSERT INTO purged (digest, receipt) VALUES (:digest, :receipt)
ON CONFLICT (tenant, digest) DO UPDATE SET receipt = excluded.receipt;

-- name: drop_purged
DELETE FROM purged WHERE digest = :digest;

-- name: purged_known
SELECT p.digest, p.receipt FROM purged p LEFT JOIN receipts r ON r.id = p.receipt -- one that is gone or damaged lets nothing pass
WHERE p.digest = ANY(ARRAY(SELECT json_array_elements_text(:digests::json)))
  AND (NOT :ended::boolean OR strpos(coalesce(r.receipt, ''), '"state": "begun"') = 0);

-- name: purged_rows
SELECT digest, receipt FROM purged WHERE digest = ANY(ARRAY(SELECT json_array_elements_text(:digests::json)));

-- name: purged_counts
SELECT receipt, count(*) FROM purged WHERE NOT (digest >= 'r' AND digest < 's') GROUP BY receipt;

-- name: briefed_to
SELECT count(*), count(DISTINCT session), string_agg(DISTINCT session, ','), max(time) FROM briefed
WHERE note = ANY(ARRAY(SELECT json_array_elements_text(:ids::json)));

-- name: unbrief
DELETE FROM briefed WHERE note = :id;

-- name: undecide
DELETE FROM decisions WHERE subject = :id;

-- name: add_briefed
INSERT INTO briefed (note, version, session, client, time) VALUES (:note, :version, :session, :client, :time)
ON CONFLICT (tenant, note, version, session) DO NOTHING;

-- name: old_briefed
DELETE FROM briefed WHERE time < :before;

-- name: briefed
SELECT version, session, client, time FROM briefed WHERE note = :note ORDER BY time DESC, session;

-- name: decide
INSERT INTO decisions (time, action, subject, detail) VALUES (:time, :action, :subject, :detail);

-- name: decisions
SELECT action, detail, time FROM decisions WHERE subject = :subject ORDER BY id DESC;

-- name: turn
SELECT pg_advisory_xact_lock(hashtextextended(:name, hashtext(holdfast.tenant())));

-- name: agents.agents
SELECT name, role, tenant, created FROM agents WHERE :name::text IS NULL OR name = :name ORDER BY name;

-- name: agents.tokens
SELECT agent, id, created, expires, revoked FROM tokens WHERE :agent::text IS NULL OR agent = :agent ORDER BY number;

-- name: agents.token
SELECT shown.id, digest, expires, revoked, agent, role, tenant FROM unnest(:ids::text[]) AS shown (id), presented(shown.id);

-- A row that is written again: what it says is then as durable as this transaction.
-- name: agents.stands
UPDATE tokens SET id = id WHERE id = :id RETURNING 1;

-- name: agents.spelled_otherwise
SELECT name FROM agents WHERE lower(name) = lower(:name) AND name <> :name LIMIT 1;

-- name: agents.any_agent
SELECT 1 FROM agents LIMIT 1;

-- name: agents.valid
SELECT count(*) FROM tokens WHERE agent = :agent AND revoked IS NULL;

-- name: agents.put_agent
INSERT INTO agents (name, role, created) VALUES (:name, :role, :now)
ON CONFLICT (tenant, name) DO UPDATE SET role = excluded.role;

-- name: agents.put_token
INSERT INTO tokens (id, agent, digest, created, expires) VALUES (:id, :agent, :digest, :now, :expires);

-- name: agents.span
SELECT expires - created FROM tokens WHERE agent = :agent ORDER BY number DESC LIMIT 1;

-- name: agents.end_tokens
UPDATE tokens SET expires = :end
WHERE agent = :agent AND revoked IS NULL AND id <> :id AND (expires IS NULL OR expires > :end);

-- name: agents.revoke_tokens
UPDATE tokens SET revoked = :now WHERE agent = :agent AND revoked IS NULL AND id <> :id RETURNING id;

-- name: audit.head
SELECT count, hash FROM audit_head;

-- name: audit.begin
INSERT INTO audit_head (count, hash, marked) SELECT 0, '', 0
WHERE NOT EXISTS (SELECT 1 FROM agent_action_log) AND NOT EXISTS (SELECT 1 FROM audit_mark)
ON CONFLICT DO NOTHING;

-- name: audit.append
SELECT append(:told);

-- name: audit.marked
UPDATE audit_head SET marked = count WHERE marked <> count RETURNING count, hash;

-- name: audit.put_mark
INSERT INTO audit_mark (count, hash) VALUES (:count, :hash)
ON CONFLICT (tenant) DO UPDATE SET count = excluded.count, hash = excluded.hash
WHERE audit_mark.count < excluded.count
  AND EXISTS (SELECT 1 FROM agent_action_log l WHERE l.number = audit_mark.count AND l.hash = audit_mark.hash);

-- name: audit.noted
SELECT count, hash FROM audit_mark;

-- name: audit.walk
SELECT number, time, tenant, agent, action, outcome, metadata, hash FROM agent_action_log
WHERE number >= :first ORDER BY number LIMIT :most;

-- name: audit.list
SELECT number, time, tenant, agent, action, outcome, metadata, hash FROM agent_action_log
WHERE (:before::bigint IS NULL OR number < :before)
  AND (:agent::text IS NULL OR agent = :agent)
  AND (:action::text IS NULL OR action = :action)
  AND (:outcome::text IS NULL OR outcome = :outcome)
  AND (:since::text IS NULL OR time >= :since)
  AND (:until::text IS NULL OR time < :until)
ORDER BY number DESC LIMIT :most;

-- name: audit.last
SELECT number, hash FROM agent_action_log ORDER BY number DESC LIMIT 1;

-- name: done.exists
SELECT 1 FROM done WHERE agent = :agent AND kind = :kind AND subject = :subject;

-- name: done.masked
SELECT subject FROM done WHERE agent = :agent AND kind = :kind AND subject LIKE 'purged:%';

-- name: done.exists_any
SELECT 1 FROM done WHERE kind = :kind AND subject = :subject LIMIT 1;

-- name: done.masked_any
SELECT subject FROM done WHERE kind = :kind AND subject LIKE 'purged:%';

-- name: done.every
SELECT number, kind, subject FROM done;

-- name: done.mask
UPDATE done SET subject = :subject WHERE number = :number;

-- name: done.remove
DELETE FROM done WHERE number = :number;

-- name: done.record
INSERT INTO done (agent, kind, subject, time) VALUES (:agent, :kind, :subject, :now)
ON CONFLICT (tenant, agent, kind, subject) DO NOTHING RETURNING number;

-- name: done.list
SELECT number, agent, kind, subject, time FROM done
WHERE (:before::bigint IS NULL OR number < :before)
  AND (:agent::text IS NULL OR agent = :agent)
  AND (:kind::text IS NULL OR kind = :kind)
ORDER BY number DESC LIMIT :most;

-- name: done.page
SELECT source, number, agent, kind, subject, time FROM (
  SELECT 0 AS source, number, agent, kind, subject, time FROM done
  UNION ALL
  SELECT 1, number, agent, :review::text, owner || '/' || repo || '#' || pr_number, reviewed_at FROM reviewed_prs
) AS every
WHERE (:agent::text IS NULL OR agent = :agent)
  AND (:kind::text IS NULL OR kind = :kind)
  AND (:subject::text IS NULL OR subject = CASE source WHEN 1 THEN lower(:subject) ELSE :subject END)
  AND (:time::bigint IS NULL OR (time, source, number) < (:time::bigint, :source::bigint, :number::bigint))
ORDER BY time DESC, source DESC, number DESC LIMIT :most;

-- name: done.reviewed
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE agent = :agent AND owner = :owner AND repo = :repo AND pr_number = :pr;

-- name: done.reviewed_any
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE owner = :owner AND repo = :repo AND pr_number = :pr LIMIT 1;

-- name: done.record_review
INSERT INTO reviewed_prs (agent, owner, repo, pr_number, reviewed_at) VALUES (:agent, :owner, :repo, :pr, :now)
ON CONFLICT (tenant, agent, owner, repo, pr_number) DO NOTHING RETURNING number;

-- name: done.list_reviews
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE (:before::bigint IS NULL OR number < :before)
  AND (:agent::text IS NULL OR agent = :agent)
ORDER BY number DESC LIMIT :most;

-- name: done.claimed
SELECT holder, time FROM claims WHERE subject = :subject;

-- name: done.claim
INSERT INTO claims (subject, holder, time) VALUES (:subject, :holder, :now)
ON CONFLICT (tenant, subject) DO UPDATE SET holder = excluded.holder, time = excluded.time;

-- name: done.release
DELETE FROM claims WHERE subject = :subject AND holder = :holder;

-- name: repeats.sweep
DELETE FROM idempotency WHERE (agent, key) IN (
  SELECT agent, key FROM idempotency WHERE time < :before LIMIT 100 FOR UPDATE SKIP LOCKED
);

-- name: repeats.kept
SELECT digest, status, answer, time FROM idempotency WHERE agent = :agent AND key = :key;

-- name: repeats.begin
INSERT INTO idempotency (agent, key, digest, status, answer, time) VALUES (:agent, :key, :digest, NULL, :doer, :now)
ON CONFLICT (tenant, agent, key) DO UPDATE SET answer = excluded.answer, time = excluded.time;

-- name: repeats.finish
UPDATE idempotency SET status = :status, answer = :answer WHERE agent = :agent AND key = :key AND digest = :digest;

-- name: repeats.drop
DELETE FROM idempotency WHERE agent = :agent AND key = :key AND digest = :digest AND status IS NULL;
