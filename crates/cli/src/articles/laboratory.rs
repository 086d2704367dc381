//! Articles whose figures depend on the machine.

use super::{Article, Effect, section};

const PREPARED: &str = "an arm of the experiment, once a directory with these options is there";

pub(super) const ARTICLES: &[Article] = &[
    Article {
        title: "The minor releases of 2024Q1 (credativ, 22 February 2024)",
        page: None,
        sections: &[
            section(
                "Heavy contention",
                "pgclinic lab run lock-contention --into DIR",
                "equal up to 128 clients; at 1,536 about 65,000 and 300,000 a second",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "Memory of JIT",
                "pgclinic lab run jit-memory --into DIR",
                "15.5 grows by about 80 kB a query, 15.6 stays near 100 MB",
                "of the run; where the server has the fix, the session is shown not to leak and no setting is advised",
                Effect::OfTheRun,
            ),
        ],
        errata: &["it says that JIT became the default in 13; it is on by default since 12."],
    },
    Article {
        title: "ANALYZE and maintenance_io_concurrency (credativ, 2024)",
        page: None,
        sections: &[section(
            "Eight settings, two versions",
            "pgclinic lab run analyze-prefetch --into DIR",
            "13: 19.6 to 21.6 s throughout; 14: 24.7 s at 0, 2.8 s at 500",
            "of the run",
            Effect::OfTheRun,
        )],
        errata: &[],
    },
    Article {
        title: "Asynchronous I/O in 18 (credativ, 2025)",
        page: None,
        sections: &[
            section(
                "Cold reads and slow volumes",
                "pgclinic lab run async-io --into DIR",
                "cold reads gain most where the storage is far away",
                "cold scans of each method; how far the storage is, the run finds out",
                Effect::OfTheRun,
            ),
            section(
                "The three methods, and how many workers",
                "pgclinic lab run async-io --into DIR",
                "workers: a quarter to a half of the threads; io_uring where it is compiled in",
                "of the run; a method that the server lacks is skipped, and the report says so",
                Effect::OfTheRun,
            ),
            section(
                "The other parameters",
                "pgclinic lab run async-io --into DIR",
                "effective_io_concurrency 16, io_combine_limit 128 kB, io_max_concurrency by itself",
                "axes of the same experiment",
                Effect::OfTheRun,
            ),
            section(
                "pg_stat_activity, pg_aios and pg_stat_io, watched",
                "pgclinic lab run async-io --into DIR",
                "three views",
                "requests in flight and the counters of pg_stat_io beside each run",
                Effect::OfTheRun,
            ),
        ],
        errata: &[],
    },
    Article {
        title: "Vindicating ZFS with PostgreSQL: ext4 and ZFS (Federico Campoli, POSETTE, June 2024)",
        page: None,
        sections: &[
            section(
                "A long time ago, and what ZFS is",
                "",
                "",
                "",
                Effect::Words,
            ),
            section(
                "ext4 as it is",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "4,913 a second",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "ext4 with noatime and nodiratime",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "5,371 a second",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "ext4 with data=writeback too",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "5,432 a second",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "ZFS as it is",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "1,776 a second",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "ZFS with atime off",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "1,835 a second",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "and lz4",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "4,268 a second, 986 MB",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "and records of 16 kB",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "6,288 a second, 2.2 GB",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "Parameters of the module, and a log device",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "6,268 a second: no improvement",
                PREPARED,
                Effect::CannotRun,
            ),
            section(
                "Space, load time and latency compared",
                "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
                "pictures of the same runs",
                PREPARED,
                Effect::CannotRun,
            ),
        ],
        errata: &[],
    },
    Article {
        title: "OAuth 2 with Keycloak (credativ, 2025)",
        page: None,
        sections: &[
            section(
                "Containers, certificates and the realm of Keycloak",
                "",
                "listings of configuration",
                "",
                Effect::NotHere,
            ),
            section(
                "The validator, pg_hba.conf and the map of users",
                "pgclinic lab run oauth-login --scale published --into DIR",
                "PostgreSQL 18 with a validator of one's own",
                "the same settings, written by the experiment for its own servers",
                Effect::OfTheRun,
            ),
            section(
                "A login by device flow",
                "pgclinic lab run oauth-login --scale published --into DIR",
                "the right users get in",
                "good, expired, foreign, forged and unmapped tokens against an issuer of its own, and against Keycloak where it and Java are here",
                Effect::OfTheRun,
            ),
        ],
        errata: &[
            "the client's secret is \"postgres\" in the listing of the realm and \"changeme\" in the listing of the connection: with both as they stand nobody gets in.",
        ],
    },
];
