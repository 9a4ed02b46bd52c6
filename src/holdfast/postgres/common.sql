-- Statements of transactions, locks, migrations and checks. Settings hold for one transaction (`true`), never for a session.

-- name: begin
BEGIN;

-- name: begin_read_only
BEGIN READ ONLY;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: read_settings
SELECT set_config('role', 'holdfast_app', true), set_config('search_path', 'holdfast, public, pg_temp', true),
  set_config('holdfast.tenant', :tenant, true), set_config('holdfast.agent', :agent, true),
  set_config('statement_timeout', :statement_timeout, true), set_config('lock_timeout', :lock_timeout, true),
  set_config('idle_in_transaction_session_timeout', :idle_timeout, true);

-- name: write_settings
SELECT set_config('role', 'holdfast_app', true), set_config('search_path', 'holdfast, public, pg_temp', true),
  set_config('holdfast.tenant', :tenant, true), set_config('holdfast.agent', :agent, true),
  set_config('statement_timeout', :statement_timeout, true), set_config('lock_timeout', :lock_timeout, true),
  set_config('idle_in_transaction_session_timeout', :idle_timeout, true), set_config('synchronous_commit', 'off', true);

-- name: durable_settings
SELECT set_config('role', 'holdfast_app', true), set_config('search_path', 'holdfast, public, pg_temp', true),
  set_config('holdfast.tenant', :tenant, true), set_config('holdfast.agent', :agent, true),
  set_config('statement_timeout', :statement_timeout, true), set_config('lock_timeout', :lock_timeout, true),
  set_config('idle_in_transaction_session_timeout', :idle_timeout, true),
  CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END;

-- name: try_lock
SELECT pg_try_advisory_xact_lock(:number::bigint);

-- name: version
SELECT holdfast.version(), (
  SELECT to_regtype('public.halfvec') IS NOT NULL AND pg_has_role(relowner, 'USAGE') AND NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'numbers' AND NOT attisdropped)
  FROM pg_class WHERE oid = to_regclass('holdfast.vectors'));

-- name: pgvector
SELECT (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'), extension.extversion, schema.nspname,
  to_regtype('public.halfvec') IS NOT NULL, EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = to_regclass('holdfast.vectors') AND attname = 'numbers' AND NOT attisdropped)
FROM (SELECT) AS one LEFT JOIN pg_extension AS extension ON extension.extname = 'vector'
  LEFT JOIN pg_namespace AS schema ON schema.oid = extension.extnamespace;

-- name: make_vectors
SELECT holdfast.make_vectors();

-- name: identity
SELECT system_identifier::text, current_database()::text, pg_is_in_recovery(), pg_postmaster_start_time()::text
FROM pg_control_system();

-- name: login
SELECT rolname::text, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = session_user;

-- name: migration_settings
SELECT set_config('lock_timeout', :lock_timeout, true), set_config('statement_timeout', '0', true),
  set_config('idle_in_transaction_session_timeout', '0', true), set_config('client_min_messages', 'warning', true);

-- name: migration_lock
SELECT pg_advisory_xact_lock(:number::bigint);

-- name: make_schema
DO $$
BEGIN
  IF to_regnamespace('holdfast') IS NULL THEN  -- IF NOT EXISTS asks for the right to make one even where it is there
    CREATE SCHEMA holdfast;
  END IF;
END
$$;

-- name: make_migrations
CREATE TABLE IF NOT EXISTS holdfast.migration (
  number integer PRIMARY KEY,
  name   text NOT NULL,
  digest text NOT NULL,
  time   timestamptz NOT NULL DEFAULT now()
);

-- name: migration_search_path
SELECT set_config('search_path', 'holdfast, public, pg_temp', true);

-- name: applied
SELECT digest FROM holdfast.migration WHERE number = :number;

-- name: add_applied
INSERT INTO holdfast.migration (number, name, digest) VALUES (:number, :name, :digest);

-- name: make_platform_views
SELECT CASE WHEN to_regclass('holdfast_views.reviewed_prs') IS NULL THEN holdfast.make_platform_views() ELSE false END;
