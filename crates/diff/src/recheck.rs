//! The second look at blocks that contradict each other where a server is at work on a copy.
//!
//! How often, and which contradictions count, is decided in `pgclinic_scan::live`; a block that is
//! equal, gone or explained by the newer WAL was on its way.
//!
//! A version that came after the WAL was read may carry an LSN beyond its end: only one that was
//! there before is held to that.

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::BlockNo;
use pgclinic_model::Progress;
use pgclinic_model::document::{Copy, DiffBlock, DiffCoverage, Difference, NotChecked};
use pgclinic_model::plural;
use pgclinic_scan::live::{
    FreshView, LiveServer, Look, Ruling, SecondLook, SuspectOf, ViewPosition, look_again,
};

use crate::page_comparison::{PageComparison, Side, sides};
use crate::pairs::{Names, Pair};
use crate::pass::{comparison_of, unreadable};
use crate::position::Position;

/// Blocks to look at again.
pub(crate) struct Suspect {
    /// The pair of forks that it is of.
    pub(crate) pair: usize,
    pub(crate) block: BlockNo,
    /// Blocks that it stands for.
    pub(crate) count: u64,
}

impl Suspect {
    pub(crate) fn new(pair: usize, block: BlockNo, count: u64) -> Self {
        Suspect { pair, block, count }
    }
}

/// The blocks of one database to look at again.
pub(crate) struct Recheck<'a> {
    pub(crate) sides: (Side<'a>, Side<'a>),
    pub(crate) pairs: &'a [Pair],
    pub(crate) names: &'a Names,
    pub(crate) server: &'a dyn LiveServer,
    pub(crate) progress: &'a dyn Progress,
}

/// Of the versions in A and in B.
type Prints = [blake3::Hash; 2];

/// Both versions of a block, where a copy has it.
struct Versions {
    a: Option<Vec<u8>>,
    b: Option<Vec<u8>>,
}

impl Versions {
    fn prints(&self) -> Prints {
        [&self.a, &self.b].map(|own| match own {
            Some(bytes) => blake3::hash(bytes),
            None => blake3::hash(&[]),
        })
    }
}

impl Recheck<'_> {
    /// Hands what counts, and what the newer WAL explains, to `keep`, with the number of the pair
    /// and of the blocks.
    pub(crate) fn look(
        &self,
        open: Vec<Suspect>,
        coverage: &mut DiffCoverage,
        keep: &mut dyn FnMut(usize, DiffBlock, u64),
    ) {
        let mut blocks = BlocksAgain {
            again: self,
            newer: (None, None),
            keep,
        };
        let open = look_again(&mut blocks, open, self.server, self.progress);
        if !open.is_empty() {
            coverage.not_checked.push(NotChecked {
                what: format!(
                    "{} that seemed to contradict each other",
                    plural(open.len(), "block")
                ),
                why: "a server wrote them between any two looks".into(),
                inherent: true,
            });
        }
    }

    fn versions(&self, sides: (Side<'_>, Side<'_>), place: &Suspect) -> Result<Versions, ()> {
        let files = self.pairs.get(place.pair).and_then(Pair::any);
        let files = files.ok_or(())?;
        Ok(Versions {
            a: block_of(sides.0.cluster, files, place.block)?,
            b: block_of(sides.1.cluster, files, place.block)?,
        })
    }
}

/// The same, with newer views of copies whose server runs.
struct BlocksAgain<'a, 'k> {
    again: &'a Recheck<'a>,
    newer: (Option<FreshView<'static>>, Option<FreshView<'static>>),
    keep: &'k mut dyn FnMut(usize, DiffBlock, u64),
}

impl SecondLook for BlocksAgain<'_, '_> {
    type Place = Suspect;
    type Print = Prints;
    type Claim = Difference;

    fn print(&self, place: &Suspect) -> Option<Prints> {
        let versions = self.again.versions(self.again.sides, place);
        versions.ok().map(|versions| versions.prints())
    }

    /// A copy that cannot be opened, as while its server starts again, is taken as it was: what its
    /// files have now may be later than its WAL was.
    fn refresh(&mut self) -> Option<ViewPosition> {
        let (a, b) = self.again.sides;
        let newer = |side: Side<'_>| newer(side.cluster, self.again.server);
        self.newer = (newer(a), newer(b));
        let [a, b] = [&self.newer.0, &self.newer.1].map(|view| Some(view.as_ref()?.position()));
        // Where both move, neither's WAL speaks for the other.
        Some(a.xor(b).unwrap_or_default())
    }

    fn examine(&mut self, suspects: Vec<SuspectOf<Self>>, look: Look) -> Vec<SuspectOf<Self>> {
        let (a, b) = self.again.sides;
        let (newer_a, newer_b) = (&self.newer.0, &self.newer.1);
        let sides = sides(
            newer_a.as_ref().map_or(a.cluster, FreshView::cluster),
            newer_b.as_ref().map_or(b.cluster, FreshView::cluster),
        );
        let mut left = Vec::new();
        for suspect in suspects {
            let Some((found, prints)) = self.found(sides, &suspect) else {
                continue;
            };
            let difference = found.difference;
            let ruling = look.ruling(&suspect, prints.as_ref(), |before| *before == difference);
            if !is_open(difference) || ruling == Ruling::Counts {
                (self.keep)(suspect.place.pair, found, suspect.place.count);
            } else {
                left.push(suspect.still(difference));
            }
        }
        left
    }
}

impl BlocksAgain<'_, '_> {
    /// What a block is under newer positions, and of which bytes; nothing where it is equal or
    /// gone.
    fn found(
        &self,
        sides: (Side<'_>, Side<'_>),
        suspect: &SuspectOf<Self>,
    ) -> Option<(DiffBlock, Option<Prints>)> {
        let (again, place) = (self.again, &suspect.place);
        let pair = again.pairs.get(place.pair)?;
        let Ok(versions) = again.versions(sides, place) else {
            return Some((unreadable(place.block), None));
        };
        let now = versions.prints();
        let [is_same_a, is_same_b] = suspect
            .print
            .map_or([false; 2], |[a, b]| [a == now[0], b == now[1]]);
        let (is_new_a, is_new_b) = (self.newer.0.is_some(), self.newer.1.is_some());
        let sides = (
            held(sides.0, is_same_a && is_new_a),
            held(sides.1, is_same_b && is_new_b),
        );
        let comparison = comparison_of(sides, again.names, pair);
        let found = compared(&comparison, pair, versions, place.block)?;
        Some((found, Some(now)))
    }
}

fn compared(
    comparison: &PageComparison<'_>,
    pair: &Pair,
    versions: Versions,
    block: BlockNo,
) -> Option<DiffBlock> {
    let was_alone = pair.a.is_none() || pair.b.is_none();
    match (versions.a, versions.b) {
        (Some(a), Some(b)) if a == b && !was_alone => None,
        (Some(_), Some(_)) if was_alone => Some(DiffBlock {
            block,
            difference: Difference::Missing,
            copy: None,
            lsn_a: None,
            lsn_b: None,
            why: "the copy without the file has got it since".into(),
        }),
        (Some(a), Some(b)) => Some(comparison.differing(&a, &b, block)),
        (Some(there), None) => Some(comparison.missing(&there, Copy::B, block)),
        (None, Some(there)) => Some(comparison.missing(&there, Copy::A, block)),
        (None, None) => None,
    }
}

/// A copy whose server may have written the block since its WAL was read, or whose WAL could not be
/// followed to its end, has more of it.
fn held(side: Side<'_>, is_older_than_wal: bool) -> Side<'_> {
    let has_more = side.cluster.is_running() && !(is_older_than_wal && side.cluster.is_steady());
    let position = side.position.map(|own| Position {
        elsewhere: own.elsewhere || has_more,
        ..own
    });
    Side { position, ..side }
}

/// It may be on its way.
pub(crate) fn is_open(difference: Difference) -> bool {
    difference.is_contradiction() || difference == Difference::Unreadable
}

/// A newer view of a copy whose server runs; nothing where it cannot be opened any more.
pub(crate) fn newer(cluster: &Cluster, server: &dyn LiveServer) -> Option<FreshView<'static>> {
    let view = || FreshView::take(cluster, &|| server.wait(), &|_| None);
    cluster.is_running().then(view)?.ok()
}

/// The block as the file has it now; nothing where the copy has no such block.
fn block_of(cluster: &Cluster, files: &ForkFiles, block: BlockNo) -> Result<Option<Vec<u8>>, ()> {
    let (build, source) = (cluster.build, cluster.source());
    let page = u64::from(build.block_size);
    let per_segment = build.segment_blocks().max(1);
    let segment = u32::try_from(u64::from(block) / per_segment).map_err(drop)?;
    let offset = u64::from(block) % per_segment * page;
    let path = files.path(segment);
    // The name may lead to nothing any more, though the file is still open.
    let is_there = source.len(&path).is_ok_and(|len| offset + page <= len);
    if !is_there {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(page).map_err(drop)?];
    let read = source.read_at(&path, offset, &mut bytes).map_err(drop)?;
    Ok((read == bytes.len()).then_some(bytes))
}
