//! A server that does not start, by a table of wounds: what it says is explained, what the plan
//! does lets it start, and what the plan says of rows is what the server then shows.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pgclinic_explain::server_messages::explain_message;
use pgclinic_format::ControlFile;
use pgclinic_model::document::TableFates;
use pgclinic_model::plan::Safety;
use pgclinic_servers::{
    Checksums, Installation, Scratch, Server, StartOptions as ServerOptions, StopMode, copy_cluster,
};
use pgclinic_surgery::start_again::{StartOptions, StartPlan, plan_start};
use pgclinic_surgery::{Consent, Operation, apply, undo};
use pgclinic_testkit::{Quiet, all_majors, copy_of, execute, open, run_as, seed, server, value};

/// How the server ended before the wound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    Crash,
    Shutdown,
}

/// A way in which a server comes not to start.
struct Wound {
    name: &'static str,
    before: Before,
    hurt: fn(&Path),
    /// What it says, in its log.
    says: &'static str,
    page: &'static str,
    cures: &'static [(&'static str, Safety)],
}

use Safety::{Exact, Lossy};

const WOUNDS: &[Wound] = &[
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

/// A cluster of which each wound gets a copy.
struct Patient {
    installation: Installation,
    pgdata: PathBuf,
    /// Of the committed rows, by table.
    truth: Vec<(String, u64)>,
    _scratch: Scratch,
}

const LOAD: &[&str] = &[
    "CREATE TABLE plain (id int PRIMARY KEY, body text)",
    "INSERT INTO plain SELECT g, repeat('x', g % 900) FROM generate_series(1, 3000) g",
    "CREATE TABLE long (id int, body text)",
    "ALTER TABLE long ALTER body SET STORAGE EXTERNAL",
    "INSERT INTO long SELECT g, repeat('y', 9000) FROM generate_series(1, 20) g",
    "CREATE TABLE shared (id int)",
    "INSERT INTO shared SELECT generate_series(1, 50)",
    "BEGIN",
    "SELECT id FROM shared WHERE id = 1 FOR SHARE",
    "SAVEPOINT one",
    "UPDATE shared SET id = id WHERE id = 1",
    "COMMIT",
    "BEGIN",
    "SELECT id FROM shared WHERE id = 2 FOR SHARE",
    "SAVEPOINT one",
    "UPDATE shared SET id = id WHERE id = 2",
    "COMMIT",
    "BEGIN",
    "SELECT id FROM shared WHERE id = 3 FOR SHARE",
    "SAVEPOINT one",
    "UPDATE shared SET id = id WHERE id = 3",
    "COMMIT",
    "SELECT pg_create_physical_replication_slot('one', false)",
    "VACUUM (FREEZE) long",
    "DELETE FROM plain WHERE id % 10 = 0",
    "BEGIN",
    "INSERT INTO shared VALUES (777)",
    "PREPARE TRANSACTION 'promised'",
];

const TABLES: [&str; 3] = ["plain", "long", "shared"];

impl Patient {
    fn of(installation: &Installation, before: Before) -> Patient {
        let copy = copy_of(&seed(installation, Checksums::On));
        let options = settings();
        let mut running = copy.start_with(&options).expect("a server");
        let mut open = running.connect("postgres").expect("a session");
        LOAD.iter().for_each(|sql| {
            open.execute(sql)
                .unwrap_or_else(|error| panic!("{sql}: {error}"))
        });
        // In progress when the server ends: half of it gets to disk.
        let mut unfinished = running.connect("postgres").expect("a session");
        for sql in [
            "BEGIN",
            "INSERT INTO plain SELECT g, 'open' FROM generate_series(10001, 10400) g",
            "DELETE FROM long WHERE id = 3",
        ] {
            unfinished.execute(sql).expect("a statement");
        }
        open.execute("CHECKPOINT").expect("a checkpoint");
        open.execute("INSERT INTO plain SELECT g, 'late' FROM generate_series(20001, 20200) g")
            .expect("rows");
        let count = |table: &&str| {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows = in_postgres(&running, &sql).parse().expect("a number");
            ((*table).to_owned(), rows)
        };
        let truth = TABLES.iter().map(count).collect();
        let mode = match before {
            Before::Crash => StopMode::Immediate,
            Before::Shutdown => StopMode::Fast,
        };
        running.stop(mode).expect("an end");
        let scratch = Scratch::new(&run_as(), None).expect("a directory");
        let copied = copy_cluster(&copy.pgdata, scratch.path()).expect("a copy");
        Patient {
            installation: installation.clone(),
            pgdata: copied.pgdata,
            truth,
            _scratch: scratch,
        }
    }

    fn copy(&self) -> (Scratch, PathBuf) {
        let scratch = Scratch::new(&run_as(), None).expect("a directory");
        let copied = copy_cluster(&self.pgdata, scratch.path()).expect("a copy");
        (scratch, copied.pgdata)
    }

    fn start(&self, pgdata: &Path) -> Result<Server, pgclinic_servers::Error> {
        Server::start(&self.installation, &run_as(), pgdata, &settings())
    }

    /// What the server says instead of starting, or of letting somebody in.
    fn refusal(&self, pgdata: &Path) -> Option<String> {
        let mut server = match self.start(pgdata) {
            Ok(server) => server,
            Err(error) => return Some(error.to_string()),
        };
        let error = server
            .connect("postgres")
            .err()
            .map(|error| error.to_string());
        server.stop(StopMode::Immediate).expect("an end");
        error
    }

    /// Wound, words, page, plan, start, rows.
    fn treat(&self, wound: &Wound) -> Vec<String> {
        let name = wound.name;
        let (_scratch, pgdata) = self.copy();
        (wound.hurt)(&pgdata);
        let Some(said) = self.refusal(&pgdata) else {
            return vec![format!("{name}: the server starts")];
        };
        // Some ends leave it; heal goes by copies then, which have none.
        let _none = fs::remove_file(pgdata.join("postmaster.pid"));
        let mut wrong = Vec::new();
        if !said.contains(wound.says) {
            wrong.push(format!("{name}: it says {said}"));
        }
        let pages: Vec<&str> = explain_message(&said)
            .iter()
            .map(|found| found.message.name)
            .collect();
        if !pages.contains(&wound.page) {
            wrong.push(format!("{name}: explained by {pages:?}"));
        }
        let hurt = contents(&pgdata);
        let Some(plan) = plan(&pgdata) else {
            wrong.push(format!("{name}: no plan"));
            return wrong;
        };
        let cures: Vec<(&str, Safety)> = plan
            .cures
            .iter()
            .map(|cure| (cure.name.as_str(), cure.safety))
            .collect();
        if cures != wound.cures {
            wrong.push(format!("{name}: planned {cures:?}"));
        }
        let journals = tempfile::tempdir().expect("a directory");
        let journal = journals.path().join("journal");
        carry_out(&pgdata, &plan, &journal);
        undo(&journal, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        if contents(&pgdata) != hurt {
            wrong.push(format!("{name}: undo does not give the first bytes back"));
        }
        carry_out(&pgdata, &plan, &journals.path().join("again"));
        match self.start(&pgdata) {
            Ok(server) => wrong.extend(self.compare(wound, &plan, &server)),
            Err(error) => wrong.push(format!("{name}: after the cure {error}")),
        }
        wrong
    }

    /// The rows that the server shows are those that the plan promised.
    fn compare(&self, wound: &Wound, plan: &StartPlan, server: &Server) -> Vec<String> {
        let predicted = plan.cures.iter().filter_map(|cure| cure.start.as_ref());
        let predicted: Vec<TableFates> = predicted.flat_map(|own| own.tables.clone()).collect();
        let mut wrong = Vec::new();
        for (table, truth) in &self.truth {
            let own = predicted
                .iter()
                .find(|own| own.relation == *table && own.schema == "public");
            let is_refused = own.is_some_and(|own| own.undecided > 0);
            let expected = own.map_or(*truth, |own| own.rows);
            let seen = copied(server, table);
            let is_as_promised = match &seen {
                Ok(rows) => *rows == expected && !is_refused,
                Err(_) => is_refused,
            };
            if !is_as_promised {
                wrong.push(format!(
                    "{}: {table} shows {seen:?} rows, {expected} expected ({own:?})",
                    wound.name
                ));
            }
        }
        wrong
    }
}

fn settings() -> ServerOptions {
    ServerOptions::default()
        .with("max_prepared_transactions", "5")
        .with("autovacuum", "off")
        .with("max_replication_slots", "5")
}

/// Rows that COPY gives, long values read.
fn copied(server: &Server, table: &str) -> Result<u64, String> {
    let mut session = server.connect("postgres").expect("a session");
    let mut rows = 0;
    let sql = format!("COPY {table} TO STDOUT");
    session
        .copy_out(&sql, &mut |bytes| {
            rows += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        })
        .map_err(|error| error.to_string())?;
    Ok(rows)
}

fn in_postgres(server: &Server, sql: &str) -> String {
    let mut session = server.connect("postgres").expect("a session");
    session
        .query_value(sql)
        .expect("a query")
        .unwrap_or_default()
}

fn plan(pgdata: &Path) -> Option<StartPlan> {
    let options = StartOptions {
        pgdata,
        threads: NonZeroUsize::MIN,
        progress: &Quiet,
    };
    plan_start(&open(pgdata), &options).expect("a plan")
}

fn carry_out(pgdata: &Path, plan: &StartPlan, journal: &Path) {
    let chosen: Vec<usize> = (0..plan.cures.len()).collect();
    let consent = match plan.basis.system_identifier.parse() {
        Ok(identifier) => Consent::Plan(identifier),
        Err(_) => Consent::PlanByBytes,
    };
    apply(&Operation {
        pgdata,
        patch: &plan.patch(&chosen),
        journal,
        consent,
        what: "start again",
        time: None,
        beside: &plan.beside(&chosen),
        control_file: Some(&plan.basis.control_file),
    })
    .unwrap_or_else(|error| panic!("{}: {error}", plan.cures[0].summary));
}

/// Every file with its bytes, every directory, and permissions of the root.
fn contents(pgdata: &Path) -> Vec<(PathBuf, Option<blake3::Hash>)> {
    let mut left = vec![pgdata.to_path_buf()];
    let mut all = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
            all.push((path, None));
        } else {
            let bytes = fs::read(&path).expect("a file");
            all.push((path, Some(blake3::hash(&bytes))));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn treat_all(installation: &Installation, wounds: &[&Wound]) {
    let mut wrong = Vec::new();
    for before in [Before::Crash, Before::Shutdown] {
        let own: Vec<&&Wound> = wounds.iter().filter(|own| own.before == before).collect();
        if own.is_empty() {
            continue;
        }
        let patient = Patient::of(installation, before);
        for wound in own {
            wrong.extend(patient.treat(wound));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_wound_is_explained_healed_and_the_server_starts_with_the_rows_that_were_promised() {
    let all: Vec<&Wound> = WOUNDS.iter().collect();
    treat_all(&server(15), &all);
}

#[test]
fn wal_and_control_file_are_written_for_every_major() {
    let is_of_all = |own: &&Wound| {
        matches!(
            own.name,
            "control file and WAL lost" | "control file lost" | "WAL deleted after a shutdown"
        )
    };
    let own: Vec<&Wound> = WOUNDS.iter().filter(is_of_all).collect();
    for installation in all_majors() {
        treat_all(&installation, &own);
    }
}

#[test]
fn a_sound_cluster_gets_no_plan() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    assert_eq!(plan(&copy.pgdata), None);
    let mut running = copy.start().expect("a server");
    execute(&running, "CREATE TABLE more (id int)");
    let count = value(&running, "SELECT count(*) FROM more");
    assert_eq!(count, "0");
    running.stop(StopMode::Immediate).expect("an end");
    assert_eq!(plan(&copy.pgdata), None, "a crash is recovered from");
}

#[test]
fn the_map_of_catalogs_that_were_written_anew_is_not_guessed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let map = copy.pgdata.join("global/pg_filenode.map");
    fs::remove_file(map).expect("a map");
    assert_eq!(
        plan(&copy.pgdata),
        None,
        "VACUUM FULL pg_database gave it other files"
    );
}
