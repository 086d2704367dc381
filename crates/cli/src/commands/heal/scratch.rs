//! `--scratch`: pages whose records our own redo does not know are rolled forward by a real server,
//! in a cluster that has their files alone and is removed again.
//!
//! ```text
//! backup: pg_control, label, blocks ─┐
//! WAL of these files, the rest noop ─┴─► server ─► shut down at the last checkpoint ─► pages
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use pgclinic_check::{check_page, fork_cx};
use pgclinic_cluster::wal::{
    BlockAddress, BlockRecords, Evidence, LabelState, NoWalOfFiles, NotProven, SegmentPlace,
    SegmentSink, WalOfFiles, place_of_block, wal_of_files,
};
use pgclinic_cluster::{Cluster, DatabaseContext};
use pgclinic_format::build::seal_page;
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::control_file::{FILE_BYTES, State};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{ControlFile, Page};
use pgclinic_model::{Level, Severity, plural};
use pgclinic_servers::{RecoveryTarget, ScratchCluster, Wanted as WantedServer, find};
use pgclinic_source::{Presence, read_all, read_exact_at};
use pgclinic_surgery::cures::{ProvenPage, RESTORE_PAGE};

use super::evidence::{Found, IS_AS_IT_WAS, Search, Unproven, address_of};
use super::wanted::{Reason, Wanted, request};
use crate::exit::Failure;

/// WAL of any length is replayed in this time.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);
/// Room for what the server writes besides.
const SPARE_BYTES: u64 = 64 << 20;
/// Bytes of a control file or a label that are read.
const SMALL_FILE_BYTES: u64 = 64 << 10;

/// Where the page is wanted all the same.
pub(super) const ROLLS_FORWARD: &str =
    "with --scratch a real server rolls the page of a backup forward";

/// A server may know what our own redo does not.
pub(super) fn may_be_rolled_forward(why: &NotProven) -> bool {
    matches!(
        why,
        NotProven::UnknownRecord { .. } | NotProven::NoImage { .. }
    )
}

/// What a server made of each page, or why it is not proven.
type Rolled = Vec<Result<ProvenPage, String>>;

/// Pages that do not come back so.
#[derive(Default)]
pub(super) struct NotRolled<'a> {
    /// The server proves nothing of them.
    pub(super) unproven: Vec<Unproven<'a>>,
    /// They are what the server made of the backup.
    pub(super) sound: Vec<&'a Wanted<'a>>,
}

impl Search<'_, '_> {
    /// Lets a server roll these pages forward; gives back those that do not come back so.
    pub(super) fn roll_forward<'a>(
        &self,
        pages: Vec<Unproven<'a>>,
        evidence: &Evidence<'_>,
        found: &mut Found,
    ) -> Result<NotRolled<'a>, Failure> {
        let mut left = NotRolled::default();
        if pages.is_empty() {
            return Ok(left);
        }
        let wanted: Vec<&Wanted<'_>> = pages.iter().map(|(page, _)| *page).collect();
        // A run that was killed could not remove its own.
        let _stays = pgclinic_servers::sweep();
        let rolled = match self.rolled(&wanted, evidence) {
            Err(own) if own.is_of_one_file => self.rolled_apart(&wanted, evidence, &own.why),
            rolled => of_all(rolled, wanted.len()),
        };
        if self.world.is_interrupted() {
            return Err(Failure::new("interrupted; nothing was written"));
        }
        for ((page, mut reasons), rolled) in pages.into_iter().zip(rolled) {
            match rolled {
                Ok(proven) if !self.holds(page, &proven.bytes) => {
                    let own = (page.files.path(0), page.block);
                    found.proven.pages.insert(own, proven);
                    found.requests.push(request(page, RESTORE_PAGE));
                }
                Ok(_) if page.reason == Reason::Index => left.sound.push(page),
                Ok(_) if page.reason == Reason::Accused => {}
                Ok(_) => {
                    reasons.push(IS_AS_IT_WAS.to_owned());
                    left.unproven.push((page, reasons));
                }
                Err(why) => {
                    reasons.push(format!("--scratch: {why}"));
                    left.unproven.push((page, reasons));
                }
            }
        }
        Ok(left)
    }

    /// One relation may keep the server from the end: each goes alone then.
    fn rolled_apart(&self, wanted: &[&Wanted<'_>], evidence: &Evidence<'_>, why: &str) -> Rolled {
        let mut by_file: BTreeMap<FileNumber, Vec<(usize, &Wanted<'_>)>> = BTreeMap::new();
        for (at, page) in wanted.iter().enumerate() {
            by_file
                .entry(page.files.number())
                .or_default()
                .push((at, page));
        }
        let mut rolled: Rolled = vec![Err(why.to_owned()); wanted.len()];
        if by_file.len() < 2 {
            return rolled;
        }
        for own in by_file.into_values() {
            if self.world.is_interrupted() {
                break;
            }
            let (places, pages): (Vec<usize>, Vec<&Wanted<'_>>) = own.into_iter().unzip();
            let alone = of_all(self.rolled(&pages, evidence), pages.len());
            for (at, page) in places.into_iter().zip(alone) {
                if let Some(place) = rolled.get_mut(at) {
                    *place = page;
                }
            }
        }
        rolled
    }

    fn rolled(
        &self,
        wanted: &[&Wanted<'_>],
        evidence: &Evidence<'_>,
    ) -> Result<Rolled, NoWalOfFiles> {
        let major = self.cluster.layout.major;
        let server = WantedServer {
            major: Some(major),
            ..WantedServer::default()
        };
        let server = find(&server, &mut |_| {}).map_err(words)?;
        let base = self.arguments.scratch_in.as_deref();
        let mut scratch = ScratchCluster::new(server, base).map_err(words)?;
        let addresses: Vec<BlockAddress> = wanted
            .iter()
            .map(|page| address_of(page.files, page.block))
            .collect();
        let bar = self.bar();
        let mut sink = ScratchWal {
            scratch: &mut scratch,
            segment: String::new(),
        };
        let wal = wal_of_files(self.cluster, &addresses, evidence, &mut sink, &bar);
        bar.finish();
        let wal = wal?;
        fill(&mut scratch, &wal).map_err(of_one_file)?;
        let target = RecoveryTarget {
            lsn: wal.goal.to_string(),
            timeline: wal.timeline,
        };
        let recovered = scratch.recover(&target, PATIENCE, &|| self.world.is_interrupted());
        recovered.map_err(|error| of_one_file(words(error)))?;
        is_at_the_goal(&scratch, &wal)?;
        let rolled = ServerPages {
            cluster: self.cluster,
            scratch: &scratch,
            wal: &wal,
        };
        let pages = wanted.iter().zip(&addresses);
        let pages = pages.map(|(page, address)| rolled.proven(page, *address));
        Ok(pages.collect())
    }
}

/// What was made of each page, or the reason why none was.
fn of_all(rolled: Result<Rolled, NoWalOfFiles>, pages: usize) -> Rolled {
    rolled.unwrap_or_else(|own| vec![Err(own.why); pages])
}

/// One file of several may be what a backup lacks, or what a server stops at.
fn of_one_file(why: String) -> NoWalOfFiles {
    NoWalOfFiles {
        why,
        is_of_one_file: true,
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The `pg_wal` of the scratch cluster.
struct ScratchWal<'a> {
    scratch: &'a mut ScratchCluster,
    /// The one that was written to last.
    segment: String,
}

impl SegmentSink for ScratchWal<'_> {
    fn expect(&mut self, bytes: u64) -> io::Result<()> {
        let free = self.scratch.free_bytes().map_err(io::Error::other)?;
        if free >= bytes.saturating_add(SPARE_BYTES) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the WAL of the scratch cluster takes {bytes} bytes, and its disk has room for {free}: name another one with --scratch-in"
        )))
    }

    fn put(&mut self, segment: SegmentPlace<'_>, bytes: &[u8]) -> io::Result<()> {
        let path = format!("pg_wal/{}", segment.name);
        if self.segment != segment.name {
            let len = segment.segment_bytes;
            let longer = self.scratch.lengthen(&path, len);
            longer.map_err(io::Error::other)?;
            segment.name.clone_into(&mut self.segment);
        }
        let written = self.scratch.put(&path, segment.offset, bytes);
        written.map_err(io::Error::other)
    }
}

/// Control file, label and history, and the blocks that records speak of; the others stay holes.
fn fill(scratch: &mut ScratchCluster, wal: &WalOfFiles<'_>) -> Result<(), String> {
    let source = wal.copy.source().as_ref();
    let mut names = vec!["global/pg_control"];
    let label = wal.copy.recovery().map(|recovery| &recovery.label);
    if matches!(label, Some(LabelState::Read(_))) {
        names.push("backup_label");
    }
    for name in names {
        let bytes = read_all(source, name, SMALL_FILE_BYTES).map_err(words)?;
        scratch.put(name, 0, &bytes).map_err(words)?;
    }
    if let Some((name, text)) = &wal.history {
        let path = format!("pg_wal/{name}");
        scratch.put(&path, 0, text.as_bytes()).map_err(words)?;
    }
    for (file, touched) in &wal.touched {
        let blocks = make_files(scratch, wal.copy, *file)?;
        let mut page = vec![0; page_bytes(wal.copy)];
        for block in touched.blocks().take_while(|block| *block < blocks) {
            let (path, at) = place_of_block(wal.copy, *file, block);
            read_exact_at(source, &path, at, &mut page).map_err(words)?;
            scratch.put(&path, at, &page).map_err(words)?;
        }
    }
    Ok(())
}

/// Files as long as those of the copy; how many blocks they have.
fn make_files(
    scratch: &mut ScratchCluster,
    copy: &Cluster,
    file: FileNumber,
) -> Result<u32, String> {
    let build = copy.build;
    let (first, _) = place_of_block(copy, file, 0);
    // The server wants the directory of a tablespace, also where the copy has no file of it.
    let directory = Path::new(&first).parent().unwrap_or(Path::new(""));
    scratch.make_directory(directory).map_err(words)?;
    let mut blocks = 0u64;
    for segment in 0u64.. {
        let first = segment.saturating_mul(build.segment_blocks());
        let Ok(first) = u32::try_from(first) else {
            break;
        };
        let (path, _) = place_of_block(copy, file, first);
        let len = match Presence::of_file(copy.source().as_ref(), &path) {
            Presence::There(len) => len.min(build.segment_bytes),
            Presence::Missing => break,
            Presence::Unreadable(error) => return Err(error.to_string()),
        };
        let own = len / u64::from(build.block_size);
        let whole = own * u64::from(build.block_size);
        scratch.lengthen(&path, whole).map_err(words)?;
        blocks += own;
        if len < build.segment_bytes {
            break;
        }
    }
    Ok(u32::try_from(blocks).unwrap_or(u32::MAX))
}

fn page_bytes(cluster: &Cluster) -> usize {
    usize::try_from(cluster.build.block_size).unwrap_or(8192)
}

/// The server wrote all pages out, with the checkpoint at the goal.
fn is_at_the_goal(scratch: &ScratchCluster, wal: &WalOfFiles<'_>) -> Result<(), String> {
    let bytes = scratch.read("global/pg_control", 0, FILE_BYTES);
    let control = ControlFile::parse(&bytes.map_err(words)?).map_err(words)?;
    if (control.state, control.checkpoint_lsn) == (State::ShutDownInRecovery, wal.goal) {
        return Ok(());
    }
    Err(format!(
        "the server ended with the checkpoint at {}, and not with that at {} (its state is: {})",
        control.checkpoint_lsn, wal.goal, control.state
    ))
}

/// The pages that a server has written.
struct ServerPages<'a> {
    cluster: &'a Cluster,
    scratch: &'a ScratchCluster,
    wal: &'a WalOfFiles<'a>,
}

impl ServerPages<'_> {
    /// The page, if nothing speaks against it.
    fn proven(&self, wanted: &Wanted<'_>, address: BlockAddress) -> Result<ProvenPage, String> {
        let records = self.wal.blocks.get(&address).copied().unwrap_or_default();
        if records.records == 0 {
            let WalOfFiles { name, redo, .. } = self.wal;
            return Err(format!(
                "no record since {redo} is of the block, whose page in {name} cannot be used"
            ));
        }
        let mut bytes = self.read(address)?;
        self.check(&bytes, wanted, records)?;
        if self.cluster.checksums() == Some(true) {
            seal_page(&mut bytes, address.block);
        }
        Ok(ProvenPage {
            evidence: self.evidence(records),
            is_unverified: !records.is_rewritten && self.wal.copy.checksums() != Some(true),
            bytes,
        })
    }

    fn read(&self, address: BlockAddress) -> Result<Vec<u8>, String> {
        let (path, at) = place_of_block(self.cluster, address.file, address.block);
        let bytes = self.scratch.read(&path, at, page_bytes(self.cluster));
        let bytes = bytes.map_err(words)?;
        let (stored, computed) = (
            Page::parse(&bytes).map_or(0, Page::pd_checksum),
            page_checksum(&bytes, address.block),
        );
        if self.wal.copy.checksums() == Some(true) && stored != computed {
            return Err(format!(
                "stored checksum {stored} does not match computed checksum {computed} of the page that the server wrote"
            ));
        }
        Ok(bytes)
    }

    /// Its LSN is that of its last record, and the structure check finds nothing.
    fn check(
        &self,
        bytes: &[u8],
        wanted: &Wanted<'_>,
        records: BlockRecords,
    ) -> Result<(), String> {
        let database = wanted.files.home.database;
        let catalog = self.cluster.catalog(database);
        let homes = self.cluster.homes.iter();
        let homes = homes.filter(|home| home.database == database);
        let forks = homes.map(|home| self.cluster.files(home));
        let forks: Result<Vec<_>, _> = forks.collect();
        let forks = forks.map_err(|gap| format!("{}: {}", gap.what, gap.why))?;
        let forks = forks.concat();
        let view = DatabaseContext {
            cluster: self.cluster,
            catalog: &catalog,
            forks: &forks,
        };
        let fork = fork_cx(&view, wanted.files, Level::Structure);
        let lsn = Page::parse(bytes).map(Page::pd_lsn).unwrap_or_default();
        // Some records of hash indexes lock a bucket's first page, and do not change it.
        let may_be_earlier = fork.method == Some(AccessMethod::Hash) && lsn.0 > 0;
        if lsn != records.last_end && !(may_be_earlier && lsn < records.last_end) {
            return Err(format!(
                "the page that the server wrote has the LSN {lsn}, and its last record ends at {}",
                records.last_end
            ));
        }
        let control = self.cluster.control.trusted();
        let identifier = control.map_or(0, |control| control.system_identifier);
        let findings = check_page(bytes, wanted.block, &fork, identifier);
        let mut damage = findings
            .iter()
            .filter(|own| own.severity == Severity::Damage);
        damage.next().map_or(Ok(()), |first| {
            Err(format!(
                "the page that the server wrote is not sound: {}",
                first.message
            ))
        })
    }

    fn evidence(&self, records: BlockRecords) -> Vec<String> {
        let WalOfFiles {
            name,
            redo,
            goal,
            goal_words,
            ..
        } = self.wal;
        let version = &self.scratch.installation().version;
        vec![
            format!(
                "page of {name} rolled forward by PostgreSQL {version} in a scratch cluster, with the WAL of its relation alone"
            ),
            format!(
                "{} of the block applied, the last one ends at {}",
                plural(records.records, "record"),
                records.last_end
            ),
            format!("WAL read without a gap from {redo} to {goal}, {goal_words}"),
        ]
    }
}
