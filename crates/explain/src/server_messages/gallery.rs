//! What articles show and what servers of 13 to 18 and their programs print.

/// Text, name of the message that must come first.
pub(super) const GALLERY: &[(&str, &str)] = &[
    (
        "FATAL:  lock file \"postmaster.pid\" already exists\nHINT:  Is another postmaster (PID 4711) running in data directory \"/var/lib/postgresql/15/main\"?",
        "lock-file-of-the-postmaster",
    ),
    (
        "FATAL:  data directory \"/var/lib/postgresql/15/main\" has invalid permissions\nDETAIL:  Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).",
        "data-directory-refused",
    ),
    (
        "FATAL:  WAL ends before end of online backup\nHINT:  All WAL generated while online backup was taken must be available at recovery.",
        "wal-ends-too-early",
    ),
    (
        "FATAL:  requested timeline 2 is not a child of this server's history\nDETAIL:  Latest checkpoint is at 0/3000060 on timeline 1",
        "timelines-do-not-fit",
    ),
    (
        "FATAL:  calculated CRC checksum does not match value stored in file \"pg_twophase/000002EF\"",
        "prepared-transaction-refused",
    ),
    (
        "PANIC:  replication slot file \"pg_replslot/one/state\" has wrong magic number: 0 instead of 17112737",
        "replication-state-refused",
    ),
    (
        "FATAL:  must specify restore_command when standby mode is not enabled",
        "recovery-settings-refused",
    ),
    (
        "PANIC:  WAL contains references to invalid pages",
        "wal-does-not-fit-the-files",
    ),
    (
        "FATAL:  invalid data in file \"backup_label\"",
        "backup-label",
    ),
    (
        "pg_dump: error: query failed: ERROR: invalid page in block 0 of relation base/16384/66427\npg_dump: error: query was: SELECT last_value, is_called FROM public.test_table_bytea_id_seq",
        "invalid-page",
    ),
    (
        "ERROR: invalid page in block 285 of relation base/16384/29724",
        "invalid-page",
    ),
    (
        "ERROR: XX001-invalid page in block 578 of relation base/16384/28751",
        "invalid-page",
    ),
    (
        "2025-03-01 12:00:00.123 CET [4711] app@clinic ERROR:  invalid page in block 285 of relation \"base/16384/29724\"",
        "invalid-page",
    ),
    (
        "ERROR:  3 invalid pages among blocks 4..9 of relation \"base/16384/29724\"\nDETAIL:  Block 4 held the first invalid page.",
        "invalid-page",
    ),
    (
        "WARNING: invalid page in block 578 of relation base/16384/28751; zeroing out page",
        "zeroing-out-page",
    ),
    (
        "WARNING:  zeroing out 2 invalid pages among blocks 1..2 of relation \"base/5/16390\"",
        "zeroing-out-page",
    ),
    (
        "WARNING:  zeroing 1 page(s) and ignoring 1 checksum failure(s) among blocks 1..4 of relation \"base/5/16390\"",
        "zeroing-out-page",
    ),
    (
        "WARNING:  ignoring checksum failure in block 7 of relation \"base/5/16390\"",
        "ignoring-checksum-failure",
    ),
    (
        "WARNING:  page verification failed, calculated checksum 19601 but expected 152",
        "page-verification-failed",
    ),
    (
        "pg_checksums: error: checksum verification failed in file \"./base/16384/28751.1\", block 7: calculated checksum 4C91 but block contains 98",
        "page-verification-failed",
    ),
    (
        "ERROR: invalid memory alloc request size 18446744073709551594",
        "invalid-memory-alloc-request-size",
    ),
    (
        "DEBUG: server process (PID 76) was terminated by signal 11: Segmentation fault",
        "server-crashed",
    ),
    (
        "pg_dump: error: Dumping the contents of table \"test_table_bytea\" failed: PQgetCopyData() failed.\npg_dump: error: Error message from server: server closed the connection unexpectedly\nThis probably means the server terminated abnormally\nbefore or while processing the request.\npg_dump: error: The command was: COPY public.test_table_bytea (id, id2, id3, description, data) TO stdout;",
        "server-crashed",
    ),
    (
        "pg_dump: error: Dumping the contents of table \"test_table_bytea\" failed: PQgetResult() failed.\npg_dump: error: Error message from server: ERROR: could not access status of transaction 3353862211\nDETAIL: Could not open file \"pg_xact/0C7E\": No such file or directory.\npg_dump: error: The command was: COPY public.test_table_bytea (id, id2, id3, description, data) TO stdout;",
        "could-not-access-status-of-transaction",
    ),
    (
        "• 58P01 – could not access status of transaction 3047172894",
        "could-not-access-status-of-transaction",
    ),
    (
        "XX000 - MultiXactId 1074710815 has not been created yet -- apparent wraparound",
        "multixact-apparent-wraparound",
    ),
    (
        "XX000 – MultiXactId 1074710815 has not been created yet — apparent wraparound",
        "multixact-apparent-wraparound",
    ),
    (
        "ERROR:  MultiXactId 4 does no longer exist -- apparent wraparound",
        "multixact-apparent-wraparound",
    ),
    (
        "WARNING: Concurrent insert in progress within table “test_table”",
        "concurrent-change-in-progress",
    ),
    (
        "WARNING:  concurrent delete in progress within table \"test_table\"",
        "concurrent-change-in-progress",
    ),
    (
        "XX000 – unexpected chunk number -556107646 (expected 20) for toast value 29611 in pg_toast_29580",
        "toast-chunk-number",
    ),
    (
        "ERROR:  unexpected chunk number 3 (out of range 0..2) for toast value 29611 in pg_toast_29580",
        "toast-chunk-number",
    ),
    (
        "ERROR:  missing chunk number 0 for toast value 29611 in pg_toast_29580",
        "toast-chunk-number",
    ),
    (
        "ERROR:  unexpected chunk size 1996 (expected 12) in chunk 2 of 3 for toast value 29611 in pg_toast_29580",
        "toast-chunk-size",
    ),
    (
        "XX000 – found toasted toast chunk for toast value 29707 in pg_toast_29580",
        "found-toasted-toast-chunk",
    ),
    (
        "ERROR:  compressed pglz data is corrupt",
        "compressed-data-is-corrupt",
    ),
    (
        "ERROR:  compressed lz4 data is corrupt",
        "compressed-data-is-corrupt",
    ),
    (
        "ERROR:  compressed data is corrupted",
        "compressed-data-is-corrupt",
    ),
    (
        "pg_dump: error: query to get data of sequence \"test_table_bytea_id2_seq\" returned 0 rows (expected 1)",
        "sequence-returned-no-row",
    ),
    (
        "ERROR:  bad magic number in sequence \"countdown\": 00000000",
        "sequence-bad-magic",
    ),
    (
        "ERROR:  could not read block 12 in file \"base/16384/16390\": read only 0 of 8192 bytes",
        "short-read",
    ),
    (
        "ERROR:  could not read blocks 12..13 in file \"base/16384/16390\": read only 8192 of 16384 bytes",
        "short-read",
    ),
    (
        "ERROR:  could not read block 12 in file \"base/16384/16390\": Input/output error",
        "input-output-error",
    ),
    (
        "ERROR:  could not open file \"base/16384/16390\": No such file or directory",
        "missing-file",
    ),
    (
        "ERROR:  could not open file \"base/16384/16390.1\" (target block 3637106980): previous segment is only 5 blocks",
        "missing-segment",
    ),
    (
        "ERROR:  could not open relation with OID 16390",
        "could-not-open-relation",
    ),
    (
        "ERROR:  found xmin 700 from before relfrozenxid 1200\nCONTEXT:  while scanning block 3 and offset 7 of relation \"public.docs\"",
        "xid-before-relfrozenxid",
    ),
    (
        "ERROR:  uncommitted xmin 700 from before xid cutoff 900 needs to be frozen",
        "xid-before-relfrozenxid",
    ),
    (
        "ERROR:  found multixact 7 from before relminmxid 100",
        "multixact-before-relminmxid",
    ),
    (
        "ERROR:  right sibling's left-link doesn't match: block 5 links to 9 instead of expected 4 in index \"docs_pkey\"",
        "btree-sibling-links",
    ),
    (
        "ERROR:  right sibling’s left-link doesn’t match: block 5 links to 9 instead of expected 4 in index “docs_pkey”",
        "btree-sibling-links",
    ),
    (
        "ERROR:  index \"docs_pkey\" contains unexpected zero page at block 3\nHINT:  Please REINDEX it.",
        "index-page-corrupted",
    ),
    (
        "ERROR:  index \"docs_pkey\" contains corrupted page at block 3",
        "index-page-corrupted",
    ),
    (
        "ERROR:  failed to re-find parent key in index \"docs_pkey\" for split pages 3/4",
        "btree-parent-key",
    ),
    (
        "ERROR:  posting list tuple with 3 items cannot be split at offset 9",
        "btree-posting-list",
    ),
    (
        "ERROR:  table tid from new index tuple (3,4) overlaps with invalid duplicate tuple at offset 7 of block 9 in index \"docs_pkey\"",
        "btree-posting-list",
    ),
    (
        "ERROR:  item order invariant violated for index \"docs_title\"",
        "index-order-violated",
    ),
    (
        "PANIC:  corrupted page pointers: lower = 60000, upper = 8000, special = 8192",
        "corrupted-page-pointers",
    ),
    (
        "WARNING:  page is not marked all-visible but visibility map bit is set in relation \"docs\" page 3",
        "visibility-map-wrong",
    ),
    (
        "FATAL:  incorrect checksum in control file",
        "control-file-checksum",
    ),
    (
        "PANIC:  could not read file \"global/pg_control\": read 0 of 296",
        "control-file-checksum",
    ),
    (
        "FATAL:  relation mapping file \"base/16384/pg_filenode.map\" contains incorrect checksum",
        "relation-map-damaged",
    ),
    (
        "FATAL:  relation mapping file \"global/pg_filenode.map\" contains invalid data",
        "relation-map-damaged",
    ),
    (
        "ERROR:  xlog flush request 7F/3000000 is not satisfied --- flushed only to 0/1D5B3C8\nCONTEXT:  writing block 7 of relation base/5/16390",
        "xlog-flush-not-satisfied",
    ),
    (
        "LOG:  invalid primary checkpoint record\nPANIC:  could not locate a valid checkpoint record",
        "no-valid-checkpoint-record",
    ),
    (
        "PANIC:  could not locate a valid checkpoint record at 0/1D5B3C8",
        "no-valid-checkpoint-record",
    ),
    (
        "FATAL:  database files are incompatible with server\nDETAIL:  The data directory was initialized by PostgreSQL version 13",
        "incompatible-files",
    ),
    (
        "ERROR:  cache lookup failed for type 16400",
        "cache-lookup-failed",
    ),
    (
        "ERROR:  catalog is missing 1 attribute(s) for relid 16390",
        "attribute-mismatch",
    ),
    (
        "ERROR:  pg_attribute catalog is missing 2 attribute(s) for relation OID 16390",
        "attribute-mismatch",
    ),
    (
        "ERROR:  tuple already updated by self",
        "tuple-already-updated",
    ),
    (
        "ERROR:  invalid byte sequence for encoding \"UTF8\": 0xff",
        "invalid-byte-sequence",
    ),
    (
        "ERROR:  unknown type of jsonb container",
        "value-makes-no-sense",
    ),
    (
        "pg_stat_database.checksum_failures is 3 for shop",
        "checksum-failures-counter",
    ),
    (
        "what does zero_damaged_pages do?",
        "zero-damaged-pages-setting",
    ),
    (
        "SET ignore_checksum_failure = ON;",
        "ignore-checksum-failure-setting",
    ),
    (
        "ERROR:  right sibling of GIN page is of different type",
        "index-structure-broken",
    ),
    (
        "ERROR:  XX002: unexpected page type 0xF093 in BRIN index \"orders_brin\" block 3",
        "index-structure-broken",
    ),
    (
        "PANIC:  failed to add item to index page in \"docs_gin\"",
        "index-structure-broken",
    ),
    (
        "ERROR:  failed to re-find parent of a page in index \"spots_gist\", block 17",
        "index-structure-broken",
    ),
    (
        "ERROR:  invalid overflow block number 5",
        "index-structure-broken",
    ),
    (
        "ERROR:  pg_largeobject entry for OID 16400, page 3 has invalid data field size 70000",
        "large-object-damaged",
    ),
    (
        "ERROR:  could not extend file \"base/16384/16390\": No space left on device\nHINT:  Check free disk space.",
        "no-space-left",
    ),
    (
        "PANIC:  could not open critical system index 2662",
        "critical-system-index",
    ),
    (
        "ERROR:  unexpected data beyond EOF in block 7 of relation base/16384/16390\nHINT:  This has been seen to occur with buggy kernels; consider updating your system.",
        "unexpected-data-beyond-eof",
    ),
    (
        "xmin 4000000000 equals or exceeds next valid transaction ID 0:755",
        "xid-out-of-range",
    ),
    (
        "number of attributes 2047 exceeds maximum expected for table 3",
        "heap-tuple-malformed",
    ),
    (
        "redirected line pointer points to a dead item at offset 9",
        "update-chain-broken",
    ),
    (
        "ERROR:  dead heap-only tuple (7, 9) is not linked to from any HOT chain",
        "update-chain-broken",
    ),
    (
        "ERROR:  could not create unique index \"docs_pkey\"\nDETAIL:  Key (id)=(7) is duplicated.",
        "index-uniqueness-violated",
    ),
    (
        "WARNING:  database \"shop\" must be vacuumed within 39985967 transactions",
        "wraparound-protection",
    ),
    (
        "FATAL:  could not receive data from WAL stream: ERROR:  requested WAL segment 000000010000000000000003 has already been removed",
        "wal-not-available",
    ),
    (
        "pg_rewind: error: source and target clusters are from different systems",
        "rewind-refused",
    ),
    (
        "pg_verifybackup: error: could not parse backup manifest: manifest ended unexpectedly",
        "backup-manifest-unreadable",
    ),
    (
        "pg_verifybackup: error: checksum mismatch for file \"base/5/1259\"",
        "backup-differs-from-manifest",
    ),
    (
        "pg_restore: error: did not find magic string in file header",
        "dump-archive-damaged",
    ),
    (
        "pg_dump: error: schema with OID 16400 does not exist",
        "dump-finds-catalog-gap",
    ),
    (
        "old cluster uses data checksums but the new one does not",
        "upgrade-refused",
    ),
    (
        "WARNING:  1 pg_attrdef record(s) missing for relation \"docs\"",
        "catalog-rows-contradict",
    ),
    (
        "WARNING:  database \"shop\" has a collation version mismatch",
        "collation-version-mismatch",
    ),
    (
        "ERROR:  could not read from hash-join temporary file: read only 512 of 8192 bytes",
        "temporary-file-failed",
    ),
    (
        "LOG:  corrupted statistics file \"pg_stat/pgstat.stat\"",
        "statistics-file-corrupted",
    ),
    (
        "ERROR:  could not create file \"base/16384/16390\": File exists",
        "file-exists",
    ),
    (
        "ERROR:  out of memory\nDETAIL:  Failed on request of size 1048576 in memory context \"ExecutorState\".",
        "out-of-memory",
    ),
    (
        "LOG:  invalid record length at 0/3000060: expected at least 24, got 0",
        "wal-record-refused",
    ),
    (
        "LOG:  invalid record length at 0/3000060: wanted 24, got 0",
        "wal-record-refused",
    ),
    (
        "FEHLER:  XX001: ungültige Seite in Block 5 von Relation »base/5/16384«",
        "data-corrupted",
    ),
    (
        "リレーション\"base/5/16384\"のブロック5に不正なページ\nSQL state: XX001",
        "data-corrupted",
    ),
    (
        "ERREUR:  XX002: l'index « docs_pkey » contient une page zéro inattendue au bloc 3",
        "index-corrupted",
    ),
    (
        "SET ignore_system_indexes = on",
        "ignore-system-indexes-setting",
    ),
    (
        "is full_page_writes = off safe on ZFS?",
        "fsync-and-full-page-writes",
    ),
    (
        "pg_checksums: error: data checksums are not enabled in cluster",
        "pg-checksums",
    ),
    (
        "SELECT heap_force_kill('docs'::regclass, ARRAY['(0, 7)']::tid[]);",
        "pg-surgery",
    ),
    (
        "pg_resetwal: error: lock file \"postmaster.pid\" exists",
        "pg-resetwal",
    ),
    ("SELECT bt_index_check('docs_pkey', true);", "amcheck"),
    ("FEHLER:  XX000: etwas ganz anderes", "internal-error"),
    (
        "org.postgresql.util.PSQLException: FEHLER: kein Platz mehr [SQLSTATE 53100]",
        "no-space-left",
    ),
];
