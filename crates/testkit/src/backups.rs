//! Base backups of running servers, made by `pg_basebackup`, or without any tool over the
//! replication protocol.

use std::fs;
use std::path::{Path, PathBuf};

use pgclinic_servers::{
    Archive, BackupOptions, BaseBackup, ConnectOptions, Scratch, Server, StartOptions,
};
use pgclinic_source::tar::{Archives, TarStream};
use pgclinic_source::{EntryKind, Result, SourceError, SourceErrorKind};

use crate::{TempCopy, execute, run_as};

/// Runs `pg_basebackup` into `folder`, which must be empty or missing, with further arguments. The
/// server's programs must have it: an installed PostgreSQL does.
pub fn base_backup(server: &Server, folder: &Path, arguments: &[&str]) {
    let program = server.installation().tool("pg_basebackup");
    let program = program.expect("an installed PostgreSQL has pg_basebackup");
    let mut command = run_as().command(&program);
    command.arg("--host").arg(server.socket_folder());
    command.args(["--username", "postgres", "--checkpoint", "fast"]);
    command.arg("--pgdata").arg(folder).args(arguments);
    let output = command.output().expect("pg_basebackup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "pg_basebackup: {said}");
}

/// A plain base backup of a server on this copy, with the copy's tablespace in a folder beside it.
pub fn plain_backup(copy: &TempCopy, server: &Server, folder: &Path, arguments: &[&str]) {
    let from = copy.tablespaces.first().expect("a seed has a tablespace");
    let to = folder.with_extension("annex");
    let mapping = format!("--tablespace-mapping={}={}", from.display(), to.display());
    base_backup(server, folder, &[&[mapping.as_str()], arguments].concat());
}

/// Settings with which a server lets itself be backed up.
pub fn as_primary() -> StartOptions {
    let options = StartOptions::default().with("wal_level", "replica");
    options.with("max_wal_senders", "4")
}

/// The same for incremental backups.
pub fn with_summaries() -> StartOptions {
    as_primary().with("summarize_wal", "on")
}

/// A plain backup with its WAL and manifest, taken over the replication protocol; with the folder
/// of an earlier one, an incremental backup on that. Tablespaces lie in `pg_tblspc` itself.
pub fn streamed_backup(server: &Server, folder: &Path, earlier: Option<&Path>) {
    let options = ConnectOptions::default().replicating();
    let mut session = server
        .connect_with("postgres", &options)
        .expect("a session");
    let manifest = |folder: &Path| fs::read(folder.join("backup_manifest")).expect("a manifest");
    let options = BackupOptions {
        label: "testkit".into(),
        wal: true,
        manifest: true,
        since: earlier.map(manifest),
        ..BackupOptions::default()
    };
    let major = server.installation().major;
    let backup = session.base_backup(major, &options).expect("a backup");
    let mut stream = TarStream::new(Unpacked {
        backup,
        manifest: Vec::new(),
    });
    while let Some(file) = stream.next_file().expect("a name") {
        let path = folder.join(&file.path);
        match file.kind {
            EntryKind::Folder => fs::create_dir_all(&path).expect("a directory"),
            EntryKind::File => {
                fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
                fs::write(&path, content(&mut stream)).expect("a file");
            }
            EntryKind::Other => {}
        }
    }
    assert_eq!(stream.troubles(), Vec::<String>::new());
    let manifest = stream.into_archives().manifest;
    fs::write(folder.join("backup_manifest"), manifest).expect("a manifest");
}

/// A full backup, one that builds on it, and a full one of the moment of that.
pub struct Backups {
    /// The first.
    pub full: PathBuf,
    /// What changed since.
    pub link: PathBuf,
    /// All of it again.
    pub again: PathBuf,
}

impl Backups {
    /// Takes them of a server that was started with summaries; the changes are made in the test
    /// database.
    pub fn taken(server: &Server, scratch: &Scratch, changes: &str) -> Self {
        let folder = |name: &str| scratch.path().join(name);
        let (full, link, again) = (folder("full"), folder("link"), folder("again"));
        streamed_backup(server, &full, None);
        execute(server, changes);
        streamed_backup(server, &link, Some(&full));
        streamed_backup(server, &again, None);
        Backups { full, link, again }
    }

    /// The words that name the full backup and the link on it.
    pub fn chain(&self) -> [&str; 3] {
        [
            self.full.to_str().expect("UTF-8"),
            "--incremental",
            self.link.to_str().expect("UTF-8"),
        ]
    }
}

fn content(stream: &mut TarStream<Unpacked<'_>>) -> Vec<u8> {
    let (mut content, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match stream.read(&mut part).expect("bytes") {
            0 => return content,
            count => content.extend_from_slice(&part[..count]),
        }
    }
}

/// The archives of a backup; its manifest is put aside.
struct Unpacked<'s> {
    backup: BaseBackup<'s>,
    manifest: Vec<u8>,
}

impl Archives for Unpacked<'_> {
    fn next_archive(&mut self) -> Result<Option<String>> {
        match self.backup.next_archive().map_err(failed)? {
            Some(Archive::Base) => Ok(Some(String::new())),
            Some(Archive::Tablespace(oid)) => Ok(Some(format!("pg_tblspc/{oid}/"))),
            Some(Archive::Manifest) => {
                let mut part = vec![0; 64 << 10];
                loop {
                    match self.read(&mut part)? {
                        0 => return self.next_archive(),
                        count => self.manifest.extend_from_slice(&part[..count]),
                    }
                }
            }
            None => Ok(None),
        }
    }

    fn has_end_marks(&self) -> bool {
        self.backup.has_end_marks()
    }

    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        self.backup.read(buf).map_err(failed)
    }
}

fn failed(error: pgclinic_servers::SqlError) -> SourceError {
    SourceError::new("", SourceErrorKind::Io, error.to_string())
}
