//! Files of pg_xact and pg_multixact are lost or too short.

use std::fs;

use pgclinic_model::plan::Safety::Lossy;

use super::hurt::{remove, truncate};
use super::{Before, Wound};

pub(super) const STATUS: &[Wound] = &[
    Wound {
        name: "pg_xact lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, "pg_xact/0000"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_xact emptied after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, "pg_xact/0000", 0),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_xact truncated after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, "pg_xact/0000", 4096),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_xact removed after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_xact")),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("make-directories", Lossy), ("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/offsets lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, "pg_multixact/offsets/0000"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/offsets emptied",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, "pg_multixact/offsets/0000", 0),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/offsets truncated",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, "pg_multixact/offsets/0000", 512),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/members lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, "pg_multixact/members/0000"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/members emptied",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, "pg_multixact/members/0000", 0),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/members truncated",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, "pg_multixact/members/0000", 8000),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact removed after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_multixact")),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[
            ("make-directories", Lossy),
            ("fill-status-files", Lossy),
            ("fill-status-files", Lossy),
        ],
    },
];
