-- The ground: the role that all of memory is used as, who asks, and how a table is closed to everybody else.
--
-- For the migrations that follow: they run as the owner, in one transaction, with search_path holdfast, public. Every table
-- has `tenant text NOT NULL` first in its primary key and is closed by `SELECT holdfast.protect('name', condition)`.
-- Extensions go to the schema public. Views are made WITH (security_invoker = true). After every migration `closing.sql`
-- takes from PUBLIC what PostgreSQL gave it, and lets holdfast_app run functions that are not SECURITY DEFINER.

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_app') THEN
    BEGIN
      CREATE ROLE holdfast_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION;
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this server was faster
      WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role holdfast_app is missing, and this login may not make it'
          USING HINT = 'Let an administrator run: CREATE ROLE holdfast_app NOLOGIN; GRANT holdfast_app TO the login of store.url';
    END;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_app' AND (rolsuper OR rolbypassrls)) THEN
    RAISE EXCEPTION 'the role holdfast_app may read everything'
      USING HINT = 'Let an administrator run: ALTER ROLE holdfast_app NOSUPERUSER NOBYPASSRLS';
  END IF;
  -- From 16 on, who makes a role is a member that may not become it; before, every member may, and nobody knows the word SET.
  IF NOT pg_has_role(
    current_user, 'holdfast_app', CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END
  ) THEN
    EXECUTE format('GRANT holdfast_app TO %I', current_user);
  END IF;
END
$$;

GRANT USAGE ON SCHEMA holdfast TO holdfast_app;

-- Whose memory this transaction is about; NULL where nobody said, which equals nothing.
CREATE FUNCTION holdfast.tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('holdfast.tenant', true), '');

-- On whose behalf; '*' is a person, who sees the scopes of all agents.
CREATE FUNCTION holdfast.agent() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('holdfast.agent', true), '');

-- Which migration was the last: all that somebody who is not the owner can know of that table.
CREATE FUNCTION holdfast.version() RETURNS integer LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  RETURN (SELECT max(number) FROM holdfast.migration);
GRANT EXECUTE ON FUNCTION holdfast.version() TO holdfast_app;

-- Close a table: a row is there for its own tenant only, for the owner as for anybody else.
CREATE FUNCTION holdfast.protect(kept regclass, condition text DEFAULT 'true') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', kept);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', kept);
  EXECUTE format(
    'CREATE POLICY own_tenant ON %s USING (tenant = (SELECT holdfast.tenant()) AND (%s))'
    ' WITH CHECK (tenant = (SELECT holdfast.tenant()) AND (%s))', kept, condition, condition);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO holdfast_app', kept);
  IF current_setting('server_version_num')::integer >= 170000 THEN
    EXECUTE format('GRANT MAINTAIN ON %s TO holdfast_app', kept);  -- to vacuum what was purged
  END IF;
END
$$;

-- The table of migrations is the owner's: nobody else may even look.
ALTER TABLE holdfast.migration ENABLE ROW LEVEL SECURITY;
ALTER TABLE holdfast.migration FORCE ROW LEVEL SECURITY;
DO $$
BEGIN
  EXECUTE format('CREATE POLICY owner_only ON holdfast.migration TO %I USING (true) WITH CHECK (true)', current_user);
END
$$;
