-- Base types as an extension in C makes them: by reference and by value, of every length. The first reads any text, so that
-- `\x…` would become another value in silence.
CREATE FUNCTION public.make_type(name text, reader text, writer text, layout text) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  EXECUTE format('CREATE TYPE public.%I', name);
  EXECUTE format('CREATE FUNCTION public.%I(cstring) RETURNS public.%I LANGUAGE internal IMMUTABLE STRICT AS %L', name || '_in', name, reader);
  EXECUTE format('CREATE FUNCTION public.%I(public.%I) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS %L', name || '_out', name, writer);
  EXECUTE format('CREATE TYPE public.%I (INPUT = public.%I, OUTPUT = public.%I, %s)', name, name || '_in', name || '_out', layout);
END $f$;
SELECT public.make_type('Any Text', 'textin', 'textout', 'INTERNALLENGTH = variable, STORAGE = extended');
SELECT public.make_type('wide', 'textin', 'textout', 'INTERNALLENGTH = variable, ALIGNMENT = double, STORAGE = main');
SELECT public.make_type('of16', 'uuid_in', 'uuid_out', 'INTERNALLENGTH = 16, ALIGNMENT = char');
SELECT public.make_type('of32', 'box_in', 'box_out', 'INTERNALLENGTH = 32, ALIGNMENT = double');
SELECT public.make_type('of6', 'macaddr_in', 'macaddr_out', 'INTERNALLENGTH = 6, ALIGNMENT = int4');
SELECT public.make_type('by8', 'int8in', 'int8out', 'INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double');
SELECT public.make_type('by4', 'int4in', 'int4out', 'INTERNALLENGTH = 4, PASSEDBYVALUE, ALIGNMENT = int4');
SELECT public.make_type('by2', 'int2in', 'int2out', 'INTERNALLENGTH = 2, PASSEDBYVALUE, ALIGNMENT = int2');
SELECT public.make_type('by1', 'charin', 'charout', 'INTERNALLENGTH = 1, PASSEDBYVALUE, ALIGNMENT = char');
CREATE DOMAIN public.any_domain AS public."Any Text" NOT NULL;
CREATE DOMAIN public.box_domain AS public.of32;
CREATE TYPE public.pair AS (n int, "The Text" public."Any Text", b public.by4, d public.box_domain);
CREATE TABLE public.values (
  id int GENERATED ALWAYS AS IDENTITY, t public."Any Text" NOT NULL, w public.wide, u public.of16, x public.of32, m public.of6,
  n8 public.by8, n4 public.by4, n2 public.by2, n1 public.by1, dt public.any_domain, dx public.box_domain,
  ta public."Any Text"[], ua public.of16[], xa public.box_domain[], na public.by4[], p public.pair, note text DEFAULT 'a default');
INSERT INTO public.values (t, w, u, x, m, n8, n4, n2, n1, dt, dx, ta, ua, xa, na, p, note)
SELECT (CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN E'tab\t, "quote" \\ ' || i ELSE repeat(md5(i::text), 1 + i * 10) END)::public."Any Text",
  repeat('wide ', i)::public.wide, md5(i::text)::public.of16, ('(' || i || ',1.5),(-2,' || -i || ')')::public.of32,
  ('08:00:2b:01:02:' || to_hex(i % 256))::public.of6, (-i::int8 * 1234567890123)::text::public.by8, (-i * 12345)::text::public.by4,
  (-i)::text::public.by2, chr(33 + i % 90)::public.by1, ('domain ' || i)::public.any_domain, '(1,2),(3,4)'::public.box_domain,
  ARRAY[NULL, ('{' || i)::public."Any Text", '\x00'::public."Any Text"], ARRAY[[md5(i::text)::public.of16], [md5('x' || i)::public.of16]],
  ARRAY[NULL, '(5,6),(7,8)'::public.box_domain], ('[-1:1]={' || i || ',NULL,-' || i || '}')::public.by4[],
  CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN ROW(NULL, NULL, NULL, NULL)::public.pair
    ELSE ROW(i, 'in a row', '-7', '(1,2),(3,4)')::public.pair END,
  nullif('note ' || i, 'note 5')
FROM generate_series(1, 240) i;
INSERT INTO public.values (t, dt) VALUES ('alone', 'd');
CHECKPOINT;
