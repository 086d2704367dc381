//! WAL is lost or damaged, or a label of a backup leads to none.

use std::fs;

use pgclinic_model::plan::Safety::{Exact, Lossy};

use super::hurt::{
    CONTROL_FILE, LABEL, checkpoint, cut, flip_at, flip_in_wal, flip_pages, for_each_segment,
    label, name_redo_record, redo, remove, remove_wal, write, zero_checkpoint_record,
    zero_redo_record,
};
use super::{Before, Wound};

pub(super) const WAL: &[Wound] = &[
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
        name: "checkpoint record with another checksum",
        before: Before::Shutdown,
        hurt: |pgdata| flip_in_wal(pgdata, checkpoint(pgdata)? + 20),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Exact)],
    },
    Wound {
        name: "record at the redo point zeroed",
        before: Before::Crash,
        hurt: zero_redo_record,
        says: "invalid record length",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "control file that names another record",
        before: Before::Crash,
        hurt: name_redo_record,
        says: "invalid resource manager ID in primary checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "pg_wal removed",
        before: Before::Crash,
        hurt: |pgdata| fs::remove_dir_all(pgdata.join("pg_wal")),
        says: "required WAL directory \"pg_wal\" does not exist",
        page: "data-directory-refused",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL of zeros",
        before: Before::Crash,
        hurt: |pgdata| for_each_segment(pgdata, |path| fs::write(path, vec![0; 1 << 20])),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL truncated",
        before: Before::Crash,
        hurt: |pgdata| for_each_segment(pgdata, |path| cut(path, 8192)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL emptied after a shutdown",
        before: Before::Shutdown,
        hurt: |pgdata| for_each_segment(pgdata, |path| cut(path, 0)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Exact)],
    },
    Wound {
        name: "WAL of another cluster",
        before: Before::Crash,
        hurt: |pgdata| for_each_segment(pgdata, |path| flip_at(path, 24)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL with other segment sizes in its heads",
        before: Before::Shutdown,
        hurt: |pgdata| for_each_segment(pgdata, |path| flip_at(path, 34)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Exact)],
    },
    Wound {
        name: "WAL pages without their magic word",
        before: Before::Crash,
        hurt: |pgdata| for_each_segment(pgdata, |path| flip_pages(path, 0)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "WAL pages of another place",
        before: Before::Shutdown,
        hurt: |pgdata| for_each_segment(pgdata, |path| flip_pages(path, 12)),
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Exact)],
    },
    Wound {
        name: "WAL and pg_multixact lost",
        before: Before::Crash,
        hurt: |pgdata| {
            remove_wal(pgdata)?;
            remove(pgdata, "pg_multixact/offsets/0000")?;
            remove(pgdata, "pg_multixact/members/0000")
        },
        says: "could not locate a valid checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "control file and WAL lost",
        before: Before::Crash,
        hurt: |pgdata| {
            remove_wal(pgdata)?;
            remove(pgdata, CONTROL_FILE)
        },
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "control file, WAL and pg_xact lost",
        before: Before::Crash,
        hurt: |pgdata| {
            remove_wal(pgdata)?;
            remove(pgdata, CONTROL_FILE)?;
            remove(pgdata, "pg_xact/0000")
        },
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "control file and pg_wal lost",
        before: Before::Shutdown,
        hurt: |pgdata| {
            fs::remove_dir_all(pgdata.join("pg_wal"))?;
            remove(pgdata, CONTROL_FILE)
        },
        says: "global/pg_control\": No such file or directory",
        page: "control-file-checksum",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "label of a backup edited",
        before: Before::Crash,
        hurt: |pgdata| write(pgdata, LABEL, b"START WAL LOCATION: here\n"),
        says: "invalid data in file \"backup_label\"",
        page: "backup-label",
        cures: &[("set-backup-label-aside", Lossy)],
    },
    Wound {
        name: "label of a backup emptied",
        before: Before::Shutdown,
        hurt: |pgdata| write(pgdata, LABEL, b""),
        says: "invalid data in file \"backup_label\"",
        page: "backup-label",
        cures: &[("set-backup-label-aside", Lossy)],
    },
    Wound {
        name: "label left by a crash during a backup",
        before: Before::Crash,
        hurt: |pgdata| label(pgdata, 0x100_0028, 0x100_0060),
        says: "could not locate required checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("set-backup-label-aside", Lossy)],
    },
    Wound {
        name: "label of a backup whose redo record is gone",
        before: Before::Crash,
        hurt: |pgdata| {
            zero_redo_record(pgdata)?;
            label(pgdata, redo(pgdata)?, checkpoint(pgdata)?)
        },
        says: "could not find redo location referenced by checkpoint record",
        page: "no-valid-checkpoint-record",
        cures: &[("reset-wal", Lossy)],
    },
    Wound {
        name: "label of a backup whose end is not in WAL",
        before: Before::Crash,
        hurt: |pgdata| label(pgdata, redo(pgdata)?, checkpoint(pgdata)?),
        says: "WAL ends before end of online backup",
        page: "wal-ends-too-early",
        cures: &[("reset-wal", Lossy)],
    },
];
