-- The store in PostgreSQL: documents, transcripts, and a fingerprint (mix) for each folder of them.
-- No statement names the tenant: row-level security hides and rejects other tenants' rows.

-- name: lock_folders
INSERT INTO shelf_folder (scope, part)
SELECT :scope, part FROM unnest(:parts::text[]) AS part ORDER BY part
ON CONFLICT (tenant, scope, part) DO UPDATE SET mix = shelf_folder.mix
RETURNING part, last;

-- name: change_folder
INSERT INTO shelf_folder (scope, part, mix, last, recent)
VALUES (:scope, :part, :mix::bigint, :last::bigint, :names::text[])
ON CONFLICT (tenant, scope, part) DO UPDATE SET
  mix = shelf_folder.mix # excluded.mix, last = greatest(shelf_folder.last, excluded.last),
  recent = (excluded.recent || shelf_folder.recent)[1:24];

-- name: forget_recent_name
UPDATE shelf_folder s SET recent = ARRAY(
  SELECT name FROM unnest(s.recent) WITH ORDINALITY AS one (name, place)
  WHERE name <> :name AND name <> :plain AND NOT starts_with(name, :trashed) ORDER BY place
)
WHERE scope = :scope AND part = ANY(:parts::text[]);

-- name: fingerprint
SELECT mix FROM shelf_folder WHERE scope = :scope AND part = :part;

-- name: scopes
SELECT DISTINCT scope FROM shelf_folder ORDER BY scope;

-- name: has_folder
SELECT 1 FROM shelf_folder WHERE scope = :scope AND (:part = '' OR part = :part) LIMIT 1;

-- name: read
SELECT data, stamp, changed, modified FROM document WHERE scope = :scope AND part = :part AND name = :name;

-- name: read_in_tree
SELECT part, data, stamp, changed, modified FROM document
WHERE scope = :scope AND name = :name AND (part = :part OR (:part = 'files' AND part = 'folders'));

-- name: read_batch
SELECT scope, part, name, data, stamp, changed, modified FROM document
WHERE (scope, part, name) IN (SELECT * FROM unnest(:scopes::text[], :parts::text[], :names::text[]));

-- name: read_line_batch
SELECT r.scope, r.part, r.name || ':' || l.start, l.data, r.ino, r.changed, 0::bigint
FROM unnest(:scopes::text[], :names::text[], :starts::text[]) AS w (scope, name, start)
  JOIN roll r ON r.scope = w.scope AND r.part = 'transcripts' AND r.name = w.name
  JOIN line l ON l.ino = r.ino AND l.start = w.start::bigint
WHERE octet_length(l.data) <= 8388608;    -- LINE_BYTES of store/layout.py

-- name: file_ids
SELECT name, stamp, changed, octet_length(data), mix FROM document
WHERE scope = :scope AND part = :part AND name = ANY(:names::text[]);

-- name: archived_names
SELECT DISTINCT k.scope, a.name
FROM unnest(:scopes::text[], :keys::text[]) AS k (scope, key) CROSS JOIN LATERAL (  -- a time follows the key; it begins with a digit
  SELECT name FROM document
  WHERE scope = k.scope AND part = 'archive' AND name >= k.key || '--0' AND name < k.key || '--:'
) AS a;

-- name: entries
SELECT name, stamp, changed, octet_length(data) FROM document WHERE scope = :scope AND part = :part ORDER BY name;

-- name: digests
SELECT name, encode(sha256(data), 'hex') FROM document
WHERE scope = :scope AND part = :part AND name > :after ORDER BY name LIMIT :most;

-- name: insert_documents
INSERT INTO document (scope, part, name, data, stamp, changed, modified, mix)
SELECT :scope, :part, one.*
FROM unnest(
  :names::text[], :data::bytea[], :stamps::bigint[], :changed::bigint[], :modified::bigint[], :mixes::bigint[]
) AS one
ON CONFLICT (tenant, scope, part, name) DO NOTHING RETURNING 1;

-- name: update_documents
UPDATE document d SET data = one.data, stamp = one.stamp, changed = one.changed, modified = one.modified, mix = one.mix
FROM unnest(
  :names::text[], :data::bytea[], :stamps::bigint[], :changed::bigint[], :modified::bigint[], :mixes::bigint[],
  :seen::bigint[], :seen_changed::bigint[]
) AS one (name, data, stamp, changed, modified, mix, seen, seen_changed)
WHERE d.scope = :scope AND d.part = :part AND d.name = one.name AND d.stamp = one.seen AND d.changed = one.seen_changed
RETURNING 1;

-- name: move_documents
UPDATE document d SET part = :to_part, name = one.to_name, changed = :changed::bigint, mix = one.mix
FROM unnest(:names::text[], :to_names::text[], :mixes::bigint[]) AS one (name, to_name, mix)
WHERE d.scope = :scope AND d.part = :part AND d.name = one.name;

-- name: delete_document
DELETE FROM document WHERE scope = :scope AND part = :part AND name = :name RETURNING mix;

-- name: list_folder
SELECT substr(name, :skip::integer) || CASE part WHEN 'folders' THEN '/' ELSE '' END FROM document
WHERE scope = :scope AND part IN ('files', 'folders') AND starts_with(name, :prefix)
  AND strpos(substr(name, :skip::integer), '/') = 0;

-- name: list_below
SELECT part, name, stamp, changed, octet_length(data), mix FROM document
WHERE scope = :scope AND part IN ('files', 'folders') AND (name = :name OR starts_with(name, :prefix));

-- name: find_paths
SELECT part, name FROM document WHERE scope = :scope AND part IN ('files', 'folders') AND name = ANY(:names::text[]);

-- name: transcript
SELECT ino, changed, size, lines, mix FROM roll WHERE scope = :scope AND part = :part AND name = :name;

-- name: lock_transcript
SELECT ino, changed, size, lines, mix FROM roll WHERE scope = :scope AND part = :part AND name = :name FOR UPDATE;

-- name: begin_transcript
INSERT INTO roll (scope, part, name, ino, changed)
SELECT :scope::text, :part::text, :name::text, :ino::bigint, :changed::bigint
FROM (SELECT pg_advisory_xact_lock_shared(hashtextextended('holdfast rolls ' || :scope::text, hashtext(tenant()))) AS entered) AS begun
ON CONFLICT (tenant, scope, part, name) DO UPDATE SET size = roll.size RETURNING ino, changed, size, lines, mix;

-- name: wait_for_new_transcripts
SELECT pg_advisory_xact_lock(hashtextextended('holdfast rolls ' || :scope::text, hashtext(tenant())));

-- name: update_transcript
UPDATE roll SET ino = :ino::bigint, size = :size::bigint, lines = :lines::bigint, changed = :changed::bigint,
  mix = :mix::bigint
WHERE scope = :scope AND part = :part AND name = :name;

-- name: move_transcript
UPDATE roll SET part = :to_part, name = :to_name, changed = :changed::bigint, mix = :mix::bigint
WHERE scope = :scope AND part = :part AND name = :name;

-- name: delete_transcript
DELETE FROM roll WHERE scope = :scope AND part = :part AND name = :name;

-- name: transcripts
SELECT name, ino, changed, size FROM roll WHERE scope = :scope AND part = :part ORDER BY name;

-- name: lines
SELECT number, start, data FROM line WHERE ino = :ino::bigint AND start >= :first::bigint AND start < :last::bigint ORDER BY start;

-- name: first_lines
SELECT r.ino, l.start, l.data
FROM roll r LEFT JOIN line l ON l.ino = r.ino AND l.start >= :first::bigint AND l.start < :last::bigint
WHERE r.scope = :scope AND r.part = :part AND r.name = :name ORDER BY l.start;

-- name: line_before
SELECT start, data FROM line WHERE ino = :ino::bigint AND start < :offset::bigint ORDER BY start DESC LIMIT 1;

-- name: add_lines
INSERT INTO line (scope, ino, start, number, data)
SELECT :scope, :ino::bigint, one.start, one.number, one.data
FROM unnest(:starts::bigint[], :numbers::bigint[], :data::bytea[]) AS one (start, number, data);

-- name: change_line
UPDATE line SET data = :data WHERE ino = :ino::bigint AND number = :number::bigint;

-- name: renumber_lines
UPDATE line SET ino = :new::bigint, start = counted.start
FROM (
  SELECT number, sum(octet_length(data) + 1) OVER (ORDER BY number) - octet_length(data) - 1 AS start
  FROM line WHERE ino = :ino::bigint
) AS counted
WHERE line.ino = :ino::bigint AND line.number = counted.number;

-- name: transcript_size
SELECT coalesce(sum(octet_length(data) + 1), 0)::bigint FROM line WHERE ino = :ino::bigint;

-- name: delete_lines
DELETE FROM line WHERE ino = :ino::bigint;

-- name: tables
SELECT relname FROM pg_class
WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r' AND has_table_privilege(oid, 'SELECT') ORDER BY relname;

-- name: open_table
DECLARE everything NO SCROLL CURSOR FOR SELECT * FROM each_row(:name);

-- name: open_documents
DECLARE everything NO SCROLL CURSOR FOR SELECT scope, part, name, data FROM document WHERE part <> 'folders';

-- name: open_lines
DECLARE everything NO SCROLL CURSOR FOR
SELECT r.scope, r.part, r.name, l.data FROM line l JOIN roll r ON r.ino = l.ino AND r.scope = l.scope;

-- name: fetch_rows
FETCH 500 FROM everything;

-- name: close_cursor
CLOSE everything;

-- name: size
SELECT (SELECT coalesce(sum(octet_length(data)), 0) FROM document) + (SELECT coalesce(sum(size), 0) FROM roll);
