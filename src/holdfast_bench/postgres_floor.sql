-- name: drop_schema
DROP SCHEMA IF EXISTS holdfast_bench CASCADE;

-- name: create_schema
CREATE SCHEMA holdfast_bench;
CREATE TABLE holdfast_bench.document (LIKE holdfast.document INCLUDING ALL);
CREATE TABLE holdfast_bench.shelf_folder (LIKE holdfast.shelf_folder INCLUDING ALL);
CREATE TABLE holdfast_bench.folder (LIKE holdfast.folder INCLUDING ALL);
CREATE TABLE holdfast_bench.doc (LIKE holdfast.doc INCLUDING ALL);
CREATE TABLE holdfast_bench.passage (LIKE holdfast.passage INCLUDING ALL);
CREATE TABLE holdfast_bench.mention (LIKE holdfast.mention INCLUDING ALL);
CREATE TABLE holdfast_bench.word (LIKE holdfast.word INCLUDING ALL);
CREATE TABLE holdfast_bench.agent_action_log (LIKE holdfast.agent_action_log INCLUDING ALL);

-- name: document
INSERT INTO document VALUES ('bench', 'projects/bench', 'notes', :name, :data, :id, :id, :id, :id);

-- name: doc
INSERT INTO doc VALUES (
  'bench', :id, 1, :name, :id, :id, :id, :id, :name, 'note', :name, :name, :name, 'project', '', :now, :now, 'agent', :now, NULL,
  false, :now, 8, 8, 1, '', 'agent', false);

-- name: passage
INSERT INTO passage (tenant, id, folder, doc, seq, past, names, text, first_line, last_line, type, tags, source, recorded,
  valid_from, words, length, terms, sum)
VALUES ('bench', :id, 1, :id, 0, false, :name, :text, 8, 8, 'project', '', 'agent', :now, :now, :count, :count, :codes, 1);

-- name: mentions
INSERT INTO mention (tenant, word, folder, passage, times, length)
SELECT 'bench', code, 1, :id, 1, :count FROM unnest(:codes::bigint[]) AS code;

-- name: words
INSERT INTO word (tenant, term, now, past)
SELECT 'bench', * FROM unnest(:words::text[], :codes::bigint[], :codes::bigint[]) ON CONFLICT DO NOTHING;

-- name: decision
INSERT INTO agent_action_log
VALUES ('bench', :id, :now, 'operator', 'agent.memory.write', 'allowed', '{"role":"operator","scope":"project"}', :name);

-- name: shelf_folder
INSERT INTO shelf_folder (tenant, scope, part, mix) VALUES ('bench', 'projects/bench', 'notes', :id)
ON CONFLICT (tenant, scope, part) DO UPDATE SET mix = shelf_folder.mix # excluded.mix;

-- name: folder
INSERT INTO folder (tenant, id, scope, part, passages) VALUES ('bench', 1, 'projects/bench', 'notes', 1)
ON CONFLICT (tenant, id) DO UPDATE SET passages = folder.passages + 1;
