SELECT 'relation', c.oid::regclass, relkind, relpersistence, pg_get_userbyid(relowner), relacl, reloptions, relreplident, relrowsecurity, relforcerowsecurity, relispartition, pg_get_expr(relpartbound, c.oid), pg_get_partkeydef(c.oid), obj_description(c.oid, 'pg_class') FROM pg_class c WHERE c.oid >= 16384 AND relkind <> 't' AND relnamespace <> 99 ORDER BY c.oid::regclass::text COLLATE "C"

SELECT 'column', attrelid::regclass, row_number() OVER (PARTITION BY attrelid ORDER BY attnum), attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attidentity, attgenerated, attcollation::regcollation, attstorage, attstattarget, attislocal, attinhcount, ARRAY(SELECT o FROM unnest(attoptions) o WHERE o NOT LIKE 'pg_attver=%'), attacl, col_description(attrelid, attnum) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'c') AND attnum > 0 AND NOT attisdropped ORDER BY attrelid::regclass::text COLLATE "C", 3

SELECT 'constraint', conrelid::regclass, contypid::regtype, conname, pg_get_constraintdef(oid), conislocal, coninhcount, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE oid >= 16384 ORDER BY conrelid::regclass::text COLLATE "C", contypid::regtype::text COLLATE "C", conname COLLATE "C"

SELECT 'index', pg_get_indexdef(indexrelid), indisclustered, indisreplident FROM pg_index WHERE indexrelid >= 16384 AND indrelid NOT IN (SELECT oid FROM pg_class WHERE relkind = 't') ORDER BY indexrelid::regclass::text COLLATE "C"

SELECT 'view', oid::regclass, pg_get_viewdef(oid), relispopulated FROM pg_class WHERE oid >= 16384 AND relkind IN ('v', 'm') ORDER BY oid::regclass::text COLLATE "C"

SELECT 'trigger', pg_get_triggerdef(oid), tgenabled, obj_description(oid, 'pg_trigger') FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgrelid::regclass::text COLLATE "C", tgname COLLATE "C"

SELECT 'rule', pg_get_ruledef(oid) FROM pg_rewrite WHERE oid >= 16384 AND rulename <> '_RETURN' ORDER BY ev_class::regclass::text COLLATE "C", rulename COLLATE "C"

SELECT 'policy', p.* FROM pg_policies p ORDER BY 2, 3, 4

SELECT 'type', t.oid::regtype, typtype, typcategory, pg_get_userbyid(typowner), typacl, format_type(typbasetype, typtypmod), typnotnull, typdefault, (SELECT array_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid), obj_description(t.oid, 'pg_type') FROM pg_type t WHERE t.oid >= 16384 AND (SELECT relkind FROM pg_class WHERE oid = typrelid) IS DISTINCT FROM 't' ORDER BY t.oid::regtype::text COLLATE "C"

SELECT 'range', rngtypid::regtype, rngsubtype::regtype, rngsubdiff::regproc FROM pg_range WHERE rngtypid >= 16384 ORDER BY 2

SELECT 'function', pg_get_functiondef(oid), pg_get_userbyid(proowner), proacl, obj_description(oid, 'pg_proc') FROM pg_proc WHERE oid >= 16384 AND prokind <> 'a' ORDER BY oid::regprocedure::text COLLATE "C"

SELECT 'aggregate', oid::regprocedure, pg_get_function_arguments(oid), aggtransfn, aggtranstype::regtype, agginitval, proparallel, proacl FROM pg_proc JOIN pg_aggregate ON aggfnoid = oid WHERE oid >= 16384 ORDER BY oid::regprocedure::text COLLATE "C"

SELECT 'sequence', seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle, refobjid::regclass, refobjsubid FROM pg_sequence LEFT JOIN pg_depend ON objid = seqrelid AND refobjsubid > 0 ORDER BY seqrelid::regclass::text COLLATE "C"

SELECT 'parent', inhrelid::regclass, inhparent::regclass, inhseqno FROM pg_inherits ORDER BY inhrelid::regclass::text COLLATE "C", inhseqno

SELECT 'schema', nspname, pg_get_userbyid(nspowner), (SELECT array_agg(a::text ORDER BY a::text COLLATE "C") FROM unnest(nspacl) a), obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY nspname COLLATE "C"

SELECT 'operator', oid::regoperator, oprcode, oprcom::regoperator FROM pg_operator WHERE oid >= 16384 ORDER BY oid::regoperator::text COLLATE "C"

SELECT 'extension', extname, extnamespace::regnamespace FROM pg_extension ORDER BY extname COLLATE "C"

SELECT 'cast', castsource::regtype, casttarget::regtype, castcontext, castmethod FROM pg_cast WHERE oid >= 16384 ORDER BY 2, 3

SELECT 'statistics', pg_get_statisticsobjdef(oid) FROM pg_statistic_ext ORDER BY stxname COLLATE "C"

SELECT 'words', mapcfg::regconfig, maptokentype, mapseqno, mapdict::regdictionary FROM pg_ts_config_map WHERE mapcfg >= 16384 ORDER BY 2, 3, 4

SELECT 'event trigger', evtname, evtevent, evtfoid::regproc, evtenabled, evttags FROM pg_event_trigger ORDER BY evtname COLLATE "C"

SELECT 'publication', p.pubname, pubowner::regrole, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, obj_description(p.oid, 'pg_publication') FROM pg_publication p ORDER BY 2

SELECT 'published', * FROM pg_publication_tables ORDER BY 2, 3, 4

SELECT 'subscription', subname, subowner::regrole, subconninfo, subpublications, subsynccommit, subenabled FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 2

SELECT 'default rights', defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl FROM pg_default_acl ORDER BY 2, 3, 4

SELECT 'conversion', conname, conowner::regrole, conforencoding, contoencoding, conproc, condefault FROM pg_conversion WHERE oid >= 16384 ORDER BY 2

SELECT 'transform', trftype::regtype, trflang, trffromsql, trftosql FROM pg_transform ORDER BY 2, 3

SELECT 'template', tmplname, tmplinit, tmpllexize FROM pg_ts_template WHERE oid >= 16384 UNION ALL SELECT 'parser', prsname, prsstart, prslextype FROM pg_ts_parser WHERE oid >= 16384

SELECT 'settings', setrole::regrole, s FROM pg_db_role_setting, unnest(setconfig) s WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 2, 3

SELECT 'of the database', nullif(shobj_description(oid, 'pg_database'), 'default administrative connection database') FROM pg_database WHERE datname = current_database()

SELECT 'rights', oid::regclass, relacl FROM pg_class WHERE oid < 16384 AND relacl IS NOT NULL ORDER BY 2

SELECT 'rights', oid::regprocedure, proacl FROM pg_proc WHERE oid < 16384 AND proacl IS NOT NULL ORDER BY 2

SELECT 'rights', typname, typacl FROM pg_type WHERE oid < 16384 AND typacl IS NOT NULL ORDER BY 2

SELECT 'rights', lanname, (SELECT array_agg(a::text ORDER BY a::text COLLATE "C") FROM unnest(lanacl) a) FROM pg_language ORDER BY 2

SELECT 'goes with', pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, 0) FROM pg_depend WHERE deptype = 'x' ORDER BY 2

SELECT 'rights on a catalog''s column', attrelid::regclass, attname, acl FROM pg_attribute, unnest(attacl) AS acl WHERE attrelid < 16384

SELECT 'owner of the database', pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()

SELECT 'rights on the database', acl FROM pg_database, unnest(datacl) AS acl WHERE datname = current_database()
