-- After every migration, in its transaction: nothing for PUBLIC, and for holdfast_app what is safe by its nature.
REVOKE ALL ON SCHEMA holdfast FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA holdfast FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA holdfast FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA holdfast TO holdfast_app;
DO $$
DECLARE made record;
BEGIN
  FOR made IN
    SELECT oid::regprocedure AS name FROM pg_proc
    WHERE pronamespace = 'holdfast'::regnamespace AND NOT prosecdef AND proname <> 'protect'
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO holdfast_app', made.name);
  END LOOP;
END
$$;
