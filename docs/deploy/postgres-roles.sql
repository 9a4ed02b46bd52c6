-- Roles and a database for Holdfast, by an administrator: psql -f postgres-roles.sql
-- Passwords come from the environment (psql 15 or later): HOLDFAST_OWNER_PASSWORD, HOLDFAST_PASSWORD, HOLDFAST_BACKUP_PASSWORD.
\set ON_ERROR_STOP on
\getenv owner_password HOLDFAST_OWNER_PASSWORD
\getenv password HOLDFAST_PASSWORD
\getenv backup_password HOLDFAST_BACKUP_PASSWORD

-- What every transaction runs as. It owns nothing and cannot pass over row-level security.
CREATE ROLE holdfast_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION;

-- Owns the schema and migrates it; not used by the service.
CREATE ROLE holdfast_owner LOGIN PASSWORD :'owner_password';
GRANT holdfast_app TO holdfast_owner;

-- What the service logs in as.
CREATE ROLE holdfast LOGIN PASSWORD :'password';
GRANT holdfast_app TO holdfast;

-- What backups are made as: it reads every tenant's rows, so guard its password as you guard the backups.
CREATE ROLE holdfast_backup LOGIN BYPASSRLS PASSWORD :'backup_password';
GRANT pg_read_all_data TO holdfast_backup;

CREATE DATABASE memory OWNER holdfast_owner;
REVOKE ALL ON DATABASE memory FROM PUBLIC;
GRANT CONNECT ON DATABASE memory TO holdfast, holdfast_backup;
\connect memory
CREATE EXTENSION IF NOT EXISTS vector;  -- leave it out where the server has none: words are searched all the same
