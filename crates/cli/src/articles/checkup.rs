//! Articles on damage and checksums.

use super::{Article, Effect, section};

pub(super) const ARTICLES: &[Article] = &[
    Article {
        title: "Dissecting data corruption (credativ, 2025)",
        page: None,
        sections: &[
            section(
                "The words of the server",
                "pgclinic explain invalid-page-flags",
                "a list of messages",
                "each message has a page of the textbook",
                Effect::Same,
            ),
            section(
                "A healthy page",
                "pgclinic inspect PGDATA --relation TABLE --block 7",
                "page_header and heap_page_items",
                "the same fields, and the values",
                Effect::Same,
            ),
            section(
                "A damaged page header: the whole block is lost",
                "pgclinic drill --all",
                "invalid page in block 285",
                "every field of the header is hurt, found, explained and undone, and the server is asked what it says",
                Effect::Same,
            ),
            section(
                "Where the error comes from in the sources",
                "pgclinic explain lower-beyond-upper",
                "PageIsVerified in bufpage.c",
                "the tests that the server makes of a header, and a page of the textbook for each that fails",
                Effect::Same,
            ),
            section(
                "Damaged line pointers: offsets and lengths become nonsense",
                "pgclinic drill --all",
                "invalid memory alloc request, crashes",
                "each way to hurt a line pointer, and what the server says of it",
                Effect::Same,
            ),
            section(
                "Damaged rows: system columns can break scans",
                "pgclinic drill --injury system-columns-random",
                "apparent wraparound, could not access status of transaction",
                "all system columns of a row at once (drill --all: each field), and what the server says of it",
                Effect::Same,
            ),
            section(
                "Rows out of what is damaged",
                "pgclinic salvage PGDATA --to DIR",
                "row by row with a script of one's own",
                "all tables, with an account of what was lost",
                Effect::Same,
            ),
            section(
                "pg_surgery: freeze or kill",
                "pgclinic heal PGDATA --at base/5/16384:0:9 --freeze --yes",
                "two functions of a running server, which nothing undoes",
                "the same two, with a plan, a check afterwards and undo: the page surgery.md",
                Effect::Same,
            ),
        ],
        errata: &[
            "it finds the error in RelationCopyStorage of storage.c, which only copies whole relations (ALTER TABLE … SET TABLESPACE). What a query meets is raised in bufmgr.c; both ask PageIsVerified.",
            "it says that pg_basebackup verifies checksums unless --no-verify-checksums is given, and the article on checksums says that pg_basebackup copies files as they are and hides damage. The first is right where checksums are on, the second where they are off.",
        ],
    },
    Article {
        title: "Why checksums matter, and checksums in 18 (credativ, 2025)",
        page: None,
        sections: &[
            section(
                "On or off",
                "pgclinic check PGDATA --level pages",
                "on by default from 18",
                "said in the first lines of each check",
                Effect::Same,
            ),
            section(
                "Turning them on with pg_checksums",
                "pgclinic lab run checksum-cost --into DIR",
                "usually under 2 %",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "Upgrading from versions without them",
                "",
                "pg_upgrade wants both sides alike",
                "",
                Effect::Words,
            ),
            section(
                "Pages whose checksum fails",
                "pgclinic check PGDATA --level pages",
                "calculated checksum 19601 but expected 152",
                "block, both sums and what the server says, without a server",
                Effect::Same,
            ),
            section(
                "zero_damaged_pages and autovacuum",
                "pgclinic explain zero-damaged-pages",
                "what is zeroed is lost",
                "a page of the textbook",
                Effect::Same,
            ),
            section(
                "Why to embrace them: what damage does without",
                "pgclinic drill --all",
                "errors, crashes, wrong answers",
                "each injury with checksums on and off, and what the server says in both",
                Effect::Same,
            ),
        ],
        errata: &[
            "it names pagesize among the fields of a header whose damage is detected without checksums. The server does not test it: it asks for valid flags, pd_lower <= pd_upper <= pd_special <= 8192 and an aligned pd_special. `pgclinic check` does (wrong-page-size).",
            "it says that pg_basebackup copies files as they are: where checksums are on, it verifies them by default.",
        ],
    },
    Article {
        title: "A talk on damage, and reports from conferences (credativ, 2025)",
        page: None,
        sections: &[section(
            "What was reported where",
            "",
            "",
            "",
            Effect::Words,
        )],
        errata: &[],
    },
];
