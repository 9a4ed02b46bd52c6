-- The index of one home. Everything here is derived from the store and may be deleted.

-- Fragments: `{name}` in a statement below is replaced by the text here. The aliases are f (folder), d (doc), p (passage), a (fact).

-- name: {in_scopes}
f.scope IN (SELECT value FROM json_each(:scopes))

-- name: {in_parts}
((:part IS NULL AND f.part <> 'archive') OR instr(:part, f.part))

-- name: {passage_filter}
(:type IS NULL OR p.type = :type)
  AND (:tags = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(:tags) t WHERE instr(p.tags, char(10) || t.value || char(10)) = 0))

-- name: {doc_filter}
(:type IS NULL OR d.type = :type)
  AND (:tags = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(:tags) t WHERE instr(d.tags, char(10) || t.value || char(10)) = 0))

-- name: {not_superseded}
(f.part <> 'archive' OR NOT EXISTS (       -- an archived note counts only until a newer note has its key
    SELECT 1 FROM doc o WHERE o.folder = f.id AND o.name > d.name AND o.name < d.key || '--:' AND o.key = d.key
  ) AND NOT EXISTS (
    SELECT 1 FROM folder g JOIN doc o ON o.folder = g.id
    WHERE g.scope = f.scope AND g.part = 'notes' AND o.name = d.key || '.md'))

-- name: {quarantined}
d.trust IN (SELECT value FROM json_each(:quarantine))

-- name: {stated_elsewhere}
EXISTS (SELECT 1 FROM fact b WHERE b.about = a.about AND b.named = a.named AND b.doc < a.doc)
  OR EXISTS (SELECT 1 FROM fact b WHERE b.about = a.about AND b.named = a.named AND b.doc > a.doc)

-- name: {note_columns}
f.scope, f.part, d.name, d.key, d.note_id, d.type, d.tags, d.created, d.updated, d.source, d.valid_from, d.valid_to, d.pinned,
  d.first_line, d.last_line, d.digest, d.versions, d.platform_key, {quarantined}, p.text

-- name: {fact_columns}
a.subject, a.label, a.value, a.valid_from, a.valid_to, a.retired_by, a.links, a.line, f.scope, f.part, d.name, {quarantined}

-- name: {passage_columns}
p.id, p.seq, p.past, p.first_line, p.last_line, p.type, p.tags, p.source, p.recorded, p.valid_from, d.id, d.kind, d.name,
  d.key, d.note_id, d.versions, f.scope, f.part, p.turn, p.speaker, p.offset, p.words, {quarantined}

-- name: {target_docs}
SELECT x.id FROM doc x WHERE x.note_id = r.target AND x.note_id <> '' AND x.kind = 'note'
UNION ALL SELECT x.id FROM folder y JOIN doc x ON x.folder = y.id  -- by its key: in the same scope
  WHERE y.scope = f.scope AND y.part = 'notes' AND x.kind = 'note'
    AND instr(r.target, '/') > 0 AND x.name = substr(r.target, length(f.scope) + 2) || '.md'

-- name: schema
CREATE TABLE folder (
  id          INTEGER PRIMARY KEY,
  scope       TEXT NOT NULL,               -- projects/abc
  part        TEXT NOT NULL,               -- notes, files, transcripts, archive
  fingerprint INTEGER NOT NULL DEFAULT 0,  -- all its docs' stamps, XORed
  passages    INTEGER NOT NULL DEFAULT 0,  -- that are current,
  words       INTEGER NOT NULL DEFAULT 0,  -- and the words in them
  sum         INTEGER NOT NULL,            -- of its scope and part
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
  kind       TEXT NOT NULL,                -- note, file, session
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
  trust      TEXT NOT NULL,                -- of a note: how far its text can be trusted,
  exposed    INTEGER NOT NULL,             -- and whether it seems to hold a secret
  platform_key TEXT,                       -- of a note: the key that a platform stored it under, if that is not a note key
  facts      INTEGER NOT NULL,             -- how many it states,
  prose      INTEGER NOT NULL,             -- and whether it says more than these
  agent      TEXT NOT NULL,                -- whose quota it counts for; '' for none,
  bytes      INTEGER NOT NULL,             -- and with how many bytes: of the file and its history files
  relations  INTEGER NOT NULL,             -- how many it states,
  mentions   TEXT NOT NULL,                -- and the names that its text links outside its facts, a line each
  sum        INTEGER NOT NULL,             -- of this row, to tell if it is still what was written
  UNIQUE (folder, name)
);
CREATE INDEX doc_newest ON doc (folder, pinned, updated, note_id);
CREATE INDEX doc_over ON doc (folder, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX doc_id ON doc (note_id) WHERE note_id <> '';
CREATE INDEX doc_mentions ON doc (folder) WHERE mentions <> '';
CREATE INDEX doc_exposed ON doc (folder) WHERE exposed = 1;
CREATE INDEX doc_doubted ON doc (trust)   -- NOT IN would make a table of the three for every doc that is added
  WHERE trust <> '' AND trust <> 'user' AND trust <> 'agent';
CREATE TABLE agent_usage (                 -- of all docs of an agent; kept by the triggers
  agent TEXT PRIMARY KEY,
  notes INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER doc_added AFTER INSERT ON doc WHEN new.agent <> '' BEGIN
  INSERT INTO agent_usage (agent, notes, bytes) VALUES (new.agent, new.kind = 'note', new.bytes)
  ON CONFLICT (agent) DO UPDATE SET notes = notes + excluded.notes, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER doc_removed AFTER DELETE ON doc WHEN old.agent <> '' BEGIN
  UPDATE agent_usage SET notes = notes - (old.kind = 'note'), bytes = bytes - old.bytes WHERE agent = old.agent;
END;
CREATE TRIGGER doc_changed AFTER UPDATE OF agent, kind, bytes ON doc WHEN old.agent <> '' OR new.agent <> '' BEGIN
  UPDATE agent_usage SET notes = notes - (old.kind = 'note'), bytes = bytes - old.bytes WHERE agent = old.agent;
  INSERT INTO agent_usage (agent, notes, bytes) SELECT new.agent, new.kind = 'note', new.bytes WHERE new.agent <> ''
  ON CONFLICT (agent) DO UPDATE SET notes = notes + excluded.notes, bytes = bytes + excluded.bytes;
END;
CREATE TABLE passage (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  doc        INTEGER NOT NULL,
  seq        INTEGER NOT NULL,             -- of a note: the version, oldest 0; of a file: the section; of a session: the turn
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
  replaced   TEXT,                         -- when that later version was recorded
  words      INTEGER NOT NULL,             -- how many the catalogue keeps of it
  sum        INTEGER NOT NULL,             -- of this row
  turn       TEXT,                         -- of a turn: its id,
  speaker    TEXT,                         -- who said it: a name, or user, assistant, system, tool
  offset     INTEGER                       -- and where its line begins
);
CREATE INDEX passage_turn ON passage (turn) WHERE turn IS NOT NULL;
CREATE INDEX passage_speaker ON passage (speaker COLLATE NOCASE, doc) WHERE speaker IS NOT NULL;
CREATE UNIQUE INDEX passage_doc ON passage (doc, seq);
CREATE TABLE made (                        -- what versions of notes were made from
  what    TEXT NOT NULL,
  passage INTEGER NOT NULL,
  PRIMARY KEY (what, passage)
) WITHOUT ROWID;
CREATE INDEX made_passage ON made (passage);
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
  line       INTEGER NOT NULL,
  sum        INTEGER NOT NULL              -- of this row
);
CREATE INDEX fact_doc ON fact (doc);
CREATE INDEX fact_about ON fact (about, named, doc);
CREATE INDEX fact_named ON fact (named);
CREATE TABLE relation (                    -- what notes say about other notes
  id     INTEGER PRIMARY KEY,
  doc    INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  target TEXT NOT NULL,                    -- the id of a note, or a scope's folder and a key
  status TEXT NOT NULL,
  origin TEXT NOT NULL,
  stated TEXT NOT NULL,                    -- when
  sum    INTEGER NOT NULL                  -- of this row
);
CREATE INDEX relation_doc ON relation (doc);
CREATE INDEX relation_target ON relation (target);
CREATE VIRTUAL TABLE now USING fts5 (place, names, text, content='', contentless_delete=1,
  tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE past USING fts5 (place, names, text, content='', contentless_delete=1,
  tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE now_word USING fts5vocab ('now', 'row');
INSERT INTO now (now, rank) VALUES ('secure-delete', 1);
INSERT INTO past (past, rank) VALUES ('secure-delete', 1);
INSERT INTO now (now, rank) VALUES ('rank', 'bm25(0.0, 1.0, 1.0)');
INSERT INTO past (past, rank) VALUES ('rank', 'bm25(0.0, 1.0, 1.0)');
CREATE TABLE model (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  name    TEXT NOT NULL,
  dim     INTEGER NOT NULL,
  done    INTEGER NOT NULL DEFAULT 0,      -- every passage up to this one has its vectors
  role    TEXT NOT NULL,                   -- what it is for: static, sentence, multi
  setting TEXT NOT NULL,                   -- what opens it again; never a key or a password
  asked   INTEGER NOT NULL DEFAULT 0,      -- the newest other model when a process with this model set last asked
  UNIQUE (name, role)
);
CREATE TABLE block (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  model   INTEGER NOT NULL,
  folder  INTEGER NOT NULL,
  used    INTEGER NOT NULL DEFAULT 0,      -- slots
  stamp   INTEGER NOT NULL DEFAULT 0,      -- another number, other contents
  sum     INTEGER NOT NULL,                -- of the three before the stamp
  ids     BLOB NOT NULL,                   -- of each slot the passage, 0 if it was taken out,
  signs   BLOB NOT NULL,                   -- the signs of its numbers,
  numbers BLOB NOT NULL                    -- and the numbers, a byte each
);
CREATE INDEX block_folder ON block (model, folder);
CREATE TABLE place (
  passage INTEGER NOT NULL,
  block   INTEGER NOT NULL,
  slot    INTEGER NOT NULL,
  sum     INTEGER NOT NULL,                -- of what the slot holds
  PRIMARY KEY (passage, block, slot)
) WITHOUT ROWID;
CREATE TABLE piece (
  passage INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  marks   INTEGER NOT NULL,                -- what kind of piece it is: see pieces.py
  tokens  TEXT NOT NULL,
  sum     INTEGER NOT NULL,                -- of this row
  PRIMARY KEY (passage, number)
) WITHOUT ROWID;

-- name: folder_of
SELECT id, fingerprint FROM folder WHERE scope = :scope AND part = :part;

-- name: known_folders
SELECT f.scope, f.part, f.id, f.fingerprint FROM folder f WHERE {in_scopes};

-- name: add_folder
INSERT INTO folder (scope, part, sum) VALUES (:scope, :part, :sum) ON CONFLICT DO NOTHING;

-- name: mix_in
UPDATE folder SET fingerprint = (fingerprint | :mix) & ~(fingerprint & :mix), passages = passages + :passages,
  words = words + :words
WHERE id = :folder;

-- name: indexed_file
SELECT id, ino, ctime, size, mix, digest, versions, note_id FROM doc WHERE folder = :folder AND name = :name;

-- name: agent_usage
SELECT notes, bytes FROM agent_usage WHERE agent = :agent;

-- name: any_doc
SELECT 1 FROM doc WHERE folder = :folder LIMIT 1;

-- name: last_ids
SELECT coalesce((SELECT max(id) FROM doc), 0), coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'passage'), 0);

-- name: file_ids
SELECT name, ino, ctime, size FROM doc WHERE folder = :folder;

-- name: add_doc
INSERT INTO doc (id, folder, name, ino, ctime, size, mix, digest, kind, key, note_id, title, type, tags, created, updated,
  source, valid_from, valid_to, pinned, touched, first_line, last_line, versions, problem, trust, exposed, facts, prose,
  agent, bytes, platform_key, relations, mentions, sum)
VALUES (:id, :folder, :name, :ino, :ctime, :size, :mix, :digest, :kind, :key, :note_id, :title, :type, :tags, :created, :updated,
  :source, :valid_from, :valid_to, :pinned, :touched, :first_line, :last_line, :versions, :problem, :trust, :exposed, :facts,
  :prose, :agent, :bytes, :platform_key, :relations, :mentions, :sum);

-- name: change_doc
UPDATE doc SET ino = :ino, ctime = :ctime, size = :size, mix = :mix, digest = :digest, kind = :kind, key = :key,
  note_id = :note_id, title = :title, type = :type, tags = :tags, created = :created, updated = :updated, source = :source,
  valid_from = :valid_from, valid_to = :valid_to, pinned = :pinned, touched = :touched, first_line = :first_line,
  last_line = :last_line, versions = :versions, problem = :problem, trust = :trust,
  exposed = :exposed, facts = :facts, prose = :prose, agent = :agent, bytes = :bytes, platform_key = :platform_key, relations = :relations,
  mentions = :mentions, sum = :sum
WHERE id = :id;

-- name: drop_doc
DELETE FROM doc WHERE id = :doc;

-- name: add_passage
INSERT INTO passage (id, doc, seq, past, names, text, first_line, last_line, type, tags, source, recorded, valid_from,
  valid_to, closed, replaced, words, sum, turn, speaker, offset)
VALUES (:id, :doc, :seq, :past, :names, :text, :first_line, :last_line, :type, :tags, :source, :recorded, :valid_from,
  :valid_to, :closed, :replaced, :words, :sum, :turn, :speaker, :offset);

-- name: add_now
INSERT INTO now (rowid, place, names, text) VALUES (:id, :folder_term, :name_terms, :text_terms);

-- name: add_past
INSERT INTO past (rowid, place, names, text) VALUES (:id, :folder_term, :name_terms, :text_terms);

-- name: drop_now
DELETE FROM now WHERE rowid IN (SELECT id FROM passage WHERE doc = :doc AND seq >= :first AND past = 0);

-- name: drop_past
DELETE FROM past WHERE rowid IN (SELECT id FROM passage WHERE doc = :doc AND seq >= :first AND past = 1);

-- name: sizes
SELECT count(*), coalesce(sum(words), 0) FROM passage WHERE doc = :doc AND seq >= :first AND past = 0;

-- name: embedded
SELECT DISTINCT p.id FROM passage p JOIN place v ON v.passage = p.id WHERE p.doc = :doc AND p.seq >= :first AND p.past = 0;

-- name: drop_pieces
DELETE FROM piece WHERE passage IN (SELECT id FROM passage WHERE doc = :doc AND seq >= :first AND past = 0);

-- name: add_made
INSERT OR IGNORE INTO made (what, passage) VALUES (:what, :passage);

-- name: drop_made
DELETE FROM made WHERE passage IN (SELECT id FROM passage WHERE doc = :doc AND seq >= :first);

-- name: drop_passages
DELETE FROM passage WHERE doc = :doc AND seq >= :first;

-- name: add_fact
INSERT INTO fact (doc, subject, label, value, about, named, valid_from, valid_to, retired_by, links, line, sum)
VALUES (:doc, :subject, :label, :value, :about, :named, :valid_from, :valid_to, :retired_by, :links, :line, :sum);

-- name: drop_facts
DELETE FROM fact WHERE doc = :doc;

-- name: add_relation
INSERT INTO relation (doc, kind, target, status, origin, stated, sum)
VALUES (:doc, :kind, :target, :status, :origin, :stated, :sum);

-- name: drop_relations
DELETE FROM relation WHERE doc = :doc;

-- name: match_now
SELECT rowid, rank FROM now WHERE now MATCH :query ORDER BY rank LIMIT :pool;

-- name: postings
SELECT group_concat(rowid) FROM (SELECT rowid FROM now WHERE now MATCH :query ORDER BY rowid DESC LIMIT :most);

-- name: postings_among
SELECT group_concat(rowid) FROM (SELECT rowid FROM now WHERE now MATCH :query ORDER BY rowid DESC LIMIT :most)
WHERE rowid IN (SELECT value FROM json_each(:ids));

-- name: passage_words
SELECT id, words FROM passage WHERE id IN (SELECT value FROM json_each(:ids));

-- name: match_past
SELECT rowid, rank FROM past WHERE past MATCH :query ORDER BY rank LIMIT :pool;

-- name: passages
SELECT {passage_columns}, CASE WHEN p.past THEN p.closed ELSE p.valid_to END
FROM json_each(:ids) j JOIN passage p ON p.id = j.value JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND {passage_filter}
  AND (p.valid_to IS NULL OR p.valid_to > :now)
  AND {not_superseded};

-- name: outlines
SELECT p.id, p.seq, p.recorded, p.valid_from, p.doc, d.versions, p.turn, p.speaker, p.words, p.valid_to
FROM json_each(:ids) j JOIN passage p ON p.id = j.value JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND {passage_filter}
  AND {not_superseded};

-- name: passages_at
SELECT {passage_columns}, CASE WHEN p.replaced <= :known_at THEN p.closed ELSE p.valid_to END
FROM json_each(:ids) j JOIN passage p ON p.id = j.value JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND {passage_filter}
  AND p.recorded <= :known_at
  AND (p.valid_from IS NULL OR p.valid_from <= :as_of)
  AND coalesce(CASE WHEN p.replaced <= :known_at THEN p.closed ELSE p.valid_to END, '9') > :as_of
  AND (d.kind <> 'note' OR NOT EXISTS (
    SELECT 1 FROM passage n WHERE n.doc = p.doc AND n.seq > p.seq AND n.recorded <= :known_at
      AND (n.valid_from IS NULL OR n.valid_from <= :as_of)
      AND coalesce(CASE WHEN n.replaced <= :known_at THEN n.closed ELSE n.valid_to END, '9') > :as_of))
  AND {not_superseded};

-- name: recent
SELECT p.id FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE {in_scopes} AND {in_parts}
  AND {doc_filter}
  AND (p.valid_to IS NULL OR p.valid_to > :now)
ORDER BY d.updated DESC, d.note_id DESC, f.scope, d.key, CASE d.kind WHEN 'session' THEN -p.seq ELSE p.seq END LIMIT :pool;

-- name: recent_at
SELECT p.id FROM passage p JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes} AND {in_parts} AND p.recorded <= :known_at
ORDER BY p.recorded DESC, f.scope, d.key, p.seq;

-- name: notes
SELECT {note_columns}
FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE d.id IN (                            -- choose the notes first, then read their texts
  SELECT d.id FROM doc d JOIN folder f ON f.id = d.folder
  WHERE {in_scopes} AND f.part = :part AND d.kind = 'note'
    AND {doc_filter}
    AND (:before IS NULL OR d.touched < :before)
    AND (d.valid_to IS NULL OR d.valid_to > :now)
    AND (:only IS NULL OR :only = ({quarantined}))
    AND {not_superseded}
  ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key LIMIT :most)
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key;

-- name: notes_of_scope
SELECT {note_columns}
FROM folder f JOIN doc d INDEXED BY doc_newest ON d.folder = f.id JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE f.scope = :scope AND f.part = :part AND d.kind = 'note'
  AND {doc_filter}
  AND (:before IS NULL OR d.touched < :before)
  AND (d.valid_to IS NULL OR d.valid_to > :now)
  AND (:only IS NULL OR :only = ({quarantined}))
  AND {not_superseded}
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, d.key LIMIT :most;

-- name: note_of_file
SELECT {note_columns}
FROM folder f JOIN doc d ON d.folder = f.id AND d.name = :name JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE f.scope = :scope AND f.part = 'notes' AND d.kind = 'note';

-- name: count_notes
SELECT coalesce(sum(CASE :only WHEN 1 THEN doubted WHEN 0 THEN valid - doubted ELSE valid END), 0)
FROM (                                     -- all notes of a folder, minus those that have ended
  SELECT f.passages - (SELECT count(*) FROM doc d WHERE d.folder = f.id AND d.valid_to <= :now) AS valid,
    (SELECT count(*) FROM doc d INDEXED BY doc_doubted
      WHERE d.trust <> '' AND d.trust <> 'user' AND d.trust <> 'agent'
        AND {quarantined} AND d.folder = f.id AND (d.valid_to IS NULL OR d.valid_to > :now))
    + (SELECT count(*) FROM doc d
      WHERE :agents AND d.trust = 'agent' AND d.folder = f.id AND (d.valid_to IS NULL OR d.valid_to > :now)) AS doubted
  FROM folder f WHERE {in_scopes} AND f.part = 'notes');

-- name: count_listed
SELECT passages FROM folder WHERE scope = :scope AND part = 'notes';

-- name: newest_files
SELECT d.key, d.id, d.ino, d.ctime FROM folder f CROSS JOIN doc d INDEXED BY doc_newest ON d.folder = f.id
WHERE f.scope = :scope AND f.part = 'notes' AND d.kind = 'note'
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC LIMIT :most;

-- name: listed_notes
SELECT d.id, d.key, d.type, substr(d.updated, 1, 10),
  CASE WHEN d.exposed = 1 OR d.facts > 0 THEN p.text ELSE substr(p.text, 1, 200) END,
  {quarantined}, d.exposed
FROM json_each(:ids) i CROSS JOIN doc d ON d.id = i.value CROSS JOIN passage p ON p.doc = d.id AND p.past = 0;

-- name: facts
SELECT {fact_columns}, {stated_elsewhere}
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND (:archived OR f.part <> 'archive')
  AND {not_superseded}
  AND (:named IS NULL OR a.named = :named)
  AND (:as_of IS NULL OR (a.valid_from <= :as_of AND coalesce(a.valid_to, '9') > :as_of))
  AND (:last IS NULL                       -- from the first on, or behind the one that a page ended with
    OR (a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name)
      > (:about, :label, :start, :line, :last))
ORDER BY a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name LIMIT :most;

-- name: facts_about
SELECT {fact_columns}, {stated_elsewhere}
FROM (                                     -- by any of the names, each once
  SELECT id FROM fact WHERE about IN (SELECT value FROM json_each(:names))
  UNION SELECT id FROM fact WHERE named IN (SELECT value FROM json_each(:names))
  UNION SELECT x.id FROM folder f CROSS JOIN json_each(:keys) k CROSS JOIN doc n ON n.folder = f.id CROSS JOIN fact x ON x.doc = n.id
    WHERE {in_scopes} AND n.kind = 'note' AND n.key = k.value
      AND (n.name = k.value || '.md' OR (n.name > k.value || '--' AND n.name < k.value || '--:'))  -- by the unique index
) o CROSS JOIN fact a ON a.id = o.id JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND (:archived OR f.part <> 'archive')
  AND {not_superseded}
  AND (:named IS NULL OR a.named = :named)
  AND (:as_of IS NULL OR (a.valid_from <= :as_of AND coalesce(a.valid_to, '9') > :as_of))
  AND (:last IS NULL                       -- from the first on, or behind the one that a page ended with
    OR (a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name)
      > (:about, :label, :start, :line, :last))
ORDER BY a.about, a.named, a.valid_from, a.line, f.scope || '/' || f.part || '/' || d.name LIMIT :most;

-- name: subjects
SELECT min(a.subject), count(*), sum(a.valid_from <= :now AND coalesce(a.valid_to, '9') > :now), max(a.valid_from),
  count(DISTINCT f.scope), min(f.scope)
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND {not_superseded}
  AND a.about > :after
  AND (:contains = '' OR instr(a.about, :contains))
GROUP BY a.about ORDER BY a.about LIMIT :most;

-- name: newest_facts
SELECT {fact_columns}, {stated_elsewhere}
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes}
  AND a.valid_from <= :now AND coalesce(a.valid_to, '9') > :now
  AND d.trust NOT IN (SELECT value FROM json_each(:quarantine))
  AND f.part <> 'archive'
ORDER BY a.valid_from DESC, a.about, a.named, a.line LIMIT :most;

-- name: statements
SELECT {fact_columns}, d.updated, d.prose
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE a.about IN (SELECT value FROM json_each(:names)) AND a.named IN (SELECT value FROM json_each(:labels))
  AND {in_scopes}
  AND (:archived OR f.part <> 'archive')
  AND {not_superseded};

-- name: contested
SELECT min(a.subject), min(a.label)        -- what more than one file states, if one of them has a line that is open now
FROM folder f JOIN doc d ON d.folder = f.id JOIN fact a ON a.doc = d.id
WHERE {in_scopes} AND a.valid_from <= :now
GROUP BY a.about, a.named
HAVING min(a.doc) <> max(a.doc)
  AND max(CASE WHEN f.part <> 'archive' AND coalesce(a.valid_to, '9') > :now THEN 1 ELSE 0 END) = 1;

-- name: subjects_of
SELECT DISTINCT a.about FROM passage p JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder JOIN fact a ON a.doc = d.id
WHERE p.id IN (SELECT value FROM json_each(:ids)) AND {in_scopes};

-- name: facts_at
SELECT {fact_columns}, {stated_elsewhere}, d.key, d.note_id, d.tags, d.source, d.updated, d.ino, d.ctime, d.size
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE (a.about IN (SELECT value FROM json_each(:names)) OR a.named IN (SELECT value FROM json_each(:names)))
  AND {in_scopes} AND d.updated <= :known_at
  AND a.valid_from <= :as_of AND coalesce(a.valid_to, '9') > :as_of
  AND {not_superseded}
  AND {doc_filter}
ORDER BY a.named IN (SELECT value FROM json_each(:names)) DESC, a.valid_from DESC, a.about, a.named, a.line LIMIT :most;

-- name: note_stating
SELECT d.key FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE f.scope = :scope AND f.part IN ('notes', 'archive') AND d.kind = 'note' AND a.about = :about
ORDER BY f.part = 'archive', d.key LIMIT 1;

-- name: note_of_id
SELECT f.scope, d.name, d.trust FROM doc d JOIN folder f ON f.id = d.folder
WHERE d.note_id = :id AND d.kind = 'note' AND {in_scopes} LIMIT 1;

-- name: notes_by_source
SELECT DISTINCT f.scope, d.name FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note' AND instr(p.source, :source)
ORDER BY 1, 2;

-- name: made_from
SELECT DISTINCT f.scope, d.name FROM made m JOIN passage p ON p.id = m.passage JOIN doc d ON d.id = p.doc
  JOIN folder f ON f.id = d.folder
WHERE m.what >= :first AND m.what < :last AND f.part = 'notes' AND {in_scopes}
ORDER BY 1, 2;

-- name: made_from_sources
SELECT DISTINCT what FROM made;

-- name: made_from_any
SELECT DISTINCT f.scope, d.name FROM made m JOIN passage p ON p.id = m.passage JOIN doc d ON d.id = p.doc
  JOIN folder f ON f.id = d.folder
WHERE m.what IN (SELECT value FROM json_each(:what)) AND f.part = 'notes' AND {in_scopes}
ORDER BY 1, 2;

-- name: any_quarantined
SELECT 1 WHERE EXISTS (                    -- mostly nothing is in doubt, and then the list need not be opened
  SELECT 1 FROM doc INDEXED BY doc_doubted WHERE trust <> '' AND trust <> 'user' AND trust <> 'agent'
) AND EXISTS (
  SELECT 1 FROM doc INDEXED BY doc_doubted
  WHERE trust <> '' AND trust <> 'user' AND trust <> 'agent' AND trust IN (SELECT value FROM json_each(:quarantine)));

-- name: quarantined_texts
SELECT p.text, d.trust, d.note_id, p.past, p.source
FROM doc d INDEXED BY doc_doubted CROSS JOIN folder f ON f.id = d.folder CROSS JOIN passage p ON p.doc = d.id
WHERE d.trust <> '' AND d.trust <> 'user' AND d.trust <> 'agent' AND {quarantined}
  AND d.kind = 'note' AND {in_scopes} AND p.text IN (SELECT value FROM json_each(:texts));

-- name: any_fact
SELECT 1 FROM fact LIMIT 1;

-- name: labelled_facts
SELECT a.subject, a.value, a.links FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
WHERE a.named IN (SELECT value FROM json_each(:labels)) AND a.valid_to IS NULL
  AND {in_scopes} LIMIT 10000;

-- name: stating_passages
SELECT p.id, a.subject, a.label, f.scope || '/' || f.part || '/' || d.name, a.line,
  {stated_elsewhere}
FROM fact a JOIN doc d ON d.id = a.doc JOIN folder f ON f.id = d.folder
  JOIN passage p ON p.doc = d.id AND p.past = 0 AND (d.kind = 'note' OR a.line BETWEEN p.first_line AND p.last_line)
WHERE (a.about IN (SELECT value FROM json_each(:names)) OR a.named IN (SELECT value FROM json_each(:names)))
  AND a.valid_from <= :now AND coalesce(a.valid_to, '9') > :now
  AND {in_scopes} AND {in_parts}
ORDER BY a.about IN (SELECT value FROM json_each(:names)) DESC, p.id DESC LIMIT :most;

-- name: any_relation
SELECT 1 FROM relation LIMIT 1;

-- name: superseding
SELECT t.id, d.id, d.note_id, d.key, f.scope, f.part, r.stated, p.id  -- of the notes of these docs, what superseded them
FROM json_each(:docs) j CROSS JOIN doc t ON t.id = j.value CROSS JOIN folder g ON g.id = t.folder
  CROSS JOIN relation r ON r.target IN (t.note_id, g.scope || '/' || t.key)
  CROSS JOIN doc d ON d.id = r.doc CROSS JOIN folder f ON f.id = d.folder
  CROSS JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE t.kind = 'note' AND r.kind = 'supersedes' AND r.status = 'accepted' AND d.id <> t.id
  AND (r.origin = 'user' OR t.trust <> 'user')  -- a person may have replaced the text of an agent's note since
  AND {in_scopes} AND f.part IN ('notes', 'archive') AND {not_superseded} AND NOT ({quarantined})
  AND (d.valid_from IS NULL OR d.valid_from <= :now) AND (d.valid_to IS NULL OR d.valid_to > :now);

-- name: superseded
SELECT DISTINCT t.id, g.scope || '/' || g.part || '/' || t.name  -- the notes of these scopes that others superseded
FROM relation r CROSS JOIN doc d ON d.id = r.doc CROSS JOIN folder f ON f.id = d.folder
  CROSS JOIN doc t ON t.id IN ({target_docs}) CROSS JOIN folder g ON g.id = t.folder
WHERE r.kind = 'supersedes' AND r.status = 'accepted' AND {in_scopes}
  AND g.scope IN (SELECT value FROM json_each(:scopes)) AND g.part = 'notes'
  AND (t.valid_to IS NULL OR t.valid_to > :now) AND t.trust NOT IN (SELECT value FROM json_each(:quarantine));

-- name: relations
SELECT r.kind, r.status, r.origin, r.stated, f.scope, d.key, d.note_id, g.scope, t.key, t.note_id
FROM relation r CROSS JOIN doc d ON d.id = r.doc CROSS JOIN folder f ON f.id = d.folder
  CROSS JOIN doc t ON t.id IN ({target_docs}) CROSS JOIN folder g ON g.id = t.folder
WHERE {in_scopes} AND g.scope IN (SELECT value FROM json_each(:scopes)) AND d.id <> t.id
  AND f.part IN ('notes', 'archive') AND g.part IN ('notes', 'archive') AND {not_superseded}
  AND (:status IS NULL OR r.status = :status)
  AND (:targets IS NULL OR r.id IN (       -- those of one note, by either end
    SELECT x.id FROM relation x WHERE x.target IN (SELECT value FROM json_each(:targets))
    UNION SELECT x.id FROM folder y JOIN doc z ON z.folder = y.id JOIN relation x ON x.doc = z.id
      WHERE y.scope = :scope AND y.part = 'notes' AND z.name = :name))
ORDER BY r.stated, r.kind, f.scope, d.key, g.scope, t.key;

-- name: relation_sources
SELECT DISTINCT f.scope, f.part, d.name FROM relation r JOIN doc d ON d.id = r.doc JOIN folder f ON f.id = d.folder
WHERE r.target IN (SELECT value FROM json_each(:targets));

-- name: mentions
SELECT f.scope, f.part, d.name, d.title, d.mentions, {quarantined}
FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND d.mentions <> '' AND {not_superseded}
ORDER BY f.scope, f.part, d.name;

-- name: file_counts
SELECT f.scope, f.part, count(d.id), coalesce(sum(d.size), 0), coalesce(max(d.updated), '')
FROM folder f LEFT JOIN doc d ON d.folder = f.id GROUP BY f.id ORDER BY f.scope, f.part;

-- name: exposed_notes
SELECT f.scope || '/notes/' || d.name FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.exposed = 1;

-- name: problems
SELECT f.scope, f.part, d.name, d.problem FROM doc d JOIN folder f ON f.id = d.folder
WHERE d.problem <> '' AND {in_scopes} ORDER BY 1, 2, 3;

-- name: totals
SELECT (SELECT count(*) FROM folder f JOIN doc d ON d.folder = f.id WHERE f.part = 'notes' AND d.kind = 'note'), (SELECT count(*) FROM doc WHERE kind = 'file'),
  (SELECT count(*) FROM passage), (SELECT count(*) FROM fact);

-- name: type_counts
SELECT d.type, count(*) FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note' AND d.type IS NOT NULL GROUP BY d.type ORDER BY d.type;

-- name: versions_by_day
SELECT substr(p.recorded, 1, 10), count(*)
FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id
WHERE {in_scopes} AND f.part IN ('notes', 'archive') AND d.kind = 'note' AND d.updated >= :since AND p.recorded >= :since
GROUP BY 1;

-- name: note_ids
SELECT d.note_id FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part IN ('notes', 'archive') AND d.kind = 'note' AND d.note_id <> '';

-- name: notes_by_id
SELECT d.note_id, f.scope, d.key, coalesce(d.platform_key, ''), d.type FROM folder f JOIN doc d ON d.folder = f.id
WHERE {in_scopes} AND f.part = 'notes' AND d.kind = 'note' AND d.note_id IN (SELECT value FROM json_each(:ids))
  AND NOT ({quarantined});

-- name: passages_and_facts
SELECT coalesce(sum((SELECT count(*) FROM passage p WHERE p.doc = d.id)), 0),
  coalesce(sum((SELECT count(*) FROM fact a WHERE a.doc = d.id)), 0)
FROM folder f JOIN doc d ON d.folder = f.id WHERE {in_scopes};

-- name: optimize_now
INSERT INTO now (now) VALUES ('optimize');

-- name: optimize_past
INSERT INTO past (past) VALUES ('optimize');

-- name: rewrite
VACUUM;

-- name: integrity_check
PRAGMA integrity_check;

-- name: doc_rows
SELECT * FROM doc;

-- name: passage_rows
SELECT passage.*, doc.folder AS of_folder FROM passage LEFT JOIN doc ON doc.id = passage.doc;

-- name: fact_rows
SELECT doc, subject, label, value, about, named, valid_from, valid_to, retired_by, links, line, sum FROM fact;

-- name: relation_rows
SELECT doc, kind, target, status, origin, stated, sum FROM relation;

-- name: relation_counts
SELECT id, relations FROM doc WHERE relations > 0;

-- name: piece_rows
SELECT * FROM piece;

-- name: made_rows
SELECT what, passage FROM made;

-- name: place_rows
SELECT block, slot, passage, sum FROM place ORDER BY block;

-- name: folder_sizes
SELECT id, scope, part, passages, words, sum FROM folder;

-- name: term_instances
CREATE VIRTUAL TABLE temp.now_said USING fts5vocab ('main', 'now', 'instance');
CREATE VIRTUAL TABLE temp.past_said USING fts5vocab ('main', 'past', 'instance');

-- name: instances_now
SELECT term, count(*), sum(doc) FROM temp.now_said GROUP BY term;

-- name: instances_past
SELECT term, count(*), sum(doc) FROM temp.past_said GROUP BY term;

-- name: block_rows
SELECT id, model, folder, used, sum, ids, signs, numbers FROM block ORDER BY id;

-- name: all_texts
SELECT text FROM passage WHERE turn IS NULL OR :transcripts;

-- name: texts_of_scopes
SELECT p.text FROM passage p JOIN doc d ON d.id = p.doc JOIN folder f ON f.id = d.folder
WHERE {in_scopes} AND (p.turn IS NULL OR :transcripts);

-- name: folders
SELECT f.id, f.passages, f.words FROM folder f WHERE {in_scopes} AND {in_parts};

-- name: count_current
SELECT coalesce(sum(passages), 0) FROM folder;

-- name: term_counts
SELECT term, doc FROM now_word WHERE term IN (SELECT value FROM json_each(:terms));

-- name: term_counts_within
SELECT (SELECT count(*) FROM now WHERE now MATCH q.value) FROM json_each(:queries) q ORDER BY q.key;

-- name: terms_by_prefix
SELECT term, doc FROM now_word WHERE term >= :first AND term < :last ORDER BY doc DESC LIMIT 200;

-- name: models
SELECT id, name, dim, done, role, setting, asked FROM model ORDER BY id;

-- name: add_model
INSERT INTO model (name, dim, role, setting) VALUES (:name, :dim, :role, :setting) ON CONFLICT DO NOTHING;

-- name: model_asked
UPDATE model SET asked = :newest WHERE id = :model AND asked < :newest;

-- name: drop_model
DELETE FROM model WHERE id = :model;

-- name: drop_blocks
DELETE FROM block WHERE model = :model;

-- name: drop_model_places
DELETE FROM place WHERE block IN (SELECT id FROM block WHERE model = :model);

-- name: model_done
UPDATE model SET done = :done WHERE id = :model AND done = :before;

-- name: next_waiting
SELECT p.id, d.folder, p.names, p.text, p.speaker, d.id FROM passage p JOIN doc d ON d.id = p.doc
WHERE p.id > :done AND p.past = 0 ORDER BY p.id LIMIT :most;

-- name: count_waiting
SELECT count(*), coalesce(max(id), 0) FROM passage WHERE id > :done AND past = 0;

-- name: open_block
SELECT id, used FROM block WHERE model = :model AND folder = :folder AND used < :slots ORDER BY id DESC LIMIT 1;

-- name: add_block
INSERT INTO block (model, folder, sum, stamp, ids, signs, numbers)  -- no block of another file has these stamps
VALUES (:model, :folder, :sum, random() >> 2, zeroblob(:ids), zeroblob(:signs), zeroblob(:numbers));

-- name: grow_block
UPDATE block SET used = :used, sum = :sum, stamp = stamp + 1 WHERE id = :block;

-- name: touch_block
UPDATE block SET stamp = stamp + 1 WHERE id = :block;

-- name: add_place
INSERT INTO place (passage, block, slot, sum) VALUES (:passage, :block, :slot, :sum);

-- name: places
SELECT v.block, v.slot, m.dim FROM place v JOIN block b ON b.id = v.block JOIN model m ON m.id = b.model
WHERE v.passage = :passage;

-- name: drop_places
DELETE FROM place WHERE passage = :passage;

-- name: any_block
SELECT 1 FROM block WHERE model = :model AND folder = :folder AND used > 0 LIMIT 1;

-- name: stamps_of_blocks
SELECT id, stamp, used FROM block WHERE model = :model AND folder = :folder ORDER BY id;

-- name: read_block
SELECT ids, signs, numbers FROM block WHERE id = :block;

-- name: add_piece
INSERT OR REPLACE INTO piece (passage, number, marks, tokens, sum)
VALUES (:passage, :number, :marks, :tokens, :sum);

-- name: pieces
SELECT passage, marks, tokens FROM piece WHERE passage IN (SELECT value FROM json_each(:ids)) ORDER BY passage, number;

-- name: passage_texts
SELECT id, names, text, speaker FROM passage WHERE id IN (SELECT value FROM json_each(:ids));

-- name: adjacent_turns
SELECT n.id FROM json_each(:ids) j JOIN passage p ON p.id = j.value JOIN passage n ON n.doc = p.doc
WHERE p.turn IS NOT NULL AND p.speaker NOT IN ('user', 'assistant', 'system', 'tool')
  AND n.seq BETWEEN p.seq - 1 AND p.seq + 1 AND n.past = 0;

-- name: still
SELECT id FROM passage WHERE id > :after AND id <= :last AND past = 0;

-- name: speakers_of
SELECT DISTINCT speaker FROM passage WHERE doc = :doc AND speaker IS NOT NULL;

-- name: speakers_named
SELECT s.speaker FROM (
  SELECT DISTINCT speaker FROM passage
  WHERE speaker IS NOT NULL AND speaker COLLATE NOCASE IN (SELECT value FROM json_each(:names))
) s
WHERE :folders IS NULL OR EXISTS (            -- from the caller's own sessions, never from all sessions
  SELECT 1 FROM json_each(:folders) f CROSS JOIN doc d ON d.folder = f.value
    CROSS JOIN passage p ON p.speaker COLLATE NOCASE = s.speaker AND p.doc = d.id
  WHERE d.kind = 'session' AND p.speaker IS NOT NULL AND p.speaker = s.speaker
);

-- name: notes_after
SELECT {note_columns}
FROM doc d JOIN folder f ON f.id = d.folder JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE d.id IN (                            -- as in `notes`, and behind the one that a page ended with
  SELECT d.id FROM doc d JOIN folder f ON f.id = d.folder
  WHERE {in_scopes} AND f.part = :part AND d.kind = 'note'
    AND {doc_filter}
    AND (d.pinned < :pinned OR (d.pinned = :pinned AND (d.updated < :updated OR (d.updated = :updated AND (d.note_id < :id
      OR (d.note_id = :id AND (f.scope, d.key) > (:scope, :key)))))))
    AND (:only IS NULL OR :only = ({quarantined}))
    AND {not_superseded}
  ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key LIMIT :most)
ORDER BY d.pinned DESC, d.updated DESC, d.note_id DESC, f.scope, d.key;

-- name: notes_by_key
SELECT {note_columns}
FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id AND p.past = 0
WHERE f.scope = :scope AND f.part = 'notes' AND d.kind = 'note' AND d.name > :after
ORDER BY d.name LIMIT :most;

-- name: vectors_of_files
SELECT substr(b.numbers, v.slot * m.dim + 1, m.dim)
FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id JOIN place v ON v.passage = p.id
  JOIN block b ON b.id = v.block JOIN model m ON m.id = b.model
WHERE f.scope = :scope AND f.part = :part AND d.name IN (SELECT value FROM json_each(:files));

-- name: has_vector
SELECT 1 FROM block WHERE instr(numbers, :vector) LIMIT 1;

-- name: past_dictionary
CREATE VIRTUAL TABLE IF NOT EXISTS temp.past_word USING fts5vocab ('main', 'past', 'row');

-- name: past_term_counts
SELECT term, doc FROM temp.past_word WHERE term IN (SELECT value FROM json_each(:terms));
