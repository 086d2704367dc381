//! Filled and stopped clusters, made once for each version and kept: `CACHE/seeds/18.1-on-…/data`.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use pgclinic_servers::{
    Checksums, FillOptions, InitOptions, Installation, Result, Scratch, Server, StartOptions,
    StopMode, cache_folder, fill, initdb, point_link,
};

use crate::run_as;

/// Raise when a seed is made in another way though its SQL is the same.
const RECIPE: u32 = 1;

/// A cluster that nobody may change; work on a [`crate::copy_of`] it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeded {
    /// What made it and can start its copies.
    pub installation: Installation,
    /// Whether its pages carry checksums.
    pub checksums: Checksums,
    /// The data directory; the server was stopped cleanly.
    pub pgdata: PathBuf,
    /// The folder of its one tablespace, `annex`.
    pub tablespace: PathBuf,
}

/// The seed for this server, made now if it is not there yet. Parallel tests wait for the first of
/// them.
pub fn seed(installation: &Installation, checksums: Checksums) -> Seeded {
    make_seed(installation, checksums).unwrap_or_else(|error| {
        panic!(
            "a cluster of PostgreSQL {} for tests: {error}",
            installation.version
        )
    })
}

fn make_seed(installation: &Installation, checksums: Checksums) -> Result<Seeded> {
    let seeds = cache_folder()?.join("seeds");
    std::fs::create_dir_all(&seeds).unwrap_or_else(|error| panic!("{}: {error}", seeds.display()));
    let key = key(installation, checksums);
    let home = seeds.join(&key);
    let lock = seeds.join(format!("{key}.lock"));
    let lock = File::create(&lock).and_then(|file| file.lock().map(|()| file));
    let _lock = lock.unwrap_or_else(|error| panic!("the lock of {}: {error}", home.display()));
    if !home.is_dir() {
        build(installation, checksums, &home)?;
    }
    let (pgdata, tablespace) = (home.join("data"), home.join("data-annex"));
    Ok(Seeded {
        installation: installation.clone(),
        checksums,
        pgdata,
        tablespace,
    })
}

fn key(installation: &Installation, checksums: Checksums) -> String {
    let mut hasher = DefaultHasher::new();
    (
        RECIPE,
        &installation.bindir,
        run_as().uid,
        pgclinic_servers::fill::contents(),
    )
        .hash(&mut hasher);
    let switch = if checksums == Checksums::On {
        "on"
    } else {
        "off"
    };
    format!("{}-{switch}-{:016x}", installation.version, hasher.finish())
}

/// Makes the seed in a scratch folder and moves it to its place when it is complete.
fn build(installation: &Installation, checksums: Checksums, home: &Path) -> Result<()> {
    let run_as = run_as();
    let scratch = Scratch::new(&run_as, None)?;
    let folder = scratch.folder("seed")?;
    let pgdata = scratch.folder("seed/data")?;
    // Small WAL segments keep the copies small.
    let options = InitOptions {
        checksums,
        wal_segsize_mb: Some(1),
        ..InitOptions::default()
    };
    initdb(installation, &run_as, &pgdata, &options)?;
    let mut server = Server::start(installation, &run_as, &pgdata, &StartOptions::default())?;
    fill(&server, FillOptions::default())?;
    server.stop(StopMode::Fast)?;
    let links = std::fs::read_dir(pgdata.join("pg_tblspc")).expect("every cluster has pg_tblspc");
    for link in links.filter_map(std::result::Result::ok) {
        point_link(&link.path(), &home.join("data-annex"))?;
    }
    std::fs::rename(&folder, home).unwrap_or_else(|error| panic!("{}: {error}", home.display()));
    Ok(())
}
