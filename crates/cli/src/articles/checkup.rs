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
                "Damaged header, line pointers, rows",
                "pgclinic drill",
                "messages and crashes by what is damaged",
                "every injury is found, explained and undone, and the server is asked what it says",
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
                "",
                "two functions",
                "",
                Effect::NotHere,
            ),
        ],
        errata: &[],
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
        ],
        errata: &[],
    },
    Article {
        title: "A talk on damage, and reports from conferences (credativ, 2025)",
        page: None,
        sections: &[section("What was said where", "", "", "", Effect::Words)],
        errata: &[],
    },
];
