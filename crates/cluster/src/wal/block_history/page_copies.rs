//! Backups and other copies of the cluster, whose pages a recovery can begin with.
//!
//! A copy is held to its redo point: all changes before it are in its files, and of what changed
//! after it WAL has an image. A page with a later LSN was written after the redo point and counts
//! for nothing by itself.

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::control_file::State as ControlState;
use pgclinic_format::wal::{FileNumber, WalReader};
use pgclinic_format::{BlockNo, ControlFile, Fork, Lsn, Page};
use pgclinic_source::{Presence, read_exact_at};

use super::goal::Goal;
use super::wal_copies::WalCopies;
use super::{BlockAddress, CopyOfCluster};
use crate::cluster::Cluster;
use crate::file_name::relation_path;
use crate::state::State;
use crate::wal::files::Timelines;
use crate::wal::{Recovery, StartKind};

/// A copy whose history is that of the damaged cluster as far as its files tell.
pub(super) struct PageCopy<'a> {
    pub(super) name: &'a str,
    pub(super) cluster: &'a Cluster,
    pub(super) control: &'a ControlFile,
    recovery: &'a Recovery,
    /// All changes before it are in the files.
    pub(super) redo: Lsn,
    /// Its server was stopped in good order, so that no page is half written.
    is_stopped: bool,
}

/// A page of a copy, which was sound when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BasePage {
    /// The number of the copy.
    pub(super) copy: usize,
    /// The page's own.
    pub(super) lsn: Lsn,
    pub(super) redo: Lsn,
    /// It cannot be half written.
    pub(super) is_whole: bool,
}

impl<'a> PageCopy<'a> {
    /// Or why it can be none.
    pub(super) fn of(
        copy: &'a CopyOfCluster<'a>,
        (cluster, own): (&Cluster, &ControlFile),
        goal: &Goal,
        (timelines, copies): (&Timelines, &WalCopies),
    ) -> Result<Self, String> {
        let other = copy.cluster;
        let control = other.control.trusted();
        let control = control.ok_or("its control file cannot be trusted")?;
        if control.system_identifier != own.system_identifier {
            let (found, expected) = (control.system_identifier, own.system_identifier);
            return Err(format!(
                "it is of another cluster: system identifier {found}, not {expected}"
            ));
        }
        let is_alike = other.layout.major == cluster.layout.major
            && other.build.block_size == cluster.build.block_size
            && other.build.segment_bytes == cluster.build.segment_bytes;
        if !is_alike {
            return Err("it is of another major or build".into());
        }
        let recovery = other
            .recovery()
            .ok_or("it is unknown where its recovery begins")?;
        let redo = match recovery.start.kind {
            StartKind::Settled => control.checkpoint_lsn,
            StartKind::Crash | StartKind::Backup | StartKind::Archive => recovery.start.redo,
        };
        let is_whole = !matches!(other.state(), State::Partial | State::Streamed(_));
        let is_stopped = control.is_shut_down() && recovery.start.kind != StartKind::Backup;
        if redo > goal.at || control.checkpoint_lsn > goal.at {
            return Err(format!(
                "its checkpoint at {} lies past {}, {}",
                control.checkpoint_lsn,
                goal.at,
                goal.words()
            ));
        }
        let timeline = recovery.start.timeline;
        let left = timelines.left(timeline, &copies.histories);
        let is_on_the_way =
            timelines.passes(timeline) && left.is_none_or(|left| control.checkpoint_lsn < left);
        if !is_on_the_way {
            return Err(format!(
                "its timeline {timeline} is not on the way to timeline {} at {}",
                goal.timeline, control.checkpoint_lsn
            ));
        }
        is_whole
            .then_some(())
            .ok_or("a part of its files is missing")?;
        Ok(PageCopy {
            name: &copy.name,
            cluster: other,
            control,
            recovery,
            redo,
            is_stopped: is_stopped && !other.is_running(),
        })
    }

    /// The page of a block, if it is sound.
    pub(super) fn sound_page(&self, at: BlockAddress) -> Result<(Vec<u8>, Lsn), String> {
        let bytes = read_block(self.cluster, at)?;
        let page = Page::parse(&bytes).ok_or("it is no page")?;
        let lsn = page.pd_lsn();
        if page.is_zeroed() {
            // A page that was never written looks the same as one that a disk lost, and has no
            // checksum; WAL makes the former anew before it changes it.
            return Err("the page is all zero there, which proves nothing".into());
        }
        if page.is_new() {
            return Err("pd_upper is 0, and other bytes are not".into());
        }
        let (stored, computed) = (page.pd_checksum(), page_checksum(&bytes, at.block));
        if self.has_checksums() && stored != computed {
            return Err(format!(
                "stored checksum {stored} does not match computed checksum {computed}"
            ));
        }
        if !page.header_is_sane_to_the_server() {
            return Err("the server refuses its header".into());
        }
        Ok((bytes, lsn))
    }

    /// Whole blocks of a main fork; nothing where the file is not there.
    pub(super) fn blocks_of(&self, file: FileNumber) -> Option<BlockNo> {
        let (source, build) = (self.cluster.source(), self.cluster.build);
        let mut blocks = None;
        for segment in 0.. {
            let path = relation_path(self.cluster.layout, file, Fork::Main, segment);
            let Presence::There(len) = Presence::of_file(source.as_ref(), &path) else {
                break;
            };
            let own = len.min(build.segment_bytes) / u64::from(build.block_size);
            let own = BlockNo::try_from(own).unwrap_or(BlockNo::MAX);
            blocks = Some(blocks.unwrap_or(0u32).saturating_add(own));
            if len < build.segment_bytes {
                break;
            }
        }
        blocks
    }

    /// No page was caught while it was written.
    pub(super) fn cannot_be_torn(&self) -> bool {
        self.is_stopped || self.has_checksums()
    }

    /// Its server was shut down in good order, perhaps in recovery.
    pub(super) fn was_shut_down(&self) -> bool {
        let state = self.control.state;
        matches!(
            state,
            ControlState::ShutDown | ControlState::ShutDownInRecovery
        )
    }

    /// A base backup, whose label says where it began.
    pub(super) fn is_backup(&self) -> bool {
        self.recovery.start.kind == StartKind::Backup
    }

    /// A server can begin a recovery with it that goes on with any WAL: a crashed one takes its own
    /// `pg_wal` for all there is, and a standby's files may be ahead of its checkpoint.
    pub(super) fn starts_a_recovery(&self) -> bool {
        let kind = self.recovery.start.kind;
        matches!(kind, StartKind::Backup | StartKind::Settled) && !self.cluster.is_running()
    }

    /// Its files may show what came after the checkpoint at `goal`, with which a server was shut
    /// down. A backup that a running server takes ends before that does.
    pub(super) fn may_be_later_than(&self, goal: Lsn, goal_end: Lsn) -> bool {
        let is_online = self.is_backup() && self.control.checkpoint_lsn >= goal;
        is_online || self.control.min_recovery_point > goal_end
    }

    pub(super) fn has_checksums(&self) -> bool {
        self.cluster.checksums() == Some(true)
    }

    /// The page as one to begin with.
    pub(super) fn base(&self, copy: usize, at: BlockAddress) -> Result<BasePage, String> {
        let (_, lsn) = self.sound_page(at)?;
        if lsn > self.redo {
            return Err(format!(
                "its LSN {lsn} is later than {}, up to which the copy has all changes",
                self.redo
            ));
        }
        let is_whole = self.cannot_be_torn();
        if self.cluster.is_running() && !self.has_checksums() {
            return Err("a server runs on it, and without data checksums it is unknown whether the page was read whole".into());
        }
        Ok(BasePage {
            copy,
            lsn,
            redo: self.redo,
            is_whole,
        })
    }

    /// The copy's own WAL has a record with this checksum at this place, so that its history is the
    /// same up to there.
    pub(super) fn has_record(&self, lsn: Lsn, crc: u32) -> bool {
        let pages = self.recovery.pages(self.cluster.source().as_ref());
        let mut reader = WalReader::new(pages, self.recovery.shape, lsn);
        reader
            .read_whole()
            .is_ok_and(|record| record.lsn == lsn && record.header.crc == crc)
    }
}

/// The bytes of a block as they lie there.
pub(super) fn read_block(cluster: &Cluster, at: BlockAddress) -> Result<Vec<u8>, String> {
    let page_bytes = u64::from(cluster.build.block_size);
    let whole = cluster.build.segment_blocks().max(1);
    let segment = u32::try_from(u64::from(at.block) / whole).map_err(|error| error.to_string())?;
    let offset = u64::from(at.block) % whole * page_bytes;
    let path = relation_path(cluster.layout, at.file, at.fork, segment);
    let mut bytes = vec![0; cluster.page_bytes()];
    read_exact_at(cluster.source().as_ref(), &path, offset, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The copy with the latest redo point whose page is sound, and why others are none.
pub(super) fn choose(copies: &[PageCopy<'_>], at: BlockAddress) -> (Option<BasePage>, Vec<String>) {
    let mut refused = Vec::new();
    for (number, copy) in copies.iter().enumerate() {
        match copy.base(number, at) {
            Ok(base) => return (Some(base), refused),
            Err(why) => refused.push(format!("{}: {why}", copy.name)),
        }
    }
    (None, refused)
}
