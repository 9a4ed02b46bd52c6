-- The catalogue of every tenant. Everything here is derived from the shelf and may be thrown away.
--
-- Words are kept as rows (`mention`), not as a tsvector: row-level security lets no operator run before it that could leak what
-- it sees, and `@@` is one of those, so that a GIN index would never be used. An equality of numbers leaks nothing, the rows of
-- a tenant stand together, and the rating is exact. docs/adr/0023-the-index-in-postgresql.md has the figures.

CREATE SEQUENCE holdfast.folder_id;
CREATE SEQUENCE holdfast.doc_id CACHE 1;
CREATE SEQUENCE holdfast.passage_id CACHE 1;
CREATE SEQUENCE holdfast.fact_id CACHE 1;
CREATE SEQUENCE holdfast.model_id;
GRANT USAGE ON SEQUENCE holdfast.folder_id, holdfast.doc_id, holdfast.passage_id, holdfast.fact_id, holdfast.model_id TO holdfast_app;

CREATE TABLE holdfast.folder (
  tenant      text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  id          bigint NOT NULL DEFAULT nextval('holdfast.folder_id'),
  scope       text COLLATE "C" NOT NULL,      -- projects/abc
  part        text COLLATE "C" NOT NULL,      -- notes, files, transcripts
  fingerprint bigint NOT NULL DEFAULT 0,      -- all its docs' stamps, XORed
  listed      double precision NOT NULL DEFAULT 0,  -- when index.md was last made
  stale       boolean NOT NULL DEFAULT true,  -- whether it may say other than the notes do
  passages    bigint NOT NULL DEFAULT 0,      -- that are current,
  words       bigint NOT NULL DEFAULT 0,      -- the words in them,
  tokens      bigint NOT NULL DEFAULT 0,      -- and with what they are called
  old         bigint NOT NULL DEFAULT 0,      -- passages of the past,
  old_tokens  bigint NOT NULL DEFAULT 0,      -- and their words
  version     bigint NOT NULL DEFAULT 0,      -- another number, another content
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, scope, part)
) WITH (fillfactor = 50);

CREATE TABLE holdfast.doc (
  tenant     text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  id         bigint NOT NULL,
  folder     bigint NOT NULL,
  name       text COLLATE "C" NOT NULL,
  ino        bigint NOT NULL,
  ctime      bigint NOT NULL,
  size       bigint NOT NULL,
  mix        bigint NOT NULL,                 -- this doc's share of the folder's fingerprint
  digest     text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,       -- note, file, session
  key        text COLLATE "C" NOT NULL,
  note_id    text COLLATE "C" NOT NULL,
  title      text COLLATE "C" NOT NULL,
  type       text COLLATE "C",
  tags       text COLLATE "C" NOT NULL,
  created    text COLLATE "C" NOT NULL,
  updated    text COLLATE "C" NOT NULL,
  source     text COLLATE "C" NOT NULL,
  valid_from text COLLATE "C",
  valid_to   text COLLATE "C",
  pinned     boolean NOT NULL,
  touched    text COLLATE "C" NOT NULL,       -- updated, or brought back from the archive
  first_line bigint NOT NULL,
  last_line  bigint NOT NULL,
  versions   bigint NOT NULL,
  problem    text COLLATE "C" NOT NULL,
  trust      text COLLATE "C" NOT NULL,       -- of a note: how far its text can be trusted,
  exposed    boolean NOT NULL,                -- and whether it seems to hold a secret
  PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX doc_name ON holdfast.doc (tenant, folder, name);
CREATE INDEX doc_updated ON holdfast.doc (tenant, folder, updated);
CREATE INDEX doc_pinned ON holdfast.doc (tenant, folder, pinned, updated);
CREATE INDEX doc_exposed ON holdfast.doc (tenant, folder) WHERE exposed;
CREATE INDEX doc_doubted ON holdfast.doc (tenant, trust) WHERE trust NOT IN ('', 'user', 'agent');

CREATE TABLE holdfast.passage (
  tenant     text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  id         bigint NOT NULL,
  folder     bigint NOT NULL,
  doc        bigint NOT NULL,
  seq        bigint NOT NULL,                 -- of a note: the version, oldest 0; of a file: the section; of a session: the turn
  past       boolean NOT NULL,
  names      text COLLATE "C" NOT NULL,       -- key, title, tags, path: what it is called
  text       text COLLATE "C" NOT NULL,
  first_line bigint NOT NULL,
  last_line  bigint NOT NULL,
  type       text COLLATE "C",
  tags       text COLLATE "C" NOT NULL,
  source     text COLLATE "C" NOT NULL,
  recorded   text COLLATE "C" NOT NULL,
  valid_from text COLLATE "C",
  valid_to   text COLLATE "C",
  closed     text COLLATE "C",                -- the end that a later version put to it
  replaced   text COLLATE "C",                -- when that later version was recorded
  words      bigint NOT NULL,                 -- how many the catalogue keeps of it,
  length     bigint NOT NULL,                 -- with what it is called,
  terms      bigint[] NOT NULL,               -- and which: by these its mentions are found again
  sum        bigint NOT NULL,                 -- of the text, to tell if it is still what was written
  turn       text COLLATE "C",                -- of a turn: its id,
  speaker    text COLLATE "C",                -- who said it: a name, or user, assistant, system, tool;
  spoken     text COLLATE "C",                -- how that begins, in small letters,
  "offset"   bigint,                          -- and where its line begins
  PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX passage_doc ON holdfast.passage (tenant, doc, seq);
CREATE INDEX passage_spoken ON holdfast.passage (tenant, spoken) WHERE spoken IS NOT NULL;

CREATE TABLE holdfast.mention (               -- that a passage says a word
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  word    bigint NOT NULL,                    -- the word's number; in a passage of the past it has another
  folder  bigint NOT NULL,
  passage bigint NOT NULL,
  times   smallint NOT NULL,                  -- how often,
  length  integer NOT NULL,                   -- among how many words
  PRIMARY KEY (tenant, word, folder, passage) INCLUDE (times, length)
);

CREATE TABLE holdfast.word (                  -- the words there are, to find them by how they begin
  tenant text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  term   text COLLATE "C" NOT NULL,
  now    bigint NOT NULL,                     -- its number,
  past   bigint NOT NULL,                     -- and that in passages of the past
  PRIMARY KEY (tenant, term)
);

CREATE TABLE holdfast.made (                  -- what versions of notes were made from
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  folder  bigint NOT NULL,
  passage bigint NOT NULL,
  number  integer NOT NULL,
  what    text COLLATE "C" NOT NULL,          -- of any length: no index would take that
  PRIMARY KEY (tenant, passage, number)
);

CREATE TABLE holdfast.fact (
  tenant     text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  id         bigint NOT NULL DEFAULT nextval('holdfast.fact_id'),
  folder     bigint NOT NULL,
  doc        bigint NOT NULL,
  subject    text COLLATE "C" NOT NULL,
  label      text COLLATE "C" NOT NULL,
  value      text COLLATE "C" NOT NULL,
  about      text COLLATE "C" NOT NULL,       -- subject, folded and, where it is very long, shortened
  named      text COLLATE "C" NOT NULL,       -- label, likewise
  valid_from text COLLATE "C" NOT NULL,
  valid_to   text COLLATE "C",
  retired_by text COLLATE "C",
  links      text COLLATE "C" NOT NULL,
  line       bigint NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX fact_doc ON holdfast.fact (tenant, doc);
CREATE INDEX fact_about ON holdfast.fact (tenant, about);
CREATE INDEX fact_named ON holdfast.fact (tenant, named);

CREATE TABLE holdfast.piece (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  folder  bigint NOT NULL,
  passage bigint NOT NULL,
  number  bigint NOT NULL,
  marks   bigint NOT NULL,                    -- what kind of piece it is: see pieces.py
  tokens  text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, passage, number)
);

CREATE TABLE holdfast.model (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  id      bigint NOT NULL DEFAULT nextval('holdfast.model_id'),
  name    text COLLATE "C" NOT NULL,
  dim     integer NOT NULL,
  role    text COLLATE "C" NOT NULL,          -- what it is for: static, sentence, multi
  setting text COLLATE "C" NOT NULL,          -- what opens it again; never a key or a password
  asked   bigint NOT NULL DEFAULT 0,          -- the newest other model there was when somebody who has this one set last asked
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, name, role)
);

CREATE TABLE holdfast.lacking (               -- current passages that lack a model's vectors
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  model   bigint NOT NULL,
  folder  bigint NOT NULL,
  passage bigint NOT NULL,
  PRIMARY KEY (tenant, model, passage)
);
CREATE INDEX lacking_passage ON holdfast.lacking (tenant, passage);

CREATE TABLE holdfast.stock (                 -- what vectors of a model a folder has
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  model   bigint NOT NULL,
  folder  bigint NOT NULL,
  narrow  bigint NOT NULL DEFAULT 0,          -- that every process compares for itself,
  wide    bigint NOT NULL DEFAULT 0,          -- and that are compared here
  removed bigint NOT NULL DEFAULT 0,          -- how many were ever taken out
  version bigint NOT NULL DEFAULT 0,          -- another number, other contents
  PRIMARY KEY (tenant, model, folder)
) WITH (fillfactor = 50);

CREATE TABLE holdfast.vectors (               -- their numbers are a column that `make_vectors` adds
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  model   bigint NOT NULL,
  passage bigint NOT NULL,
  place   integer NOT NULL,                   -- among those of the passage
  number  bigint NOT NULL,                    -- which piece it is of: see pieces.py
  folder  bigint NOT NULL,
  dim     integer NOT NULL,
  wide    boolean NOT NULL,                   -- beyond those that every process compares for itself
  version bigint NOT NULL,                    -- of the stock that it came with
  PRIMARY KEY (tenant, model, passage, place)
);
CREATE INDEX vectors_narrow ON holdfast.vectors (tenant, model, folder, version) WHERE NOT wide;

-- A row is there for whoever may see its folder. Which folders those are is looked up once a statement; a person sees all.
DO $$
DECLARE name text;
BEGIN
  PERFORM holdfast.protect(
    'holdfast.folder', 'scope NOT LIKE ''agents/%'' OR (SELECT holdfast.agent()) IN (''*'', substr(scope, 8))'
  );
  FOREACH name IN ARRAY ARRAY['doc', 'passage', 'mention', 'made', 'fact', 'piece', 'lacking', 'stock', 'vectors'] LOOP
    PERFORM holdfast.protect(
      format('holdfast.%I', name)::regclass,
      '(SELECT holdfast.agent()) = ''*'' OR folder IN (SELECT f.id FROM holdfast.folder f)'
    );
  END LOOP;
  PERFORM holdfast.protect('holdfast.model');  -- names of models, and nothing that anybody said
  PERFORM holdfast.protect('holdfast.word');
END $$;

-- A word is there for whoever may see a passage that says it. `LIMIT`: a look into an index for each word, never all mentions.
ALTER POLICY own_tenant ON holdfast.word USING (
  tenant = (SELECT holdfast.tenant()) AND (
    (SELECT holdfast.agent()) = '*'
    OR (SELECT true FROM holdfast.mention m WHERE m.tenant = word.tenant AND m.word = word.now LIMIT 1)
    OR (SELECT true FROM holdfast.mention m WHERE m.tenant = word.tenant AND m.word = word.past LIMIT 1)
  )
);

-- What is about the rows of all agents, whoever asks: words that nothing says any more, and a model's coming and going. None
-- of these tells anything that an agent says. (A function's own SET would need a superuser, so they set and set back.)
CREATE FUNCTION holdfast.unsaid(terms text[]) RETURNS SETOF text LANGUAGE plpgsql SET search_path = holdfast, pg_temp AS $$
DECLARE before text := current_setting('holdfast.agent', true);
BEGIN
  PERFORM set_config('holdfast.agent', '*', true);
  RETURN QUERY SELECT w.term FROM word w
    WHERE w.term = ANY(terms) AND NOT EXISTS (SELECT FROM mention m WHERE m.word IN (w.now, w.past));
  PERFORM set_config('holdfast.agent', before, true);
END $$;

CREATE FUNCTION holdfast.drop_unsaid() RETURNS void LANGUAGE plpgsql SET search_path = holdfast, pg_temp AS $$
DECLARE before text := current_setting('holdfast.agent', true);
BEGIN
  PERFORM set_config('holdfast.agent', '*', true);
  DELETE FROM word w WHERE NOT EXISTS (SELECT FROM mention m WHERE m.word = w.now)
    AND NOT EXISTS (SELECT FROM mention m WHERE m.word = w.past);
  PERFORM set_config('holdfast.agent', before, true);
END $$;

CREATE FUNCTION holdfast.add_model(name text, dim integer, role text, setting text) RETURNS void LANGUAGE plpgsql
SET search_path = holdfast, pg_temp AS $$
DECLARE before text := current_setting('holdfast.agent', true);
BEGIN
  PERFORM set_config('holdfast.agent', '*', true);
  WITH added AS (
    INSERT INTO model AS m (name, dim, role, setting) VALUES (add_model.name, add_model.dim, add_model.role, add_model.setting)
    ON CONFLICT DO NOTHING RETURNING m.id
  )
  INSERT INTO lacking (model, folder, passage) SELECT a.id, p.folder, p.id FROM added a CROSS JOIN passage p WHERE NOT p.past;
  PERFORM set_config('holdfast.agent', before, true);
END $$;

CREATE FUNCTION holdfast.drop_model(gone bigint) RETURNS void LANGUAGE plpgsql SET search_path = holdfast, pg_temp AS $$
DECLARE before text := current_setting('holdfast.agent', true);
BEGIN
  PERFORM set_config('holdfast.agent', '*', true);
  DELETE FROM model WHERE id = gone;
  DELETE FROM stock WHERE model = gone;
  DELETE FROM lacking WHERE model = gone;
  DELETE FROM vectors WHERE model = gone;
  PERFORM set_config('holdfast.agent', before, true);
END $$;

-- Vectors need the extension pgvector. Where it is not there, words alone are searched, and every answer says so. Once an
-- administrator has installed it, the owner of the schema runs `SELECT holdfast.make_vectors()`.
CREATE FUNCTION holdfast.make_vectors() RETURNS boolean LANGUAGE plpgsql SET search_path = holdfast, public, pg_temp AS $$
DECLARE size integer;
BEGIN
  IF to_regtype('public.halfvec') IS NULL THEN
    BEGIN
      CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
    EXCEPTION WHEN OTHERS THEN                -- not on this server, or not for this login
      RETURN false;
    END;
  END IF;
  IF to_regtype('public.halfvec') IS NULL THEN
    RETURN false;                             -- older than 0.7
  END IF;
  IF NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = 'holdfast.vectors'::regclass AND attname = 'numbers' AND NOT attisdropped
  ) THEN
    TRUNCATE vectors, model, stock, lacking, piece;  -- every passage lacks them again
    ALTER TABLE vectors ADD COLUMN numbers public.halfvec NOT NULL;
    FOREACH size IN ARRAY ARRAY[256, 384, 512] LOOP  -- of our own models; others are compared one by one
      EXECUTE format(
        'CREATE INDEX vectors_near_%s ON vectors USING hnsw ((numbers::public.halfvec(%s)) public.halfvec_cosine_ops)'
        ' WHERE wide AND dim = %s', size, size, size);
    END LOOP;
  END IF;
  RETURN true;
END $$;
SELECT holdfast.make_vectors();
