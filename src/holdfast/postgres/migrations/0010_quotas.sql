-- Quotas: what the files of each agent add up to, and how many requests it made on a day.
ALTER TABLE holdfast.doc ADD COLUMN agent text COLLATE "C" NOT NULL DEFAULT '';  -- whose quota it counts for; '' for none,
ALTER TABLE holdfast.doc ADD COLUMN bytes bigint NOT NULL DEFAULT 0;             -- and with how many bytes

-- Every change adds a row, so that two writers never wait for each other; the rows of an agent are summed up now and then.
CREATE SEQUENCE holdfast.agent_usage_id;
CREATE TABLE holdfast.agent_usage (
  tenant text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  agent  text COLLATE "C" NOT NULL,
  id     bigint NOT NULL DEFAULT nextval('holdfast.agent_usage_id'),
  notes  bigint NOT NULL,
  bytes  bigint NOT NULL,
  PRIMARY KEY (tenant, agent, id)
);

CREATE TABLE holdfast.request_count (
  tenant   text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  agent    text COLLATE "C" NOT NULL,
  day      bigint NOT NULL,            -- days since 1970, in UTC
  requests bigint NOT NULL,
  PRIMARY KEY (tenant, agent)
) WITH (fillfactor = 50);

ALTER TABLE holdfast.folder NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.doc NO FORCE ROW LEVEL SECURITY;
UPDATE holdfast.doc d SET bytes = d.size, agent = coalesce(
  nullif(split_part(d.source, E'\n', 2), ''), (SELECT substr(f.scope, 8) FROM holdfast.folder f
    WHERE f.tenant = d.tenant AND f.id = d.folder AND f.scope LIKE 'agents/%'), '');
INSERT INTO holdfast.agent_usage (tenant, agent, notes, bytes)
SELECT tenant, agent, count(*) FILTER (WHERE kind = 'note'), sum(bytes) FROM holdfast.doc WHERE agent <> '' GROUP BY tenant, agent;
ALTER TABLE holdfast.doc FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.folder FORCE ROW LEVEL SECURITY;

SELECT holdfast.protect('holdfast.agent_usage', '(SELECT holdfast.agent()) IN (''*'', agent)');
SELECT holdfast.protect('holdfast.request_count', '(SELECT holdfast.agent()) IN (''*'', agent)');
-- An agent that replaces another's note takes it from the other's sum, which it does not see.
ALTER POLICY own_tenant ON holdfast.agent_usage WITH CHECK (tenant = (SELECT holdfast.tenant()));

CREATE FUNCTION holdfast.count_usage() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO holdfast.agent_usage (agent, notes, bytes)
    SELECT agent, count(*) FILTER (WHERE kind = 'note'), sum(bytes) FROM added WHERE agent <> '' GROUP BY agent;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO holdfast.agent_usage (agent, notes, bytes)
    SELECT agent, -count(*) FILTER (WHERE kind = 'note'), -sum(bytes) FROM removed WHERE agent <> '' GROUP BY agent;
  ELSE
    INSERT INTO holdfast.agent_usage (agent, notes, bytes)
    SELECT agent, sum(notes), sum(bytes) FROM (
      SELECT agent, (kind = 'note')::integer AS notes, bytes FROM added
      UNION ALL SELECT agent, -(kind = 'note')::integer, -bytes FROM removed
    ) AS change
    WHERE agent <> '' GROUP BY agent HAVING sum(notes) <> 0 OR sum(bytes) <> 0;
  END IF;
  IF random() < 0.02 THEN
    PERFORM holdfast.sum_usage();
  END IF;
  RETURN NULL;
END
$$;

-- Rows that another transaction is summing up are left to it.
CREATE FUNCTION holdfast.sum_usage() RETURNS void LANGUAGE sql SET search_path = pg_catalog AS $$
  WITH free AS (
    SELECT tenant, agent, id FROM holdfast.agent_usage LIMIT 10000 FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM holdfast.agent_usage u USING free f
    WHERE u.tenant = f.tenant AND u.agent = f.agent AND u.id = f.id RETURNING u.agent, u.notes, u.bytes
  )
  INSERT INTO holdfast.agent_usage (agent, notes, bytes) SELECT agent, sum(notes), sum(bytes) FROM gone GROUP BY agent;
$$;

CREATE TRIGGER doc_added AFTER INSERT ON holdfast.doc REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION holdfast.count_usage();
CREATE TRIGGER doc_changed AFTER UPDATE ON holdfast.doc REFERENCING OLD TABLE AS removed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION holdfast.count_usage();
CREATE TRIGGER doc_removed AFTER DELETE ON holdfast.doc REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION holdfast.count_usage();
