-- A word that nothing says any more goes with the last passage that said it: found by its number, not by going through all.
CREATE INDEX word_now ON holdfast.word (tenant, now);
CREATE INDEX word_past ON holdfast.word (tenant, past);

-- Whoever asks hears nothing: not whether a word was there, nor whether it went. While others change the catalogue, one of them
-- may be about to say it, so it stays until the next time; a purge waits for them (`drop_unsaid`).
CREATE FUNCTION holdfast.drop_words(numbers bigint[]) RETURNS void LANGUAGE plpgsql SET search_path = holdfast, pg_temp AS $$
DECLARE before text := current_setting('holdfast.agent', true);
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('holdfast catalogue ' || tenant(), 0)) THEN
    RETURN;
  END IF;
  PERFORM set_config('holdfast.agent', '*', true);
  DELETE FROM word w WHERE (w.now = ANY(numbers) OR w.past = ANY(numbers))
    AND NOT EXISTS (SELECT FROM mention m WHERE m.word = w.now)
    AND NOT EXISTS (SELECT FROM mention m WHERE m.word = w.past);
  PERFORM set_config('holdfast.agent', before, true);
END $$;

-- The vectors of one folder, where they are few enough to be compared one by one.
CREATE INDEX vectors_wide ON holdfast.vectors (tenant, model, folder) WHERE wide;
