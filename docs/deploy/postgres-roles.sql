-- Create the roles and the database of Holdfast. Run it as an administrator: psql -U postgres -d postgres -f postgres-roles.sql
-- Set the passwords in the environment: HOLDFAST_OWNER_PASSWORD, HOLDFAST_PASSWORD, HOLDFAST_BACKUP_PASSWORD. Needs psql 15 or later.
\set ON_ERROR_STOP on
\getenv owner_password HOLDFAST_OWNER_PASSWORD
\getenv password HOLDFAST_PASSWORD
\getenv backup_password HOLDFAST_BACKUP_PASSWORD

-- Every transaction runs as this role. It owns nothing and cannot bypass row-level security.
CREATE ROLE holdfast_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION;

-- Owns the schema and migrates it. The server does not use it.
CREATE ROLE holdfast_owner LOGIN PASSWORD :'owner_password';
GRANT holdfast_app TO holdfast_owner;

-- The login of the server.
CREATE ROLE holdfast LOGIN PASSWORD :'password';
GRANT holdfast_app TO holdfast;

-- The login for backups. It reads the rows of all tenants: protect its password like the backups.
CREATE ROLE holdfast_backup LOGIN BYPASSRLS PASSWORD :'backup_password';
GRANT pg_read_all_data TO holdfast_backup;

CREATE DATABASE memory OWNER holdfast_owner;
REVOKE ALL ON DATABASE memory FROM PUBLIC;
GRANT CONNECT ON DATABASE memory TO holdfast, holdfast_backup;
\connect memory
CREATE EXTENSION IF NOT EXISTS vector;  -- remove this line if pgvector is not installed: search is then by words only
