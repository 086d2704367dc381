//! Warm: relations read into the server's buffers, as far as they fit, before the measuring begins,
//! and looked for there.
//!
//! ```text
//! pg_prewarm ─► warm.pages           pages of the relations, their indexes and long values
//! pg_buffercache ─► warm.in_buffers  how many of them the server's buffers hold
//! preadv2(RWF_NOWAIT) ─► warm.in_page_cache   how many of them the kernel gives without asking the disk, where buffers lack some
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::IoSliceMut;
use std::path::Path;

use pgclinic_servers::Session;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::error::{Error, Result};

/// What was read, and where it was found afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Warmth {
    /// Pages that were read.
    pub(crate) pages: u64,
    /// Those of them in the server's buffers; `None` where the server cannot say.
    pub(crate) in_buffers: Option<u64>,
    /// Those of them in the kernel's page cache, whether they are in buffers too or not; `None`
    /// where it was not looked at.
    pub(crate) in_page_cache: Option<u64>,
}

impl Warmth {
    /// Facts of the run.
    pub(crate) fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        let mut put = |name: &str, pages: u64| facts.insert(name.to_owned(), pages.to_string());
        put("warm.pages", self.pages);
        if let Some(pages) = self.in_buffers {
            put("warm.in_buffers", pages);
        }
        if let Some(pages) = self.in_page_cache {
            put("warm.in_page_cache", pages);
        }
        facts
    }

    /// `None` when every page was found in memory, else why the run was not proven warm.
    pub(crate) fn doubt(&self) -> Option<String> {
        let Some(in_buffers) = self.in_buffers else {
            return Some(
                "not proven warm: the server has no pg_buffercache to look into its buffers"
                    .to_owned(),
            );
        };
        if in_buffers >= self.pages || self.in_page_cache.is_some_and(|there| there >= self.pages) {
            return None;
        }
        let cached = match self.in_page_cache {
            Some(there) => format!("{there} in the page cache"),
            None => "the page cache was not examined".to_owned(),
        };
        Some(format!(
            "not proven warm: of {} pages {in_buffers} were in the server's buffers, {cached}",
            self.pages
        ))
    }
}

/// Reads relations with their indexes and long values, by `pg_prewarm` where the server has it,
/// else by reading them, and looks where they are. `pgdata` is the data directory of a server of
/// ours; into another one no extension is put for it.
pub(crate) fn warm(
    session: &mut Session,
    relations: &[&str],
    pgdata: Option<&Path>,
) -> Result<Warmth> {
    let pages = read(session, relations)?;
    let in_buffers = in_buffers(session, relations, pgdata.is_some())?;
    let in_page_cache = match pgdata {
        Some(pgdata) if in_buffers.is_none_or(|there| there < pages) => {
            in_page_cache(session, relations, pgdata)?
        }
        _ => None,
    };
    Ok(Warmth {
        pages,
        in_buffers,
        in_page_cache,
    })
}

fn failed() -> impl FnOnce(pgclinic_servers::SqlError) -> Error {
    Error::sql("reading relations into memory")
}

fn number(session: &mut Session, sql: &str) -> Result<u64> {
    let value = session.query_value(sql).map_err(failed())?;
    Ok(value.and_then(|value| value.parse().ok()).unwrap_or(0))
}

fn create(session: &mut Session, extension: &str) -> Result<()> {
    session
        .execute(&format!(
            "SET client_min_messages = error; CREATE EXTENSION IF NOT EXISTS {extension}; RESET client_min_messages"
        ))
        .map_err(failed())
}

fn is_available(session: &mut Session, extension: &str) -> Result<bool> {
    let sql = format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{extension}'");
    Ok(number(session, &sql)? == 1)
}

fn read(session: &mut Session, relations: &[&str]) -> Result<u64> {
    if is_available(session, "pg_prewarm")? {
        create(session, "pg_prewarm")?;
        let everything = everything(relations);
        let sql = format!("{everything} SELECT sum(pg_prewarm(oid::regclass)) FROM everything");
        return number(session, &sql);
    }
    let mut pages = 0;
    for relation in relations {
        let sql = format!(
            "SELECT pg_relation_size('{relation}') / current_setting('block_size')::bigint FROM (SELECT count(*) FROM {relation}) read"
        );
        pages += number(session, &sql)?;
    }
    Ok(pages)
}

/// `None` where the server cannot say.
fn in_buffers(session: &mut Session, relations: &[&str], is_ours: bool) -> Result<Option<u64>> {
    if is_ours && is_available(session, "pg_buffercache")? {
        create(session, "pg_buffercache")?;
    }
    let there = number(
        session,
        "SELECT count(*) FROM pg_extension WHERE extname = 'pg_buffercache'",
    )?;
    if there == 0 {
        return Ok(None);
    }
    let sql = format!(
        "{} SELECT count(*) FROM pg_buffercache WHERE relforknumber = 0 \
         AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND relfilenode IN (SELECT pg_relation_filenode(oid) FROM everything)",
        everything(relations)
    );
    number(session, &sql).map(Some)
}

/// Pages of the relations' files that the kernel gives at once; `None` where the file system does
/// not tell.
fn in_page_cache(session: &mut Session, relations: &[&str], pgdata: &Path) -> Result<Option<u64>> {
    let sql = format!(
        "{} SELECT pg_relation_filepath(oid) FROM everything",
        everything(relations)
    );
    let paths = session.query(&sql).map_err(failed())?;
    let page = number(session, "SHOW block_size")?.max(1);
    let mut bytes = 0;
    for path in paths.into_iter().flatten().flatten() {
        for file in segments(&pgdata.join(path)) {
            let open = File::open(&file).map_err(Error::io("open", &file))?;
            match cached_bytes(&open, page) {
                Some(cached) => bytes += cached,
                None => return Ok(None),
            }
        }
    }
    Ok(Some(bytes / page))
}

/// A relation's files: `16384`, `16384.1`, …
fn segments(first: &Path) -> Vec<std::path::PathBuf> {
    let further = (1..).map(|number: u32| {
        let mut name = first.as_os_str().to_owned();
        name.push(format!(".{number}"));
        std::path::PathBuf::from(name)
    });
    let all = std::iter::once(first.to_path_buf()).chain(further);
    all.take_while(|path| path.is_file()).collect()
}

/// How much of a file the kernel has in memory: reads that may not wait for a disk. `None` where
/// there are no such reads.
fn cached_bytes(file: &File, page: u64) -> Option<u64> {
    let length = file.metadata().ok()?.len();
    let mut buffer = vec![0; 1 << 17];
    let (mut at, mut cached) = (0, 0);
    while at < length {
        let into = &mut [IoSliceMut::new(&mut buffer)];
        match preadv2(file, into, at, ReadWriteFlags::NOWAIT) {
            Ok(0) => break,
            Ok(read) => {
                let read = u64::try_from(read).unwrap_or(0);
                (at, cached) = (at + read, cached + read);
            }
            Err(Errno::AGAIN) => at += page,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(cached)
}

/// The relations, their long values and the indexes of both, as the table `everything`.
fn everything(relations: &[&str]) -> String {
    let named: Vec<String> = relations
        .iter()
        .map(|relation| format!("'{relation}'::regclass"))
        .collect();
    format!(
        "WITH named AS (SELECT oid, reltoastrelid FROM pg_class WHERE oid IN ({})), \
         owners AS (SELECT oid FROM named UNION SELECT reltoastrelid FROM named WHERE reltoastrelid <> 0), \
         everything AS (SELECT oid FROM owners UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM owners))",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_is_what_memory_holds_and_anything_else_is_told() {
        let warmth = |in_buffers: Option<u64>, in_page_cache: Option<u64>| Warmth {
            pages: 100,
            in_buffers,
            in_page_cache,
        };
        assert_eq!(warmth(Some(100), None).doubt(), None);
        assert_eq!(warmth(Some(7), Some(100)).doubt(), None);
        let partly = warmth(Some(7), Some(60)).doubt();
        assert_eq!(
            partly.as_deref(),
            Some(
                "not proven warm: of 100 pages 7 were in the server's buffers, 60 in the page cache"
            )
        );
        assert!(warmth(None, None).doubt().is_some());
        let facts = warmth(Some(7), None).facts();
        assert_eq!(facts["warm.pages"], "100");
        assert_eq!(facts["warm.in_buffers"], "7");
    }

    #[test]
    fn a_file_that_was_just_written_is_in_the_page_cache() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("16384");
        std::fs::write(&path, vec![1; 300_000]).expect("a file");
        std::fs::write(folder.path().join("16384.1"), [1; 10]).expect("a file");
        std::fs::write(folder.path().join("16384.3"), [1; 10]).expect("a file");
        assert_eq!(segments(&path).len(), 2);
        let cached = File::open(&path)
            .ok()
            .and_then(|file| cached_bytes(&file, 8192));
        // A file system without such reads says nothing.
        assert!(cached.is_none_or(|cached| cached == 300_000), "{cached:?}");
    }
}
