-- The audit: where removed rows end, and up to which row it was shipped.

CREATE TABLE holdfast.audit_checkpoint (        -- where the removed rows of a tenant's audit end
  tenant     text COLLATE "C" PRIMARY KEY DEFAULT holdfast.tenant(),
  number     bigint NOT NULL,                   -- of the last removed row; all before it were removed too
  hash       text COLLATE "C" NOT NULL,         -- of that row: the chain goes on from it
  first_time text COLLATE "C" NOT NULL,         -- of the first removed row
  last_time  text COLLATE "C" NOT NULL,
  made       text COLLATE "C" NOT NULL,
  signature  text COLLATE "C" NOT NULL          -- over the other columns, with the tenant's key
);

CREATE TABLE holdfast.audit_shipped (           -- up to which row the audit was shipped
  tenant text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  target text COLLATE "C" NOT NULL,             -- a digest of the address
  number bigint NOT NULL,
  PRIMARY KEY (tenant, target)
) WITH (fillfactor = 50);

SELECT holdfast.protect('holdfast.audit_checkpoint'::regclass, 'true');
SELECT holdfast.protect('holdfast.audit_shipped'::regclass, 'true');

-- The application reads a checkpoint; only the functions below write one.
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON holdfast.audit_checkpoint FROM holdfast_app;

-- Room in every page: a token can be revoked on a full disk, where no table grows.
ALTER TABLE holdfast.tokens SET (fillfactor = 60);

-- Remove the rows of the transaction's tenant up to a checkpoint, and write the checkpoint. The application cannot delete
-- rows by itself; here it can, and only rows that are older than seven days, are covered by the mark, and end with the row
-- that the checkpoint names. The newest row always stays. False where the rows are not like that: then nothing is changed.
-- The functions name the tenant: an owner that is a superuser is not held to its rows by row-level security.
CREATE FUNCTION holdfast.prune_audit(
  last_number bigint, last_hash text, first_at text, last_at text, made_at text, signed text
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = holdfast, pg_temp AS $$
DECLARE
  own text := holdfast.tenant();
BEGIN
  PERFORM FROM audit_head WHERE tenant = own FOR UPDATE;
  IF NOT EXISTS (
      SELECT FROM agent_action_log WHERE tenant = own AND number = last_number AND hash = last_hash AND time = last_at
    )
    OR NOT EXISTS (SELECT FROM audit_mark WHERE tenant = own AND count > last_number)
    OR EXISTS (SELECT FROM audit_checkpoint WHERE tenant = own AND number >= last_number)
    OR EXISTS (
      SELECT FROM agent_action_log
      WHERE tenant = own AND number <= last_number
        AND time >= to_char(now() AT TIME ZONE 'UTC' - interval '7 days', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    )
  THEN
    RETURN false;
  END IF;
  INSERT INTO audit_checkpoint (number, hash, first_time, last_time, made, signature)
    VALUES (last_number, last_hash, first_at, last_at, made_at, signed)
    ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, hash = excluded.hash, first_time = excluded.first_time,
      last_time = excluded.last_time, made = excluded.made, signature = excluded.signature;
  DELETE FROM agent_action_log WHERE tenant = own AND number <= last_number;
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION holdfast.prune_audit(bigint, text, text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION holdfast.prune_audit(bigint, text, text, text, text, text) TO holdfast_app;

-- Begin the audit of a tenant that has none behind the checkpoint of another store: `holdfast copy`. False where it has one.
CREATE FUNCTION holdfast.begin_audit_after(
  last_number bigint, last_hash text, first_at text, last_at text, made_at text, signed text
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = holdfast, pg_temp AS $$
DECLARE
  own text := holdfast.tenant();
BEGIN
  IF own IS NULL OR EXISTS (SELECT FROM agent_action_log WHERE tenant = own)
    OR EXISTS (SELECT FROM audit_head WHERE tenant = own AND count > 0)
    OR EXISTS (SELECT FROM audit_mark WHERE tenant = own) OR EXISTS (SELECT FROM audit_checkpoint WHERE tenant = own)
  THEN
    RETURN false;
  END IF;
  INSERT INTO audit_head (count, hash, marked) VALUES (last_number, last_hash, 0)
    ON CONFLICT (tenant) DO UPDATE SET count = excluded.count, hash = excluded.hash;
  INSERT INTO audit_checkpoint (number, hash, first_time, last_time, made, signature)
    VALUES (last_number, last_hash, first_at, last_at, made_at, signed);
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION holdfast.begin_audit_after(bigint, text, text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION holdfast.begin_audit_after(bigint, text, text, text, text, text) TO holdfast_app;

-- The tenants with rows that were not shipped to a target yet. Row-level security is forced on the owner too, who may see
-- the heads and the positions of all tenants while this function runs.
CREATE POLICY listed ON holdfast.audit_head FOR SELECT TO CURRENT_USER
  USING (current_setting('holdfast.listed', true) = 'audit');
CREATE POLICY listed ON holdfast.audit_shipped FOR SELECT TO CURRENT_USER
  USING (current_setting('holdfast.listed', true) = 'audit');

CREATE FUNCTION holdfast.unshipped_tenants(wanted text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = holdfast, pg_temp AS $$
BEGIN
  PERFORM set_config('holdfast.listed', 'audit', true);
  RETURN QUERY SELECT h.tenant FROM audit_head h LEFT JOIN audit_shipped s ON s.tenant = h.tenant AND s.target = wanted
    WHERE h.count > coalesce(s.number, 0) ORDER BY h.tenant;
  PERFORM set_config('holdfast.listed', '', true);
END $$;
REVOKE ALL ON FUNCTION holdfast.unshipped_tenants(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION holdfast.unshipped_tenants(text) TO holdfast_app;
