//! What is done to the files.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_format::ControlFile;
use pgclinic_format::build::put_bytes;
use pgclinic_format::control_file::seal;

use crate::storage::{Disk, Storage};

pub(super) const CONTROL_FILE: &str = "global/pg_control";
pub(super) const LABEL: &str = "backup_label";
pub(super) const SLOT: &str = "pg_replslot/one/state";
pub(super) const ORIGINS: &str = "pg_logical/replorigin_checkpoint";
/// Where the control file has the place of its checkpoint.
const CHECKPOINT_AT: usize = 32;
/// What a record has at least before its data.
const RECORD_HEAD: usize = 24;
const WAL_PAGE: usize = 8192;

pub(super) fn remove(pgdata: &Path, path: &str) -> io::Result<()> {
    fs::remove_file(pgdata.join(path))
}

pub(super) fn write(pgdata: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    put(&pgdata.join(path), bytes)
}

/// Belongs to whom its directory belongs to.
pub(super) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut owner = Disk.owner(path.parent().unwrap_or(path))?;
    owner.mode = 0o600;
    Disk.create(path, Some(owner))?;
    Disk.write_at(path, 0, bytes)
}

pub(super) fn truncate(pgdata: &Path, path: &str, len: u64) -> io::Result<()> {
    cut(&pgdata.join(path), len)
}

pub(super) fn cut(path: &Path, len: u64) -> io::Result<()> {
    Disk.cut(path, len)
}

pub(super) fn flip(pgdata: &Path, path: &str, at: u64) -> io::Result<()> {
    flip_at(&pgdata.join(path), at)
}

/// All bits of one byte.
pub(super) fn flip_at(path: &Path, at: u64) -> io::Result<()> {
    let mut byte = [0];
    let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    file.read_exact_at(&mut byte, at)?;
    file.write_all_at(&byte.map(|byte| !byte), at)
}

/// One byte of each page of WAL.
pub(super) fn flip_pages(path: &Path, at: u64) -> io::Result<()> {
    let pages = fs::metadata(path)?.len() / WAL_PAGE as u64;
    (0..pages).try_for_each(|page| flip_at(path, page * WAL_PAGE as u64 + at))
}

/// The directory of the database postgres: the one with the highest number that initdb gave.
pub(super) fn postgres(pgdata: &Path) -> io::Result<PathBuf> {
    let base = pgdata.join("base");
    let numbers = Disk.names(&base)?.into_iter();
    let numbers = numbers.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    let own = numbers.filter(|number| *number < 16384).max();
    let own = own.ok_or_else(|| io::Error::other("no database is there"))?;
    Ok(base.join(own.to_string()))
}

/// Its relation map.
pub(super) fn map(pgdata: &Path) -> io::Result<PathBuf> {
    Ok(postgres(pgdata)?.join("pg_filenode.map"))
}

/// The file of the prepared transaction.
pub(super) fn prepared(pgdata: &Path) -> io::Result<PathBuf> {
    let folder = pgdata.join("pg_twophase");
    let first = Disk.names(&folder)?.into_iter().next();
    let first = first.ok_or_else(|| io::Error::other("no transaction is prepared"))?;
    Ok(folder.join(first))
}

/// That of the next transaction, which was under way.
pub(super) fn rename_prepared(pgdata: &Path) -> io::Result<()> {
    let path = prepared(pgdata)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let number = u64::from_str_radix(name, 16).map_err(io::Error::other)?;
    let width = name.len();
    fs::rename(
        &path,
        path.with_file_name(format!("{:0width$X}", number + 1)),
    )
}

/// What a server that ended while it made one left as `xlogtemp.NUMBER` is none.
fn segments(pgdata: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = pgdata.join("pg_wal");
    let names = Disk.names(&folder)?.into_iter();
    let is_segment = |name: &PathBuf| {
        let bytes = name.as_os_str().as_encoded_bytes();
        bytes.len() == 24 && bytes.iter().all(u8::is_ascii_hexdigit)
    };
    Ok(names
        .filter(is_segment)
        .map(|name| folder.join(name))
        .collect())
}

pub(super) fn for_each_segment(pgdata: &Path, hurt: fn(&Path) -> io::Result<()>) -> io::Result<()> {
    segments(pgdata)?.iter().try_for_each(|path| hurt(path))
}

pub(super) fn remove_wal(pgdata: &Path) -> io::Result<()> {
    segments(pgdata)?.iter().try_for_each(fs::remove_file)
}

fn control(pgdata: &Path) -> io::Result<ControlFile> {
    let bytes = fs::read(pgdata.join(CONTROL_FILE))?;
    ControlFile::parse(&bytes).map_err(|fault| io::Error::other(fault.to_string()))
}

/// Where the last checkpoint's record stands.
pub(super) fn checkpoint(pgdata: &Path) -> io::Result<u64> {
    Ok(control(pgdata)?.checkpoint_lsn.0)
}

/// Where recovery begins.
pub(super) fn redo(pgdata: &Path) -> io::Result<u64> {
    Ok(control(pgdata)?.checkpoint.redo.0)
}

/// The segment of a place, and the offset in it.
fn in_segment(pgdata: &Path, at: u64) -> io::Result<(PathBuf, u64)> {
    let control = control(pgdata)?;
    let name = segment_name(&control, at);
    let size = u64::from(control.xlog_seg_size);
    Ok((pgdata.join("pg_wal").join(name), at % size))
}

fn segment_name(control: &ControlFile, at: u64) -> String {
    let size = u64::from(control.xlog_seg_size);
    let (number, per_log) = (at / size, (1u64 << 32) / size);
    let timeline = control.checkpoint.timeline;
    format!(
        "{timeline:08X}{:08X}{:08X}",
        number / per_log,
        number % per_log
    )
}

pub(super) fn flip_in_wal(pgdata: &Path, at: u64) -> io::Result<()> {
    let (path, at) = in_segment(pgdata, at)?;
    flip_at(&path, at)
}

fn zero_record(pgdata: &Path, at: u64) -> io::Result<()> {
    let (path, at) = in_segment(pgdata, at)?;
    let file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&[0; RECORD_HEAD], at)
}

pub(super) fn zero_checkpoint_record(pgdata: &Path) -> io::Result<()> {
    zero_record(pgdata, checkpoint(pgdata)?)
}

pub(super) fn zero_redo_record(pgdata: &Path) -> io::Result<()> {
    zero_record(pgdata, redo(pgdata)?)
}

/// The control file takes the record at the redo point for that of the checkpoint.
pub(super) fn name_redo_record(pgdata: &Path) -> io::Result<()> {
    let path = pgdata.join(CONTROL_FILE);
    let mut bytes = fs::read(&path)?;
    put_bytes(&mut bytes, CHECKPOINT_AT, &redo(pgdata)?.to_le_bytes());
    if !seal(&mut bytes) {
        return Err(io::Error::other("no control file"));
    }
    fs::write(path, bytes)
}

/// A label that names these places.
pub(super) fn label(pgdata: &Path, start: u64, checkpoint: u64) -> io::Result<()> {
    let place = |at: u64| format!("{:X}/{:X}", at >> 32, at & 0xFFFF_FFFF);
    let segment = segment_name(&control(pgdata)?, start);
    let text = format!(
        "START WAL LOCATION: {} (file {segment})\nCHECKPOINT LOCATION: {}\nBACKUP METHOD: streamed\nBACKUP FROM: primary\nSTART TIME: 2026-01-01 00:00:00 GMT\nLABEL: x\nSTART TIMELINE: 1\n",
        place(start),
        place(checkpoint)
    );
    write(pgdata, LABEL, text.as_bytes())
}
