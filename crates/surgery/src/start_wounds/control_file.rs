//! The control file is lost or damaged.

use pgclinic_model::plan::Safety::Exact;

use super::hurt::{CONTROL_FILE, flip, remove, truncate, write};
use super::{Before, Wound};

pub(super) const CONTROL_FILES: &[Wound] = &[
    Wound {
        name: "control file damaged",
        before: Before::Crash,
        hurt: |pgdata| flip(pgdata, CONTROL_FILE, 100),
        says: "incorrect checksum in control file",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file with another checksum after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| flip(pgdata, CONTROL_FILE, 40),
        says: "incorrect checksum in control file",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file lost",
        before: Before::Crash,
        hurt: |pgdata| remove(pgdata, CONTROL_FILE),
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, CONTROL_FILE),
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file truncated",
        before: Before::Crash,
        hurt: |pgdata| truncate(pgdata, CONTROL_FILE, 100),
        says: "could not read file \"global/pg_control\": read 100 of",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file emptied",
        before: Before::Crash,
        hurt: |pgdata| truncate(pgdata, CONTROL_FILE, 0),
        says: "could not read file \"global/pg_control\": read 0 of",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file of zeros",
        before: Before::Shutdown,
        hurt: |pgdata| write(pgdata, CONTROL_FILE, &[0; 8192]),
        says: "database files are incompatible with server",
        page: "incompatible-files",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file of an unknown version",
        before: Before::Crash,
        hurt: |pgdata| flip(pgdata, CONTROL_FILE, 8),
        says: "database files are incompatible with server",
        page: "incompatible-files",
        cures: &[("control-file-from-wal", Exact)],
    },
];
