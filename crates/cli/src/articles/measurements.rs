//! Articles that measure files.

use super::{Article, Effect, section};

pub(super) const ARTICLES: &[Article] = &[
    Article {
        title: "UUIDv4 and UUIDv7 as primary keys (credativ, December 2025)",
        page: Some("uuid-keys.md"),
        sections: &[
            section(
                "What UUIDs are",
                "pgclinic measure PGDATA --relation TABLE",
                "versions 4 and 7",
                "the mix of versions 1 to 7 of each uuid column, RFC 9562's examples",
                Effect::Same,
            ),
            section(
                "Reading all rows in the order of the key",
                "pgclinic lab run uuid-keys --into DIR",
                "318 ms and 113 ms",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "Inserting 50 million rows, twice",
                "pgclinic lab run uuid-keys --scale published --into DIR",
                "20:39 and 1:46 min; the second time 46:16 and 1:40 min; index 1981 and 1504 MB",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "Order of the keys against order of the rows",
                "pgclinic measure PGDATA --relation TABLE --format html --output uuid.html",
                "random; rows follow each other",
                "a picture of key rank against page, and the pages that 100 rows in the order of keys touch",
                Effect::Same,
            ),
            section(
                "Correlation in pg_stats",
                "pgclinic measure PGDATA --relation TABLE",
                "-0.002 and 1",
                "equal to pg_stats where ANALYZE takes every row; 1 for a million ordered keys",
                Effect::Same,
            ),
            section(
                "pgstatindex of both primary keys",
                "pgclinic measure PGDATA --relation TABLE",
                "v4: 40,026,112 bytes, 4,861 leaves, density 71 %, fragmentation 49.99 %; v7: 31,563,776 bytes, 3,832 leaves, 20 internal pages, 89.98 %, 0 %",
                "v7: 31,563,776 bytes, 3,832 leaves, 20 internal pages, to the byte",
                Effect::Same,
            ),
            section(
                "bt_multi_page_stats of both",
                "pgclinic measure PGDATA --relation TABLE",
                "v4: 206.72 items a leaf, 0 contiguous links, 4,860 others; v7: 261.96 items, 3,812 links, 19 others",
                "v7: 261.96 items a leaf, 3,812 contiguous links, 19 others",
                Effect::Same,
            ),
            section(
                "Histogram of items a leaf",
                "pgclinic measure PGDATA --relation TABLE --format html --output uuid.html",
                "v7: 3,831 leaves of 260 to 269, one of 100 to 109",
                "the histogram of every value",
                Effect::Same,
            ),
            section(
                "The time stamps that version 7 gives away",
                "pgclinic measure PGDATA --relation TABLE",
                "uuid_extract_timestamp of 18",
                "first and last time and values a day, on every major, of versions 1, 6 and 7",
                Effect::Same,
            ),
        ],
        errata: &[],
    },
    Article {
        title: "Failed inserts on unique constraints (credativ, late 2024)",
        page: Some("duplicate-inserts.md"),
        sections: &[
            section(
                "20,000 inserts that fail",
                "pgclinic measure PGDATA --relation test_unique_constraints",
                "1,000 live and 20,000 dead rows, 85.06 % dead; 21,000 entries in the primary key",
                "at a tenth: 100 live and 2,000 dead rows; 2,100 entries in the primary key",
                Effect::Same,
            ),
            section(
                "ON CONFLICT DO NOTHING",
                "pgclinic measure PGDATA --relation test_unique_constraints",
                "no dead row, no transaction number",
                "no dead row",
                Effect::Same,
            ),
            section(
                "Which index bloats, by the order of their creation",
                "pgclinic lab run duplicate-inserts --into DIR",
                "indexes that were made before the one that refuses",
                "of the run",
                Effect::OfTheRun,
            ),
        ],
        errata: &[
            "the statements that create the two unique indexes have their names swapped: the one called unique_integer_key_idx is on unique_text_key, and the other way round; and the word INDEX stands after the name.",
        ],
    },
    Article {
        title: "System tables bloated by temporary tables (credativ, 2024)",
        page: Some("catalog-cost.md"),
        sections: &[
            section(
                "The reporting table",
                "pgclinic measure catalog-cost reporting.sql",
                "62 rows in pg_attribute, 27 in pg_attrdef, 9 in pg_class",
                "62, 27, 9",
                Effect::Same,
            ),
            section(
                "Five tables at each login of a shop",
                "pgclinic measure catalog-cost shop.sql",
                "173 rows in pg_attribute, 3 in pg_attrdef, 32 in pg_class",
                "232, 3, 32",
                Effect::Same,
            ),
            section(
                "The projection over the traffic of a shop",
                "pgclinic measure catalog-cost shop.sql --traffic traffic.csv --rows-per-page 23",
                "1,000 logins: 173,000 rows, 7,522 pages, 58.77 MB; 60,000 logins: 3,525.82 MB",
                "with 173 rows a login the published sizes; with the true 232, a third more: 78.8 MB for 1,000 logins",
                Effect::Same,
            ),
            section(
                "pgstattuple of the catalogs; its figures do not add up to the file",
                "pgclinic measure PGDATA --relation pg_catalog.pg_attribute",
                "1.06 % live, 33.51 % dead, 62.38 % free",
                "the same figures, and a ledger in which every byte has its place",
                Effect::Same,
            ),
            section(
                "Rows on a page: least, most, mean, mode",
                "pgclinic measure PGDATA --relation pg_catalog.pg_attribute",
                "1, 55, 23, 28",
                "the same four figures, equal to those of heap_page_items, and a histogram",
                Effect::Same,
            ),
        ],
        errata: &[
            "the 173 rows of a shop's login are wrong. The article's own addends give 230, a real server writes 232, and the sizes of its projection are a quarter too small.",
        ],
    },
    Article {
        title: "TOASTed JSONB: compression algorithms (credativ, 15 October 2024)",
        page: Some("toast.md"),
        sections: &[
            section(
                "What is kept in the row, what outside, compressed by which method",
                "pgclinic measure PGDATA --relation TABLE",
                "pg_column_compression, row by row",
                "values and bytes by column, place and method, equal to pg_column_compression and pg_column_size",
                Effect::Same,
            ),
            section(
                "Sizes by method",
                "pgclinic measure PGDATA --relation TABLE --try-compression",
                "lz4 38 GB, pglz 41 GB, none 98 GB",
                "bytes and time of pglz, lz4 and zstd on the real values; pglz byte for byte as the server packs",
                Effect::Same,
            ),
            section(
                "Queries by sessions",
                "pgclinic lab run toast-compression --into DIR",
                "pglz falls behind when sessions outnumber cores; lz4 is ahead throughout",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "Copied values keep their method",
                "pgclinic measure PGDATA --relation TABLE",
                "recast through text",
                "values with an old method are counted, and the statement that recasts them is given",
                Effect::Same,
            ),
        ],
        errata: &[],
    },
    Article {
        title: "Large objects and pg_dump 17 (credativ, December 2024)",
        page: Some("large-objects.md"),
        sections: &[
            section(
                "What large objects are, and who forgets them",
                "pgclinic measure PGDATA",
                "two objects are left when their table is dropped",
                "count, size, owners, and orphans that no column refers to",
                Effect::Same,
            ),
            section(
                "Entries in the catalogue of a dump",
                "pgclinic measure PGDATA",
                "16: an entry for each object; 17: one for many",
                "both forecasts",
                Effect::Same,
            ),
            section(
                "Time and memory for a million objects",
                "pgclinic lab run large-object-dump --into DIR",
                "custom 36.7 and 34.7 s, 756 and 218 MB; directory 8:23 and 7:51 min",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "Files of the directory format",
                "pgclinic measure PGDATA",
                "1,000,003 and 1,001,002, the directory and toc.dat among them",
                "of 1,500 objects 1,501 and 1,502, the directory and toc.dat not among them",
                Effect::Same,
            ),
        ],
        errata: &[
            "its million objects are all empty, so that sizes and times are those of the catalogue alone; the experiment has objects of 2 kB and 1 MB too.",
        ],
    },
];
