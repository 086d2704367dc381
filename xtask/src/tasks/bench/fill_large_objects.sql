-- Large objects for `cargo xtask bench salvage`: :objects of them, of 100 bytes each.
\set ON_ERROR_STOP on
SELECT count(lo_from_bytea(0, decode(repeat(md5(n::text), 7), 'hex'))) FROM generate_series(1, :objects) AS n;
VACUUM (FREEZE) pg_largeobject;
VACUUM (FREEZE) pg_largeobject_metadata;
CHECKPOINT;
