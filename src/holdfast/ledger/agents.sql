-- Agents and their tokens. A token is kept as its public part and a digest, never as itself.

-- name: agents
SELECT name, role, tenant, created FROM agents WHERE :name IS NULL OR name = :name ORDER BY name;

-- name: tokens
SELECT agent, id, created, expires, revoked FROM tokens WHERE :agent IS NULL OR agent = :agent ORDER BY number;

-- name: token
SELECT tokens.id, tokens.digest, tokens.expires, tokens.revoked, agents.name, agents.role, agents.tenant
FROM tokens JOIN agents ON agents.name = tokens.agent WHERE tokens.id IN (SELECT value FROM json_each(:ids));

-- name: spelled_otherwise
SELECT name FROM agents WHERE lower(name) = lower(:name) AND name <> :name LIMIT 1;

-- name: any_agent
SELECT 1 FROM agents LIMIT 1;

-- name: valid
SELECT count(*) FROM tokens WHERE agent = :agent AND revoked IS NULL;

-- name: put_agent
INSERT INTO agents (name, role, tenant, created) VALUES (:name, :role, :tenant, :now)
ON CONFLICT (name) DO UPDATE SET role = excluded.role;

-- name: put_token
INSERT INTO tokens (id, agent, digest, created, expires) VALUES (:id, :agent, :digest, :now, :expires);

-- name: span
SELECT expires - created FROM tokens WHERE agent = :agent ORDER BY number DESC LIMIT 1;

-- name: end_tokens
UPDATE tokens SET expires = :end
WHERE agent = :agent AND revoked IS NULL AND id <> :id AND (expires IS NULL OR expires > :end);

-- name: revoke_tokens
UPDATE tokens SET revoked = :now WHERE agent = :agent AND revoked IS NULL AND id <> :id RETURNING id;
