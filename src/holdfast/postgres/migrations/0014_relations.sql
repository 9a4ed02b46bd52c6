-- Relations between notes, and the names that notes and files link outside their facts. Documents with a link are read again: a
-- stamp that no file has makes the next look at their folder do so.
CREATE SEQUENCE holdfast.relation_id CACHE 1;
GRANT USAGE ON SEQUENCE holdfast.relation_id TO holdfast_app;
CREATE TABLE holdfast.relation (
  tenant text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  id     bigint NOT NULL DEFAULT nextval('holdfast.relation_id'),
  folder bigint NOT NULL,
  doc    bigint NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,           -- the id of a note, or a scope's folder and a key
  status text COLLATE "C" NOT NULL,
  origin text COLLATE "C" NOT NULL,
  stated text COLLATE "C" NOT NULL,           -- when
  PRIMARY KEY (tenant, id)
);
CREATE INDEX relation_doc ON holdfast.relation (tenant, doc);
CREATE INDEX relation_target ON holdfast.relation (tenant, target);
SELECT holdfast.protect(
  'holdfast.relation', '(SELECT holdfast.agent()) = ''*'' OR folder IN (SELECT f.id FROM holdfast.folder f)'
);

ALTER TABLE holdfast.doc ADD COLUMN mentions text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX doc_note_id ON holdfast.doc (tenant, note_id) WHERE note_id <> '';
CREATE INDEX doc_mentions ON holdfast.doc (tenant, folder) WHERE mentions <> '';

ALTER TABLE holdfast.folder NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.doc NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.passage NO FORCE ROW LEVEL SECURITY;
WITH changed AS (
  UPDATE holdfast.doc d SET ctime = -1, mix = d.mix # hashtextextended(d.name, 14)
  WHERE d.kind IN ('note', 'file') AND EXISTS (
    SELECT FROM holdfast.passage p
    WHERE p.tenant = d.tenant AND p.doc = d.id AND NOT p.past AND p.text LIKE '%[[%')
  RETURNING d.tenant, d.folder, hashtextextended(d.name, 14) AS mixed
)
UPDATE holdfast.folder f SET fingerprint = f.fingerprint # c.mixed, version = f.version + 1
FROM (SELECT tenant, folder, bit_xor(mixed) AS mixed FROM changed GROUP BY tenant, folder) c
WHERE f.tenant = c.tenant AND f.id = c.folder;
ALTER TABLE holdfast.passage FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.doc FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.folder FORCE ROW LEVEL SECURITY;
