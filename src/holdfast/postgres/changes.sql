-- The fingerprint of each folder in the store, and the one that the index has of it.

-- name: compare_folders
SELECT s.scope, s.part, s.mix, f.fingerprint
FROM shelf_folder s LEFT JOIN folder f ON f.scope = s.scope AND f.part = s.part
WHERE s.scope = ANY(:scopes::text[]) AND s.part = ANY(:parts::text[]);

-- Which of these files exist, each with its identity: asked when no other process can change the index of the folder.
-- name: existing_files
SELECT d.scope, d.part, d.name, d.stamp, d.changed, octet_length(d.data)
FROM unnest(:scopes::text[], :parts::text[], :names::text[]) AS one (scope, part, name)
  JOIN document d ON d.scope = one.scope AND d.part = one.part AND d.name = one.name
UNION ALL
SELECT r.scope, r.part, r.name, r.ino, r.changed, r.size
FROM unnest(:scopes::text[], :parts::text[], :names::text[]) AS one (scope, part, name)
  JOIN roll r ON r.scope = one.scope AND r.part = one.part AND r.name = one.name
WHERE one.part = 'transcripts';

-- The files that changed last in a folder, in the store and in the index, and by how much the two differ as a whole.
-- name: compare_recent
SELECT s.mix # f.fingerprint, one.name, d.stamp, d.changed, d.size, coalesce(d.mix, 0), i.ino, i.ctime, coalesce(i.mix, 0)
FROM shelf_folder s
  JOIN folder f ON f.scope = s.scope AND f.part = s.part
  CROSS JOIN LATERAL (SELECT DISTINCT name FROM unnest(s.recent) AS name) AS one
  LEFT JOIN LATERAL (
    SELECT stamp, changed, octet_length(data) AS size, mix FROM document
    WHERE scope = s.scope AND part = s.part AND name = one.name
    UNION ALL
    SELECT ino, changed, size, mix FROM roll
    WHERE scope = s.scope AND part = s.part AND name = one.name AND s.part = 'transcripts'
  ) AS d ON true
  LEFT JOIN doc i ON i.folder = f.id AND i.name = one.name
WHERE s.scope = :scope AND s.part = :part;
