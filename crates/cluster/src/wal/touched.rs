//! What recovery does to blocks and files, kept in two bits a block.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pgclinic_format::wal::{BlockReference, Event, FileNumber, ForkOf};
use pgclinic_format::{BlockNo, Fork, Oid};

/// Groups of 32 blocks that are kept: some 60 MiB.
const GROUPS_MAX: usize = 1 << 20;
/// Files that are kept by name.
const FILES_MAX: usize = 1 << 18;
/// What the first record does with a block.
const READ: u64 = 1;
const IMAGE: u64 = 2;
const INITIALISED: u64 = 3;
const BITS: u64 = 3;

/// What a record does with the page that it finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstRecord {
    /// Changes it as it is.
    Reads,
    /// Brings an image: the page had content before the last checkpoint.
    BringsImage,
    /// Begins it as an empty page.
    Initialises,
}

/// What recovery does to a page as it lies on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayEffect {
    /// It is written anew before anything reads it.
    Rewritten,
    /// Its file is removed, cut or copied anew.
    Removed,
    /// It is read and changed as it is.
    Read,
    /// It is left alone.
    Kept,
    /// There were too many blocks to remember.
    Unknown,
}

/// What truncations left of a main fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Truncation {
    /// The fewest blocks that it ever had.
    least: u32,
    /// The end of what records spoke of since the last one: so far the file reaches at least.
    regrown: u32,
}

/// Blocks and files that records speak of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Touched {
    forks: HashMap<ForkOf, BTreeMap<u32, u64>>,
    /// The block that was spoken of last: many records in a row fill one page.
    last: Option<(ForkOf, BlockNo)>,
    groups: usize,
    overflowed: bool,
    pub(crate) created: BTreeSet<FileNumber>,
    /// `wal_level` is `minimal`: what a transaction writes to a file that it made itself is in no
    /// record. It is in the file when the transaction commits.
    is_minimal: bool,
    dropped: BTreeSet<FileNumber>,
    truncated: BTreeMap<FileNumber, Truncation>,
    without_maps: BTreeSet<FileNumber>,
    pub(crate) databases: BTreeSet<Oid>,
    tablespaces: BTreeSet<Oid>,
}

impl Touched {
    pub(crate) fn of(is_minimal: bool) -> Self {
        Touched {
            is_minimal,
            ..Touched::default()
        }
    }

    /// A record speaks of the block.
    pub(crate) fn note(&mut self, own: &BlockReference<'_>) {
        let first = match (own.rewrites(), own.image.is_some()) {
            (false, _) => FirstRecord::Reads,
            (true, true) => FirstRecord::BringsImage,
            (true, false) => FirstRecord::Initialises,
        };
        self.block(own.file, own.fork, own.block, first);
    }

    /// What a record does to whole files.
    pub(crate) fn note_files(&mut self, event: &Event<'_>) {
        match event {
            Event::Ended(ended) => ended.files().for_each(|file| self.drop_file(file)),
            Event::Created(of) => self.create(of.file),
            Event::Truncated {
                file,
                blocks: Some(blocks),
            } => self.truncate(*file, *blocks),
            Event::Truncated { file, blocks: None } => self.truncate_maps(*file),
            Event::DatabaseCreated { database, .. } | Event::DatabaseDropped { database } => {
                self.database(*database);
            }
            Event::TablespaceDropped(tablespace) => self.tablespace(*tablespace),
            _ => {}
        }
    }

    /// Blocks of the main fork of which records speak, in order; none where the file was removed or
    /// there were too many to remember.
    pub(crate) fn blocks_of(&self, file: FileNumber) -> impl Iterator<Item = BlockNo> {
        let fork = Fork::Main;
        let groups = self.forks.get(&ForkOf { file, fork });
        let groups = groups.filter(|_| !self.overflowed && !self.removes(file));
        let groups = groups.into_iter().flatten();
        groups.flat_map(|(group, bits)| {
            let places = (0..32).filter(move |place| (bits >> (place * 2)) & BITS != 0);
            places.map(move |place| group * 32 + place)
        })
    }

    /// The file is removed, or its directory is removed or made again.
    fn removes(&self, file: FileNumber) -> bool {
        self.dropped.contains(&file)
            || self.databases.contains(&file.database)
            || self.tablespaces.contains(&file.tablespace)
    }

    /// A record speaks of the block; only the first one counts.
    fn block(&mut self, file: FileNumber, fork: Fork, block: BlockNo, record: FirstRecord) {
        let own = ForkOf { file, fork };
        if self.last == Some((own, block)) {
            return;
        }
        self.last = Some((own, block));
        if fork == Fork::Main && !self.truncated.is_empty() {
            self.regrow(file, block);
        }
        if self.overflowed {
            return;
        }
        let groups = self.forks.entry(own).or_default();
        let before = groups.len();
        let group = groups.entry(block / 32).or_default();
        let shift = block % 32 * 2;
        if (*group >> shift) & BITS == 0 {
            let bits = match record {
                FirstRecord::Reads => READ,
                FirstRecord::BringsImage => IMAGE,
                FirstRecord::Initialises => INITIALISED,
            };
            *group |= bits << shift;
        }
        self.groups += groups.len() - before;
        if self.groups > GROUPS_MAX {
            self.overflow();
        }
    }

    /// Some record speaks of the main fork of the file, or may.
    pub(crate) fn holds(&self, file: FileNumber) -> bool {
        let fork = Fork::Main;
        self.overflowed
            || self.forks.contains_key(&ForkOf { file, fork })
            || self.created.contains(&file)
            || self.truncated.contains_key(&file)
            || self.removes(file)
    }

    /// No record makes, removes, cuts or copies the file, or makes it without what it holds.
    pub(crate) fn keeps_length(&self, file: FileNumber) -> bool {
        let is_remade = (self.created.contains(&file) && !self.is_minimal)
            || self.truncated.contains_key(&file)
            || self.removes(file);
        !self.overflowed && !is_remade
    }

    /// There were too many blocks to remember.
    pub(crate) fn overflows(&self) -> bool {
        self.overflowed
    }

    fn overflow(&mut self) {
        self.overflowed = true;
        self.forks = HashMap::new();
    }

    fn create(&mut self, file: FileNumber) {
        self.created.insert(file);
        self.bound_files();
    }

    fn drop_file(&mut self, file: FileNumber) {
        self.dropped.insert(file);
        self.bound_files();
    }

    /// The main fork is cut, and its maps with it.
    fn truncate(&mut self, file: FileNumber, blocks: u32) {
        let first = Truncation {
            least: blocks,
            regrown: 0,
        };
        let own = self.truncated.entry(file).or_insert(first);
        own.least = own.least.min(blocks);
        own.regrown = own.regrown.min(blocks);
        self.last = None;
        self.truncate_maps(file);
    }

    fn truncate_maps(&mut self, file: FileNumber) {
        self.without_maps.insert(file);
        self.bound_files();
    }

    /// Main forks that were cut, with the fewest blocks that each had.
    pub(crate) fn truncated_to(&self) -> BTreeMap<FileNumber, u32> {
        let all = self.truncated.iter();
        all.map(|(file, own)| (*file, own.least)).collect()
    }

    fn regrow(&mut self, file: FileNumber, block: BlockNo) {
        if let Some(own) = self.truncated.get_mut(&file) {
            own.regrown = own.regrown.max(block.saturating_add(1));
        }
    }

    /// A truncation cut the block off, and a file of so many blocks need not have it back: no later
    /// record shows that it grew over the block, or it did, with a page that may be all zero.
    pub(crate) fn may_lack(&self, file: FileNumber, block: BlockNo, blocks: u64) -> bool {
        self.truncated.get(&file).is_some_and(|own| {
            let is_owed = block < own.regrown && u64::from(block) >= blocks;
            block >= own.least && !is_owed
        })
    }

    /// The database's folder is removed or made anew.
    fn database(&mut self, database: Oid) {
        self.databases.insert(database);
        self.bound_files();
    }

    fn tablespace(&mut self, tablespace: Oid) {
        self.tablespaces.insert(tablespace);
        self.bound_files();
    }

    fn bound_files(&mut self) {
        let files = self.created.len() + self.dropped.len() + self.without_maps.len();
        let folders = self.databases.len() + self.tablespaces.len();
        if files + folders > FILES_MAX {
            self.overflow();
        }
    }

    /// What becomes of a block.
    pub(crate) fn fate(&self, file: FileNumber, fork: Fork, block: BlockNo) -> ReplayEffect {
        if self.overflowed {
            return ReplayEffect::Unknown;
        }
        let bits = self.first_record(file, fork, block);
        // Both maps are read with leave to throw a bad page away.
        let map = matches!(fork, Fork::Fsm | Fork::Vm);
        let is_cut = match self.truncated.get(&file) {
            _ if map => self.without_maps.contains(&file),
            own => own.is_some_and(|own| block >= own.least),
        };
        let gone = self.removes(file) || is_cut;
        match bits {
            IMAGE | INITIALISED => ReplayEffect::Rewritten,
            READ if map => ReplayEffect::Rewritten,
            READ => ReplayEffect::Read,
            _ if gone => ReplayEffect::Removed,
            _ => ReplayEffect::Kept,
        }
    }

    /// The first record of the block brings an image of it: it had content when the last checkpoint
    /// began.
    pub(crate) fn had_content(&self, file: FileNumber, fork: Fork, block: BlockNo) -> bool {
        self.first_record(file, fork, block) == IMAGE
    }

    fn first_record(&self, file: FileNumber, fork: Fork, block: BlockNo) -> u64 {
        let groups = self.forks.get(&ForkOf { file, fork });
        let group = groups.and_then(|groups| groups.get(&(block / 32)));
        group.map_or(0, |group| (group >> (block % 32 * 2)) & BITS)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;

    const FILE: FileNumber = FileNumber {
        tablespace: pgclinic_format::oid::DEFAULT_TABLESPACE,
        database: 5,
        filenode: 16384,
    };

    #[test]
    fn the_first_record_decides() {
        let mut touched = Touched::default();
        touched.block(FILE, Fork::Main, 7, FirstRecord::Initialises);
        touched.block(FILE, Fork::Main, 7, FirstRecord::Reads);
        touched.block(FILE, Fork::Main, 8, FirstRecord::Reads);
        touched.block(FILE, Fork::Main, 8, FirstRecord::BringsImage);
        touched.block(FILE, Fork::Main, 9, FirstRecord::BringsImage);
        touched.block(FILE, Fork::Main, 9, FirstRecord::Initialises);
        touched.block(FILE, Fork::Vm, 0, FirstRecord::Reads);
        let fate = |fork, block| touched.fate(FILE, fork, block);
        assert_eq!(fate(Fork::Main, 7), ReplayEffect::Rewritten);
        assert_eq!(fate(Fork::Main, 8), ReplayEffect::Read);
        assert_eq!(fate(Fork::Main, 9), ReplayEffect::Rewritten);
        let with_content = [7, 8, 9].map(|block| touched.had_content(FILE, Fork::Main, block));
        assert_eq!(with_content, [false, false, true]);
        assert_eq!(fate(Fork::Main, 39), ReplayEffect::Kept);
        assert_eq!(fate(Fork::Vm, 0), ReplayEffect::Rewritten);
    }

    #[test]
    fn files_that_go_take_their_blocks_along() {
        let mut touched = Touched::default();
        touched.truncate(FILE, 10);
        assert_eq!(touched.fate(FILE, Fork::Main, 9), ReplayEffect::Kept);
        assert_eq!(touched.fate(FILE, Fork::Main, 10), ReplayEffect::Removed);
        touched.database(5);
        assert_eq!(touched.fate(FILE, Fork::Main, 9), ReplayEffect::Removed);
    }

    #[test]
    fn a_file_that_was_cut_reaches_as_far_as_later_records_tell() {
        let mut touched = Touched::default();
        touched.block(FILE, Fork::Main, 20, FirstRecord::Reads);
        touched.truncate(FILE, 10);
        let lacks = |touched: &Touched, blocks| {
            [9, 10, 12, 20].map(|block| touched.may_lack(FILE, block, blocks))
        };
        assert_eq!(lacks(&touched, 9), [false, true, true, true]);
        touched.block(FILE, Fork::Main, 12, FirstRecord::Initialises);
        touched.block(FILE, Fork::Vm, 20, FirstRecord::Initialises);
        assert_eq!(lacks(&touched, 9), [false, false, false, true]);
        assert_eq!(lacks(&touched, 13), [false, true, true, true]);
        touched.truncate(FILE, 11);
        assert_eq!(lacks(&touched, 9), [false, false, true, true]);
        touched.block(FILE, Fork::Main, 12, FirstRecord::Initialises);
        assert_eq!(lacks(&touched, 9), [false, false, false, true]);
    }

    #[test]
    fn maps_are_cut_without_their_table() {
        let mut touched = Touched::default();
        touched.truncate_maps(FILE);
        assert_eq!(touched.fate(FILE, Fork::Vm, 0), ReplayEffect::Removed);
        assert_eq!(touched.fate(FILE, Fork::Main, 0), ReplayEffect::Kept);
        assert!(touched.keeps_length(FILE) && !touched.may_lack(FILE, 0, 0));
    }

    #[test]
    fn too_many_blocks_are_not_remembered() {
        let mut touched = Touched::default();
        for group in 0..=GROUPS_MAX as u32 {
            touched.block(FILE, Fork::Main, group * 32, FirstRecord::Reads);
        }
        assert_eq!(touched.fate(FILE, Fork::Main, 0), ReplayEffect::Unknown);
    }
}
