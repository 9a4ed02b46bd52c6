-- Vectors in PostgreSQL. The table `vectors` is always there; its column `numbers` where the server has pgvector.

-- name: has_vectors
SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '') FROM pg_attribute
WHERE attrelid = to_regclass('holdfast.vectors') AND attname = 'numbers' AND NOT attisdropped;

-- name: models
SELECT m.id, m.name, m.dim, 0, m.role, m.setting, m.asked, (
    SELECT count(*) FROM lacking l JOIN passage p ON p.id = l.passage JOIN folder f ON f.id = p.folder WHERE l.model = m.id)
FROM model m ORDER BY m.id;

-- name: count_current
SELECT coalesce(sum(passages), 0)::bigint FROM folder;

-- name: add_model
SELECT add_model(:name::text, :dim::integer, :role::text, :setting::text);

-- name: model_asked
UPDATE model SET asked = :newest::bigint WHERE id = :model::bigint AND asked < :newest::bigint;

-- name: drop_model
SELECT drop_model(:model::bigint);

-- name: next_waiting
SELECT p.id, p.folder, p.names, p.text, p.speaker, p.doc
FROM lacking l JOIN passage p ON p.id = l.passage JOIN folder f ON f.id = p.folder
WHERE l.model = :model::bigint ORDER BY l.passage LIMIT :most::bigint;

-- name: take_lacking
DELETE FROM lacking WHERE model = :model::bigint AND passage = ANY(:ids::bigint[]) RETURNING passage;

-- name: add_pieces
INSERT INTO piece (folder, passage, number, marks, tokens)
SELECT r.folder, r.passage, r.number, r.marks, r.tokens
FROM json_to_recordset(:rows::json) AS r (folder bigint, passage bigint, number bigint, marks bigint, tokens text)
ON CONFLICT (tenant, passage, number) DO UPDATE SET marks = excluded.marks, tokens = excluded.tokens;

-- name: stock_of
SELECT folder, narrow, version FROM stock WHERE model = :model::bigint AND folder = ANY(:folders::bigint[]);

-- name: grow_stock
INSERT INTO stock (model, folder, narrow, wide, version)
SELECT :model::bigint, r.folder, r.narrow, r.wide, 1
FROM unnest(:folders::bigint[], :narrow::bigint[], :wide::bigint[]) AS r (folder, narrow, wide)
ON CONFLICT (tenant, model, folder) DO UPDATE
SET narrow = stock.narrow + excluded.narrow, wide = stock.wide + excluded.wide, version = stock.version + 1;

-- name: add_vectors
INSERT INTO vectors (model, dim, passage, place, number, folder, wide, version, numbers)
SELECT :model::bigint, :dim::integer, r.passage, r.place, r.number, r.folder, r.wide, r.version, r.numbers::halfvec
FROM unnest(:passages::bigint[], :places::integer[], :piece_numbers::bigint[], :folders::bigint[], :wide::boolean[],
  :versions::bigint[], :vectors::text[]) AS r (passage, place, number, folder, wide, version, numbers);

-- name: drop_vectors
WITH gone AS (
  DELETE FROM vectors v USING unnest(:docs::bigint[], :firsts::bigint[]) AS d (id, first), passage p, model m
  WHERE p.doc = d.id AND p.seq >= d.first AND NOT p.past AND v.model = m.id AND v.passage = p.id RETURNING v.model, v.folder, v.wide
), fewer AS (
  SELECT model, folder, count(*) FILTER (WHERE NOT wide) AS narrow, count(*) FILTER (WHERE wide) AS wide FROM gone
  GROUP BY model, folder
)
UPDATE stock s SET narrow = s.narrow - l.narrow, wide = s.wide - l.wide, removed = s.removed + l.narrow, version = s.version + 1
FROM fewer l WHERE s.model = l.model AND s.folder = l.folder;

-- name: stock
SELECT s.model, s.folder, s.narrow, s.wide, s.removed, s.version FROM stock s JOIN folder f ON f.id = s.folder
WHERE s.folder = ANY(:folders::bigint[]);

-- name: narrow_vectors
SELECT v.model, v.folder, string_agg(int8send(v.passage * 16384 + v.number), ''),
  string_agg(halfvec_send(v.numbers), '')
FROM unnest(:models::bigint[], :folders::bigint[], :since::bigint[], :upto::bigint[]) AS w (model, folder, since, upto)
  JOIN folder f ON f.id = w.folder
  JOIN vectors v ON v.model = w.model AND v.folder = w.folder AND NOT v.wide AND v.version > w.since AND v.version <= w.upto
GROUP BY v.model, v.folder;

-- name: wide_vectors
SELECT string_agg(int8send(v.passage * 16384 + v.number), ''),
  string_agg(halfvec_send(v.numbers), '')
FROM vectors v JOIN folder f ON f.id = v.folder
WHERE v.model = :model::bigint AND v.passage = ANY(:ids::bigint[]) AND v.folder = ANY(:folders::bigint[]) AND v.wide;

-- name: set_ef_search
SELECT set_config('hnsw.ef_search', :candidates::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true);

-- name: set_ef_search_only
SELECT set_config('hnsw.ef_search', :candidates::text, true);

-- name: near_256
SELECT passage FROM vectors WHERE wide AND dim = 256 AND model = :model::bigint AND folder = :folder::bigint
ORDER BY numbers::halfvec(256) <=> :query::text::halfvec(256) LIMIT :most::bigint;

-- name: near_384
SELECT passage FROM vectors WHERE wide AND dim = 384 AND model = :model::bigint AND folder = :folder::bigint
ORDER BY numbers::halfvec(384) <=> :query::text::halfvec(384) LIMIT :most::bigint;

-- name: near_512
SELECT passage FROM vectors WHERE wide AND dim = 512 AND model = :model::bigint AND folder = :folder::bigint
ORDER BY numbers::halfvec(512) <=> :query::text::halfvec(512) LIMIT :most::bigint;

-- name: near_any
SELECT passage FROM (
  SELECT passage, min(numbers <=> :query::text::halfvec) AS distance FROM vectors
  WHERE wide AND model = :model::bigint AND folder = :folder::bigint GROUP BY passage
) AS rated ORDER BY distance, passage LIMIT :most::bigint;

-- name: vectors_of_files
SELECT halfvec_send(v.numbers)
FROM folder f JOIN doc d ON d.folder = f.id JOIN passage p ON p.doc = d.id JOIN model m ON true
  JOIN vectors v ON v.model = m.id AND v.passage = p.id
WHERE f.scope = :scope::text AND f.part = :part::text AND d.name = ANY(:files::text[]);

-- name: has_vector
SELECT 1 FROM vectors v JOIN folder f ON f.id = v.folder WHERE halfvec_send(v.numbers) = :vector::bytea LIMIT 1;

-- name: lock_folders
SELECT id FROM folder WHERE id = ANY(:folders::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: lock_index
SELECT pg_advisory_xact_lock(hashtextextended('holdfast catalogue ' || tenant(), 0));

-- name: speakers_of
SELECT DISTINCT p.speaker FROM passage p JOIN folder f ON f.id = p.folder WHERE p.doc = :doc::bigint AND p.speaker IS NOT NULL;
