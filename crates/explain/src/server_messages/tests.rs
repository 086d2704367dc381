//! The gallery: what articles show and what servers of 13 to 18 print, and what is read out of it.

use super::*;

/// Text, name of the message that must come first.
const GALLERY: &[(&str, &str)] = &[
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

fn first(text: &str) -> Match {
    explain_message(text)
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("nothing explains {text:?}"))
}

#[test]
fn the_gallery_is_recognised() {
    for (text, name) in GALLERY {
        assert_eq!(first(text).message.name, *name, "{text}");
    }
}

#[test]
fn every_message_of_the_register_stands_in_the_gallery_and_has_its_page() {
    let mut names = std::collections::BTreeSet::new();
    for message in SERVER_MESSAGES.iter() {
        let name = message.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(
            GALLERY.iter().any(|(_, known)| *known == name),
            "no example of {name}"
        );
        let words = message.meaning.split_whitespace().count();
        assert!((100..=270).contains(&words), "{name} has {words} words");
        assert!(
            message.meaning.contains("**Never**"),
            "{name} does not say what never to do"
        );
        let small = message
            .patterns
            .iter()
            .all(|template| template.to_lowercase() == **template);
        assert!(small, "a template of {name} has capitals");
        // Every template is put together once, so that a wrong name in braces shows here.
        assert!(message.find(&Pasted::new("nothing of the kind")).is_none());
        for template in &message.patterns {
            assert!(
                pattern::find(template, &Pasted::new(template)).is_some() || template.contains('{')
            );
        }
    }
}

#[test]
fn names_and_numbers_are_read() {
    let facts = first("ERROR: XX001-invalid page in block 578 of relation base/16384/28751").facts;
    assert_eq!(
        (facts.relation_path.as_deref(), facts.block),
        (Some("base/16384/28751"), Some(578))
    );
    let facts =
        first("ERROR:  3 invalid pages among blocks 4..9 of relation \"base/16384/29724\"").facts;
    assert_eq!((facts.blocks, facts.block), (Some([4, 10]), Some(4)));
    let facts = first(
        "unexpected chunk number −556107646 (expected 20) for toast value 29611 in pg_toast_29580",
    )
    .facts;
    assert_eq!(
        (facts.toast_value, facts.toast_relation.as_deref()),
        (Some(29611), Some("pg_toast_29580"))
    );
    let facts = first("ERROR:  MultiXactId 1074710815 has not been created yet").facts;
    assert_eq!(facts.multixact.map(|multi| multi.0), Some(1_074_710_815));
    let facts = first("checksum verification failed in file \"./base/5/28751.1\", block 7: calculated checksum 4C91 but block contains 98").facts;
    assert_eq!(
        (
            facts.block_in_file,
            facts.computed_checksum,
            facts.expected_checksum
        ),
        (Some(7), Some(0x4C91), Some(0x98))
    );
    let facts = first("invalid memory alloc request size 18446744073709551594").facts;
    assert_eq!(facts.bytes, Some(18_446_744_073_709_551_594));
}

#[test]
fn settings_tools_and_files_are_known_by_their_names() {
    for (term, name) in [
        ("zero_damaged_pages", "zero-damaged-pages-setting"),
        ("ignore-checksum-failure", "ignore-checksum-failure-setting"),
        ("checksum_failures", "checksum-failures-counter"),
        ("wraparound", "wraparound-protection"),
        ("PG_SURGERY", "pg-surgery"),
        ("pg_resetwal", "pg-resetwal"),
        ("pg_amcheck", "amcheck"),
        ("REINDEX SYSTEM", "ignore-system-indexes-setting"),
        ("pg_filenode.map", "relation-map-damaged"),
        ("invalid-page", "invalid-page"),
    ] {
        let found = message_named(term).map(|message| message.name);
        assert_eq!(found, Some(name), "{term}");
    }
    assert!(message_named("").is_none());
}

#[test]
fn a_term_and_an_sqlstate_have_one_page_each() {
    let mut terms = std::collections::BTreeSet::new();
    for message in SERVER_MESSAGES.iter() {
        let answers = message.terms.iter().chain(&message.stands_for);
        for answer in answers {
            assert!(terms.insert(as_term(answer)), "{answer} has two pages");
        }
    }
}

#[test]
fn files_and_blocks_are_read_in_any_language() {
    for text in [
        "FEHLER:  XX001: ungültige Seite in Block 5 von Relation »base/5/16384«",
        "リレーション\"base/5/16384\"のブロック5に不正なページ\nSQL state: XX001",
        "ОШИБКА:  XX001: неверная страница в блоке 5 отношения base/5/16384",
        "ERREUR: page invalide dans le bloc 5 de la relation base/5/16384\nÉtat SQL : XX001",
    ] {
        let facts = first(text).facts;
        assert_eq!(
            (facts.relation_path.as_deref(), facts.block),
            (Some("base/5/16384"), Some(5)),
            "{text}"
        );
    }
}

#[test]
fn what_stands_around_a_message_counts_too() {
    let text = "ERROR: could not access status of transaction 3353862211\nDETAIL: Could not open file \"pg_xact/0C7E\": No such file or directory.\npg_dump: error: The command was: COPY public.docs (id) TO stdout;";
    let facts = first(text).facts;
    assert_eq!(facts.xid.map(|xid| xid.0), Some(3_353_862_211));
    assert_eq!(
        (facts.file.as_deref(), facts.relation_name.as_deref()),
        (Some("pg_xact/0C7E"), Some("public.docs"))
    );
    let text = "WARNING:  page verification failed, calculated checksum 19601 but expected 152\nERROR:    invalid page in block 0 of relation base/16384/16402";
    let facts = first(text).facts;
    assert_eq!(
        (
            facts.computed_checksum,
            facts.expected_checksum,
            facts.block
        ),
        (Some(19601), Some(152), Some(0))
    );
    let text = "ERROR:  found xmin 700 from before relfrozenxid 1200\nCONTEXT:  while scanning block 3 and offset 7 of relation \"public.docs\"";
    let facts = first(text).facts;
    assert_eq!(
        (facts.block, facts.item, facts.relation_name.as_deref()),
        (Some(3), Some(7), Some("public.docs"))
    );
}

#[test]
fn the_first_line_is_to_take_a_copy() {
    for (text, _) in GALLERY {
        let answer = render(&first(text), None);
        assert!(answer.starts_with("First of all take a copy"), "{text}");
        assert!(answer.contains("pgclinic check PGDATA"), "{answer}");
    }
    assert!(render_unknown().starts_with("First of all take a copy"));
    assert!(explain_message("ERROR: syntax error at or near \"FORM\"").is_empty());
}

#[test]
fn commands_carry_the_names_of_the_message() {
    let answer = render(
        &first("invalid page in block 578 of relation base/16384/28751"),
        None,
    );
    assert!(
        answer.contains("`pgclinic inspect PGDATA --filenode 28751 --block 578`"),
        "{answer}"
    );
    let answer = render(
        &first("index \"docs_pkey\" contains unexpected zero page at block 3"),
        None,
    );
    assert!(
        answer.contains("REINDEX INDEX CONCURRENTLY docs_pkey;"),
        "{answer}"
    );
    assert!(
        answer.contains("pgclinic inspect PGDATA --relation '*.docs_pkey' --block 3"),
        "{answer}"
    );
}

#[test]
fn hostile_text_does_no_harm() {
    let huge = "invalid page in block 9 of relation ".repeat(100_000);
    let texts = [
        String::new(),
        "\0\u{1b}[31m\u{202e}".into(),
        huge,
        "invalid page in block 99999999999999999999999 of relation \"".into(),
        format!(
            "invalid page in block 1 of relation \"{}\"",
            "x".repeat(100_000)
        ),
        "invalid page in block 1 of relation \"base/1/2'; rm -rf / #\u{1b}[2J\"".into(),
        "unexpected chunk number — (expected ”) for toast value é in ü".into(),
        "-".repeat(70_000),
        "\u{2014}".repeat(70_000),
    ];
    for text in texts {
        for found in explain_message(&text) {
            let answer = render(&found, None);
            assert!(!answer.chars().any(|char| char.is_control() && char != '\n'));
        }
    }
}

#[test]
fn names_that_are_shell_commands_stay_in_quotes() {
    let text = "index \"x'; rm -rf / #\" contains unexpected zero page at block 3";
    let answer = render(&first(text), None);
    assert!(
        answer.contains(r"--relation '*.x'\''; rm -rf / #' --block 3`"),
        "{answer}"
    );
    assert!(answer.contains("CONCURRENTLY INDEX_NAME;"), "{answer}");
}

#[test]
fn a_rule_is_shown_with_its_page() {
    use pgclinic_model::{Rule, Severity};
    static RULE: Rule = Rule {
        name: "a-b",
        formerly: Some("a-c"),
        severity: Severity::Damage,
        summary: "a is b",
        explain: "Because.",
    };
    assert_eq!(
        explain_rule(&RULE),
        "# a-b (damage)\n\na is b\n\nFormerly a-c.\n\nBecause.\n"
    );
}

/// On clusters that a server made.
mod seeded {
    use super::*;

    /// A filled cluster of PostgreSQL 15, opened without a change.
    fn cluster() -> pgclinic_cluster::Cluster {
        let seeded = pgclinic_testkit::seed(&pgclinic_testkit::server(15), Default::default());
        let source =
            pgclinic_source::DataDirectory::open(&seeded.pgdata).expect("a data directory");
        pgclinic_cluster::Cluster::open(std::sync::Arc::new(source)).expect("a cluster")
    }

    fn database(cluster: &pgclinic_cluster::Cluster) -> pgclinic_cluster::Catalog {
        let clinic = cluster
            .databases
            .values()
            .find(|database| database.name.as_deref() == Some("clinic"));
        cluster.catalog(clinic.expect("the seeds have it").oid)
    }

    #[test]
    fn a_file_and_block_become_a_table_with_its_rows() {
        let cluster = cluster();
        let catalog = database(&cluster);
        let docs = catalog
            .by_name("public", "docs")
            .expect("the seeds have it");
        let text = format!(
            "ERROR:  invalid page in block 1 of relation base/{}/{}",
            catalog.database, docs.filenode
        );
        let found = first(&text);
        let resolved = resolve(&cluster, &found.facts);
        assert_eq!(
            resolved.relation.as_ref().map(|named| named.name.as_str()),
            Some("public.docs")
        );
        assert_eq!(resolved.bytes, Some([8192, 16384]));
        let rows = resolved.rows.clone().expect("a heap has rows");
        assert!(rows.rows > 0 && !rows.estimated, "{rows:?}");
        let answer = render(&found, Some(&resolved));
        assert!(
            answer.contains("- table public.docs of database clinic"),
            "{answer}"
        );
        assert!(
            answer.contains("--database 'clinic' --relation 'public.docs' --block 1`"),
            "{answer}"
        );
    }

    #[test]
    fn a_toast_relation_becomes_the_table_that_owns_it() {
        let cluster = cluster();
        let catalog = database(&cluster);
        let docs = catalog
            .by_name("public", "docs")
            .expect("the seeds have it")
            .oid;
        let text = format!("ERROR:  missing chunk number 0 for toast value 1 in pg_toast_{docs}");
        let resolved = resolve(&cluster, &first(&text).facts);
        assert_eq!(
            resolved.owner.map(|named| named.name).as_deref(),
            Some("public.docs")
        );
    }

    #[test]
    fn an_index_becomes_a_command_that_rebuilds_it() {
        let cluster = cluster();
        let found = first("ERROR:  index \"docs_title\" contains unexpected zero page at block 0");
        let resolved = resolve(&cluster, &found.facts);
        assert!(resolved.rows.is_none(), "an index holds no rows");
        let answer = render(&found, Some(&resolved));
        assert!(
            answer.contains("REINDEX INDEX CONCURRENTLY public.docs_title;"),
            "{answer}"
        );
        assert!(answer.contains("an index of table public.docs"), "{answer}");
    }

    #[test]
    fn a_transaction_from_nowhere_is_said_to_be_one() {
        let cluster = cluster();
        let resolved = resolve(
            &cluster,
            &first("could not access status of transaction 3353862211").facts,
        );
        assert!(
            resolved
                .notes
                .iter()
                .any(|note| note.contains("is not one of them")),
            "{:?}",
            resolved.notes
        );
        let resolved = resolve(
            &cluster,
            &first("invalid page in block 1 of relation base/999999/4").facts,
        );
        assert!(
            resolved
                .notes
                .iter()
                .any(|note| note.contains("right cluster")),
            "{:?}",
            resolved.notes
        );
    }

    #[test]
    fn every_page_is_in_the_register_under_its_name_and_each_of_its_steps_can_be_filled_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server_messages/texts");
        let files = std::fs::read_dir(folder).expect("the pages are there");
        let files: std::collections::BTreeSet<String> = files
            .map(|file| {
                file.expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        let names = SERVER_MESSAGES
            .iter()
            .map(|message| format!("{}.md", message.name));
        assert_eq!(files, names.collect());
        let facts = Facts::default();
        let names = Names {
            facts: &facts,
            resolved: None,
        };
        for message in SERVER_MESSAGES.iter() {
            assert!(
                !message.patterns.is_empty(),
                "{} has no wording",
                message.name
            );
            let is_state =
                |state: &&str| state.len() == 5 && state.bytes().all(|b| b.is_ascii_alphanumeric());
            assert!(message.sqlstates.iter().all(is_state), "{}", message.name);
            let steps = message.next_steps(&names);
            assert!(steps.len() >= 2, "{} has only {steps:?}", message.name);
            assert!(
                steps.iter().all(|step| !step.contains(['{', '}'])),
                "{steps:?}"
            );
        }
    }
}
