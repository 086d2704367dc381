//! What a run has seen so far: the ledger, the findings, the evidence.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Cluster, ReadGap, Relation};
use pgclinic_format::{Fork, Oid, StatusLog};
use pgclinic_model::document::{
    Coverage, Finding, Level, NotChecked, RelationFate, RelationSummary, Witness,
};
use pgclinic_source::SourceErrorKind;

use crate::check::ForkCx;
use crate::findings::Findings;
use crate::run_state::{OpenGap, Owner, SuspiciousTables};
use crate::walker::suspects::Suspects;

/// Ranges of damaged blocks kept for one fork; beyond them, near ones are joined.
const RANGES_MAX: usize = 10_000;

/// Damaged blocks of one fork.
#[derive(Clone, Default, Debug)]
pub(crate) struct DamagedBlocks {
    ranges: BTreeMap<u64, u64>,
}

impl DamagedBlocks {
    /// Those of a summary.
    pub(crate) fn of(ranges: &[[u64; 2]]) -> Self {
        let mut blocks = DamagedBlocks::default();
        for [start, end] in ranges.iter().filter(|[start, end]| start < end) {
            blocks.add_range(*start, *end);
        }
        blocks
    }

    /// The block is one of them.
    pub(crate) fn has(&self, block: u64) -> bool {
        let before = self.ranges.range(..=block).next_back();
        before.is_some_and(|(_, end)| *end > block)
    }

    /// There is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many runs of blocks they are.
    pub(crate) fn runs(&self) -> usize {
        self.ranges.len()
    }

    /// All of them, rising.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|(start, end)| *start..*end)
    }

    /// Adds one block.
    pub(crate) fn add(&mut self, block: u64) {
        self.add_range(block, block + 1);
    }

    fn add_range(&mut self, mut start: u64, mut end: u64) {
        if let Some((before, its_end)) = self
            .ranges
            .range(..=start)
            .next_back()
            .map(|(a, b)| (*a, *b))
            && its_end >= start
        {
            self.ranges.remove(&before);
            (start, end) = (before, end.max(its_end));
        }
        while let Some((next, its_end)) =
            self.ranges.range(start..=end).next().map(|(a, b)| (*a, *b))
        {
            self.ranges.remove(&next);
            end = end.max(its_end);
        }
        self.ranges.insert(start, end);
    }

    pub(crate) fn absorb(&mut self, other: &DamagedBlocks) {
        for (start, end) in &other.ranges {
            self.add_range(*start, *end);
        }
    }

    /// In order, at most so many that a document can hold them.
    pub(crate) fn ranges(&self) -> Vec<[u64; 2]> {
        let mut ranges: Vec<[u64; 2]> = self
            .ranges
            .iter()
            .map(|(start, end)| [*start, *end])
            .collect();
        let mut gap = 1;
        while ranges.len() > RANGES_MAX {
            let mut joined: Vec<[u64; 2]> = Vec::new();
            for [start, end] in ranges {
                match joined.last_mut() {
                    Some(last) if start.saturating_sub(last[1]) <= gap => last[1] = end,
                    _ => joined.push([start, end]),
                }
            }
            ranges = joined;
            gap *= 2;
        }
        ranges
    }
}

/// By what a page is damaged, unless it is wrong itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Accuser {
    /// The commit log.
    CommitLog,
    /// The end of the WAL that is there.
    EndOfWal,
}

/// A damaged page, by path and block.
pub(crate) type Pages = BTreeMap<(String, u32), Vec<u8>>;

/// The books.
pub(crate) struct RunLedger {
    pub(crate) coverage: Coverage,
    pub(crate) findings: Findings,
    pub(crate) relations: Vec<RelationSummary>,
    pub(crate) evidence: Pages,
    pub(crate) interrupted: bool,
    /// The bytes of all databases were announced before the first of them.
    pub(crate) is_foreseen: bool,
    /// Bytes of main forks, which comparisons would read again.
    pub(crate) main_bytes: u64,
    /// Damaged blocks of the forks of the database at hand, by job.
    pub(crate) damaged: BTreeMap<usize, DamagedBlocks>,
    /// Those of them that are damaged only if their accuser is right.
    pub(crate) contradicted: BTreeMap<(usize, Accuser), DamagedBlocks>,
    /// The same of databases that are done, by the place of their relation's summary.
    pub(crate) doubted: BTreeMap<(usize, Accuser), DamagedBlocks>,
    /// Checksums of files that the pass has read whole, where a manifest has some of them.
    pub(crate) sums: BTreeMap<String, Vec<u8>>,
    /// Small files that are booked.
    pub(crate) booked: BTreeSet<String>,
    /// Pages, by file and block, that have not changed since another run and were looked at again
    /// as it found something in them.
    pub(crate) unchanged: BTreeSet<(String, u32)>,
    /// Findings of that run that this one did not look for.
    pub(crate) carried: u64,
    /// Of a cluster whose server is at work: bytes of relation files that were looked at.
    pub(crate) looked_at: BTreeMap<String, u64>,
    /// Of the same: pages that need a second look.
    pub(crate) suspects: Suspects,
    /// Beside a server: tables whose indexes know pages that the files do not have.
    pub(crate) suspicious: SuspiciousTables,
    /// The same with an index or a sequence whose pages do not hang together.
    pub(crate) disconnected: BTreeSet<(Oid, Owner)>,
    /// Of the same: what checks of files found, by id, which counts when it is found again.
    pub(crate) held: BTreeMap<String, Finding>,
    /// Relation files of which some bytes were not read, or whose pages were read without what the
    /// catalogs say of them (then the first file stands for the fork), and folders that could not
    /// be listed: nobody may pass over a page in them.
    pub(crate) unread: BTreeSet<String>,
    /// First files of forks of which the pass could not read some page.
    pub(crate) unreadable: BTreeSet<String>,
    /// What no later look at changed pages makes up for.
    pub(crate) open: Vec<OpenGap>,
}

/// A server at work removes WAL that it needs no more, also between two looks at it.
fn is_recycled(cluster: &Cluster, trouble: &ReadGap) -> bool {
    let now = cluster.source().len(&trouble.what);
    cluster.is_running() && now.is_err_and(|error| error.kind == SourceErrorKind::NotFound)
}

impl RunLedger {
    pub(crate) fn new() -> Self {
        RunLedger {
            coverage: Coverage::default(),
            findings: Findings::default(),
            relations: Vec::new(),
            evidence: Pages::new(),
            interrupted: false,
            is_foreseen: false,
            main_bytes: 0,
            damaged: BTreeMap::new(),
            contradicted: BTreeMap::new(),
            doubted: BTreeMap::new(),
            sums: BTreeMap::new(),
            booked: BTreeSet::new(),
            unchanged: BTreeSet::new(),
            carried: 0,
            looked_at: BTreeMap::new(),
            suspects: Suspects::default(),
            suspicious: SuspiciousTables::default(),
            disconnected: BTreeSet::new(),
            held: BTreeMap::new(),
            unread: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    /// Tells what could not be read of names and catalogs.
    pub(crate) fn troubles(&mut self, troubles: &[ReadGap]) {
        for trouble in troubles {
            self.not_checked(super::not_checked(trouble));
        }
    }

    /// The same of folders whose files could not be listed.
    pub(crate) fn unlisted(&mut self, troubles: &[ReadGap]) {
        self.troubles(troubles);
        let folders = troubles.iter().map(|trouble| trouble.what.clone());
        self.unread.extend(folders);
    }

    /// Tells a gap that stays until a run looks at everything, or until the relation with this
    /// first file is gone.
    pub(crate) fn stays_open(&mut self, path: Option<String>, gap: NotChecked) {
        self.not_checked(gap.clone());
        self.leave_open(OpenGap {
            path,
            gap,
            unsettled: false,
        });
    }

    /// Keeps a gap for the next run, which is not told here.
    pub(crate) fn leave_open(&mut self, own: OpenGap) {
        if !self.open.contains(&own) {
            self.open.push(own);
        }
    }

    /// What a page says of others was not judged, as its files may be of different moments: a later
    /// run that passes over the page does not judge it either.
    pub(crate) fn leave_unsettled(&mut self, cluster: &Cluster, level: Level) {
        if level < Level::Structure || !cluster.needs_recovery() {
            return;
        }
        let what = "what pages that have not changed say of transactions, maps, catalogs and other relations";
        let why = if cluster.is_running() {
            "a server was running on the files"
        } else {
            "the cluster needed recovery"
        };
        let gap = NotChecked {
            what: what.into(),
            why: why.into(),
            inherent: cluster.is_running(),
        };
        self.leave_open(OpenGap {
            path: None,
            gap,
            unsettled: true,
        });
    }

    /// Books bytes that nobody looks at.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.coverage.bytes_seen += bytes;
        self.coverage.bytes_skipped += bytes;
    }

    /// Books relations whose pages a pass came to.
    pub(crate) fn passed<'j>(&mut self, jobs: impl Iterator<Item = &'j ForkCx<'j>>) {
        for job in jobs.filter(|job| job.fork() == Fork::Main) {
            let fate = if self.unreadable.contains(&job.files.path(0)) {
                RelationFate::Unreadable
            } else {
                RelationFate::Checked
            };
            self.coverage.book_relations(fate, 1);
        }
    }

    /// Relations that were selected, left out, and found out of reach before a page was read.
    pub(crate) fn counted_relations(&self) -> [u64; 3] {
        let own = &self.coverage;
        [
            own.relations_selected,
            own.relations_skipped,
            own.relations_unreadable,
        ]
    }

    /// The same, as they were before.
    pub(crate) fn count_relations(&mut self, counted: [u64; 3]) {
        let own = &mut self.coverage;
        [
            own.relations_selected,
            own.relations_skipped,
            own.relations_unreadable,
        ] = counted;
    }

    /// Books relations, and their bytes, that the run did not come to.
    pub(crate) fn not_reached(&mut self, jobs: &[ForkCx<'_>]) {
        let main = jobs.iter().filter(|job| job.fork() == Fork::Main);
        let main = main.count() as u64;
        self.coverage.book_relations(RelationFate::Skipped, main);
        jobs.iter().for_each(|job| self.skip(job.files.bytes()));
    }

    /// Books as skipped what was read, and what the level promises of it was not done.
    pub(crate) fn half_checked(&mut self, bytes: u64) {
        let bytes = bytes.min(self.coverage.bytes_checked);
        self.coverage.bytes_checked -= bytes;
        self.coverage.bytes_skipped += bytes;
    }

    /// Turns the damaged blocks of a database's forks into summaries of relations.
    pub(crate) fn settle_damage(&mut self, jobs: &[ForkCx<'_>]) {
        let mut contradicted = std::mem::take(&mut self.contradicted);
        for (number, blocks) in std::mem::take(&mut self.damaged) {
            let Some(job) = jobs.get(number) else {
                continue;
            };
            for accuser in [Accuser::CommitLog, Accuser::EndOfWal] {
                if let Some(doubted) = contradicted.remove(&(number, accuser)) {
                    self.doubted
                        .insert((self.relations.len(), accuser), doubted);
                }
            }
            self.relations.push(summary(job, &blocks));
        }
    }

    /// By database and file, how many pages are damaged only if this accuser is right.
    pub(crate) fn pages_accused_by(
        &self,
        accuser: Accuser,
    ) -> BTreeMap<(Option<Oid>, Option<Oid>), u64> {
        let mut pages = BTreeMap::new();
        let own = self.doubted.iter().filter(|((_, own), _)| *own == accuser);
        for ((place, _), blocks) in own {
            if let Some(of) = self.relations.get(*place) {
                let relation = (of.database_oid, of.filenode);
                *pages.entry(relation).or_default() += blocks.iter().count() as u64;
            }
        }
        pages
    }

    /// Takes pages back whose accuser turned out to be wrong itself.
    pub(crate) fn clear_pages_accused_by(&mut self, wrong: Accuser) {
        for ((place, accuser), doubted) in &self.doubted {
            let Some(summary) = self.relations.get_mut(*place) else {
                continue;
            };
            if *accuser != wrong {
                continue;
            }
            let mut left = DamagedBlocks::default();
            let all = DamagedBlocks::of(&summary.damaged);
            let sound = |block: &u64| !doubted.has(*block);
            all.iter().filter(sound).for_each(|block| left.add(block));
            summary.damaged = left.ranges();
        }
    }

    /// Relations of which damaged pages are left.
    pub(crate) fn take_relations(&mut self) -> Vec<RelationSummary> {
        let mut relations = std::mem::take(&mut self.relations);
        relations.retain(|summary| !summary.damaged.is_empty());
        relations
    }

    /// Tells it once.
    pub(crate) fn not_checked(&mut self, entry: NotChecked) {
        if !self.coverage.not_checked.contains(&entry) {
            self.coverage.not_checked.push(entry);
        }
    }

    /// Books a small file that a check of the whole cluster has read, once.
    pub(crate) fn file(&mut self, cluster: &Cluster, path: &str) {
        let Ok(len) = cluster.source().len(path) else {
            return;
        };
        if !self.booked.insert(path.to_owned()) {
            return;
        }
        self.coverage.bytes_seen += len;
        self.coverage.bytes_checked += len;
    }

    /// Books the status files and other small files that a check of the whole cluster has read.
    pub(crate) fn status_files(&mut self, cluster: &Cluster) {
        for log in StatusLog::ALL {
            match cluster.status_files(log) {
                Ok(files) => {
                    for file in &files {
                        self.file(cluster, &file.path);
                        self.troubles(file.trouble.as_slice());
                    }
                }
                Err(trouble) => self.troubles(&[trouble]),
            }
        }
        for path in crate::files::small_files::checked(cluster) {
            self.file(cluster, &path);
        }
    }

    /// Books the WAL whose records were read: that from the redo point on where recovery needs it,
    /// at level full also what is older. What lies behind the end means nothing.
    pub(crate) fn wal(&mut self, cluster: &Cluster, level: Level) {
        if level < Level::Structure {
            return;
        }
        let files = cluster.recovery().map(|recovery| &recovery.files);
        let replay = cluster.replay();
        let of_files = files.map_or(&[][..], |files| files.troubles.as_slice());
        let of_replay = replay.map_or(&[][..], |replay| replay.troubles.as_slice());
        for trouble in of_files.iter().chain(of_replay) {
            if !is_recycled(cluster, trouble) {
                self.not_checked(super::not_checked(trouble));
            }
        }
        let older = (level == Level::Full)
            .then(|| cluster.older_wal())
            .flatten();
        let records = replay.map_or(0, |own| own.records) + older.map_or(0, |own| own.records);
        self.coverage.asked(Witness::WalRecords, records, 0);
        let bytes = replay.map_or(0, |replay| replay.bytes) + older.map_or(0, |older| older.bytes);
        self.coverage.bytes_seen += bytes;
        self.coverage.bytes_checked += bytes;
    }

    /// Books the small files of a database's folder.
    pub(crate) fn small_files(&mut self, cluster: &Cluster, folder: &str) {
        self.file(cluster, &format!("{folder}/PG_VERSION"));
        self.file(cluster, &format!("{folder}/pg_filenode.map"));
    }

    /// Keeps a page as evidence if it is among the first ones.
    pub(crate) fn keep_evidence(
        evidence: &mut Pages,
        max: usize,
        path: &str,
        block: u32,
        page: &[u8],
    ) {
        let key = (path.to_owned(), block);
        if evidence.len() >= max
            && evidence
                .last_key_value()
                .is_none_or(|(last, _)| *last <= key)
        {
            return;
        }
        evidence.insert(key, page.to_vec());
        if evidence.len() > max {
            evidence.pop_last();
        }
    }
}

fn summary(job: &ForkCx<'_>, blocks: &DamagedBlocks) -> RelationSummary {
    RelationSummary {
        database: job.database.map(str::to_owned),
        schema: job.relation.map(|relation| relation.schema.clone()),
        relation: job.relation.map(|relation| relation.name.clone()),
        toast_of: job.toast_of.map(Relation::qualified_name),
        database_oid: Some(job.files.home.database),
        relation_oid: job.relation.map(|relation| relation.oid),
        filenode: Some(job.files.filenode),
        path: job.files.path(0),
        kind: job.kind,
        fork: job.fork(),
        blocks: job.blocks,
        damaged: blocks.ranges(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_become_one() {
        let mut blocks = DamagedBlocks::default();
        for block in [7, 3, 4, 9, 8, 3] {
            blocks.add(block);
        }
        assert_eq!(blocks.ranges(), [[3, 5], [7, 10]]);
        let again = DamagedBlocks::of(&blocks.ranges());
        let has: Vec<u64> = (0..12).filter(|block| again.has(*block)).collect();
        assert_eq!(has, [3, 4, 7, 8, 9]);
    }
}
