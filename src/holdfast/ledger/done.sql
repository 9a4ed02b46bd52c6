-- What agents have done: once for each subject, whoever asks how often.

-- name: exists
SELECT 1 FROM done WHERE agent = :agent AND kind = :kind AND subject = :subject;

-- name: masked
SELECT subject FROM done WHERE agent = :agent AND kind = :kind AND subject >= 'purged:' AND subject < 'purged;';

-- name: exists_any
SELECT 1 FROM done WHERE kind = :kind AND subject = :subject LIMIT 1;

-- name: masked_any
SELECT subject FROM done WHERE kind = :kind AND subject >= 'purged:' AND subject < 'purged;';

-- name: every
SELECT number, kind, subject FROM done;

-- name: mask
UPDATE OR REPLACE done SET subject = :subject WHERE number = :number;

-- name: remove
DELETE FROM done WHERE number = :number;

-- name: record
INSERT INTO done (agent, kind, subject, time) VALUES (:agent, :kind, :subject, :now)
ON CONFLICT (agent, kind, subject) DO NOTHING RETURNING number;

-- name: list
SELECT number, agent, kind, subject, time FROM done
WHERE (:before IS NULL OR number < :before)
  AND (:agent IS NULL OR agent = :agent)
  AND (:kind IS NULL OR kind = :kind)
ORDER BY number DESC LIMIT :most;

-- name: page
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

-- name: reviewed
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE agent = :agent AND owner = :owner AND repo = :repo AND pr_number = :pr;

-- name: reviewed_any
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE owner = :owner AND repo = :repo AND pr_number = :pr LIMIT 1;

-- name: record_review
INSERT INTO reviewed_prs (agent, owner, repo, pr_number, reviewed_at) VALUES (:agent, :owner, :repo, :pr, :now)
ON CONFLICT (agent, owner, repo, pr_number) DO NOTHING RETURNING number;

-- name: list_reviews
SELECT number, agent, owner, repo, pr_number, reviewed_at FROM reviewed_prs
WHERE (:before IS NULL OR number < :before)
  AND (:agent IS NULL OR agent = :agent)
ORDER BY number DESC LIMIT :most;

-- name: claimed
SELECT holder, time FROM claims WHERE subject = :subject;

-- name: claim
INSERT INTO claims (subject, holder, time) VALUES (:subject, :holder, :now)
ON CONFLICT (subject) DO UPDATE SET holder = excluded.holder, time = excluded.time;

-- name: release
DELETE FROM claims WHERE subject = :subject AND holder = :holder;
