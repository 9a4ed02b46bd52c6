-- The truth: documents byte for byte, and what was said in sessions line by line.
-- A scope is named as its folder is (`global`, `projects/x`, `agents/x`, `sessions/x`); an agent's own is seen by that agent.

-- One row for each part of a scope. Whoever writes there changes it first, so its lock orders the writers of that part.
CREATE TABLE holdfast.shelf_folder (
  tenant text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  scope  text COLLATE "C" NOT NULL,
  part   text COLLATE "C" NOT NULL,
  mix    bigint NOT NULL DEFAULT 0,  -- the shares of all that stands there, XORed: equal numbers, nothing happened
  last   bigint NOT NULL DEFAULT 0,  -- the number of the note that came last into a bin
  recent text[] COLLATE "C" NOT NULL DEFAULT '{}',  -- what changed last: who finds another number looks there first
  PRIMARY KEY (tenant, scope, part)
) WITH (fillfactor = 50);

CREATE TABLE holdfast.document (
  tenant   text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  scope    text COLLATE "C" NOT NULL,
  part     text COLLATE "C" NOT NULL,  -- notes, files, trash, archive; and folders, which a tree of files has
  name     text COLLATE "C" NOT NULL,
  data     bytea NOT NULL,
  stamp    bigint NOT NULL,            -- drawn by whoever wrote it; with `changed` and the size it tells one content from another
  changed  bigint NOT NULL,            -- nanoseconds
  modified bigint NOT NULL,            -- seconds
  mix      bigint NOT NULL,            -- its share of the folder's number
  PRIMARY KEY (tenant, scope, part, name)
);

-- One row for each session's transcript; its lock orders those who add to it.
CREATE TABLE holdfast.roll (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  scope   text COLLATE "C" NOT NULL,
  part    text COLLATE "C" NOT NULL,  -- transcripts or trash
  name    text COLLATE "C" NOT NULL,
  ino     bigint NOT NULL,            -- drawn anew whenever lines before its end change
  size    bigint NOT NULL DEFAULT 0,
  lines   bigint NOT NULL DEFAULT 0,
  changed bigint NOT NULL,
  mix     bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, scope, part, name)
) WITH (fillfactor = 70);

CREATE TABLE holdfast.line (
  tenant text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  ino    bigint NOT NULL,
  start  bigint NOT NULL,             -- how many bytes of the transcript lie before it
  number bigint NOT NULL,
  scope  text COLLATE "C" NOT NULL,
  data   bytea NOT NULL,              -- without its newline
  PRIMARY KEY (tenant, ino, start)
);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['shelf_folder', 'document', 'roll', 'line'] LOOP
    PERFORM holdfast.protect(
      format('holdfast.%I', name)::regclass,
      'scope NOT LIKE ''agents/%'' OR (SELECT holdfast.agent()) IN (''*'', substr(scope, 8))'
    );
  END LOOP;
END
$$;

-- A document's bytes as text, whatever they are.
CREATE FUNCTION holdfast.as_text(data bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog AS $$
BEGIN
  RETURN convert_from(data, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
  RETURN encode(data, 'escape');
END
$$;

-- What agents keep for themselves, as keys and values: the current text of each note.
CREATE VIEW holdfast.agent_memory WITH (security_invoker = true) AS
SELECT tenant, substr(scope, 8) AS agent, left(name, -3) AS key,
  regexp_replace(
    split_part(regexp_replace(holdfast.as_text(data), '^---\n.*?\n---\n', ''), E'\n<!-- holdfast:history -->', 1), '\n+$', ''
  ) AS value,
  to_timestamp(changed / 1e9) AS updated
FROM holdfast.document
WHERE scope LIKE 'agents/%' AND part = 'notes' AND name LIKE '%.md';

COMMENT ON VIEW holdfast.agent_memory IS
  'What agents keep for themselves: the current text of each note as it stands in its document. A line that looks like one of '
  'our marks (<!-- holdfast:, or the heading of a version) has one backslash more there than it was stored with.';
GRANT SELECT ON holdfast.agent_memory TO holdfast_app;

-- Every row of one of our tables that the caller may see, as JSON in UTF-8: what a purge reads back.
CREATE FUNCTION holdfast.each_row(kept text) RETURNS SETOF bytea LANGUAGE plpgsql STABLE
SET search_path = pg_catalog AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT convert_to(to_jsonb(t)::text, ''UTF8'') FROM holdfast.%I AS t', kept);
END
$$;
