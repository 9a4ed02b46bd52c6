-- Who last wrote each file of an agent's tree. A record is there for whoever may see the file.
CREATE TABLE holdfast.file_sources (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  scope   text COLLATE "C" NOT NULL,            -- the folder of its scope
  file    text COLLATE "C" NOT NULL,            -- a digest of its path in the tree
  inode   bigint NOT NULL,                      -- of the file that was written, as are the next two: another one is not its writer's
  changed bigint NOT NULL,                      -- nanoseconds since 1970
  size    bigint NOT NULL,
  origin  text COLLATE "C" NOT NULL,
  agent   text COLLATE "C",
  client  text COLLATE "C",
  session text COLLATE "C",
  trust   text COLLATE "C",                     -- of the writers before, if that is less than the origin's
  time    bigint NOT NULL,                      -- seconds since 1970
  PRIMARY KEY (tenant, scope, file)
);
SELECT holdfast.protect(
  'holdfast.file_sources', 'scope NOT LIKE ''agents/%'' OR (SELECT holdfast.agent()) IN (''*'', substr(scope, 8))'
);
