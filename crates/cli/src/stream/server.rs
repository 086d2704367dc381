//! A running server, looked at through `BASE_BACKUP`: everything that it sends is looked at and
//! thrown away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pgclinic_check::stream::{PageSums, Shape, StreamCheck, fetch_catalogs, look_again, settle};
use pgclinic_check::{CheckOptions, plan_again};
use pgclinic_cluster::{Build, MANIFEST, MANIFEST_BYTES, OpenOptions};
use pgclinic_format::Layout;
use pgclinic_format::digest::Algorithm;
use pgclinic_model::document::NotChecked;
use pgclinic_model::{CheckDocument, Progress};
use pgclinic_salvage::ServerSource;
use pgclinic_servers::{
    Archive, BackupOptions, BaseBackup, ConnectOptions, ConnectionTarget, Session, SqlError,
};
use pgclinic_source::tar::{Archives, TarStream};
use pgclinic_source::{
    Result as SourceResult, Source, SourceError, SourceErrorKind, StreamedBackup, read_all,
};

use super::{databases_of_server, files_of_server, suspects_max};
use crate::exit::Failure;
use crate::target::RealClock;

/// A server that sends nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(120);

/// Files that come last, and that everything else needs where the server goes away in the middle.
const FIRST: [&str; 2] = ["PG_VERSION", "global/pg_control"];
/// `ERRCODE_INVALID_CATALOG_NAME`.
const NO_SUCH_DATABASE: &str = "3D000";
const FIRST_BYTES: u64 = 64 << 10;

/// Checks what a server sends as a base backup, no faster than so many bytes a second.
pub(crate) fn check_server(
    target: &ConnectionTarget,
    options: &CheckOptions,
    rate: Option<u64>,
    progress: &dyn Progress,
) -> Result<CheckDocument, Failure> {
    let connect = ConnectOptions {
        wall_limit: SILENCE,
        ..ConnectOptions::default()
    };
    let refused = |error: SqlError| refusal(target, &error);
    let session = Session::open(target, &connect.clone().replicating());
    let mut session = session.map_err(refused)?;
    let about = about(&mut session).map_err(refused)?;
    let shape = shape(&about, options).map_err(Failure::new)?;
    let files =
        Session::open(target, &connect).map(|session| ServerSource::new(session, target, &connect));
    // A base backup is of all databases, and comes whichever was named.
    if let Err(error) = &files
        && error
            .message()
            .is_some_and(|own| own.sqlstate == NO_SUCH_DATABASE)
    {
        return Err(refusal(target, error));
    }
    let files = files.map_err(|error| error.to_string());
    let files: Result<&dyn Source, &str> = match &files {
        Ok(files) => Ok(files),
        Err(why) => Err(why),
    };
    let mut passed =
        StreamedBackup::new("a base backup of a running server", &options.spill_folder)?;
    for path in FIRST {
        // Where that is not permitted they come with the others.
        if let Some(bytes) = files
            .ok()
            .and_then(|files| read_all(files, path, FIRST_BYTES).ok())
        {
            passed.add_kept(path);
            passed.append(path, &bytes)?;
        }
    }
    let before = databases_of_server::look(target, &connect);
    let backup = BackupOptions {
        label: "pgclinic check".into(),
        manifest: true,
        max_rate: rate.map(|rate| u32::try_from(rate / 1000).unwrap_or(u32::MAX)),
        ..BackupOptions::default()
    };
    let backup = session.base_backup(shape.layout.major, &backup);
    let mut stream = TarStream::new(Sent {
        backup: backup.map_err(refused)?,
        manifest: Vec::new(),
    });
    let mut flight = StreamCheck::new(shape);
    let sum_of = |_: &str| Some(Algorithm::Crc32c);
    if let Err(error) = flight.watch(&mut stream, &sum_of, &mut passed, progress) {
        flight.not_checked.push(NotChecked {
            what: "what had not come when the server broke off".into(),
            why: error.why,
            inherent: false,
        });
    }
    let manifest = stream.into_archives().manifest;
    if !manifest.is_empty() {
        passed.add_kept(MANIFEST);
        passed.append(MANIFEST, &manifest)?;
    }
    look_again(
        &mut flight,
        &mut passed,
        files,
        &RealClock::starting(Instant::now()),
    );
    // Who interrupts does not wait for names.
    let asked = files.ok().filter(|_| !progress.is_interrupted());
    flight.databases = databases_of_server::ask(target, &connect, before.as_ref(), progress);
    fetch_catalogs(&mut flight, &mut passed, asked);
    let passed = Arc::new(passed);
    let absent = flight.absent_files(&passed, OpenOptions::with_wal_elsewhere);
    if !progress.is_interrupted() {
        files_of_server::ask(target, &connect, absent, &mut flight);
    }
    let told: Vec<String> = flight
        .not_checked
        .iter()
        .map(|gap| format!("{}: {}", gap.what, gap.why))
        .collect();
    // The server has the WAL still that the backup needs.
    let judged = flight.judge(passed, options, progress, OpenOptions::with_wal_elsewhere);
    let judged = judged.map_err(|error| Failure::new(format!("{error} ({})", told.join("; "))))?;
    let document = judged.ok_or_else(|| {
        Failure::new(
            "the control file has other sizes than the server reported: it was changed meanwhile",
        )
    })?;
    Ok(of_server(document, target))
}

/// What the server says of itself, as it says it: version, block size, segment size, checksums.
fn about(session: &mut Session) -> Result<[String; 4], SqlError> {
    let mut show = |name: &str| {
        let value = session.query_value(&format!("SHOW {name}"))?;
        Ok(value.unwrap_or_default())
    };
    Ok([
        show("server_version_num")?,
        show("block_size")?,
        show("segment_size")?,
        show("data_checksums")?,
    ])
}

fn shape(about: &[String; 4], options: &CheckOptions) -> Result<Shape, String> {
    let [version, block_size, segment, sums] = about.each_ref().map(String::as_str);
    let major = version
        .parse::<u32>()
        .ok()
        .and_then(|version| u16::try_from(version / 10_000).ok());
    let layout = major.and_then(Layout::of_major);
    let layout = layout.ok_or_else(|| {
        format!("this server is of version {version}; PostgreSQL 13 to 18 can be checked")
    })?;
    let block_size: u32 = block_size
        .parse()
        .map_err(|_| format!("the server says block_size {block_size:?}"))?;
    let segment_bytes =
        bytes(segment).ok_or_else(|| format!("the server says segment_size {segment:?}"))?;
    Ok(Shape {
        build: Build {
            block_size,
            segment_bytes,
            // What the control file says; no check of pages asks for it.
            ..Build::USUAL
        },
        layout,
        sums: match sums {
            "on" => PageSums::On,
            _ => PageSums::Off,
        },
        suspects_max: suspects_max(options, block_size),
    })
}

/// A size as the server prints it: its `GB` are of 1024 MB.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let shift = match text.get(digits.len()..)? {
        "" | "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// What comes from a server is told as such, with what this way cannot see.
fn of_server(mut document: CheckDocument, target: &ConnectionTarget) -> CheckDocument {
    document.target.spec = target.to_string();
    document.target.kind = "server".into();
    document.target.state = Some("running".into());
    // The files are of different moments because they were read one after the other, not because
    // the server crashed.
    document.needs_recovery = false;
    let gap = |what: &str, why: &str| NotChecked {
        what: what.into(),
        why: why.into(),
        inherent: true,
    };
    let stream = "a stream passes once; a base backup or the stopped data directory can be checked at level structure and full";
    document.coverage.beyond_level =
        vec![gap("everything beyond checksums and page headers", stream)];
    let gaps = [
        gap(
            "main forks of unlogged and temporary relations",
            "a server leaves them out of base backups",
        ),
        gap(
            "pages that the server holds changed in its buffers",
            "they are written at the next checkpoint; their older versions on disk were checked",
        ),
    ];
    document.coverage.not_checked.extend(gaps);
    settle(&mut document);
    plan_again(&mut document);
    document
}

/// Why the server did not begin, with what to do.
fn refusal(target: &ConnectionTarget, error: &SqlError) -> Failure {
    let user = &target.user;
    let message = error.message();
    let state = message.map_or("", |message| message.sqlstate.as_str());
    let text = message.map_or(String::new(), |message| message.message.clone());
    let hint = match state {
        "42501" => {
            format!("its role needs the right to replicate: ALTER ROLE \"{user}\" REPLICATION")
        }
        "28000" if text.contains("pg_hba.conf") => format!(
            "pg_hba.conf needs a line for replication, such as `host replication {user} ADDRESS scram-sha-256`, and then SELECT pg_reload_conf()"
        ),
        "28000" => format!(
            "its role must be allowed to log in and to replicate: ALTER ROLE \"{user}\" LOGIN REPLICATION"
        ),
        "53300" => {
            "raise max_wal_senders, or wait until another backup or standby is done".to_owned()
        }
        _ => return Failure::new(format!("{target}: {error}")),
    };
    Failure::new(format!(
        "{target}: {error}\nto be checked over the network the server must give a base backup; {hint}"
    ))
}

/// The archives that the server sends; its manifest is put aside.
struct Sent<'s> {
    backup: BaseBackup<'s>,
    manifest: Vec<u8>,
}

impl Archives for Sent<'_> {
    fn next_archive(&mut self) -> SourceResult<Option<String>> {
        loop {
            return Ok(match self.backup.next_archive().map_err(broke_off)? {
                Some(Archive::Base) => Some(String::new()),
                Some(Archive::Tablespace(oid)) => Some(format!("pg_tblspc/{oid}/")),
                Some(Archive::Manifest) => {
                    self.manifest = taken(&mut |part| self.read(part), MANIFEST_BYTES)?;
                    continue;
                }
                None => None,
            });
        }
    }

    fn has_end_marks(&self) -> bool {
        self.backup.has_end_marks()
    }

    fn read(&mut self, buf: &mut [u8]) -> SourceResult<usize> {
        self.backup.read(buf).map_err(broke_off)
    }
}

/// A manifest to its end. A server that sends more than `limit` bytes sends no manifest.
fn taken(
    read: &mut dyn FnMut(&mut [u8]) -> SourceResult<usize>,
    limit: u64,
) -> SourceResult<Vec<u8>> {
    let (mut manifest, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match read(&mut part)? {
            0 => return Ok(manifest),
            count => manifest.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
        if manifest.len() as u64 > limit {
            let why = format!("the server's manifest is longer than the limit of {limit} bytes");
            return Err(SourceError::new(MANIFEST, SourceErrorKind::Refused, why));
        }
    }
}

fn broke_off(error: SqlError) -> SourceError {
    SourceError::new("", SourceErrorKind::Io, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{SourceErrorKind, bytes, taken};

    #[test]
    fn a_manifest_without_end_is_refused() {
        let mut left = 150_000usize;
        let mut some = |part: &mut [u8]| {
            let count = left.min(part.len()).min(7000);
            part[..count].fill(b'x');
            left -= count;
            Ok(count)
        };
        let whole = taken(&mut some, 150_000).map(|manifest| manifest.len());
        assert_eq!(whole, Ok(150_000));
        let mut asked = 0;
        let mut endless = |part: &mut [u8]| {
            asked += part.len();
            Ok(part.len())
        };
        let error = taken(&mut endless, 150_000).expect_err("no end");
        assert_eq!(error.kind, SourceErrorKind::Refused);
        assert!(error.why.contains("limit of 150000 bytes"), "{error}");
        assert!(asked < 300_000, "{asked} bytes were asked for");
    }

    #[test]
    fn sizes_are_read_as_the_server_means_them() {
        assert_eq!(bytes("1GB"), Some(1 << 30));
        assert_eq!(bytes("512MB"), Some(512 << 20));
        assert_eq!(bytes("131072"), Some(131_072));
        assert_eq!(bytes("much"), None);
    }
}
