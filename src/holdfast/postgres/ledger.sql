-- The ledger in PostgreSQL: the same statements as in ledger/sqlite.sql.
-- No statement names a tenant: each transaction belongs to one tenant, and row-level security hides and rejects the rows of others.

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
INSERT INTO usage (id, uses, counted) VALUES (:id, 1, :now)
ON CONFLICT (tenant, id) DO UPDATE SET uses = usage.uses + 1, counted = excluded.counted
WHERE abs(excluded.counted - usage.counted) >= 60
RETURNING id;

-- name: uses
SELECT id, uses FROM usage WHERE id = ANY(ARRAY(SELECT json_array_elements_text(:ids::json)));

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
DELETE FROM usage WHERE id = :id RETURNING id;

-- name: shown
SELECT note, version FROM told WHERE session = :session AND note <> '';

-- name: show_note
INSERT INTO told (session, note, version, time) VALUES (:session, :note, :version, :time)
ON CONFLICT (tenant, session, note) DO UPDATE SET version = excluded.version, time = excluded.time
WHERE told.version <> excluded.version
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
ON CONFLICT (tenant, session) DO UPDATE SET count = prompts.count + 1, last = excluded.last, time = excluded.time
WHERE prompts.last <> excluded.last
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
SELECT p.digest, p.receipt FROM purged p LEFT JOIN receipts r ON r.id = p.receipt -- it may be missing or damaged
WHERE p.digest = ANY(ARRAY(SELECT json_array_elements_text(:digests::json)))
  AND (NOT :ended::boolean OR strpos(coalesce(r.receipt, ''), '"state": "begun"') = 0);

-- name: purged_rows
SELECT digest, receipt FROM purged WHERE digest = ANY(ARRAY(SELECT json_array_elements_text(:digests::json)));

-- name: purged_counts
SELECT receipt, count(*) FROM purged WHERE NOT (digest >= 'r' AND digest < 's') GROUP BY receipt;

-- name: shown_to
SELECT count(*), string_agg(DISTINCT session, ',') FROM briefed
WHERE note = ANY(ARRAY(SELECT json_array_elements_text(:ids::json)));

-- name: forget_history
DELETE FROM briefed WHERE note = :id;

-- name: forget_decisions
DELETE FROM decisions WHERE subject = :id;

-- name: add_history
INSERT INTO briefed (note, version, session, client, time) VALUES (:note, :version, :session, :client, :time)
ON CONFLICT (tenant, note, version, session) DO NOTHING;

-- name: forget_old_history
DELETE FROM briefed WHERE time < :before;

-- name: history
SELECT version, session, client, time FROM briefed WHERE note = :note ORDER BY time DESC, session;

-- name: shown_by_day
SELECT time / 86400, count(*) FROM briefed
WHERE time >= :since AND (:ids::text IS NULL OR note IN (SELECT json_array_elements_text(:ids::json))) GROUP BY 1;

-- name: used_by_day
SELECT counted / 86400, count(*) FROM usage
WHERE counted >= :since AND uses > 0 AND (:ids::text IS NULL OR id IN (SELECT json_array_elements_text(:ids::json))) GROUP BY 1;

-- name: shown_lately
SELECT note, max(time), count(*) FROM briefed
WHERE time >= :since AND (:ids::text IS NULL OR note IN (SELECT json_array_elements_text(:ids::json)))
GROUP BY note ORDER BY 2 DESC, 1 LIMIT :most;

-- name: used_lately
SELECT id, counted, uses FROM usage
WHERE counted >= :since AND uses > 0 AND (:ids::text IS NULL OR id IN (SELECT json_array_elements_text(:ids::json)))
ORDER BY 2 DESC, 1 LIMIT :most;

-- name: decide
INSERT INTO decisions (time, action, subject, detail) VALUES (:time, :action, :subject, :detail);

-- name: decisions
SELECT action, detail, time FROM decisions WHERE subject = :subject ORDER BY id DESC;

-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended(:name, hashtext(holdfast.tenant())));

-- name: agents.list
SELECT name, role, tenant, created FROM agents WHERE :name::text IS NULL OR name = :name ORDER BY name;

-- name: agents.tokens
SELECT agent, id, created, expires, revoked FROM tokens WHERE :agent::text IS NULL OR agent = :agent ORDER BY number;

-- name: agents.find_tokens
SELECT shown.id, digest, expires, revoked, agent, role, tenant, grants, 0
FROM json_array_elements_text(:ids::json) AS shown (id),
  presented(shown.id);

-- name: accepts_writes
SELECT NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off';

-- name: agents.touch_token
-- (a row that is written again is as durable as this transaction)
UPDATE tokens SET id = id WHERE id = :id RETURNING 1;

-- name: agents.count_expiring
-- (by agent: a token that was replaced and ends after its grace needs no new one)
SELECT count(*) FROM (
  SELECT max(coalesce(expires, 9223372036854775807)) AS last FROM tokens WHERE revoked IS NULL GROUP BY agent
) AS ends WHERE last > :now AND last <= :until;

-- name: agents.same_but_for_case
SELECT name FROM agents WHERE lower(name) = lower(:name) AND name <> :name LIMIT 1;

-- name: agents.sharing_sessions
SELECT name FROM agents WHERE name <> :name AND (
  starts_with(lower(:name), lower(name) || '.') OR starts_with(lower(name), lower(:name) || '.')
) LIMIT 1;

-- name: agents.grants
SELECT agent, kind, pattern FROM grants WHERE :agent::text IS NULL OR agent = :agent ORDER BY agent, kind, pattern;

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
INSERT INTO agents (name, role, created) VALUES (:name, :role, :now)
ON CONFLICT (tenant, name) DO UPDATE SET role = excluded.role;

-- name: agents.put_token
INSERT INTO tokens (id, agent, digest, created, expires) VALUES (:id, :agent, :digest, :now, :expires);

-- name: agents.token_lifetime
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
SELECT append(:rows);

-- name: audit.take_unmarked
UPDATE audit_head SET marked = count WHERE marked <> count RETURNING count, hash;

-- name: audit.put_mark
INSERT INTO audit_mark (count, hash) VALUES (:count, :hash)
ON CONFLICT (tenant) DO UPDATE SET count = excluded.count, hash = excluded.hash
WHERE audit_mark.count < excluded.count
  AND EXISTS (SELECT 1 FROM agent_action_log l WHERE l.number = audit_mark.count AND l.hash = audit_mark.hash);

-- name: audit.mark
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
  AND (:token::text IS NULL OR strpos(metadata, '"token":"' || :token || '"') > 0)
  AND (:address::text IS NULL OR strpos(metadata, '"address":"' || :address || '"') > 0)
ORDER BY number DESC LIMIT :most;

-- name: audit.hash_of
SELECT hash FROM agent_action_log WHERE number = :number;

-- name: audit.range
SELECT (SELECT min(number) FROM agent_action_log WHERE :since::text IS NULL OR time >= :since),
  (SELECT max(number) FROM agent_action_log WHERE :until::text IS NULL OR time < :until);

-- name: audit.checkpoint
SELECT number, hash, first_time, last_time, made, signature FROM audit_checkpoint;

-- name: audit.prune
SELECT prune_audit(:number, :hash, :first_time, :last_time, :made, :signature);

-- name: audit.position
SELECT number FROM audit_shipped WHERE target = :target;

-- name: audit.put_position
INSERT INTO audit_shipped (target, number) VALUES (:target, :number)
ON CONFLICT (tenant, target) DO UPDATE SET number = excluded.number WHERE audit_shipped.number < excluded.number;

-- name: audit.unshipped_tenants
SELECT unshipped_tenants(:target);

-- name: audit.last
SELECT number, hash FROM agent_action_log ORDER BY number DESC LIMIT 1;

-- name: done.find
SELECT 1 FROM done WHERE agent = :agent AND kind = :kind AND subject = :subject;

-- name: done.masked
SELECT subject FROM done WHERE agent = :agent AND kind = :kind AND subject LIKE 'purged:%';

-- name: done.find_any
SELECT 1 FROM done WHERE kind = :kind AND subject = :subject LIMIT 1;

-- name: done.masked_any
SELECT subject FROM done WHERE kind = :kind AND subject LIKE 'purged:%';

-- name: done.subjects
SELECT number, kind, subject FROM done WHERE agent = coalesce(:agent, agent);

-- name: done.subjects_of_others
SELECT number, kind, subject FROM done WHERE agent <> :agent;

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

-- name: reviews.find
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE agent = :agent AND owner = :owner AND repo = :repo AND pr_number = :pr;

-- name: reviews.find_any
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE owner = :owner AND repo = :repo AND pr_number = :pr LIMIT 1;

-- name: reviews.record
INSERT INTO reviewed_prs (agent, owner, repo, pr_number, reviewed_at) VALUES (:agent, :owner, :repo, :pr, :now)
ON CONFLICT (tenant, agent, owner, repo, pr_number) DO NOTHING RETURNING number;

-- name: reviews.list
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE (:before::bigint IS NULL OR number < :before)
  AND (:agent::text IS NULL OR agent = :agent)
ORDER BY number DESC LIMIT :most;

-- name: reviews.find_claim
SELECT holder, time FROM claims WHERE subject = :subject;

-- name: reviews.claim
INSERT INTO claims (subject, holder, time) VALUES (:subject, :holder, :now)
ON CONFLICT (tenant, subject) DO UPDATE SET holder = excluded.holder, time = excluded.time;

-- name: reviews.release
DELETE FROM claims WHERE subject = :subject AND holder = :holder;

-- name: quotas.count_request
INSERT INTO request_count (agent, day, requests) SELECT :agent::text, :day::bigint, 1 WHERE :most::bigint > 0
ON CONFLICT (tenant, agent) DO UPDATE SET
  requests = CASE request_count.day WHEN excluded.day THEN request_count.requests + 1 ELSE 1 END, day = excluded.day
WHERE request_count.day <> excluded.day OR request_count.requests < :most::bigint
RETURNING requests;

-- name: quotas.requests
SELECT requests FROM request_count WHERE agent = :agent AND day = :day;

-- name: keys.remove_old
DELETE FROM idempotency WHERE (agent, key) IN (
  SELECT agent, key FROM idempotency WHERE time < :before LIMIT 100 FOR UPDATE SKIP LOCKED
);

-- name: keys.find
SELECT digest, status, answer, time FROM idempotency WHERE agent = :agent AND key = :key;

-- name: keys.begin
INSERT INTO idempotency (agent, key, digest, status, answer, time) VALUES (:agent, :key, :digest, NULL, :process, :now)
ON CONFLICT (tenant, agent, key) DO UPDATE SET answer = excluded.answer, time = excluded.time;

-- name: keys.finish
UPDATE idempotency SET status = :status, answer = :answer WHERE agent = :agent AND key = :key AND digest = :digest;

-- name: keys.drop
DELETE FROM idempotency WHERE agent = :agent AND key = :key AND digest = :digest AND status IS NULL;

-- Writers of files.

-- name: file_sources.put
INSERT INTO file_sources (scope, file, inode, changed, size, origin, agent, client, session, trust, time)
VALUES (:scope, :file, :inode, :changed, :size, :origin, :agent, :client, :session, :trust, :time)
ON CONFLICT (tenant, scope, file) DO UPDATE SET inode = excluded.inode, changed = excluded.changed, size = excluded.size,
  origin = excluded.origin, agent = excluded.agent, client = excluded.client, session = excluded.session,
  trust = excluded.trust, time = excluded.time;

-- name: file_sources.find
SELECT f.scope, f.file, f.inode, f.changed, f.size, f.origin, f.agent, f.client, f.session, f.trust, f.time
FROM unnest(ARRAY(SELECT json_array_elements_text(:scopes::json)), ARRAY(SELECT json_array_elements_text(:files::json)))
  AS wanted (scope, file) JOIN file_sources f ON f.scope = wanted.scope AND f.file = wanted.file;

-- name: file_sources.list
SELECT scope, file, inode, changed, size, origin, agent, client, session, trust, time FROM file_sources ORDER BY scope, file;

-- name: file_sources.remove
DELETE FROM file_sources WHERE scope = :scope AND file = :file;

-- Read and add all rows (see ledger/transfer.py).

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
INSERT INTO agents (name, role, created) VALUES (:name, :role, :created) ON CONFLICT DO NOTHING;

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
INSERT INTO audit_head (count, hash, marked) VALUES (0, '', 0) ON CONFLICT DO NOTHING;

-- name: transfer.add_audit
INSERT INTO agent_action_log (number, time, tenant, agent, action, outcome, metadata, hash)
VALUES (:number, :time, :tenant, :agent, :action, :outcome, :metadata, :hash);

-- name: transfer.move_audit
UPDATE audit_head SET count = :count, hash = :hash WHERE count = :old_count AND hash = :old_hash RETURNING count;

-- name: transfer.begin_audit_after
SELECT 1 WHERE begin_audit_after(:number, :hash, :first_time, :last_time, :made, :signature);

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
