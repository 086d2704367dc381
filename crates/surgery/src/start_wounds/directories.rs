//! Directories, permissions and version files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use pgclinic_model::plan::Safety::{Exact, Lossy};

use super::hurt::{postgres, put, remove, truncate, write};
use super::{Before, Wound};

pub(super) const DIRECTORIES: &[Wound] = &[
    Wound {
        name: "an empty directory left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_notify")),
        says: "could not open directory \"pg_notify\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Exact)],
    },
    Wound {
        name: "pg_replslot left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_replslot")),
        says: "could not open directory \"pg_replslot\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_twophase left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_twophase")),
        says: "could not open directory \"pg_twophase\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_commit_ts left out of a copy",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_commit_ts")),
        says: "could not open directory \"pg_commit_ts\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_logical/snapshots left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_logical/snapshots")),
        says: "could not open directory \"pg_logical/snapshots\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_logical/mappings left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_logical/mappings")),
        says: "could not open directory \"pg_logical/mappings\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_subtrans left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_subtrans")),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("make-directories", Exact)],
    },
    Wound {
        name: "permissions for everybody",
        before: Before::Crash,
        hurt: |pgdata| fs::set_permissions(pgdata, fs::Permissions::from_mode(0o777)),
        says: "has invalid permissions",
        page: "data-directory-refused",
        cures: &[("set-permissions", Exact)],
    },
    Wound {
        name: "permissions for others",
        before: Before::Shutdown,
        hurt: |pgdata| fs::set_permissions(pgdata, fs::Permissions::from_mode(0o755)),
        says: "has invalid permissions",
        page: "data-directory-refused",
        cures: &[("set-permissions", Exact)],
    },
    Wound {
        name: "PG_VERSION lost",
        before: Before::Crash,
        hurt: |pgdata| remove(pgdata, "PG_VERSION"),
        says: "is not a valid data directory",
        page: "data-directory-refused",
        cures: &[("write-version-file", Exact)],
    },
    Wound {
        name: "PG_VERSION that is not a number",
        before: Before::Shutdown,
        hurt: |pgdata| write(pgdata, "PG_VERSION", b"x\n"),
        says: "is not a valid data directory",
        page: "data-directory-refused",
        cures: &[("write-version-file", Exact)],
    },
    Wound {
        name: "PG_VERSION emptied",
        before: Before::Crash,
        hurt: |pgdata| truncate(pgdata, "PG_VERSION", 0),
        says: "is not a valid data directory",
        page: "data-directory-refused",
        cures: &[("write-version-file", Exact)],
    },
    Wound {
        name: "PG_VERSION of a database lost",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_file(postgres(pgdata)?.join("PG_VERSION")),
        says: "is not a valid data directory",
        page: "data-directory-refused",
        cures: &[("write-version-file", Exact)],
    },
    Wound {
        name: "PG_VERSION of a database of another major",
        before: Before::Crash,
        hurt: |pgdata| put(&postgres(pgdata)?.join("PG_VERSION"), b"9\n"),
        says: "database files are incompatible with server",
        page: "incompatible-files",
        cures: &[("write-version-file", Exact)],
    },
];
