-- The catalogue of one home. Everything here is derived from the shelf and may be thrown away.

-- name: schema
CREATE TABLE folder (
  id          INTEGER PRIMARY KEY,
  scope       TEXT NOT NULL,               -- projects/abc
  part        TEXT NOT NULL,               -- notes, files
  fingerprint INTEGER NOT NULL DEFAULT 0,  -- all its docs' stamps, XORed
  listed      REAL NOT NULL DEFAULT 0,     -- when index.md was last made
  stale       INTEGER NOT NULL DEFAULT 1,  -- whether it may say other than the notes do
  UNIQUE (scope, part)
);
CREATE TABLE doc (
  id         INTEGER PRIMARY KEY,
  folder     INTEGER NOT NULL,
  name       TEXT NOT NULL,
  ino        INTEGER NOT NULL,
  ctime      INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  mix        INTEGER NOT NULL,             -- this doc's share of the folder's fingerprint
  digest     TEXT NOT NULL,
  kind       TEXT NOT NULL,                -- note, file
  key        TEXT NOT NULL,
  note_id    TEXT NOT NULL,
  title      TEXT NOT NULL,
  type       TEXT,
  tags       TEXT NOT NULL,
  created    TEXT NOT NULL,
  updated    TEXT NOT NULL,
  source     TEXT NOT NULL,
  valid_from TEXT,
  valid_to   TEXT,
  pinned     INTEGER NOT NULL,
  touched    TEXT NOT NULL,                -- updated, or brought back from the archive
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  versions   INTEGER NOT NULL,
  problem    TEXT NOT NULL,
  UNIQUE (folder, name)
);
CREATE INDEX doc_updated ON doc (updated);
CREATE TABLE passage (
  id         INTEGER PRIMARY KEY,
  doc        INTEGER NOT NULL,
  seq        INTEGER NOT NULL,             -- of a note: the version, oldest 0; of a file: the section
  past       INTEGER NOT NULL,
  names      TEXT NOT NULL,                -- key, title, tags, path: what it is called
  text       TEXT NOT NULL,
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  type       TEXT,
  tags       TEXT NOT NULL,
  source     TEXT NOT NULL,
  recorded   TEXT NOT NULL,
  valid_from TEXT,
  valid_to   TEXT,
  closed     TEXT,                         -- the end that a later version put to it
  replaced   TEXT                          -- when that later version was recorded
);
CREATE UNIQUE INDEX passage_doc ON passage (doc, seq);
CREATE TABLE fact (
  id         INTEGER PRIMARY KEY,
  doc        INTEGER NOT NULL,
  subject    TEXT NOT NULL,
  label      TEXT NOT NULL,
  value      TEXT NOT NULL,
  about      TEXT NOT NULL,                -- subject, folded
  named      TEXT NOT NULL,                -- label, folded
  valid_from TEXT NOT NULL,
  valid_to   TEXT,
  retired_by TEXT,
  links      TEXT NOT NULL,
  line       INTEGER NOT NULL
);
CREATE INDEX fact_doc ON fact (doc);
CREATE INDEX fact_about ON fact (about);
CREATE INDEX fact_named ON fact (named);
CREATE VIEW now_passage AS SELECT id, names, text FROM passage WHERE past = 0;
CREATE VIEW past_passage AS SELECT id, names, text FROM passage WHERE past = 1;
CREATE VIRTUAL TABLE now USING fts5 (names, text, content='now_passage', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE past USING fts5 (names, text, content='past_passage', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO now (now, rank) VALUES ('secure-delete', 1);
INSERT INTO past (past, rank) VALUES ('secure-delete', 1);

-- name: folder_of
SELECT id, fingerprint FROM folder WHERE scope = :scope AND part = :part;

-- name: add_folder
INSERT INTO folder (scope, part) VALUES (:scope, :part) ON CONFLICT DO NOTHING;

-- name: mix_in
UPDATE folder SET fingerprint = (fingerprint | :mix) & ~(fingerprint & :mix), stale = 1 WHERE id = :folder;

-- name: listing_state
SELECT f.stale, f.listed, (SELECT count(*) FROM (SELECT 1 FROM doc WHERE folder = f.id LIMIT :most))
FROM folder f WHERE f.scope = :scope AND f.part = 'notes';

-- name: set_listed
UPDATE folder SET stale = (fingerprint <> :seen), listed = :time WHERE scope = :scope AND part = 'notes';

-- name: doc_stamp
SELECT id, ino, ctime, size, mix, digest, versions FROM doc WHERE folder = :folder AND name = :name;

-- name: any_doc
SELECT 1 FROM doc WHERE folder = :folder LIMIT 1;

-- name: last_ids
SELECT coalesce((SELECT max(id) FROM doc), 0), coalesce((SELECT max(id) FROM passage), 0);

-- name: doc_stamps
SELECT name, ino, ctime, size, digest FROM doc WHERE folder = :folder;

-- name: add_doc
INSERT INTO doc (id, folder, name, ino, ctime, size, mix, digest, kind, key, note_id, title, type, tags, created, updated,
  source, valid_from, valid_to, pinned, touched, first_line, last_line, versions, problem)
VALUES (:id, :folder, :name, :ino, :ctime, :size, :mix, :digest, :kind, :key, :note_id, :title, :type, :tags, :created, :updated,
  :source, :valid_from, :valid_to, :pinned, :touched, :first_line, :last_line, :versions, :problem);

-- name: change_doc
UPDATE doc SET ino = :ino, ctime = :ctime, size = :size, mix = :mix, digest = :digest, kind = :kind, key = :key,
  note_id = :note_id, title = :title, type = :type, tags = :tags, created = :created, updated = :updated, source = :source,
  valid_from = :valid_from, valid_to = :valid_to, pinned = :pinned, touched = :touched, first_line = :first_line,
  last_line = :last_line, versions = :versions, problem = :problem
WHERE id = :doc;

-- name: drop_doc
DELETE FROM doc WHERE id = :doc;

-- name: add_passage
INSERT INTO passage (id, doc, seq, past, names, text, first_line, last_line, type, tags, source, recorded, valid_from,
  valid_to, closed, replaced)
VALUES (:id, :doc, :seq, :past, :names, :text, :first_line, :last_line, :type, :tags, :source, :recorded, :valid_from,
  :valid_to, :closed, :replaced);

-- name: add_now
INSERT INTO now (rowid, names, text) VALUES (:id, :names, :text);

-- name: add_past
INSERT INTO past (rowid, names, text) VALUES (:id, :names, :text);

-- name: drop_now
INSERT INTO now (now, rowid, names, text) SELECT 'delete', id, names, text FROM passage WHERE doc = :doc AND past = 0;

-- name: drop_past
INSERT INTO past (past, rowid, names, text) SELECT 'delete', id, names, text FROM passage WHERE doc = :doc AND past = 1;

-- name: drop_passages
DELETE FROM passage WHERE doc = :doc;

-- name: drop_current
DELETE FROM passage WHERE doc = :doc AND past = 0;

-- name: add_fact
INSERT INTO fact (doc, subject, label, value, about, named, valid_from, valid_to, retired_by, links, line)
VALUES (:doc, :subject, :label, :value, :about, :named, :valid_from, :valid_to, :retired_by, :links, :line);

-- name: drop_facts
DELETE FROM fact WHERE doc = :doc;

-- name: match_now
SELECT rowid, rank FROM now WHERE now MATCH :query ORDER BY rank LIMIT :pool;

-- name: match_past
SELECT rowid, rank FROM past WHERE past MATCH :query ORDER BY rank LIMIT :pool;

-- name: passages
SELECT p.id, p.seq, p.past, p.first_line, p.last_line, p.type, p.tags, p.source, p.recorded, p.valid_from,
  CASE WHEN p.past THEN p.closed ELSE p.valid_to END, d.id, d.kind, d.name, d.key, d.note_id, d.versions, f.scope, f.part
FROM json_each(:ids) j JOIN passage p ON p.id = j.value JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE f.scope IN (SELECT value FROM json_each(:scopes))
  AND (:type IS NULL OR p.type = :type)
  AND NOT EXISTS (SELECT 1 FROM json_each(:tags) t WHERE instr(p.tags, char(10) || t.value || char(10)) = 0)
  AND (p.valid_to IS NULL OR p.valid_to > :now);

-- name: passages_at
SELECT p.id, p.seq, p.past, p.first_line, p.last_line, p.type, p.tags, p.source, p.recorded, p.valid_from,
  CASE WHEN p.replaced <= :known_at THEN p.closed ELSE p.valid_to END, d.id, d.kind, d.name, d.key, d.note_id, d.versions,
  f.scope, f.part
FROM json_each(:ids) j JOIN passage p ON p.id = j.value JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE f.scope IN (SELECT value FROM json_each(:scopes))
  AND (:type IS NULL OR p.type = :type)
  AND NOT EXISTS (SELECT 1 FROM json_each(:tags) t WHERE instr(p.tags, char(10) || t.value || char(10)) = 0)
  AND p.recorded <= :known_at
  AND (p.valid_from IS NULL OR p.valid_from <= :as_of)
  AND coalesce(CASE WHEN p.replaced <= :known_at THEN p.closed ELSE p.valid_to END, '9') > :as_of
  AND (d.kind = 'file' OR NOT EXISTS (
    SELECT 1 FROM passage n WHERE n.doc = p.doc AND n.seq > p.seq AND n.recorded <= :known_at
      AND (n.valid_from IS NULL OR n.valid_from <= :as_of)
      AND coalesce(CASE WHEN n.replaced <= :known_at THEN n.closed ELSE n.valid_to END, '9') > :as_of));

-- name: recent
SELECT p.id FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE f.scope IN (SELECT value FROM json_each(:scopes))
  AND (:type IS NULL OR d.type = :type)
  AND NOT EXISTS (SELECT 1 FROM json_each(:tags) t WHERE instr(d.tags, char(10) || t.value || char(10)) = 0)
  AND (p.valid_to IS NULL OR p.valid_to > :now)
ORDER BY d.updated DESC, d.note_id DESC, f.scope, d.key, p.seq LIMIT :pool;

-- name: recent_at
SELECT p.id FROM passage p JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE f.scope IN (SELECT value FROM json_each(:scopes)) AND p.recorded <= :known_at
ORDER BY p.recorded DESC, f.scope, d.key, p.seq;

-- name: notes
SELECT f.scope, d.name, d.key, d.note_id, d.title, d.type, d.tags, d.created, d.updated, d.source, d.valid_from, d.valid_to,
  d.pinned, d.first_line, d.last_line, d.digest, d.versions, p.text
FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE f.scope IN (SELECT value FROM json_each(:scopes)) AND f.part = 'notes' AND d.kind = 'note'
  AND (:type IS NULL OR d.type = :type)
  AND NOT EXISTS (SELECT 1 FROM json_each(:tags) t WHERE instr(d.tags, char(10) || t.value || char(10)) = 0)
  AND (:before IS NULL OR d.touched < :before)
  AND (d.valid_to IS NULL OR d.valid_to > :now)
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key LIMIT :most;

-- name: count_notes
SELECT count(*) FROM doc d JOIN folder f ON f.id = d.folder
WHERE f.scope IN (SELECT value FROM json_each(:scopes)) AND f.part = 'notes' AND d.kind = 'note'
  AND (d.valid_to IS NULL OR d.valid_to > :now);

-- name: listing
SELECT d.key, d.title, d.type, substr(d.updated, 1, 10), substr(p.text, 1, 200)
FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE f.scope = :scope AND f.part = 'notes' AND d.kind = 'note' ORDER BY d.key;

-- name: facts
SELECT a.subject, a.label, a.value, a.valid_from, a.valid_to, a.retired_by, a.links, a.line, f.scope, f.part, d.name
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE f.scope IN (SELECT value FROM json_each(:scopes))
  AND (:about IS NULL OR a.about = :about OR a.named = :about OR (d.kind = 'note' AND d.key = :key))
  AND (:named IS NULL OR a.named = :named)
  AND (:as_of IS NULL OR (a.valid_from <= :as_of AND coalesce(a.valid_to, '9') > :as_of))
ORDER BY a.about, a.named, a.valid_from, a.line;

-- name: stating
SELECT d.key FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE f.scope = :scope AND f.part = 'notes' AND d.kind = 'note' AND a.about = :about ORDER BY d.key LIMIT 1;

-- name: counts
SELECT f.scope, f.part, count(d.id), coalesce(sum(d.size), 0), coalesce(max(d.updated), '')
FROM folder f LEFT JOIN doc d ON d.folder = f.id GROUP BY f.id ORDER BY f.scope, f.part;

-- name: problems
SELECT f.scope, f.part, d.name, d.problem FROM doc d JOIN folder f ON f.id = d.folder
WHERE d.problem <> '' AND f.scope IN (SELECT value FROM json_each(:scopes)) ORDER BY 1, 2, 3;

-- name: totals
SELECT (SELECT count(*) FROM doc WHERE kind = 'note'), (SELECT count(*) FROM doc WHERE kind = 'file'),
  (SELECT count(*) FROM passage), (SELECT count(*) FROM fact);

-- name: rows_of_note
SELECT count(*) FROM doc d JOIN folder f ON f.id = d.folder
WHERE f.scope = :scope AND f.part = 'notes' AND d.name = :name;

-- name: optimize_now
INSERT INTO now (now) VALUES ('optimize');

-- name: optimize_past
INSERT INTO past (past) VALUES ('optimize');

-- name: says
SELECT 1 FROM passage WHERE instr(text, :piece) OR instr(names, :piece) LIMIT 1;

-- name: verify_pages
PRAGMA integrity_check;

-- name: verify_now
INSERT INTO now (now, rank) VALUES ('integrity-check', 1);

-- name: verify_past
INSERT INTO past (past, rank) VALUES ('integrity-check', 1);
