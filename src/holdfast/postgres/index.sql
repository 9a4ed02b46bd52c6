-- The index of a tenant in PostgreSQL: the statements of index/sqlite.sql by the same names, and those only PostgreSQL needs.
-- Row-level security restricts each statement to the rows of the tenant.

-- Fragments: `{name}` in a statement below is replaced by the text here. The aliases are f (folder), d (doc), p (passage), a (fact).

-- name: {in_scopes}
f.scope = ANY(:scopes::text[])

-- name: {in_parts}
((:part::text IS NULL AND f.part <> 'archive') OR strpos(:part::text, f.part) > 0)

-- name: {passage_filter}
(:type::text IS NULL OR p.type = :type::text)
  AND NOT EXISTS (SELECT 1 FROM unnest(:tags::text[]) AS t (tag) WHERE strpos(p.tags, chr(10) || t.tag || chr(10)) = 0)

-- name: {doc_filter}
(:type::text IS NULL OR d.type = :type::text)
  AND NOT EXISTS (SELECT 1 FROM unnest(:tags::text[]) AS t (tag) WHERE strpos(d.tags, chr(10) || t.tag || chr(10)) = 0)

-- name: {not_superseded}
(f.part <> 'archive' OR NOT EXISTS (         -- an archived note counts only until a newer note has its key
    SELECT 1 FROM doc o WHERE o.folder = f.id AND o.name > d.name AND o.name < d.key || '--:' AND o.key = d.key
  ) AND NOT EXISTS (
    SELECT 1 FROM folder g JOIN doc o ON o.folder = g.id
    WHERE g.scope = f.scope AND g.part = 'notes' AND o.name = d.key || '.md'))

-- name: {quarantined}
d.trust = ANY(:quarantine::text[])

-- name: {stated_elsewhere}
EXISTS (SELECT FROM fact b WHERE b.about = a.about AND hashtext(b.named) = hashtext(a.named) AND b.named = a.named AND b.doc < a.doc)
  OR EXISTS (SELECT FROM fact b WHERE b.about = a.about AND hashtext(b.named) = hashtext(a.named) AND b.named = a.named AND b.doc > a.doc)

-- name: {note_columns}
f.scope, f.part, d.name, d.key, d.note_id, d.type, d.tags, d.created, d.updated, d.source, d.valid_from, d.valid_to, d.pinned,
  d.first_line, d.last_line, d.digest, d.versions, d.platform_key, {quarantined}, p.text

-- name: {fact_columns}
a.subject, a.label, a.value, a.valid_from, a.valid_to, a.retired_by, a.links, a.line, f.scope, f.part, d.name, {quarantined}

-- name: {passage_columns}
p.id, p.seq, p.past, p.first_line, p.last_line, p.type, p.tags, p.source, p.recorded, p.valid_from, d.id, d.kind, d.name,
  d.key, d.note_id, d.versions, f.scope, f.part, p.turn, p.speaker, p."offset", p.words, {quarantined}

-- name: {target_docs}
SELECT b.id FROM doc b WHERE b.note_id = r.target AND b.note_id <> '' AND b.kind = 'note'
UNION ALL SELECT b.id FROM folder y JOIN doc b ON b.folder = y.id  -- by its key: in the same scope
  WHERE y.scope = f.scope AND y.part = 'notes' AND b.kind = 'note'
    AND strpos(r.target, '/') > 0 AND b.name = substr(r.target, length(f.scope) + 2) || '.md'

-- name: folder_of
SELECT id, fingerprint FROM folder WHERE scope = :scope::text AND part = :part::text;

-- name: known_folders
SELECT f.scope, f.part, f.id, f.fingerprint FROM folder f WHERE {in_scopes};

-- name: add_folder
INSERT INTO folder (scope, part) VALUES (:scope::text, :part::text) ON CONFLICT DO NOTHING;

-- name: lock_folder_rows
INSERT INTO folder (scope, part)
SELECT one.scope, one.part
FROM (SELECT pg_advisory_xact_lock_shared(hashtextextended('holdfast catalogue ' || tenant(), 0)) AS entered) AS shared
  CROSS JOIN unnest(:scopes::text[], :parts::text[]) WITH ORDINALITY AS one (scope, part, place)
ORDER BY one.place
ON CONFLICT (tenant, scope, part) DO UPDATE SET version = folder.version + 1
RETURNING scope, part, id;

-- name: new_ids
SELECT ARRAY(SELECT nextval('holdfast.doc_id') FROM generate_series(1, :docs::integer)),
  ARRAY(SELECT nextval('holdfast.passage_id') FROM generate_series(1, :passages::integer));

-- name: mix_in
UPDATE folder f SET fingerprint = f.fingerprint # one.mix, version = f.version + 1,
  passages = f.passages + one.passages, words = f.words + one.words, tokens = f.tokens + one.tokens,
  old = f.old + one.old, old_tokens = f.old_tokens + one.old_tokens
FROM unnest(
  :folders::bigint[], :mixes::bigint[], :passages::bigint[], :words::bigint[], :tokens::bigint[], :old::bigint[],
  :old_tokens::bigint[]
) AS one (id, mix, passages, words, tokens, old, old_tokens)
WHERE f.id = one.id;

-- name: agent_usage
SELECT coalesce(sum(notes), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM agent_usage WHERE agent = :agent::text;

-- name: indexed_file
SELECT id, ino, ctime, size, mix, digest, versions, note_id FROM doc WHERE folder = :folder::bigint AND name = :name::text;

-- name: indexed_files
SELECT f.id, d.name, d.id, d.ino, d.ctime, d.size, d.mix, d.digest, d.versions, d.note_id
FROM unnest(:scopes::text[], :parts::text[], :names::text[]) AS one (scope, part, name)
  JOIN folder f ON f.scope = one.scope AND f.part = one.part
  JOIN doc d ON d.folder = f.id AND d.name = one.name;

-- name: file_ids
SELECT name, ino, ctime, size FROM doc WHERE folder = :folder::bigint;

-- name: add_docs
INSERT INTO doc (id, folder, name, ino, ctime, size, mix, digest, kind, key, note_id, title, type, tags, created, updated,
  source, valid_from, valid_to, pinned, touched, first_line, last_line, versions, problem, trust, exposed, prose,
  agent, bytes, platform_key, mentions)
SELECT * FROM json_to_recordset(:rows::json) AS r (id bigint, folder bigint, name text, ino bigint, ctime bigint, size bigint,
  mix bigint, digest text, kind text, key text, note_id text, title text, type text, tags text, created text, updated text,
  source text, valid_from text, valid_to text, pinned boolean, touched text, first_line bigint, last_line bigint,
  versions bigint, problem text, trust text, exposed boolean, prose boolean, agent text, bytes bigint, platform_key text,
  mentions text);

-- name: change_doc
UPDATE doc SET ino = :ino::bigint, ctime = :ctime::bigint, size = :size::bigint, mix = :mix::bigint, digest = :digest::text,
  kind = :kind::text, key = :key::text, note_id = :note_id::text, title = :title::text, type = :type::text, tags = :tags::text,
  created = :created::text, updated = :updated::text, source = :source::text, valid_from = :valid_from::text,
  valid_to = :valid_to::text, pinned = :pinned::boolean, touched = :touched::text, first_line = :first_line::bigint,
  last_line = :last_line::bigint, versions = :versions::bigint, problem = :problem::text, trust = :trust::text,
  exposed = :exposed::boolean, prose = :prose::boolean, agent = :agent::text, bytes = :bytes::bigint, platform_key = :platform_key::text,
  mentions = :mentions::text
WHERE id = :id::bigint;

-- name: drop_docs
DELETE FROM doc WHERE id = ANY(:docs::bigint[]);

-- name: add_passages
WITH added AS (
  INSERT INTO passage (id, folder, doc, seq, past, names, text, first_line, last_line, type, tags, source, recorded, valid_from,
    valid_to, closed, replaced, words, length, terms, sum, turn, speaker, spoken, "offset")
  SELECT * FROM json_to_recordset(:rows::json) AS r (id bigint, folder bigint, doc bigint, seq bigint, past boolean, names text,
    text text, first_line bigint, last_line bigint, type text, tags text, source text, recorded text, valid_from text,
    valid_to text, closed text, replaced text, words bigint, length bigint, terms bigint[], sum bigint, turn text, speaker text,
    spoken text, "offset" bigint)
  RETURNING id, folder, past
)
INSERT INTO lacking (model, folder, passage) SELECT m.id, a.folder, a.id FROM model m CROSS JOIN added a WHERE NOT a.past;

-- name: add_mentions
INSERT INTO mention (word, folder, passage, times, length)
SELECT t.word, r.folder, r.id, t.times, r.length
FROM json_to_recordset(:rows::json) AS r (id bigint, folder bigint, length integer, terms bigint[], times smallint[])
  CROSS JOIN LATERAL unnest(r.terms, r.times) AS t (word, times);

-- name: add_words
INSERT INTO word (term, now, past)
SELECT * FROM json_to_recordset(:rows::json) AS r (term text, now bigint, past bigint) ON CONFLICT DO NOTHING;

-- name: add_facts
INSERT INTO fact (folder, doc, subject, label, value, about, named, valid_from, valid_to, retired_by, links, line)
SELECT * FROM json_to_recordset(:rows::json) AS r (folder bigint, doc bigint, subject text, label text, value text, about text,
  named text, valid_from text, valid_to text, retired_by text, links text, line bigint);

-- name: add_made
INSERT INTO made (folder, passage, number, what)
SELECT r.folder, r.passage, r.number, r.what
FROM json_to_recordset(:rows::json) AS r (folder bigint, passage bigint, number integer, what text)
ON CONFLICT DO NOTHING;

-- name: add_relations
INSERT INTO relation (folder, doc, kind, target, status, origin, stated)
SELECT * FROM json_to_recordset(:rows::json) AS r (folder bigint, doc bigint, kind text, target text, status text, origin text,
  stated text);

-- name: drop_relations
DELETE FROM relation WHERE doc = ANY(:docs::bigint[]);

-- name: drop_facts
DELETE FROM fact WHERE doc = ANY(:docs::bigint[]);

-- name: drop_passages
WITH gone AS (
  DELETE FROM passage p USING unnest(:docs::bigint[], :firsts::bigint[]) AS d (id, first)
  WHERE p.doc = d.id AND p.seq >= d.first
  RETURNING p.id, p.folder, p.past, p.words, p.length, p.terms
), unsaid AS (
  DELETE FROM mention m
  USING (SELECT g.id, g.folder, t.word FROM gone g CROSS JOIN LATERAL unnest(g.terms) AS t (word) OFFSET 0) AS s
  WHERE m.word = s.word AND m.folder = s.folder AND m.passage = s.id  -- by the whole key: does not scan all words of the tenant
), unmade AS (
  DELETE FROM made m USING gone g WHERE m.passage = g.id
), uncut AS (
  DELETE FROM piece p USING gone g WHERE p.passage = g.id
), satisfied AS (
  DELETE FROM lacking l USING gone g WHERE l.passage = g.id
), fewer AS (
  SELECT folder, count(*) FILTER (WHERE NOT past) AS passages, coalesce(sum(words) FILTER (WHERE NOT past), 0) AS words,
    coalesce(sum(length) FILTER (WHERE NOT past), 0) AS tokens, count(*) FILTER (WHERE past) AS old,
    coalesce(sum(length) FILTER (WHERE past), 0) AS old_tokens
  FROM gone GROUP BY folder
)
UPDATE folder f SET passages = f.passages - l.passages, words = f.words - l.words, tokens = f.tokens - l.tokens,
  old = f.old - l.old, old_tokens = f.old_tokens - l.old_tokens
FROM fewer l WHERE f.id = l.folder
RETURNING ARRAY(SELECT DISTINCT t.word FROM gone g CROSS JOIN LATERAL unnest(g.terms) AS t (word));

-- name: prefetch
SELECT (
  SELECT coalesce(json_agg(json_build_array(m.id, m.name, m.dim, 0, m.role, m.setting, m.asked, (
      SELECT count(*) FROM lacking l JOIN passage p ON p.id = l.passage JOIN folder f ON f.id = p.folder WHERE l.model = m.id
    )) ORDER BY m.id), '[]') FROM model m
), (
  SELECT coalesce(json_agg(json_build_array(f.id, f.passages, f.words) ORDER BY f.id), '[]') FROM folder f
  WHERE {in_scopes} AND {in_parts}
), (
  SELECT coalesce(json_agg(json_build_array(s.model, s.folder, s.narrow, s.wide, s.removed, s.version)), '[]')
  FROM stock s JOIN folder f ON f.id = s.folder
  WHERE {in_scopes} AND {in_parts}
), EXISTS (
  SELECT 1 FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
), EXISTS (
  SELECT 1 FROM relation
), EXISTS (
  SELECT 1 FROM folder WHERE part = 'transcripts' AND passages > 0
);

-- name: match
WITH size AS MATERIALIZED (
  SELECT greatest(sum(CASE WHEN :past::boolean THEN old ELSE passages END), 1)::double precision AS passages,
    greatest(sum(CASE WHEN :past::boolean THEN old_tokens ELSE tokens END), 1)::double precision AS tokens
  FROM folder
), term AS MATERIALIZED (
  SELECT t.word, CASE WHEN w.worth > 0 THEN w.worth ELSE 0.000001 END AS worth
  FROM unnest(:words::bigint[], :common::bigint[]) AS t (word, common) CROSS JOIN size s
    CROSS JOIN LATERAL (SELECT ln((greatest(s.passages - t.common, 0) + 0.5) / (t.common + 0.5)) AS worth) AS w
)
SELECT m.passage, -sum(t.worth * m.times * 2.2 / (m.times + 1.2 * (0.25 + 0.75 * m.length * s.passages / s.tokens)))
FROM term t JOIN mention m ON m.word = t.word AND m.folder = ANY(:folders::bigint[]) CROSS JOIN size s
GROUP BY m.passage ORDER BY 2, 1 LIMIT :pool::bigint;

-- name: postings
SELECT w.word, (
  SELECT string_agg(passage::text, ',') FROM (
    SELECT n.passage FROM unnest(:folders::bigint[]) AS f (id) CROSS JOIN LATERAL (
      SELECT m.passage FROM mention m WHERE m.word = w.word AND m.folder = f.id ORDER BY m.passage DESC LIMIT :most::bigint
    ) AS n ORDER BY n.passage DESC LIMIT :most::bigint
  ) AS newest WHERE :ids::bigint[] IS NULL OR newest.passage = ANY(:ids::bigint[]))
FROM unnest(:words::bigint[]) AS w (word);

-- name: passage_words
SELECT p.id, p.words FROM passage p JOIN folder f ON f.id = p.folder WHERE p.id = ANY(:ids::bigint[]);

-- name: passages
SELECT {passage_columns}, CASE WHEN p.past THEN p.closed ELSE p.valid_to END
FROM unnest(:ids::bigint[]) WITH ORDINALITY AS j (id, place)
  JOIN passage p ON p.id = j.id JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = p.folder
WHERE p.id = ANY(:ids::bigint[]) AND {in_scopes}  -- ids twice: so that the planner uses their index
  AND {passage_filter}
  AND (p.valid_to IS NULL OR p.valid_to > :now::text)
  AND {not_superseded}
ORDER BY j.place;

-- name: outlines
SELECT p.id, p.seq, p.recorded, p.valid_from, p.doc, d.versions, p.turn, p.speaker, p.words, p.valid_to
FROM unnest(:ids::bigint[]) WITH ORDINALITY AS j (id, place)
  JOIN passage p ON p.id = j.id JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = p.folder
WHERE p.id = ANY(:ids::bigint[]) AND {in_scopes}  -- ids twice: so that the planner uses their index
  AND {passage_filter}
  AND {not_superseded}
ORDER BY j.place;

-- name: passages_at
SELECT {passage_columns}, CASE WHEN p.replaced <= :known_at::text THEN p.closed ELSE p.valid_to END
FROM unnest(:ids::bigint[]) WITH ORDINALITY AS j (id, place)
  JOIN passage p ON p.id = j.id JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = p.folder
WHERE p.id = ANY(:ids::bigint[]) AND {in_scopes}  -- ids twice: so that the planner uses their index
  AND {passage_filter}
  AND p.recorded <= :known_at::text
  AND (p.valid_from IS NULL OR p.valid_from <= :as_of::text)
  AND coalesce(CASE WHEN p.replaced <= :known_at::text THEN p.closed ELSE p.valid_to END, '9') > :as_of::text
  AND (d.kind <> 'note' OR NOT EXISTS (
    SELECT 1 FROM passage n WHERE n.doc = p.doc AND n.seq > p.seq AND n.recorded <= :known_at::text
      AND (n.valid_from IS NULL OR n.valid_from <= :as_of::text)
      AND coalesce(CASE WHEN n.replaced <= :known_at::text THEN n.closed ELSE n.valid_to END, '9') > :as_of::text))
  AND {not_superseded}
ORDER BY j.place;

-- name: recent
SELECT n.id FROM folder f CROSS JOIN LATERAL (
  SELECT p.id, d.updated, d.note_id, d.key, CASE d.kind WHEN 'session' THEN -p.seq ELSE p.seq END AS place
  FROM doc d JOIN passage p ON p.doc = d.id AND NOT p.past
  WHERE d.folder = f.id AND {doc_filter}
    AND (p.valid_to IS NULL OR p.valid_to > :now::text)
  ORDER BY d.updated DESC, d.note_id DESC, d.key, 5 LIMIT :pool::bigint
) AS n
WHERE {in_scopes} AND {in_parts}
ORDER BY n.updated DESC, n.note_id DESC, f.scope, n.key, n.place LIMIT :pool::bigint;

-- name: recent_at
SELECT p.id FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id
WHERE {in_scopes} AND {in_parts}
  AND p.recorded <= :known_at::text
ORDER BY p.recorded DESC, f.scope, d.key, p.seq;

-- name: notes
WITH chosen AS MATERIALIZED (              -- choose the notes first, then read their texts
  SELECT n.id FROM folder f CROSS JOIN LATERAL (
    SELECT d.id, d.pinned, d.updated, d.note_id, d.key FROM doc d
    WHERE d.folder = f.id AND d.kind = 'note'
      AND {doc_filter}
      AND (:before::text IS NULL OR d.touched < :before::text)
      AND (d.valid_to IS NULL OR d.valid_to > :now::text)
      AND (:only::integer IS NULL OR :only::integer = ({quarantined})::integer)
      AND {not_superseded}
    ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, d.key LIMIT nullif(:most::bigint, -1)
  ) AS n
  WHERE {in_scopes} AND f.part = :part::text
  ORDER BY n.pinned DESC, n.updated DESC, n.note_id DESC, f.scope, n.key LIMIT nullif(:most::bigint, -1)
)
SELECT {note_columns}
FROM chosen c JOIN doc d ON d.id = c.id JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND NOT p.past
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key;

-- name: notes_after
WITH chosen AS MATERIALIZED (              -- as in `notes`, and after the last note of the previous page
  SELECT n.id FROM folder f CROSS JOIN LATERAL (
    SELECT d.id, d.pinned, d.updated, d.note_id, d.key FROM doc d
    WHERE d.folder = f.id AND d.kind = 'note'
      AND {doc_filter}
      AND (d.pinned::integer < :pinned::integer OR (d.pinned::integer = :pinned::integer AND (d.updated < :updated::text
        OR (d.updated = :updated::text AND (d.note_id < :id::text
        OR (d.note_id = :id::text AND (f.scope, d.key) > (:scope::text, :key::text)))))))
      AND (:only::integer IS NULL OR :only::integer = ({quarantined})::integer)
      AND {not_superseded}
    ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, d.key LIMIT nullif(:most::bigint, -1)
  ) AS n
  WHERE {in_scopes} AND f.part = :part::text
  ORDER BY n.pinned DESC, n.updated DESC, n.note_id DESC, f.scope, n.key LIMIT nullif(:most::bigint, -1)
)
SELECT {note_columns}
FROM chosen c JOIN doc d ON d.id = c.id JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND NOT p.past
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key;

-- name: notes_by_key
SELECT {note_columns}
FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id AND NOT p.past
WHERE f.scope = :scope::text AND f.part = 'notes' AND d.kind = 'note' AND d.name > :after::text
ORDER BY d.name LIMIT nullif(:most::bigint, -1);

-- name: note_of_file
SELECT {note_columns}
FROM folder f JOIN doc d ON d.folder = f.id AND d.name = :name::text JOIN passage p ON p.doc = d.id AND NOT p.past
WHERE f.scope = :scope::text AND f.part = 'notes' AND d.kind = 'note';

-- name: count_notes
SELECT count(*) FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note'
  AND (d.valid_to IS NULL OR d.valid_to > :now::text)
  AND (:only::integer IS NULL OR :only::integer = ({quarantined})::integer);

-- name: facts
SELECT {fact_columns}, {stated_elsewhere}
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND (:archived::boolean OR f.part <> 'archive')
  AND {not_superseded}
  AND (:named::text IS NULL OR a.named = :named::text)
  AND (:as_of::text IS NULL OR (a.valid_from <= :as_of::text AND coalesce(a.valid_to, '9') > :as_of::text))
  AND (:last::text IS NULL                   -- from the start, or after the last fact of the previous page
    OR (a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name)
      > (:about::text, :label::text, :start::text, :line::bigint, :last::text))
ORDER BY a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name LIMIT nullif(:most::bigint, -1);

-- name: facts_about
SELECT {fact_columns}, {stated_elsewhere}
FROM (                                       -- by any of the names, each once
  SELECT id FROM fact WHERE about = ANY(:names::text[])
  UNION SELECT id FROM fact WHERE named = ANY(:names::text[])
  UNION SELECT x.id FROM folder f CROSS JOIN unnest(:keys::text[]) AS k (key) JOIN doc n ON n.folder = f.id JOIN fact x ON x.doc = n.id
    WHERE {in_scopes} AND n.kind = 'note' AND n.key = k.key
      AND (n.name = k.key || '.md' OR (n.name > k.key || '--' AND n.name < k.key || '--:'))  -- by the unique index
) o JOIN fact a ON a.id = o.id JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND (:archived::boolean OR f.part <> 'archive')
  AND {not_superseded}
  AND (:named::text IS NULL OR a.named = :named::text)
  AND (:as_of::text IS NULL OR (a.valid_from <= :as_of::text AND coalesce(a.valid_to, '9') > :as_of::text))
  AND (:last::text IS NULL                   -- from the start, or after the last fact of the previous page
    OR (a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name)
      > (:about::text, :label::text, :start::text, :line::bigint, :last::text))
ORDER BY a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name LIMIT nullif(:most::bigint, -1);

-- name: subjects
SELECT min(a.subject), count(*), count(*) FILTER (WHERE a.valid_from <= :now::text AND coalesce(a.valid_to, '9') > :now::text),
  max(a.valid_from), count(DISTINCT f.scope), min(f.scope)
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND {not_superseded}
  AND a.about > :after::text
  AND (:contains::text = '' OR strpos(a.about, :contains::text) > 0)
GROUP BY a.about ORDER BY a.about LIMIT :most::bigint;

-- name: newest_facts
SELECT {fact_columns}, {stated_elsewhere}
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND a.valid_from <= :now::text AND coalesce(a.valid_to, '9') > :now::text
  AND NOT {quarantined}
  AND f.part <> 'archive'
ORDER BY a.valid_from DESC, a.about, a.named, a.line LIMIT :most::bigint;

-- name: statements
SELECT {fact_columns}, d.updated, d.prose
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE a.about = ANY(:names::text[]) AND a.named = ANY(:labels::text[]) AND {in_scopes}
  AND (:archived::boolean OR f.part <> 'archive')
  AND {not_superseded};

-- name: contested
SELECT min(a.subject), min(a.label)        -- stated by several files, one of which has a line that is open now
FROM folder f JOIN doc d ON d.folder = f.id JOIN fact a ON a.doc = d.id
WHERE {in_scopes} AND a.valid_from <= :now::text
GROUP BY a.about, a.named
HAVING min(a.doc) <> max(a.doc)
  AND max(CASE WHEN f.part <> 'archive' AND coalesce(a.valid_to, '9') > :now::text THEN 1 ELSE 0 END) = 1;

-- name: subjects_of
SELECT DISTINCT a.about FROM passage p JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder JOIN fact a ON a.doc = d.id
WHERE p.id = ANY(:ids::bigint[]) AND {in_scopes};

-- name: facts_at
SELECT {fact_columns}, {stated_elsewhere}, d.key, d.note_id, d.tags, d.source, d.updated, d.ino, d.ctime, d.size
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE (a.about = ANY(:names::text[]) OR a.named = ANY(:names::text[]))
  AND {in_scopes} AND d.updated <= :known_at::text
  AND a.valid_from <= :as_of::text AND coalesce(a.valid_to, '9') > :as_of::text
  AND {not_superseded}
  AND {doc_filter}
ORDER BY a.named = ANY(:names::text[]) DESC, a.valid_from DESC, a.about, a.named, a.line LIMIT :most::bigint;

-- name: note_stating
SELECT d.key FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE f.scope = :scope::text AND f.part IN ('notes', 'archive') AND d.kind = 'note' AND a.about = :about::text
ORDER BY f.part = 'archive', d.key LIMIT 1;

-- name: note_of_id
SELECT f.scope, d.name, d.trust FROM folder f JOIN doc d ON d.folder = f.id
WHERE d.note_id = :id::text AND d.kind = 'note' AND {in_scopes} LIMIT 1;

-- name: notes_by_source
SELECT DISTINCT f.scope, d.name FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note' AND strpos(p.source, :source::text) > 0
ORDER BY 1, 2;

-- name: made_from
SELECT DISTINCT f.scope, d.name FROM made m JOIN passage p ON p.id = m.passage JOIN doc d ON d.id = p.doc
  JOIN folder f ON f.id = d.folder
WHERE m.what >= :first::text AND m.what < :last::text AND f.part = 'notes' AND {in_scopes} ORDER BY 1, 2;

-- name: made_from_sources
SELECT DISTINCT m.what FROM made m JOIN passage p ON p.id = m.passage JOIN folder f ON f.id = p.folder;

-- name: made_from_any
SELECT DISTINCT f.scope, d.name FROM made m JOIN passage p ON p.id = m.passage JOIN doc d ON d.id = p.doc
  JOIN folder f ON f.id = d.folder
WHERE m.what = ANY(:what::text[]) AND f.part = 'notes' AND {in_scopes} ORDER BY 1, 2;

-- name: any_quarantined
SELECT 1 FROM doc d JOIN folder f ON f.id = d.folder
WHERE d.trust NOT IN ('', 'user', 'agent') AND {quarantined} LIMIT 1;

-- name: quarantined_texts
SELECT p.text, d.trust, d.note_id, p.past, p.source
FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id
WHERE d.trust NOT IN ('', 'user', 'agent') AND {quarantined} AND d.kind = 'note'
  AND {in_scopes} AND p.text = ANY(:texts::text[]);

-- name: any_fact
SELECT 1 FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder LIMIT 1;

-- name: labelled_facts
SELECT a.subject, a.value, a.links FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE a.named = ANY(:labels::text[]) AND a.valid_to IS NULL AND {in_scopes} LIMIT 10000;

-- name: stating_passages
SELECT p.id, a.subject, a.label, f.scope || '/' || f.part || '/' || d.name, a.line,
  {stated_elsewhere}
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
  JOIN passage p ON p.doc = d.id AND NOT p.past AND (d.kind = 'note' OR a.line BETWEEN p.first_line AND p.last_line)
WHERE (a.about = ANY(:names::text[]) OR a.named = ANY(:names::text[]))
  AND a.valid_from <= :now::text AND coalesce(a.valid_to, '9') > :now::text
  AND {in_scopes} AND {in_parts}
ORDER BY a.about = ANY(:names::text[]) DESC, p.id DESC LIMIT :most::bigint;

-- name: any_relation
SELECT 1 FROM relation LIMIT 1;

-- name: superseding
SELECT t.id, d.id, d.note_id, d.key, f.scope, f.part, r.stated, p.id  -- of the notes of these docs, what superseded them
FROM unnest(:docs::bigint[]) AS j (doc) JOIN doc t ON t.id = j.doc JOIN folder g ON g.id = t.folder
  JOIN relation r ON r.target = ANY(ARRAY[t.note_id, g.scope || '/' || t.key])
  JOIN doc d ON d.id = r.doc JOIN folder f ON f.id = d.folder
  JOIN passage p ON p.doc = d.id AND NOT p.past
WHERE t.kind = 'note' AND r.kind = 'supersedes' AND r.status = 'accepted' AND d.id <> t.id
  AND (r.origin = 'user' OR t.trust <> 'user')  -- a person may have replaced the text of an agent's note since
  AND {in_scopes} AND f.part IN ('notes', 'archive') AND {not_superseded} AND NOT ({quarantined})
  AND (d.valid_from IS NULL OR d.valid_from <= :now::text) AND (d.valid_to IS NULL OR d.valid_to > :now::text);

-- name: superseded
SELECT DISTINCT t.id, g.scope || '/' || g.part || '/' || t.name  -- the notes of these scopes that others superseded
FROM relation r JOIN doc d ON d.id = r.doc JOIN folder f ON f.id = d.folder
  CROSS JOIN LATERAL ({target_docs}) AS x (id) JOIN doc t ON t.id = x.id JOIN folder g ON g.id = t.folder
WHERE r.kind = 'supersedes' AND r.status = 'accepted' AND {in_scopes}
  AND g.scope = ANY(:scopes::text[]) AND g.part = 'notes'
  AND (t.valid_to IS NULL OR t.valid_to > :now::text) AND NOT t.trust = ANY(:quarantine::text[]);

-- name: relations
SELECT r.kind, r.status, r.origin, r.stated, f.scope, d.key, d.note_id, g.scope, t.key, t.note_id
FROM relation r JOIN doc d ON d.id = r.doc JOIN folder f ON f.id = d.folder
  CROSS JOIN LATERAL ({target_docs}) AS x (id) JOIN doc t ON t.id = x.id JOIN folder g ON g.id = t.folder
WHERE {in_scopes} AND g.scope = ANY(:scopes::text[]) AND d.id <> t.id
  AND f.part IN ('notes', 'archive') AND g.part IN ('notes', 'archive') AND {not_superseded}
  AND (:status::text IS NULL OR r.status = :status::text)
  AND (:targets::text[] IS NULL OR r.id IN (  -- those of one note, by either end
    SELECT o.id FROM relation o WHERE o.target = ANY(:targets::text[])
    UNION SELECT o.id FROM folder y JOIN doc z ON z.folder = y.id JOIN relation o ON o.doc = z.id
      WHERE y.scope = :scope::text AND y.part = 'notes' AND z.name = :name::text))
ORDER BY r.stated, r.kind, f.scope, d.key, g.scope, t.key;

-- name: relation_sources
SELECT DISTINCT f.scope, f.part, d.name FROM relation r JOIN doc d ON d.id = r.doc JOIN folder f ON f.id = d.folder
WHERE r.target = ANY(:targets::text[]);

-- name: mentions
SELECT f.scope, f.part, d.name, d.title, d.mentions, {quarantined}
FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND d.mentions <> '' AND {not_superseded}
ORDER BY f.scope, f.part, d.name;

-- name: file_counts
SELECT f.scope, f.part, count(d.id), coalesce(sum(d.size), 0)::bigint, coalesce(max(d.updated), '')
FROM folder f LEFT JOIN doc d ON d.folder = f.id GROUP BY f.id, f.scope, f.part ORDER BY f.scope, f.part;

-- name: exposed_notes
SELECT f.scope || '/notes/' || d.name FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.exposed;

-- name: problems
SELECT f.scope, f.part, d.name, d.problem FROM folder f JOIN doc d ON d.folder = f.id
WHERE d.problem <> '' AND {in_scopes} ORDER BY 1, 2, 3;

-- name: totals
SELECT (SELECT count(*) FROM doc d JOIN folder f ON f.id = d.folder WHERE f.part = 'notes' AND d.kind = 'note'),
  (SELECT count(*) FROM doc d JOIN folder f ON f.id = d.folder WHERE d.kind = 'file'),
  (SELECT count(*) FROM passage p JOIN folder f ON f.id = p.folder),
  (SELECT count(*) FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder);

-- name: type_counts
SELECT d.type, count(*) FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note' AND d.type IS NOT NULL GROUP BY d.type ORDER BY d.type;

-- name: versions_by_day
SELECT substr(p.recorded, 1, 10), count(*)
FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id
WHERE {in_scopes} AND f.part IN ('notes', 'archive') AND d.kind = 'note'
  AND d.updated >= :since::text AND p.recorded >= :since::text
GROUP BY 1;

-- name: note_ids
SELECT d.note_id FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part IN ('notes', 'archive') AND d.kind = 'note' AND d.note_id <> '';

-- name: notes_by_id
SELECT d.note_id, f.scope, d.key, coalesce(d.platform_key, ''), d.type FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note' AND d.note_id = ANY(:ids::text[])
  AND NOT ({quarantined});

-- name: passages_and_facts
SELECT (SELECT count(*) FROM passage p JOIN folder f ON f.id = p.folder WHERE {in_scopes}),
  (SELECT count(*) FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder WHERE {in_scopes});

-- name: text_sums
SELECT p.text, p.sum FROM passage p JOIN folder f ON f.id = p.folder;

-- name: all_texts
SELECT p.text FROM passage p JOIN folder f ON f.id = p.folder WHERE p.turn IS NULL OR :transcripts::boolean;

-- name: texts_of_scopes
SELECT p.text FROM passage p JOIN folder f ON f.id = p.folder WHERE {in_scopes} AND (p.turn IS NULL OR :transcripts::boolean);

-- name: wrong_counts
SELECT f.scope || '/' || f.part FROM folder f
  CROSS JOIN LATERAL (SELECT coalesce(bit_xor(d.mix), 0) AS mix FROM doc d WHERE d.folder = f.id) AS docs
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE NOT p.past) AS passages, coalesce(sum(p.words) FILTER (WHERE NOT p.past), 0) AS words,
      coalesce(sum(p.length) FILTER (WHERE NOT p.past), 0) AS tokens, count(*) FILTER (WHERE p.past) AS old,
      coalesce(sum(p.length) FILTER (WHERE p.past), 0) AS old_tokens, coalesce(sum(cardinality(p.terms)), 0) AS terms
    FROM doc d JOIN passage p ON p.doc = d.id WHERE d.folder = f.id) AS said
WHERE (f.fingerprint, f.passages, f.words, f.tokens, f.old, f.old_tokens)
  <> (docs.mix, said.passages, said.words, said.tokens, said.old, said.old_tokens);

-- name: missing_postings
SELECT (SELECT coalesce(sum(cardinality(p.terms)), 0) FROM passage p JOIN folder f ON f.id = p.folder)
  - (SELECT count(*) FROM mention m JOIN folder f ON f.id = m.folder);

-- name: folders
SELECT f.id, f.passages, f.words FROM folder f WHERE {in_scopes} AND {in_parts} ORDER BY f.id;

-- name: term_counts
SELECT m.word, count(*) FILTER (WHERE m.folder = ANY(:folders::bigint[])), count(*)
FROM mention m JOIN folder f ON f.id = m.folder WHERE m.word = ANY(:words::bigint[]) GROUP BY m.word;

-- name: terms_by_prefix
SELECT w.term, c.uses FROM word w CROSS JOIN LATERAL (
  SELECT count(*) AS uses FROM (
    SELECT 1 FROM mention m JOIN folder f ON f.id = m.folder WHERE m.word = w.now LIMIT 1000
  ) AS few
) AS c
WHERE w.term >= :first::text AND w.term < :last::text AND c.uses > 0 ORDER BY 2 DESC, 1 LIMIT 200;

-- name: orphaned_terms
SELECT * FROM unsaid(:terms::text[]);

-- name: drop_terms
SELECT drop_words(:words::bigint[]);

-- name: drop_orphaned_terms
SELECT drop_unsaid();

-- name: pieces
SELECT c.passage, c.marks, c.tokens FROM piece c JOIN passage p ON p.id = c.passage JOIN folder f ON f.id = p.folder
WHERE c.passage = ANY(:ids::bigint[]) AND p.id = ANY(:ids::bigint[]) ORDER BY c.passage, c.number;

-- name: passage_texts
SELECT p.id, p.names, p.text, p.speaker FROM passage p JOIN folder f ON f.id = p.folder WHERE p.id = ANY(:ids::bigint[]);

-- name: adjacent_turns
WITH around AS MATERIALIZED (              -- counted first: a sum in a condition would keep its index from being used
  SELECT DISTINCT p.doc, s.seq FROM passage p JOIN folder f ON f.id = p.folder
    CROSS JOIN LATERAL (VALUES (p.seq - 1), (p.seq), (p.seq + 1)) AS s (seq)
  WHERE p.id = ANY(:ids::bigint[]) AND p.turn IS NOT NULL AND p.speaker NOT IN ('user', 'assistant', 'system', 'tool')
)
SELECT n.id FROM around a JOIN passage n ON n.doc = a.doc AND n.seq = a.seq WHERE NOT n.past;

-- name: speakers_named
SELECT DISTINCT p.speaker FROM passage p JOIN folder f ON f.id = p.folder
WHERE p.spoken = ANY(:spoken::text[]) AND p.folder = ANY(:folders::bigint[]);

-- name: clear_mentions
DELETE FROM mention WHERE folder IN (SELECT id FROM folder);

-- name: clear_vectors
DELETE FROM vectors WHERE folder IN (SELECT id FROM folder);

-- name: clear_parts
WITH gone AS (
  DELETE FROM passage WHERE folder IN (SELECT id FROM folder) RETURNING id
), unmade AS (
  DELETE FROM made m USING gone g WHERE m.passage = g.id
), uncut AS (
  DELETE FROM piece p USING gone g WHERE p.passage = g.id
)
DELETE FROM lacking l USING gone g WHERE l.passage = g.id;

-- name: clear_docs
WITH gone AS (
  DELETE FROM doc WHERE folder IN (SELECT id FROM folder) RETURNING id
)
DELETE FROM fact a USING gone g WHERE a.doc = g.id;

-- name: clear_relations
DELETE FROM relation WHERE folder IN (SELECT id FROM folder);

-- name: clear_folders
WITH gone AS (
  DELETE FROM folder RETURNING id
)
DELETE FROM stock s USING gone g WHERE s.folder = g.id;

-- name: lock_everything
SELECT id FROM folder ORDER BY id FOR UPDATE;
