//! The second look at blocks that contradict each other where a server is at work on a copy.
//!
//! ```text
//! remember: read the block ──► newer look at control files and WAL ──► read the block again
//!   equal, gone, or explained by the newer WAL   it was on its way
//!   a contradiction, and the same bytes          it counts
//!   a contradiction, and other bytes             once more; at the last look, the same contradiction as before counts
//! ```
//!
//! A version that came after the WAL was read may carry an LSN beyond its end: only one that was there before is held to that.

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::BlockNo;
use pgclinic_model::document::{Copy, DiffBlock, DiffCoverage, Difference, NotChecked};

use crate::diff::judge::{Judge, Side, sides};
use crate::diff::pairs::{Names, Pair};
use crate::diff::pass::{judge_of, unreadable};
use crate::diff::position::Position;
use crate::walker::Bystander;

/// How often a block is looked at again.
const AGAIN_MAX: usize = 3;

/// A block as it was read before the newer look was taken.
pub(crate) struct Suspect {
    /// The pair of forks that it is of.
    pub(crate) pair: usize,
    pub(crate) block: BlockNo,
    /// Blocks that it stands for.
    pub(crate) count: u64,
    /// Of the versions in A and in B.
    prints: Option<[blake3::Hash; 2]>,
    before: Option<Difference>,
}

impl Suspect {
    pub(crate) fn new(pair: usize, block: BlockNo, count: u64) -> Self {
        Suspect {
            pair,
            block,
            count,
            prints: None,
            before: None,
        }
    }
}

/// The blocks of one database to look at again.
pub(crate) struct Again<'a> {
    pub(crate) sides: (Side<'a>, Side<'a>),
    pub(crate) pairs: &'a [Pair],
    pub(crate) names: &'a Names,
    pub(crate) bystander: &'a dyn Bystander,
}

/// Both versions of a block, where a copy has it.
struct Versions {
    a: Option<Vec<u8>>,
    b: Option<Vec<u8>>,
}

impl Versions {
    /// Of A and of B.
    fn prints(&self) -> [blake3::Hash; 2] {
        [&self.a, &self.b].map(|own| match own {
            Some(bytes) => blake3::hash(bytes),
            None => blake3::hash(&[]),
        })
    }
}

impl Again<'_> {
    /// Hands what counts, and what the newer WAL explains, to `keep`, with the number of the pair and of the blocks.
    pub(crate) fn look(
        &self,
        mut open: Vec<Suspect>,
        coverage: &mut DiffCoverage,
        keep: &mut dyn FnMut(usize, DiffBlock, u64),
    ) {
        for look in 1..=AGAIN_MAX {
            if open.is_empty() {
                return;
            }
            for suspect in &mut open {
                let versions = self.versions(self.sides, suspect);
                suspect.prints = versions.ok().map(|versions| versions.prints());
            }
            self.bystander.wait();
            let newer = (newer(self.sides.0.cluster), newer(self.sides.1.cluster));
            let sides = sides(
                newer.0.as_ref().unwrap_or(self.sides.0.cluster),
                newer.1.as_ref().unwrap_or(self.sides.1.cluster),
            );
            let mut left = Vec::new();
            for mut suspect in open {
                let told = self.told(sides, &suspect);
                let Some((told, is_same)) = told else {
                    continue;
                };
                let lasts = look == AGAIN_MAX && suspect.before == Some(told.difference);
                if !is_open(told.difference) || is_same || lasts {
                    keep(suspect.pair, told, suspect.count);
                } else {
                    suspect.before = Some(told.difference);
                    left.push(suspect);
                }
            }
            open = left;
        }
        if !open.is_empty() {
            coverage.not_checked.push(NotChecked {
                what: format!("{} blocks that seemed to contradict each other", open.len()),
                why: "a server wrote them between any two looks".into(),
                inherent: true,
            });
        }
    }

    /// What a block is under newer positions, and whether it has the bytes of the look before; nothing where it is equal or gone.
    fn told(&self, sides: (Side<'_>, Side<'_>), suspect: &Suspect) -> Option<(DiffBlock, bool)> {
        let pair = self.pairs.get(suspect.pair)?;
        let Ok(versions) = self.versions(sides, suspect) else {
            return Some((unreadable(suspect.block), suspect.prints.is_none()));
        };
        let [now_a, now_b] = versions.prints();
        let [is_same_a, is_same_b] = suspect
            .prints
            .map_or([false; 2], |[a, b]| [a == now_a, b == now_b]);
        let sides = (held(sides.0, is_same_a), held(sides.1, is_same_b));
        let judge = judge_of(sides, self.names, pair);
        let told = judged(&judge, pair, versions, suspect.block)?;
        Some((told, is_same_a && is_same_b))
    }

    fn versions(&self, sides: (Side<'_>, Side<'_>), suspect: &Suspect) -> Result<Versions, ()> {
        let files = self.pairs.get(suspect.pair).and_then(Pair::any);
        let files = files.ok_or(())?;
        Ok(Versions {
            a: block_of(sides.0.cluster, files, suspect.block)?,
            b: block_of(sides.1.cluster, files, suspect.block)?,
        })
    }
}

fn judged(judge: &Judge<'_>, pair: &Pair, versions: Versions, block: BlockNo) -> Option<DiffBlock> {
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
        (Some(a), Some(b)) => Some(judge.differing(&a, &b, block)),
        (Some(there), None) => Some(judge.missing(&there, Copy::B, block)),
        (None, Some(there)) => Some(judge.missing(&there, Copy::A, block)),
        (None, None) => None,
    }
}

/// A copy whose server wrote the block since its WAL was read, or whose WAL could not be followed to its end, has more of it.
fn held(side: Side<'_>, is_same: bool) -> Side<'_> {
    let has_more = side.cluster.is_running() && !(is_same && side.cluster.is_steady());
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

/// A newer look at a copy whose server is at work; one that cannot be opened any more is taken as it was.
fn newer(cluster: &Cluster) -> Option<Cluster> {
    let newer = cluster
        .is_running()
        .then(|| cluster.refresh_until_steady())?;
    newer.ok()
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
