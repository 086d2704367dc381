//! Articles whose figures depend on the machine.

use super::{Article, Effect, section};

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
                "of the run",
                Effect::OfTheRun,
            ),
        ],
        errata: &[],
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
                "Methods and workers",
                "pgclinic lab run async-io --into DIR",
                "workers: a quarter to a half of the threads",
                "of the run",
                Effect::OfTheRun,
            ),
            section(
                "pg_aios and pg_stat_io, watched",
                "pgclinic lab run async-io --into DIR",
                "two views",
                "requests in flight and the counters of pg_stat_io beside each run",
                Effect::OfTheRun,
            ),
        ],
        errata: &[],
    },
    Article {
        title: "PostgreSQL on ext4 and ZFS (a talk, June 2024)",
        page: None,
        sections: &[section(
            "Mount options, record sizes, compression",
            "pgclinic lab run filesystem --folder EXT4 --folder ZFS --into DIR",
            "ext4 4,913 to 5,432 a second; zfs 1,776 to 6,288",
            "folders on ext4, xfs and ZFS must be prepared",
            Effect::CannotRun,
        )],
        errata: &[],
    },
    Article {
        title: "OAuth 2 with Keycloak (credativ, 2025)",
        page: None,
        sections: &[section(
            "A login by device flow",
            "pgclinic lab run oauth-login --scale published --into DIR",
            "the right users get in",
            "good, expired, foreign, forged and unmapped tokens against an issuer of its own, and against Keycloak where it and Java are here",
            Effect::OfTheRun,
        )],
        errata: &[
            "the client's secret is \"postgres\" in the listing of the realm and \"changeme\" in the listing of the connection: with both as they stand nobody gets in.",
        ],
    },
];
