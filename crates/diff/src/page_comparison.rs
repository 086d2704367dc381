//! What two versions of a block say of the copies that they lie in.

use pgclinic_cluster::Cluster;
use pgclinic_format::checksum::{checksum_at, page_hash};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Lsn, Page};
use pgclinic_model::document::{Copy, DiffBlock, Difference};

use crate::clones;
use crate::mask::are_alike;
use crate::pairs::Pair;
use crate::position::{Position, WalExplains};
use crate::timelines::{Kinship, Way, kinship, on_the_way};

/// `GistBuildLSN`.
pub(crate) const GIST_BUILD_LSN: Lsn = Lsn(1);

/// One of the two copies.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) position: Option<Position>,
    /// How its way lies to that of the other copy.
    pub(crate) kinship: Kinship,
}

/// Both copies, each with its position on the way that it shares with the other.
pub(crate) fn sides<'a>(a: &'a Cluster, b: &'a Cluster) -> (Side<'a>, Side<'a>) {
    let (position_a, position_b) = (Position::of(a), Position::of(b));
    let way_a = position_a.and_then(|position| Way::of(a, position));
    let way_b = position_b.and_then(|position| Way::of(b, position));
    let mut kinship = kinship(way_a.as_ref(), way_b.as_ref());
    if kinship == Kinship::Line
        && let (Some(own_a), Some(own_b)) = (position_a, position_b)
        && let Some(at) = clones::parting((a, own_a), (b, own_b))
    {
        kinship = Kinship::Parted(at);
    }
    let shared = |position: Option<Position>, own: &Option<Way>, other: &Option<Way>| match (
        position,
        own.as_ref().zip(other.as_ref()),
    ) {
        (Some(position), Some((own, other))) if kinship == Kinship::Line => {
            Some(on_the_way(position, own, other))
        }
        (position, _) => position,
    };
    let side = |cluster, position| Side {
        cluster,
        position,
        kinship,
    };
    (
        side(a, shared(position_a, &way_a, &way_b)),
        side(b, shared(position_b, &way_b, &way_a)),
    )
}

/// Both, and the fork that is compared.
#[derive(Clone, Copy)]
pub(crate) struct PageComparison<'a> {
    pub(crate) a: Side<'a>,
    pub(crate) b: Side<'a>,
    pub(crate) file: FileNumber,
    pub(crate) fork: Fork,
    pub(crate) method: Option<AccessMethod>,
    /// The copy without the file names it in its own catalogs, and no server or recovery is to
    /// bring it there.
    pub(crate) is_missed: bool,
    /// The length that the catalogs of A and of B gave it last.
    pub(crate) relpages: (Option<u64>, Option<u64>),
    /// Its files.
    pub(crate) pair: &'a Pair,
}

/// Whether the version is a page, and which.
struct Version {
    lsn: Lsn,
    is_empty: bool,
    fault: Option<String>,
}

impl<'a> PageComparison<'a> {
    /// Both copies have the block, and it differs.
    pub(crate) fn differing(&self, a: &[u8], b: &[u8], block: BlockNo) -> DiffBlock {
        let (own_a, own_b) = (self.a.version(a, block), self.b.version(b, block));
        let (difference, copy, why) = match (&own_a.fault, &own_b.fault) {
            (Some(in_a), Some(in_b)) => {
                let why = format!("A: {in_a}; B: {in_b}");
                (Difference::BothUnsound, None, why)
            }
            (Some(fault), None) => (Difference::Unsound, Some(Copy::A), fault.clone()),
            (None, Some(fault)) => (Difference::Unsound, Some(Copy::B), fault.clone()),
            (None, None) if self.may_be_alike(&own_a, &own_b, (a, b), block) => {
                let why = "hint bits, the checksum or unused space";
                (Difference::Hints, None, why.into())
            }
            (None, None) => self.both_sound(&own_a, &own_b, block),
        };
        DiffBlock {
            block,
            difference,
            copy,
            lsn_a: Some(own_a.lsn.to_string()),
            lsn_b: Some(own_b.lsn.to_string()),
            why,
        }
    }

    /// Two sound versions that differ in what they hold.
    fn both_sound(
        &self,
        a: &Version,
        b: &Version,
        block: BlockNo,
    ) -> (Difference, Option<Copy>, String) {
        match self.a.kinship {
            Kinship::Unknown => return (Difference::Undecided, None, self.nobody_can_tell()),
            Kinship::Parted(at) if a.is_behind(at) || b.is_behind(at) => {
                let changed = [("A", a, self.a), ("B", b, self.b)];
                let changed = changed
                    .iter()
                    .filter(|(_, version, _)| version.is_behind(at));
                let changed = changed.map(|(name, _, side)| on_its_timeline(name, *side));
                let changed = changed.collect::<Vec<_>>().join(" and ");
                let why = format!("changed in {changed} after they parted at {at}");
                return (Difference::Parted, None, why);
            }
            Kinship::Line | Kinship::Parted(_) => {}
        }
        if a.lsn == b.lsn {
            let why = "both are sound and carry the same LSN, and hold something else";
            return (Difference::Conflict, None, why.into());
        }
        let (older, own) = if a.lsn < b.lsn {
            (Copy::A, a)
        } else {
            (Copy::B, b)
        };
        let lsn = a.lsn.max(b.lsn);
        if own.is_empty && self.may_have_grown_again(older, lsn, block) {
            let side = match older {
                Copy::A => self.a,
                Copy::B => self.b,
            };
            // Beside a server such blocks come and go; at rest one may as well be damage.
            let way = if side.cluster.is_running() {
                Difference::Missing
            } else {
                Difference::Undecided
            };
            let why = "it is empty, and the file may have been truncated and have grown since";
            return (way, Some(older), why.into());
        }
        let (way, why) = self.older(older, lsn, block);
        if own.is_empty {
            return (way, Some(older), format!("it is all zero; {why}"));
        }
        (way, Some(older), why)
    }

    /// VACUUM gave the end of a table back after the other copy began, and the file has grown
    /// since: what was not used of the new end is empty, and no WAL speaks of it.
    fn may_have_grown_again(&self, empty: Copy, lsn: Lsn, block: BlockNo) -> bool {
        self.is_later(empty) && self.is_all_new(empty, u64::from(block) + 1, lsn)
    }

    /// Everything from this block on was made after the other copy began. Indexes are never
    /// truncated, so that theirs tells nothing.
    fn is_all_new(&self, copy: Copy, first: u64, lsn: Lsn) -> bool {
        let (side, other) = self.side_and_other(copy);
        let (files, tail) = self.pair.of(copy);
        let begun = other.position.map_or(lsn, |own| own.redo.max(lsn));
        let may_be_table = matches!(self.method, None | Some(AccessMethod::Heap));
        let Some(files) = files.filter(|_| may_be_table) else {
            return false;
        };
        !tail.has_one_as_old((side.cluster, files), first, begun)
    }

    fn side_and_other(&self, copy: Copy) -> (Side<'a>, Side<'a>) {
        match copy {
            Copy::A => (self.a, self.b),
            Copy::B => (self.b, self.a),
        }
    }

    /// The later copy does not have the block. Its file was removed, or WAL that it has yet to
    /// replay cuts it or brings the block, or a VACUUM gave its end back: then `relpages` is what
    /// that VACUUM left, and whatever comes after it is newer. What a server at work writes
    /// meanwhile is settled by nothing of these.
    fn cut(&self, lacking: Copy, lsn: Lsn, block: BlockNo) -> (Difference, String) {
        let side = self.side_and_other(lacking).0;
        let (files, _) = self.pair.of(lacking);
        let Some(files) = files.filter(|_| !side.cluster.is_running()) else {
            let why = "the copy without it is the later one, and its file may have been truncated or removed";
            return (Difference::Missing, why.into());
        };
        let build = side.cluster.build;
        let blocks = files.blocks(build.block_size, build.segment_bytes);
        if self.is_left_to_wal(side, lsn, (block, blocks)) {
            let why = "the copy without it is the later one, and its WAL truncates the file or may bring the block";
            return (Difference::Missing, why.into());
        }
        let left = match lacking {
            Copy::A => self.relpages.0,
            Copy::B => self.relpages.1,
        };
        let later = format!("the copy without it is the later one and has {blocks} blocks");
        match left {
            Some(left) if left <= blocks && self.is_all_new(lacking, left, lsn) => {
                let why = format!("{later}; by its relpages {left} VACUUM may have truncated it");
                (Difference::Missing, why)
            }
            Some(left) => {
                let why = format!("{later}; its relpages {left} speaks of no truncation");
                (Difference::Undecided, why)
            }
            None => {
                let why = format!("{later}; whether it was truncated is unknown");
                (Difference::Undecided, why)
            }
        }
    }

    /// Recovery of this copy cuts the block off, or may bring a version that its files need not
    /// have yet.
    fn is_left_to_wal(&self, side: Side<'_>, lsn: Lsn, (block, blocks): (BlockNo, u64)) -> bool {
        let may_bring = || side.position.is_some_and(|own| lsn > own.redo);
        let cuts = || {
            let replay = side.cluster.replay();
            replay.is_some_and(|own| own.may_lack(self.file, block, blocks))
        };
        side.cluster.needs_recovery() && (may_bring() || cuts())
    }

    fn is_later(&self, copy: Copy) -> bool {
        let positions = self.a.position.zip(self.b.position);
        let older = positions.and_then(|(a, b)| Position::older(a, b));
        older.is_some_and(|older| older != copy)
    }

    fn nobody_can_tell(&self) -> String {
        let (a, b) = (on_its_timeline("A", self.a), on_its_timeline("B", self.b));
        format!("{a}, {b}, and no history tells where they parted")
    }

    /// Two versions of one time. A version without a time of its own may be of any.
    fn may_be_alike(
        &self,
        a: &Version,
        b: &Version,
        bytes: (&[u8], &[u8]),
        block: BlockNo,
    ) -> bool {
        let same_time = a.lsn == b.lsn || a.is_undated() || b.is_undated();
        same_time && are_alike(bytes, self.fork, self.method, block)
    }

    /// Only one copy has the block; `lacking` does not.
    pub(crate) fn missing(&self, there: &[u8], lacking: Copy, block: BlockNo) -> DiffBlock {
        let side = match lacking {
            Copy::A => self.b,
            Copy::B => self.a,
        };
        let own = side.version(there, block);
        let (difference, why) = match self.a.kinship {
            _ if own.is_empty => (
                Difference::Missing,
                "an empty page past the end of the other copy".to_owned(),
            ),
            _ if own.is_undated() => (
                Difference::Missing,
                format!("its LSN {} tells nothing of when it was made", own.lsn),
            ),
            Kinship::Unknown => (Difference::Undecided, self.nobody_can_tell()),
            Kinship::Parted(at) => (Difference::Parted, self.apart(&own, lacking, at)),
            Kinship::Line if self.is_missed => (
                Difference::Lost,
                "the copy without the file names it in its pg_class".to_owned(),
            ),
            Kinship::Line if self.is_later(lacking) => self.cut(lacking, own.lsn, block),
            Kinship::Line => match self.older(lacking, own.lsn, block) {
                (Difference::Stale, why) => (Difference::Lost, why),
                (_, why) => (Difference::Missing, why),
            },
        };
        let lsn = Some(own.lsn.to_string());
        let (lsn_a, lsn_b) = match lacking {
            Copy::A => (None, lsn),
            Copy::B => (lsn, None),
        };
        DiffBlock {
            block,
            difference,
            copy: Some(lacking),
            lsn_a,
            lsn_b,
            why,
        }
    }

    /// Why only one of two copies has the block that parted.
    fn apart(&self, there: &Version, lacking: Copy, at: Lsn) -> String {
        let (with, without) = match lacking {
            Copy::A => (("B", self.b), ("A", self.a)),
            Copy::B => (("A", self.a), ("B", self.b)),
        };
        if there.is_behind(at) {
            format!(
                "made or changed in {} after they parted at {at}",
                on_its_timeline(with.0, with.1)
            )
        } else {
            format!(
                "it may have been truncated or removed in {} after they parted at {at}",
                on_its_timeline(without.0, without.1)
            )
        }
    }

    /// Whether the copy's own WAL explains that it does not have the version with this LSN.
    fn older(&self, copy: Copy, lsn: Lsn, block: BlockNo) -> (Difference, String) {
        let (side, name) = match copy {
            Copy::A => (self.a, "A"),
            Copy::B => (self.b, "B"),
        };
        let Some(position) = side.position else {
            let why = format!("{name} is older, and has no control file to tell whether it may be");
            return (Difference::Later, why);
        };
        match position.brings(side.cluster, self.file, self.fork, block, lsn) {
            WalExplains::Yes => {
                let why =
                    format!("{name} is older, and its WAL changes the block before {lsn} or there");
                (Difference::Replayed, why)
            }
            WalExplains::Later => {
                let why = format!("{name} is older, and ends at {}", position.end);
                (Difference::Later, why)
            }
            WalExplains::No => {
                let why = format!("{name} is older, and its WAL passes {lsn} without the block");
                (Difference::Stale, why)
            }
            WalExplains::TooLate => {
                let redo = position.redo;
                let why = format!(
                    "{name} is older, though everything before its redo point {redo} was written: the write was lost, or an older page put back"
                );
                (Difference::Stale, why)
            }
        }
    }
}

impl Version {
    /// What is built aside and logged as a whole carries no LSN in the files of the server that
    /// built it.
    fn is_undated(&self) -> bool {
        self.lsn <= GIST_BUILD_LSN
    }

    /// It came after this place, or may have.
    fn is_behind(&self, at: Lsn) -> bool {
        self.lsn > at || (self.is_undated() && !self.is_empty)
    }
}

/// `A on timeline 1`.
pub(crate) fn on_its_timeline(name: &str, side: Side<'_>) -> String {
    match side.position {
        Some(position) => format!("{name} on timeline {}", position.timeline),
        None => name.into(),
    }
}

impl Side<'_> {
    fn version(&self, bytes: &[u8], block: BlockNo) -> Version {
        let Some(page) = Page::parse(bytes) else {
            return Version {
                lsn: Lsn(0),
                is_empty: false,
                fault: Some("it is no page".into()),
            };
        };
        Version {
            lsn: page.pd_lsn(),
            is_empty: page.is_new() && page.is_zeroed(),
            fault: self.fault(page, block),
        }
    }

    fn fault(&self, page: Page<'_>, block: BlockNo) -> Option<String> {
        if page.is_new() {
            let rest = !page.is_zeroed();
            return rest.then(|| "pd_upper is 0, and other bytes are not".into());
        }
        let computed = checksum_at(page_hash(page.bytes()), block);
        let stored = page.pd_checksum();
        if self.cluster.checksums() == Some(true) && computed != stored {
            return Some(format!(
                "stored checksum {stored} does not match computed checksum {computed}"
            ));
        }
        if !page.header_is_sane_to_the_server() {
            return Some("the server refuses its header".into());
        }
        let position = self.position.filter(|position| !position.elsewhere)?;
        let end = position
            .end
            .0
            .saturating_add(pgclinic_cluster::CHECKPOINT_BYTES);
        (page.pd_lsn().0 > end).then(|| {
            let lsn = page.pd_lsn();
            format!(
                "its LSN {lsn} lies beyond the end of the WAL, {}",
                position.end
            )
        })
    }
}
