//! What became of a block: its page with the evidence, or why it is not proven.

use std::fmt;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{WalEnd, manager_name};

/// Where an exact page begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageOrigin {
    /// A full-page image.
    Image {
        /// The record that brings it.
        lsn: Lsn,
        /// The file of WAL.
        file: String,
    },
    /// A record that makes the page anew.
    NewPage {
        /// The record.
        lsn: Lsn,
        /// The file of WAL.
        file: String,
    },
    /// The page of a backup or another copy.
    Copy {
        /// How the user named the copy.
        name: String,
        /// The page's own LSN there; 0 on a page that was never written.
        page_lsn: Lsn,
        /// Up to here the copy has all changes.
        redo: Lsn,
        /// Its data checksum was compared; without data checksums only the header was.
        has_checksum: bool,
    },
    /// The page of a status log in a backup or another copy, which has neither LSN nor checksum.
    StatusCopy {
        /// How the user named the copy.
        name: String,
        /// Up to here the copy has all changes.
        redo: Lsn,
        /// The manifest of the backup has the checksum of the file.
        is_in_manifest: bool,
        /// Another copy, rolled forward, is the same.
        agree: bool,
    },
    /// All of its numbers are older than the oldest that anybody asks for: zeros hold its place.
    NeverAsked,
    /// The page of a copy carries the LSN of the last record of the block.
    SameState {
        /// How the user named the copy.
        name: String,
        /// The record, which both have.
        lsn: Lsn,
    },
}

/// A page that is proven, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactPage {
    /// Its LSN.
    pub lsn: Lsn,
    /// What it begins with.
    pub origin: PageOrigin,
    /// Later records that were applied.
    pub applied: u64,
    /// The last of them.
    pub last: Option<Lsn>,
    /// WAL was read without a gap from here …
    pub wal_from: Lsn,
    /// … to here, where it must reach.
    pub wal_to: Lsn,
    /// What stands there.
    pub wal_end: &'static str,
    /// It is a sequence as its last record has it, which may be up to 32 values ahead of the page.
    pub is_sequence: bool,
}

impl ExactPage {
    /// The evidence, a sentence each.
    pub fn evidence(&self) -> Vec<String> {
        let mut sentences = vec![self.origin.to_string()];
        if let Some(last) = self.last {
            let records = match self.applied {
                1 => "1 record".to_owned(),
                many => format!("{many} records"),
            };
            sentences.push(format!(
                "{records} of the block applied, the last one at {last}"
            ));
        }
        if self.is_sequence {
            sentences.push("a sequence as its last record in WAL has it".into());
        }
        sentences.push(format!(
            "WAL read without a gap from {} to {}, {}",
            self.wal_from, self.wal_to, self.wal_end
        ));
        sentences
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageOrigin::Image { lsn, file } => write!(f, "full-page image at {lsn} in {file}"),
            PageOrigin::NewPage { lsn, file } => {
                write!(f, "page made by the record at {lsn} in {file}")
            }
            PageOrigin::Copy {
                name,
                page_lsn,
                redo,
                has_checksum,
            } => {
                let checked = if *has_checksum {
                    "its checksum is right"
                } else {
                    "it has no checksum, its header is sound"
                };
                write!(
                    f,
                    "page of {name} with LSN {page_lsn}, where all changes before {redo} are written; {checked}"
                )
            }
            PageOrigin::StatusCopy {
                name,
                redo,
                is_in_manifest,
                agree,
            } => {
                let checked = match (is_in_manifest, agree) {
                    (true, _) => "its file is the one that the backup's manifest has",
                    (false, true) => "another copy leads to the same page",
                    (false, false) => "it has no checksum",
                };
                write!(
                    f,
                    "page of {name}, where all changes before {redo} are written; {checked}"
                )
            }
            PageOrigin::NeverAsked => f.write_str(
                "zeros hold the place of numbers before the oldest that anybody asks for",
            ),
            PageOrigin::SameState { name, lsn } => write!(
                f,
                "page of {name} as the record at {lsn} left it, the last one of the block, which both have in their WAL"
            ),
        }
    }
}

/// Why a block is not proven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotProven {
    /// A server runs on the files.
    ServerRuns,
    /// A part of the cluster's files is not there.
    FilesMissing,
    /// The control file cannot be trusted.
    ControlFile,
    /// What is wanted is written by the recovery that is due.
    NotShutDown,
    /// The cluster has crashed, and its own WAL is not all there.
    OwnWal,
    /// The recovery of a backup has not reached its end.
    NotConsistent,
    /// It is a block of a free space or visibility map.
    Map,
    /// The relation is unlogged.
    Unlogged,
    /// Whether the relation is unlogged cannot be known.
    InitFork(String),
    /// WAL does not reach the end of the cluster's changes.
    WalEnds {
        /// Where it ends.
        end: WalEnd,
        /// The file there.
        file: Option<String>,
        /// Where it must reach.
        needed: Lsn,
        /// What stands there.
        words: &'static str,
    },
    /// No WAL file is there for the place that it must reach.
    NoWal {
        /// Where it must reach.
        needed: Lsn,
    },
    /// The WAL is another history: the checkpoint there is not that of the control file.
    OtherHistory {
        /// The place of the checkpoint.
        at: Lsn,
    },
    /// WAL neither has an image of the block nor is there a copy to begin with.
    NoPage {
        /// Where the WAL begins that was read.
        wal_from: Lsn,
    },
    /// WAL does not make the page of a status log, and no copy has it.
    NoStatusPage {
        /// Where the WAL begins that was read.
        wal_from: Lsn,
    },
    /// `track_commit_timestamp` was turned off, which removes what was there.
    NoCommitTimes {
        /// The record.
        lsn: Lsn,
    },
    /// Two copies, rolled forward, do not lead to the same page.
    CopiesDiffer,
    /// The page has zeros where transactions or multixacts were given out.
    ZerosInStatus,
    /// Copies of a segment hold different records, and nothing tells which are the cluster's.
    WalCopiesDiffer {
        /// Where the segment begins.
        from: Lsn,
        /// The file, and where it lies.
        one: String,
        /// The other one.
        other: String,
    },
    /// WAL has a gap, and no image of the block after it.
    Gap {
        /// Where it begins.
        end: WalEnd,
        /// The file there.
        file: Option<String>,
    },
    /// The first record of the block brings no image, and no sound copy reaches up to it.
    NoImage {
        /// The record.
        lsn: Lsn,
    },
    /// Records of this kind are not known.
    UnknownRecord {
        /// The record.
        lsn: Lsn,
        /// `xl_rmid`.
        manager: u8,
        /// Its half of `xl_info`.
        operation: u8,
    },
    /// A record that may change the block makes no sense.
    RecordMakesNoSense {
        /// The record.
        lsn: Lsn,
    },
    /// A record does not fit the page.
    DoesNotFit {
        /// The record.
        lsn: Lsn,
        /// Why.
        why: &'static str,
    },
    /// The image cannot be decompressed.
    Image {
        /// The record.
        lsn: Lsn,
    },
    /// The block was truncated and not made again.
    Truncated {
        /// The record.
        lsn: Lsn,
    },
    /// The file was removed or made anew, and WAL has no image since.
    FileRemade {
        /// The record.
        lsn: Lsn,
    },
    /// The database was copied as files, or removed.
    DatabaseRemade {
        /// The record.
        lsn: Lsn,
    },
    /// A sequence gives values without a record; only its next record tells where it may stand.
    Sequence,
    /// The checkpoint of the copy is not the one that WAL has there.
    CopyOfOtherHistory {
        /// How the user named it.
        name: String,
        /// The place of the checkpoint.
        at: Lsn,
    },
    /// There is neither memory nor disk for the page.
    NoRoom(String),
    /// The run was interrupted.
    Interrupted,
}

impl fmt::Display for NotProven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotProven::ServerRuns => f.write_str("a server runs on the files"),
            NotProven::FilesMissing => f.write_str("a part of the cluster's files is missing"),
            NotProven::ControlFile => f.write_str(
                "the control file cannot be trusted: it has whose WAL is needed, and up to where",
            ),
            NotProven::OwnWal => f.write_str(
                "the cluster needs recovery, and where its WAL ends is not known: pg_wal is not complete",
            ),
            NotProven::NotShutDown => f.write_str(
                "the cluster was not shut down in good order: its recovery writes the status logs",
            ),
            NotProven::NoStatusPage { wal_from } => write!(
                f,
                "WAL from {wal_from} on does not make the page, and no copy has one to begin with"
            ),
            NotProven::NoCommitTimes { lsn } => write!(
                f,
                "the record at {lsn} says that track_commit_timestamp was off, and there is no page from after it"
            ),
            NotProven::CopiesDiffer => {
                f.write_str("two copies with the WAL since do not lead to the same page")
            }
            NotProven::ZerosInStatus => f.write_str(
                "zeros stand where numbers were given out: the page may have been lost there, too",
            ),
            NotProven::NotConsistent => {
                f.write_str("the recovery of a backup has not reached the end of the backup")
            }
            NotProven::Map => f.write_str(
                "a map of free space or visibility changes without records of its own: it is rebuilt",
            ),
            NotProven::Unlogged => f.write_str("the relation is unlogged: WAL has none of its changes"),
            NotProven::InitFork(why) => {
                write!(f, "whether the relation is unlogged is not known: {why}")
            }
            NotProven::WalEnds {
                end,
                file,
                needed,
                words,
            } => {
                f.write_str("WAL ends before ")?;
                write!(f, "{needed}, {words}: {}", EndWords { end, file })
            }
            NotProven::NoWal { needed } => write!(f, "no WAL file holds {needed}, up to where WAL is needed"),
            NotProven::OtherHistory { at } => write!(
                f,
                "the WAL is of another history: the record at {at} is not the checkpoint that the control file has"
            ),
            NotProven::NoPage { wal_from } => write!(
                f,
                "WAL from {wal_from} on has no image of the block, and no copy has a page to begin with"
            ),
            NotProven::WalCopiesDiffer { from, one, other } => write!(
                f,
                "{one} and {other} hold different records, and nothing shows which are this cluster's: WAL from {from} on is not known there, and has no image of the block after it"
            ),
            NotProven::Gap { end, file } => write!(
                f,
                "WAL has a gap, and no image of the block after it: {}",
                EndWords { end, file }
            ),
            NotProven::NoImage { lsn } => write!(
                f,
                "the record at {lsn} changes the block and brings no image, and there is no page from before it"
            ),
            NotProven::UnknownRecord {
                lsn,
                manager,
                operation,
            } => {
                let name = manager_name(*manager).unwrap_or("unknown");
                write!(
                    f,
                    "the record at {lsn} is of a kind that is not applied here: {name} 0x{operation:02x}"
                )
            }
            NotProven::RecordMakesNoSense { lsn } => {
                write!(f, "the record at {lsn} may change the block and makes no sense")
            }
            NotProven::DoesNotFit { lsn, why } => {
                write!(f, "the record at {lsn} cannot be applied: {why}")
            }
            NotProven::Image { lsn } => {
                write!(f, "the image in the record at {lsn} cannot be decompressed")
            }
            NotProven::Truncated { lsn } => {
                write!(f, "the record at {lsn} truncated the block, and no later one made it again")
            }
            NotProven::FileRemade { lsn } => write!(
                f,
                "the record at {lsn} made or removed the file, and no later one has an image of the block"
            ),
            NotProven::DatabaseRemade { lsn } => write!(
                f,
                "the record at {lsn} copied the files of the database or removed them, and no later one has an image of the block"
            ),
            NotProven::Sequence => f.write_str(
                "a sequence gives values without a record, and WAL has no record of it since that page",
            ),
            NotProven::CopyOfOtherHistory { name, at } => write!(
                f,
                "{name} is of another history: the record at {at} is not the checkpoint that its control file has"
            ),
            NotProven::NoRoom(why) => write!(f, "there is neither memory nor disk for the page: {why}"),
            NotProven::Interrupted => f.write_str("it was interrupted"),
        }
    }
}

/// Where WAL ends, in which file.
struct EndWords<'a> {
    end: &'a WalEnd,
    file: &'a Option<String>,
}

impl fmt::Display for EndWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use pgclinic_format::wal::EndReason;
        match (self.end.why, self.file) {
            (EndReason::NoPage, None) => {
                write!(
                    f,
                    "no record at {}: no WAL file holds {}",
                    self.end.record, self.end.at
                )
            }
            (EndReason::NoPage, Some(file)) => write!(
                f,
                "no record at {}: {file} cannot be read at {}",
                self.end.record, self.end.at
            ),
            (_, None) => self.end.fmt(f),
            (_, Some(file)) => write!(f, "{} ({file})", self.end),
        }
    }
}
