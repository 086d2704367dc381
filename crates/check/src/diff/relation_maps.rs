//! `pg_filenode.map` in both copies: which file holds which mapped catalog. It carries no LSN, and changes when such a catalog is
//! rewritten (`VACUUM FULL`).
//!
//! Truth: `src/backend/utils/cache/relmapper.c`.

use pgclinic_cluster::{Cluster, Home};
use pgclinic_format::{Oid, RelationMap};
use pgclinic_model::document::{Copy, DiffDocument, DiffFile, Difference, Kind};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::diff::again::is_open;
use crate::diff::judge::{Side, on_its_timeline};
use crate::diff::pairs::is_hidden;
use crate::diff::standing::{Standing, standing};
use crate::diff::timelines::Kinship;
use crate::walker::Bystander;

/// More than any map has.
const MAP_BYTES: u64 = 4096;
/// How often a map that a server may be writing is read.
const LOOKS_MAX: usize = 4;

type Sides<'a> = (Side<'a>, Side<'a>);

/// What differs, and how: the copy at fault, and why.
type Told = (Difference, Option<Copy>, String);

/// The file in one copy.
#[derive(Clone, PartialEq, Eq)]
enum Map {
    Absent,
    Unreadable,
    /// Its mappings in the order of the catalogs.
    Right(Vec<(Oid, Oid)>),
    Wrong(String),
}

impl Map {
    fn read(cluster: &Cluster, path: &str) -> Self {
        let bytes = match read_all(cluster.source().as_ref(), path, MAP_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == SourceErrorKind::NotFound => return Map::Absent,
            Err(_) => return Map::Unreadable,
        };
        match RelationMap::parse(&bytes) {
            Ok(map) if map.is_right() => {
                let mut mappings = map.mappings;
                mappings.sort_unstable();
                Map::Right(mappings)
            }
            Ok(_) => Map::Wrong("its magic word, its count or its checksum is wrong".into()),
            Err(fault) => Map::Wrong(fault.to_string()),
        }
    }
}

/// Compares the maps of the folders that both copies have.
pub(crate) fn compare(sides: Sides<'_>, bystander: &dyn Bystander, document: &mut DiffDocument) {
    let (a, b) = (sides.0.cluster, sides.1.cluster);
    let both = a.homes.iter().filter(|home| b.homes.contains(home));
    for home in both.filter(|home| !is_hidden(sides, &home.folder)) {
        let path = path_of(home);
        let Some((difference, copy, why)) = settled(sides, &path, bystander, document) else {
            continue;
        };
        document.files.push(DiffFile {
            path,
            kind: Kind::RelationMap,
            difference,
            copy,
            pages: Vec::new(),
            why,
        });
    }
}

fn path_of(home: &Home) -> String {
    format!("{}/pg_filenode.map", home.folder)
}

/// What a map is that is read again as long as a server may be writing it; nothing where both are equal.
fn settled(
    sides: Sides<'_>,
    path: &str,
    bystander: &dyn Bystander,
    document: &mut DiffDocument,
) -> Option<Told> {
    let (a, b) = (sides.0.cluster, sides.1.cluster);
    let is_moving = a.is_running() || b.is_running();
    for look in 1..=LOOKS_MAX {
        let maps = (Map::read(a, path), Map::read(b, path));
        if maps == (Map::Absent, Map::Absent) {
            return None;
        }
        let told = told(sides, &maps);
        let is_certain = told.as_ref().is_none_or(|(way, ..)| !is_open(*way));
        if is_certain || !is_moving || look == LOOKS_MAX {
            document.coverage.files += 1;
            return told;
        }
        bystander.wait();
    }
    None
}

fn told(sides: Sides<'_>, maps: &(Map, Map)) -> Option<Told> {
    let lost = |copy| apart(sides, Some(copy), Difference::Lost);
    match maps {
        (Map::Unreadable, _) | (_, Map::Unreadable) => {
            let why = "it cannot be read in one of the copies";
            Some((Difference::Unreadable, None, why.into()))
        }
        (Map::Wrong(in_a), Map::Wrong(in_b)) => {
            let why = format!("A: {in_a}; B: {in_b}");
            Some((Difference::BothUnsound, None, why))
        }
        (Map::Wrong(why), _) => Some((Difference::Unsound, Some(Copy::A), why.clone())),
        (_, Map::Wrong(why)) => Some((Difference::Unsound, Some(Copy::B), why.clone())),
        (Map::Absent, Map::Right(_)) => Some(lost(Copy::A)),
        (Map::Right(_), Map::Absent) => Some(lost(Copy::B)),
        (Map::Right(in_a), Map::Right(in_b)) => {
            (in_a != in_b).then(|| apart(sides, None, Difference::Conflict))
        }
        (Map::Absent, Map::Absent) => None,
    }
}

/// Both copies are sound and differ; `claim` where they stand at one checkpoint.
fn apart(sides: Sides<'_>, lacking: Option<Copy>, claim: Difference) -> Told {
    let (a, b) = (on_its_timeline("A", sides.0), on_its_timeline("B", sides.1));
    match sides.0.kinship {
        Kinship::Unknown => {
            let why = format!("{a}, {b}, and no history tells where they parted");
            (Difference::Undecided, lacking, why)
        }
        Kinship::Parted(at) => {
            let why = format!("{a} and {b} parted at {at}, and each may have changed it");
            (Difference::Parted, lacking, why)
        }
        Kinship::Line if standing(sides) == Standing::Apart => {
            let why =
                "the copies are of different moments, and a rewrite of its catalogs changes it";
            let way = match lacking {
                Some(_) => Difference::Missing,
                None => Difference::Later,
            };
            (way, lacking.or(super::older(sides)), why.into())
        }
        Kinship::Line => {
            let why = "both copies were shut down at one checkpoint, where it is the same";
            (claim, lacking, why.into())
        }
    }
}
