-- The audit: one row for each decision, each with a hash over itself and the hash before it. Read as bytes: what somebody
-- else's hand put there may be no text at all.

-- name: head
SELECT count, CAST(hash AS BLOB) FROM audit_head;

-- name: append
INSERT INTO audit (number, time, tenant, agent, action, outcome, metadata, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_head
UPDATE audit_head SET count = :count, hash = :hash;

-- name: marked
UPDATE audit_head SET marked = count WHERE marked <> count RETURNING count, CAST(hash AS BLOB);

-- name: hash_of
SELECT CAST(hash AS BLOB) FROM audit WHERE number = :number;

-- name: walk
SELECT number, CAST(time AS BLOB), CAST(tenant AS BLOB), CAST(agent AS BLOB), CAST(action AS BLOB), CAST(outcome AS BLOB),
  CAST(metadata AS BLOB), CAST(hash AS BLOB) FROM audit WHERE number >= :first ORDER BY number LIMIT :most;

-- name: list
SELECT number, CAST(time AS BLOB), CAST(tenant AS BLOB), CAST(agent AS BLOB), CAST(action AS BLOB), CAST(outcome AS BLOB),
  CAST(metadata AS BLOB), CAST(hash AS BLOB) FROM audit
WHERE (:before IS NULL OR number < :before)
  AND (:agent IS NULL OR agent = :agent)
  AND (:action IS NULL OR action = :action)
  AND (:outcome IS NULL OR outcome = :outcome)
  AND (:since IS NULL OR time >= :since)
  AND (:until IS NULL OR time < :until)
ORDER BY number DESC LIMIT :most;

-- name: last
SELECT number, CAST(hash AS BLOB) FROM audit ORDER BY number DESC LIMIT 1;
