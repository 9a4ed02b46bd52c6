-- Views with the names and columns that platforms expect, in a schema of their own: holdfast.agent_action_log and
-- holdfast.reviewed_prs are tables with other columns. Row-level security holds for whoever reads the views.
-- The owner of the schema holdfast need not have the right to make schemas: `migrate` makes the views once it has.

ALTER TABLE holdfast.doc ADD COLUMN platform_key text COLLATE "C";  -- of a note: the key that a platform stored it under

-- A time as text; NULL where it is none, since people may edit a note's file.
CREATE FUNCTION holdfast.read_time(given text) RETURNS timestamptz LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog AS $$
BEGIN
  RETURN given::timestamptz;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;

-- The platform key in a note's frontmatter, if the note key was derived from it (base/platform_keys.py); NULL otherwise.
CREATE FUNCTION holdfast.read_platform_key(field text, note_key text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog AS $$
DECLARE
  name text := field;
BEGIN
  IF left(field, 1) = '"' THEN
    name := field::jsonb #>> '{}';
  END IF;
  IF right(note_key, 34) = '--' || translate(
    left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 32), '0123456789abcdef', 'abcdefghijklmnop'
  ) THEN
    RETURN name;
  END IF;
  RETURN NULL;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN NULL;
END
$$;

-- Make the views where the login may; whether they are there now.
CREATE FUNCTION holdfast.make_platform_views() RETURNS boolean LANGUAGE plpgsql AS $make$
BEGIN
  IF to_regnamespace('holdfast_views') IS NULL THEN
    CREATE SCHEMA holdfast_views;
  END IF;
  REVOKE ALL ON SCHEMA holdfast_views FROM PUBLIC;
  GRANT USAGE ON SCHEMA holdfast_views TO holdfast_app;

  CREATE OR REPLACE VIEW holdfast_views.agent_memory WITH (security_invoker = true, security_barrier = true) AS
  SELECT
    substr(d.scope, 8) AS agent_id,
    coalesce(holdfast.read_platform_key(substring(head.fields FROM '(?n)^name: (.+)$'), note.key), note.key) AS key,
    regexp_replace(  -- a line that looks like a mark of the file format has one backslash more in the file
      regexp_replace(split_part(head.rest, E'\n<!-- holdfast:history -->', 1), '\n$', ''),
      '(?n)^\\(?=\\*(?:<!-- holdfast:|## \d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)? to \d{4}-\d\d-\d\d))', '', 'g'
    ) AS value,
    jsonb_strip_nulls(jsonb_build_object(
      'note', note.key,
      'id', substring(head.fields FROM '(?n)^id: (.+)$'),
      'type', substring(head.fields FROM '(?n)^type: (.+)$')
    )) AS metadata,
    coalesce(
      holdfast.read_time(substring(head.fields FROM '(?n)^created: (.+)$')), to_timestamp(d.changed / 1e9)
    ) AS created_at,
    coalesce(
      holdfast.read_time(substring(head.fields FROM '(?n)^updated: (.+)$')), to_timestamp(d.changed / 1e9)
    ) AS updated_at,
    d.tenant
  FROM holdfast.document d
  CROSS JOIN LATERAL (SELECT left(d.name, -3) AS key, holdfast.as_text(d.data) AS text) note
  CROSS JOIN LATERAL (
    SELECT coalesce(substring(note.text FROM '^---\n(.*?\n)---\n'), '') AS fields,
      regexp_replace(note.text, '^---\n.*?\n---\n', '') AS rest
  ) head
  WHERE d.scope LIKE 'agents/%' AND d.part = 'notes' AND d.name LIKE '%.md';

  CREATE OR REPLACE VIEW holdfast_views.agent_action_log WITH (security_invoker = true, security_barrier = true) AS
  SELECT number AS id, agent AS agent_id, action, outcome, metadata::jsonb AS metadata, time::timestamptz AS created_at, tenant
  FROM holdfast.agent_action_log
  WHERE (SELECT holdfast.agent()) IN ('*', agent);  -- the table itself shows an agent what its whole tenant did

  CREATE OR REPLACE VIEW holdfast_views.reviewed_prs WITH (security_invoker = true, security_barrier = true) AS
  SELECT number AS id, agent AS agent_id, owner, repo, pr_number,
    jsonb_build_object('repository', owner || '/' || repo) AS metadata, to_timestamp(reviewed_at) AS created_at, tenant
  FROM holdfast.reviewed_prs;

  COMMENT ON VIEW holdfast_views.agent_memory IS 'What agents keep for themselves: the key and the current text of each note.';
  COMMENT ON VIEW holdfast_views.agent_action_log IS 'Every decision of the gateway, allowed or denied.';
  COMMENT ON VIEW holdfast_views.reviewed_prs IS 'Pull requests that an agent reviewed through the gateway.';
  GRANT SELECT ON holdfast_views.agent_memory, holdfast_views.agent_action_log, holdfast_views.reviewed_prs TO holdfast_app;
  RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
  RETURN false;
END
$make$;

SELECT holdfast.make_platform_views();
