-- The type in the frontmatter of an entry file is kept with its passages. Markdown files that are catalogued already are read
-- again: a stamp that no file has makes the next look at their folder do so.
ALTER TABLE holdfast.folder NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.doc NO FORCE ROW LEVEL SECURITY;
UPDATE holdfast.folder f SET fingerprint = f.fingerprint # changed.mixed, version = f.version + 1
FROM (
  SELECT tenant, folder, bit_xor(hashtextextended(name, 7)) AS mixed FROM holdfast.doc
  WHERE kind = 'file' AND name LIKE '%.md' GROUP BY tenant, folder
) changed
WHERE f.tenant = changed.tenant AND f.id = changed.folder;
UPDATE holdfast.doc SET ctime = -1, mix = mix # hashtextextended(name, 7) WHERE kind = 'file' AND name LIKE '%.md';
ALTER TABLE holdfast.doc FORCE ROW LEVEL SECURITY;
ALTER TABLE holdfast.folder FORCE ROW LEVEL SECURITY;
