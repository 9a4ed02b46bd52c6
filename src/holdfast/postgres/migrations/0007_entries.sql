-- The type in the frontmatter of an entry file is kept with its passages. Facts are read in more notations, and whether a file
-- says more than facts is kept with it. Markdown files, and notes with what may be a dated line, are read again if they are
-- catalogued already: a stamp that no file has makes the next look at their folder do so.
ALTER TABLE holdfast.doc ADD COLUMN IF NOT EXISTS prose boolean NOT NULL DEFAULT false;
ALTER TABLE holdfast.folder NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.doc NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.passage NO FORCE ROW LEVEL SECURITY;
WITH changed AS (
  UPDATE holdfast.doc d SET ctime = -1, mix = d.mix # hashtextextended(d.name, 7)
  WHERE (d.kind = 'file' AND d.name LIKE '%.md') OR (d.kind = 'note' AND EXISTS (
    SELECT FROM holdfast.passage p
    WHERE p.tenant = d.tenant AND p.doc = d.id AND NOT p.past AND p.text LIKE '%[____-__-__%'))
  RETURNING d.tenant, d.folder, hashtextextended(d.name, 7) AS mixed
)
UPDATE holdfast.folder f SET fingerprint = f.fingerprint # c.mixed, version = f.version + 1
FROM (SELECT tenant, folder, bit_xor(mixed) AS mixed FROM changed GROUP BY tenant, folder) c
WHERE f.tenant = c.tenant AND f.id = c.folder;
ALTER TABLE holdfast.passage FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.doc FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.folder FORCE ROW LEVEL SECURITY;
