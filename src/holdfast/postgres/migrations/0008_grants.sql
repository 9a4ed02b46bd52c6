-- What an agent reaches beside its own memory: projects, sessions and repositories, by pattern. The list of agents is shown to no
-- agent's transaction, and neither is this one.
CREATE TABLE holdfast.grants (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  agent   text COLLATE "C" NOT NULL,
  kind    text COLLATE "C" NOT NULL CHECK (kind IN ('project', 'session', 'repository')),
  pattern text COLLATE "C" NOT NULL,
  created bigint NOT NULL,                      -- seconds since 1970
  PRIMARY KEY (tenant, agent, kind, pattern),
  FOREIGN KEY (tenant, agent) REFERENCES holdfast.agents (tenant, name)
);

-- Agents from before there were grants go on as they did; their roles limit them as before.
ALTER TABLE holdfast.agents NO FORCE ROW LEVEL SECURITY;
INSERT INTO holdfast.grants (tenant, agent, kind, pattern, created)
SELECT a.tenant, a.name, given.kind, given.pattern, extract(epoch FROM now())::bigint
FROM holdfast.agents a, (VALUES ('project', '*'), ('session', '*'), ('repository', '*/*')) AS given (kind, pattern)
WHERE a.role <> 'operator';
ALTER TABLE holdfast.agents FORCE ROW LEVEL SECURITY;
SELECT holdfast.protect('holdfast.grants', '(SELECT holdfast.agent()) = ''*''');

-- A token is looked up with the grants of its agent: one question for each request.
DROP FUNCTION holdfast.presented(text);
CREATE FUNCTION holdfast.presented(wanted text)
RETURNS TABLE (digest bytea, expires bigint, revoked bigint, agent text, role text, tenant text, grants text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = holdfast, pg_temp AS $$
DECLARE
  kept   record;
  before text := coalesce(current_setting('holdfast.tenant', true), '');
  asker  text := coalesce(current_setting('holdfast.agent', true), '');
BEGIN
  PERFORM set_config('holdfast.shown', wanted, true);
  SELECT * INTO kept FROM tokens t WHERE t.id = wanted ORDER BY t.number LIMIT 1;
  PERFORM set_config('holdfast.shown', '', true);
  IF kept.id IS NULL THEN
    RETURN;
  END IF;
  PERFORM set_config('holdfast.tenant', kept.tenant, true), set_config('holdfast.agent', '*', true);
  RETURN QUERY SELECT kept.digest, kept.expires, kept.revoked, a.name, a.role, a.tenant,
      (SELECT json_agg(json_build_array(g.kind, g.pattern))::text FROM grants g
       WHERE g.tenant = kept.tenant AND g.agent = kept.agent)
    FROM agents a WHERE a.tenant = kept.tenant AND a.name = kept.agent;
  PERFORM set_config('holdfast.tenant', before, true), set_config('holdfast.agent', asker, true);
END $$;
REVOKE ALL ON FUNCTION holdfast.presented(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION holdfast.presented(text) TO holdfast_app;
