//! Ways in which a server comes not to start: what is done to the files, what the server says then,
//! which page explains it, and which cures the plan has.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pgclinic_format::ControlFile;
use pgclinic_model::plan::Safety;
use pgclinic_testkit::run_as;

/// How the server ended before the wound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    Crash,
    Shutdown,
}

/// A way in which a server comes not to start.
pub(crate) struct Wound {
    pub(crate) name: &'static str,
    pub(crate) before: Before,
    pub(crate) hurt: fn(&Path),
    /// What it says, in its log.
    pub(crate) says: &'static str,
    pub(crate) page: &'static str,
    pub(crate) cures: &'static [(&'static str, Safety)],
}

use Safety::{Exact, Lossy};

pub(crate) const WOUNDS: &[Wound] = &[
    Wound {
        name: "WAL deleted after a crash",
        before: Before::Crash,
        hurt: remove_wal,
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL deleted after a shutdown",
        before: Before::Shutdown,
        hurt: remove_wal,
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Exact)],
    },
    Wound {
        name: "checkpoint record zeroed",
        before: Before::Crash,
        hurt: zero_checkpoint_record,
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "pg_wal removed",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_wal")).expect("a directory"),
        says: "required WAL directory \"pg_wal\" does not exist",
        page: "data-directory-refused",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "control file damaged",
        before: Before::Crash,
        hurt: |pgdata| flip(&pgdata.join("global/pg_control"), 100),
        says: "incorrect checksum in control file",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file lost",
        before: Before::Crash,
        hurt: |pgdata| remove(pgdata, "global/pg_control"),
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, "global/pg_control"),
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file and WAL lost",
        before: Before::Crash,
        hurt: |pgdata| {
            remove_wal(pgdata);
            remove(pgdata, "global/pg_control");
        },
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "control file, WAL and pg_xact lost",
        before: Before::Crash,
        hurt: |pgdata| {
            remove_wal(pgdata);
            remove(pgdata, "global/pg_control");
            remove(pgdata, "pg_xact/0000");
        },
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "an empty directory left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_notify")).expect("a directory"),
        says: "could not open directory \"pg_notify\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Exact)],
    },
    Wound {
        name: "permissions for everybody",
        before: Before::Crash,
        hurt: |pgdata| {
            let all = fs::Permissions::from_mode(0o777);
            fs::set_permissions(pgdata, all).expect("permissions");
        },
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
        name: "PG_VERSION of another major",
        before: Before::Shutdown,
        hurt: |pgdata| overwrite(&pgdata.join("PG_VERSION"), b"x\n"),
        says: "is not a valid data directory",
        page: "data-directory-refused",
        cures: &[("write-version-file", Exact)],
    },
    Wound {
        name: "label of a backup edited",
        before: Before::Crash,
        hurt: |pgdata| overwrite(&pgdata.join("backup_label"), b"START WAL LOCATION: here\n"),
        says: "invalid data in file \"backup_label\"",
        page: "backup-label",
        cures: &[("set-backup-label-aside", Lossy)],
    },
    Wound {
        name: "label left by a crash during a backup",
        before: Before::Crash,
        hurt: |pgdata| {
            let label = "START WAL LOCATION: 0/1000028 (file 000000010000000000000001)\nCHECKPOINT LOCATION: 0/1000060\nBACKUP METHOD: pg_start_backup\nBACKUP FROM: primary\nSTART TIME: 2026-01-01 00:00:00 GMT\nLABEL: x\nSTART TIMELINE: 1\n";
            overwrite(&pgdata.join("backup_label"), label.as_bytes());
        },
        says: "could not locate required checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("set-backup-label-aside", Lossy)],
    },
    Wound {
        name: "replication slot damaged",
        before: Before::Crash,
        hurt: |pgdata| flip(&pgdata.join("pg_replslot/one/state"), 20),
        says: "checksum mismatch for replication slot file",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot without state",
        before: Before::Crash,
        hurt: |pgdata| remove(pgdata, "pg_replslot/one/state"),
        says: "pg_replslot/one/state\": No such file or directory",
        page: "missing-file",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication origins damaged",
        before: Before::Crash,
        hurt: |pgdata| {
            let path = pgdata.join("pg_logical/replorigin_checkpoint");
            overwrite(&path, &[0; 16]);
        },
        says: "replication checkpoint has wrong magic",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction damaged",
        before: Before::Shutdown,
        hurt: |pgdata| flip(&first_in(pgdata, "pg_twophase"), 80),
        says: "calculated CRC checksum does not match value stored in file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "pg_xact lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, "pg_xact/0000"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
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
        name: "pg_multixact/members lost after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| remove(pgdata, "pg_multixact/members/0000"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_xact emptied after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| overwrite(&pgdata.join("pg_xact/0000"), b""),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "map of a database damaged",
        before: Before::Shutdown,
        hurt: |pgdata| {
            flip(
                &pgdata.join(format!("{}/pg_filenode.map", postgres(pgdata))),
                20,
            )
        },
        says: "contains incorrect checksum",
        page: "relation-map-damaged",
        cures: &[("relation-map-from-files", Exact)],
    },
    Wound {
        name: "replication slot zeroed",
        before: Before::Crash,
        hurt: |pgdata| overwrite(&pgdata.join("pg_replslot/one/state"), &[0; 200]),
        says: "has wrong magic number",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "control file truncated",
        before: Before::Crash,
        hurt: |pgdata| truncate(&pgdata.join("global/pg_control"), 100),
        says: "could not read file \"global/pg_control\": read 100 of",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file emptied",
        before: Before::Crash,
        hurt: |pgdata| truncate(&pgdata.join("global/pg_control"), 0),
        says: "could not read file \"global/pg_control\": read 0 of",
        page: "control-file-checksum",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "control file of zeros",
        before: Before::Shutdown,
        hurt: |pgdata| overwrite(&pgdata.join("global/pg_control"), &[0; 8192]),
        says: "database files are incompatible with server",
        page: "incompatible-files",
        cures: &[("control-file-from-wal", Exact)],
    },
    Wound {
        name: "WAL of zeros",
        before: Before::Crash,
        hurt: |pgdata| for_each_segment(pgdata, |path| overwrite(path, &vec![0; 1 << 20])),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL truncated",
        before: Before::Crash,
        hurt: |pgdata| for_each_segment(pgdata, |path| truncate(path, 8192)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL emptied after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| for_each_segment(pgdata, |path| truncate(path, 0)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Exact)],
    },
    Wound {
        name: "control file and pg_wal lost",
        before: Before::Shutdown,
        hurt: |pgdata| {
            fs::remove_dir_all(pgdata.join("pg_wal")).expect("a directory");
            remove(pgdata, "global/pg_control");
        },
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL and pg_multixact lost",
        before: Before::Crash,
        hurt: |pgdata| {
            remove_wal(pgdata);
            remove(pgdata, "pg_multixact/offsets/0000");
            remove(pgdata, "pg_multixact/members/0000");
        },
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "pg_replslot left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_replslot")).expect("a directory"),
        says: "could not open directory \"pg_replslot\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_twophase left out of a copy",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_twophase")).expect("a directory"),
        says: "could not open directory \"pg_twophase\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_commit_ts left out of a copy",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_commit_ts")).expect("a directory"),
        says: "could not open directory \"pg_commit_ts\"",
        page: "data-directory-refused",
        cures: &[("make-directories", Lossy)],
    },
    Wound {
        name: "pg_xact removed after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_xact")).expect("a directory"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("make-directories", Lossy), ("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact removed after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_multixact")).expect("a directory"),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[
            ("make-directories", Lossy),
            ("fill-status-files", Lossy),
            ("fill-status-files", Lossy),
        ],
    },
    Wound {
        name: "pg_xact truncated after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(&pgdata.join("pg_xact/0000"), 4096),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "pg_multixact/offsets emptied",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(&pgdata.join("pg_multixact/offsets/0000"), 0),
        says: "could not access status of transaction",
        page: "could-not-access-status-of-transaction",
        cures: &[("fill-status-files", Lossy)],
    },
    Wound {
        name: "permissions for others",
        before: Before::Shutdown,
        hurt: |pgdata| {
            let others = fs::Permissions::from_mode(0o755);
            fs::set_permissions(pgdata, others).expect("permissions");
        },
        says: "has invalid permissions",
        page: "data-directory-refused",
        cures: &[("set-permissions", Exact)],
    },
    Wound {
        name: "PG_VERSION emptied",
        before: Before::Crash,
        hurt: |pgdata| truncate(&pgdata.join("PG_VERSION"), 0),
        says: "is not a valid data directory",
        page: "data-directory-refused",
        cures: &[("write-version-file", Exact)],
    },
    Wound {
        name: "replication slot of an unknown version",
        before: Before::Crash,
        hurt: |pgdata| flip(&pgdata.join("pg_replslot/one/state"), 9),
        says: "has unsupported version",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot of another length",
        before: Before::Shutdown,
        hurt: |pgdata| flip(&pgdata.join("pg_replslot/one/state"), 13),
        says: "has corrupted length",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot truncated",
        before: Before::Crash,
        hurt: |pgdata| truncate(&pgdata.join("pg_replslot/one/state"), 10),
        says: "read 10 of 16",
        page: "short-read",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction with another magic word",
        before: Before::Shutdown,
        hurt: |pgdata| flip(&first_in(pgdata, "pg_twophase"), 0),
        says: "invalid magic number stored in file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction with another size",
        before: Before::Shutdown,
        hurt: |pgdata| flip(&first_in(pgdata, "pg_twophase"), 5),
        says: "invalid size stored in file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction truncated",
        before: Before::Crash,
        hurt: |pgdata| truncate(&first_in(pgdata, "pg_twophase"), 8),
        says: "incorrect size of file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication origins with another checksum",
        before: Before::Shutdown,
        hurt: |pgdata| {
            let mut bytes = 0x1257_DADE_u32.to_le_bytes().to_vec();
            bytes.extend([1, 2, 3, 4]);
            overwrite(&pgdata.join("pg_logical/replorigin_checkpoint"), &bytes);
        },
        says: "replication slot checkpoint has wrong checksum",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "map of a database truncated",
        before: Before::Crash,
        hurt: |pgdata| {
            truncate(
                &pgdata.join(format!("{}/pg_filenode.map", postgres(pgdata))),
                100,
            )
        },
        says: "pg_filenode.map\": read 100 of",
        page: "short-read",
        cures: &[("relation-map-from-files", Exact)],
    },
    Wound {
        name: "label of a backup emptied",
        before: Before::Shutdown,
        hurt: |pgdata| overwrite(&pgdata.join("backup_label"), b""),
        says: "invalid data in file \"backup_label\"",
        page: "backup-label",
        cures: &[("set-backup-label-aside", Lossy)],
    },
];

fn remove(pgdata: &Path, path: &str) {
    fs::remove_file(pgdata.join(path)).expect("a file");
}

fn overwrite(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    run_as().own(path).expect("the server's");
}

fn truncate(path: &Path, len: u64) {
    let file = fs::OpenOptions::new().write(true).open(path);
    file.expect("a file").set_len(len).expect("its length");
}

fn for_each_segment(pgdata: &Path, hurt: fn(&Path)) {
    segments(pgdata).iter().for_each(|path| hurt(path));
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 0xFF;
    fs::write(path, bytes).expect("written");
}

/// The directory of the database postgres, whose OID is one of the first in all majors.
fn postgres(pgdata: &Path) -> String {
    let oids = ["base/5", "base/14486", "base/13395"];
    let found = oids.into_iter().find(|path| pgdata.join(path).is_dir());
    found.expect("a database").to_owned()
}

fn first_in(pgdata: &Path, folder: &str) -> PathBuf {
    let mut entries = fs::read_dir(pgdata.join(folder)).expect("a directory");
    entries.next().expect("a file").expect("an entry").path()
}

fn segments(pgdata: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(pgdata.join("pg_wal")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_file()).collect()
}

fn remove_wal(pgdata: &Path) {
    for path in segments(pgdata) {
        fs::remove_file(path).expect("a segment");
    }
}

fn zero_checkpoint_record(pgdata: &Path) {
    let bytes = fs::read(pgdata.join("global/pg_control")).expect("a file");
    let control = ControlFile::parse(&bytes).expect("a control file");
    let at = control.checkpoint_lsn.0;
    let size = u64::from(control.xlog_seg_size);
    let (number, per_log) = (at / size, (1u64 << 32) / size);
    let (log, within_log) = (number / per_log, number % per_log);
    let path = pgdata.join(format!("pg_wal/00000001{log:08X}{within_log:08X}"));
    let mut bytes = fs::read(&path).expect("a segment");
    let within = (at % size) as usize;
    bytes[within..within + 64].fill(0);
    fs::write(path, bytes).expect("written");
}
