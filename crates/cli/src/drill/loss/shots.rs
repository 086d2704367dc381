//! Random losses: bytes, sectors, pages and files of anything that the cluster has, by the seed.

use pgclinic_cluster::Cluster;
use pgclinic_source::EntryKind;

use super::cells::{Cell, Hurt, RANDOM, Site};

/// Directories whose files are hurt; those of databases come to them.
const DIRECTORIES: &[&str] = &[
    "global",
    "pg_xact",
    "pg_multixact/offsets",
    "pg_multixact/members",
    "pg_wal",
    "pg_twophase",
];
const HURTS: &[Hurt] = &[
    Hurt::Bytes,
    Hurt::Bytes,
    Hurt::Bit,
    Hurt::Sector,
    Hurt::Misplaced,
    Hurt::Emptied,
    Hurt::Zeroed,
    Hurt::Garbage,
    Hurt::Truncated,
    Hurt::Missing,
];
const SECTOR: u64 = 512;

struct File {
    path: String,
    len: u64,
}

/// So many of them.
pub(super) fn of(cluster: &Cluster, seed: u64, count: usize) -> Vec<Cell> {
    let files = files(cluster);
    if files.is_empty() {
        return Vec::new();
    }
    let page_bytes = u64::from(cluster.build.block_size);
    let mut rng = fastrand::Rng::with_seed(seed);
    let shots = std::iter::repeat_with(|| shot(&files, page_bytes, &mut rng));
    shots.take(count).collect()
}

fn files(cluster: &Cluster) -> Vec<File> {
    let homes = cluster.homes.iter().map(|home| home.folder.as_str());
    let directories = DIRECTORIES.iter().copied().chain(homes);
    let mut files = Vec::new();
    for directory in directories {
        let entries = cluster.source().list(directory).unwrap_or_default();
        let regular = entries.into_iter().filter(|entry| {
            entry.kind == EntryKind::File && entry.len > 0 && !entry.name.contains("internal.init")
        });
        files.extend(regular.map(|entry| File {
            path: format!("{directory}/{}", entry.name),
            len: entry.len,
        }));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    files
}

/// Half of the shots choose among files, the other half among their bytes: large tables are hurt as
/// often as small catalogs.
fn shot(files: &[File], page_bytes: u64, rng: &mut fastrand::Rng) -> Cell {
    let by_name = rng.usize(..files.len());
    let chosen = if rng.bool() {
        by_name
    } else {
        by_bytes(files, rng)
    };
    let hurt = HURTS
        .get(rng.usize(..HURTS.len()))
        .copied()
        .unwrap_or(Hurt::Bytes);
    let site = files
        .get(chosen)
        .map(|file| site(file, hurt, page_bytes, rng));
    Cell {
        witness: &RANDOM,
        hurt,
        site: site.unwrap_or(Site::Gone {
            path: String::new(),
        }),
    }
}

fn by_bytes(files: &[File], rng: &mut fastrand::Rng) -> usize {
    let sum: u64 = files.iter().map(|file| file.len).sum();
    let mut at = rng.u64(..sum.max(1));
    let found = files.iter().position(|file| {
        let here = at < file.len;
        at = at.saturating_sub(file.len);
        here
    });
    found.unwrap_or(0)
}

fn site(file: &File, hurt: Hurt, page_bytes: u64, rng: &mut fastrand::Rng) -> Site {
    let path = file.path.clone();
    let page = rng.u64(..file.len.div_ceil(page_bytes)) * page_bytes;
    match hurt {
        Hurt::Missing => Site::Gone { path },
        Hurt::Emptied => Site::Tail { path, len: 0 },
        Hurt::Truncated => {
            let len = file.len / 4 * 3 / page_bytes * page_bytes;
            Site::Tail { path, len }
        }
        Hurt::Bytes => {
            let len = rng.u64(1..=8).min(file.len);
            let offset = rng.u64(..=file.len - len);
            Site::Bytes { path, offset, len }
        }
        Hurt::Bit => {
            let offset = rng.u64(..file.len);
            Site::Bytes {
                path,
                offset,
                len: 1,
            }
        }
        Hurt::Sector => {
            let offset = rng.u64(..file.len.div_ceil(SECTOR)) * SECTOR;
            let len = SECTOR.min(file.len - offset);
            Site::Bytes { path, offset, len }
        }
        _ => {
            let len = page_bytes.min(file.len - page);
            Site::Bytes {
                path,
                offset: page,
                len,
            }
        }
    }
}
