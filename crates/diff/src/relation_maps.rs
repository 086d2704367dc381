//! `pg_filenode.map` in both copies: which file holds which mapped catalog. It carries no LSN, and
//! changes when such a catalog is rewritten (`VACUUM FULL`).
//!
//! Truth: `src/backend/utils/cache/relmapper.c`.

use pgclinic_cluster::{Cluster, DatabaseDirectory};
use pgclinic_format::{Oid, RelationMap};
use pgclinic_model::Progress;
use pgclinic_model::document::{Copy, DiffDocument, DiffFile, Difference, FileKind};
use pgclinic_scan::live::{
    LiveServer, Look, Ruling, SecondLook, SuspectOf, ViewPosition, look_again,
};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::page_comparison::{Side, on_its_timeline};
use crate::pairs::is_hidden;
use crate::recheck::is_open;
use crate::standing::{Standing, standing};
use crate::timelines::Kinship;

/// More than any map has.
const MAP_BYTES: u64 = 4096;

type Sides<'a> = (Side<'a>, Side<'a>);

/// What differs, and how: the copy at fault, and why.
type MapDifference = (Difference, Option<Copy>, String);

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
pub(crate) fn compare(
    sides: Sides<'_>,
    (progress, server): (&dyn Progress, &dyn LiveServer),
    document: &mut DiffDocument,
) {
    let (a, b) = (sides.0.cluster, sides.1.cluster);
    let both = a.homes.iter().filter(|home| b.homes.contains(home));
    for home in both.filter(|home| !is_hidden(sides, &home.folder)) {
        let path = path_of(home);
        let mut maps = MapsAgain::new(sides, &path);
        let places = Vec::from_iter(maps.is_suspect().then_some(()));
        look_again(&mut maps, places, server, progress);
        document.coverage.files += u64::from(maps.now != (Map::Absent, Map::Absent));
        let Some((difference, copy, why)) = maps.told else {
            continue;
        };
        document.files.push(DiffFile {
            path,
            kind: FileKind::RelationMap,
            difference,
            copy,
            pages: Vec::new(),
            why,
        });
    }
}

fn path_of(home: &DatabaseDirectory) -> String {
    format!("{}/pg_filenode.map", home.folder)
}

/// A map in both copies, read again as long as a server may be writing it.
struct MapsAgain<'a> {
    sides: Sides<'a>,
    path: &'a str,
    /// As they were read last, and what they tell.
    now: (Map, Map),
    told: Option<MapDifference>,
}

impl<'a> MapsAgain<'a> {
    fn new(sides: Sides<'a>, path: &'a str) -> Self {
        let now = read_both(sides, path);
        let told = told(sides, &now);
        MapsAgain {
            sides,
            path,
            now,
            told,
        }
    }

    /// It may be on its way.
    fn is_suspect(&self) -> bool {
        let (a, b) = (self.sides.0.cluster, self.sides.1.cluster);
        let is_moving = a.is_running() || b.is_running();
        is_moving && self.told.as_ref().is_some_and(|(way, ..)| is_open(*way))
    }
}

impl SecondLook for MapsAgain<'_> {
    type Place = ();
    type Print = (Map, Map);
    type Claim = Difference;

    fn print(&self, (): &()) -> Option<(Map, Map)> {
        Some(self.now.clone())
    }

    /// A map carries no LSN: no newer WAL explains it.
    fn refresh(&mut self) -> Option<ViewPosition> {
        self.now = read_both(self.sides, self.path);
        self.told = told(self.sides, &self.now);
        Some(ViewPosition::default())
    }

    /// What it told last stands, settled or not.
    fn examine(&mut self, suspects: Vec<SuspectOf<Self>>, look: Look) -> Vec<SuspectOf<Self>> {
        let Some((difference, ..)) = self.told.as_ref().filter(|_| self.is_suspect()) else {
            return Vec::new();
        };
        let rule = |suspect: &SuspectOf<Self>| {
            look.ruling(suspect, Some(&self.now), |before| before == difference)
        };
        let open = suspects.into_iter();
        let open = open.filter(|suspect| rule(suspect) == Ruling::Again);
        open.map(|suspect| suspect.still(*difference)).collect()
    }
}

fn read_both(sides: Sides<'_>, path: &str) -> (Map, Map) {
    let [a, b] = [sides.0, sides.1].map(|side| Map::read(side.cluster, path));
    (a, b)
}

fn told(sides: Sides<'_>, maps: &(Map, Map)) -> Option<MapDifference> {
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
fn apart(sides: Sides<'_>, lacking: Option<Copy>, claim: Difference) -> MapDifference {
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
