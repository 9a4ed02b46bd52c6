-- Requests with a key of their own: the first is done, the others are told what it answered.

-- name: sweep
DELETE FROM idempotency WHERE time < :before;

-- name: kept
SELECT digest, status, answer, time FROM idempotency WHERE agent = :agent AND key = :key;

-- name: begin
-- (until there is an answer, it says whose it will be)
INSERT INTO idempotency (agent, key, digest, status, answer, time) VALUES (:agent, :key, :digest, NULL, :doer, :now)
ON CONFLICT (agent, key) DO UPDATE SET answer = excluded.answer, time = excluded.time;

-- name: finish
UPDATE idempotency SET status = :status, answer = :answer WHERE agent = :agent AND key = :key AND digest = :digest;

-- name: drop
DELETE FROM idempotency WHERE agent = :agent AND key = :key AND digest = :digest AND status IS NULL;
