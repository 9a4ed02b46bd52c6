-- Every row of a ledger, out of one and into another, in words that SQLite and PostgreSQL both understand.
-- What a row is known by comes first. Numbers that only order the rows are left out: they are given anew, in the same order.

-- name: links
SELECT alias, project FROM links ORDER BY alias;

-- name: add links
INSERT INTO links (alias, project) VALUES (:a, :b) ON CONFLICT DO NOTHING;

-- name: places
SELECT id, nonce, path FROM places ORDER BY id;

-- name: add places
INSERT INTO places (id, nonce, path) VALUES (:a, :b, :c) ON CONFLICT DO NOTHING;

-- name: usage
SELECT id, uses, counted FROM usage ORDER BY id;

-- name: add usage
INSERT INTO usage (id, uses, counted) VALUES (:a, :b, :c) ON CONFLICT DO NOTHING;

-- name: told
SELECT session, note, version, time FROM told ORDER BY session, note;

-- name: add told
INSERT INTO told (session, note, version, time) VALUES (:a, :b, :c, :d) ON CONFLICT DO NOTHING;

-- name: prompts
SELECT session, count, last, time FROM prompts ORDER BY session;

-- name: add prompts
INSERT INTO prompts (session, count, last, time) VALUES (:a, :b, :c, :d) ON CONFLICT DO NOTHING;

-- name: briefed
SELECT note, version, session, client, time FROM briefed ORDER BY note, version, session;

-- name: add briefed
INSERT INTO briefed (note, version, session, client, time) VALUES (:a, :b, :c, :d, :e) ON CONFLICT DO NOTHING;

-- name: decisions
SELECT time, action, subject, detail FROM decisions ORDER BY id;

-- name: add decisions
INSERT INTO decisions (time, action, subject, detail) VALUES (:a, :b, :c, :d);

-- name: keys
SELECT name, value FROM keys ORDER BY name;

-- name: add keys
INSERT INTO keys (name, value) VALUES (:a, :b) ON CONFLICT DO NOTHING;

-- name: receipts
SELECT id, time, receipt FROM receipts ORDER BY id;

-- name: add receipts
INSERT INTO receipts (id, time, receipt) VALUES (:a, :b, :c) ON CONFLICT DO NOTHING;

-- name: purged
SELECT digest, receipt FROM purged ORDER BY digest;

-- name: add purged
INSERT INTO purged (digest, receipt) VALUES (:a, :b) ON CONFLICT DO NOTHING;

-- name: agents
SELECT name, role, created FROM agents ORDER BY name;

-- name: tokens
SELECT id, agent, digest, created, expires, revoked FROM tokens ORDER BY number;

-- name: add tokens
INSERT INTO tokens (id, agent, digest, created, expires, revoked) VALUES (:a, :b, :c, :d, :e, :f) ON CONFLICT DO NOTHING;

-- name: done
SELECT agent, kind, subject, time FROM done ORDER BY number;

-- name: add done
INSERT INTO done (agent, kind, subject, time) VALUES (:a, :b, :c, :d) ON CONFLICT DO NOTHING;

-- name: reviewed_prs
SELECT agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs ORDER BY number;

-- name: add reviewed_prs
INSERT INTO reviewed_prs (agent, owner, repo, pr_number, reviewed_at) VALUES (:a, :b, :c, :d, :e) ON CONFLICT DO NOTHING;

-- name: claims
SELECT subject, holder, time FROM claims ORDER BY subject;

-- name: add claims
INSERT INTO claims (subject, holder, time) VALUES (:a, :b, :c) ON CONFLICT DO NOTHING;

-- name: idempotency
SELECT agent, key, digest, status, answer, time FROM idempotency ORDER BY agent, key;

-- name: add idempotency
INSERT INTO idempotency (agent, key, digest, status, answer, time) VALUES (:a, :b, :c, :d, :e, :f) ON CONFLICT DO NOTHING;

-- name: sqlite add agents
INSERT INTO agents (name, role, tenant, created) VALUES (:a, :b, 'default', :c) ON CONFLICT DO NOTHING;

-- name: postgres add agents
INSERT INTO agents (name, role, created) VALUES (:a, :b, :c) ON CONFLICT DO NOTHING;

-- name: sqlite add audit
INSERT INTO audit (number, time, tenant, agent, action, outcome, metadata, hash) VALUES (:a, :b, :c, :d, :e, :f, :g, :h);

-- name: postgres add audit
INSERT INTO agent_action_log (number, time, tenant, agent, action, outcome, metadata, hash)
VALUES (:a, :b, :c, :d, :e, :f, :g, :h);

-- name: sqlite begin audit
SELECT 1;

-- name: postgres begin audit
INSERT INTO audit_head (count, hash, marked) VALUES (0, '', 0) ON CONFLICT DO NOTHING;

-- name: move audit
UPDATE audit_head SET count = :count, hash = :hash WHERE count = :before AND hash = :was RETURNING count;
