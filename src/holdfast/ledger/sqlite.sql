-- The ledger of one home: durable records that are not prose. Unlike the index it cannot be made again.

-- name: schema
CREATE TABLE links (                       -- ids that a project went by, each leading straight to the one it has
  alias   TEXT PRIMARY KEY,
  project TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_project ON links (project);
CREATE TABLE places (                      -- where a marker or a checkout was last seen
  id    TEXT PRIMARY KEY,
  nonce TEXT NOT NULL,
  path  BLOB NOT NULL                      -- bytes: a path need not be text
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  id      TEXT PRIMARY KEY,
  uses    INTEGER NOT NULL,
  counted INTEGER NOT NULL                 -- seconds since 1970
) STRICT, WITHOUT ROWID;

-- name: from_version_1
CREATE TABLE told (                        -- which version of a note a session was shown
  session TEXT NOT NULL,
  note    TEXT NOT NULL,
  version TEXT NOT NULL,
  time    INTEGER NOT NULL,                -- seconds since 1970
  PRIMARY KEY (session, note)
) STRICT, WITHOUT ROWID;
CREATE INDEX told_by_note ON told (note);
CREATE TABLE prompts (
  session TEXT PRIMARY KEY,
  count   INTEGER NOT NULL,
  last    TEXT NOT NULL,                   -- a digest of the last prompt: two hooks may hear the same one
  time    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- name: as_version_2
CREATE TEMP TABLE IF NOT EXISTS told (session, note, version, time);

-- name: move_to_main_file
PRAGMA wal_checkpoint(PASSIVE);

-- name: canonical
SELECT project FROM links WHERE alias = :alias;

-- name: link
INSERT INTO links (alias, project) VALUES (:alias, :project)
ON CONFLICT (alias) DO UPDATE SET project = excluded.project WHERE project = :instead;

-- name: lead_on
UPDATE links SET project = (SELECT project FROM links WHERE alias = :alias) WHERE project = :alias;

-- name: place
SELECT nonce, path FROM places WHERE id = :id;

-- name: put_place
INSERT INTO places (id, nonce, path) VALUES (:id, :nonce, :path)
ON CONFLICT (id) DO UPDATE SET nonce = excluded.nonce, path = excluded.path;

-- name: count
INSERT INTO usage (id, uses, counted) VALUES (:id, 1, :now)
ON CONFLICT (id) DO UPDATE SET uses = uses + 1, counted = excluded.counted
WHERE abs(excluded.counted - counted) >= 60
RETURNING id;

-- name: uses
SELECT id, uses FROM usage WHERE id = :id;

-- name: forget
DELETE FROM usage WHERE id = :id;

-- name: told
SELECT note, version FROM told WHERE session = :session;

-- name: tell
INSERT INTO told (session, note, version, time) VALUES (:session, :note, :version, :time)
ON CONFLICT (session, note) DO UPDATE SET version = excluded.version, time = excluded.time
WHERE version <> excluded.version
RETURNING note;

-- name: new_context
DELETE FROM told WHERE session = :session OR time < :before;

-- name: old_prompts
DELETE FROM prompts WHERE time < :before;

-- name: prompted
INSERT INTO prompts (session, count, last, time) VALUES (:session, 1, :last, :time)
ON CONFLICT (session) DO UPDATE SET count = count + 1, last = excluded.last, time = excluded.time
WHERE last <> excluded.last
RETURNING count;

-- name: no_prompts
DELETE FROM prompts WHERE session = :session;

-- name: untell
DELETE FROM told WHERE note = :id;

-- name: told_to
SELECT count(*) FROM told WHERE note = :id;
