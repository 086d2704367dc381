//! Values of `global/pg_control` that no PostgreSQL writes.
//!
//! Truth: `src/include/catalog/pg_control.h`, `ReadControlFile` and `StartupXLOG` in
//! `src/backend/access/transam/xlog.c`.

use std::ops::Range;

use pgclinic_cluster::{Cluster, ControlState, file_place};
use pgclinic_format::control_file::{CHECKSUM_VERSION_AT, State};
use pgclinic_format::{ControlFile, Layout, Lsn};
use pgclinic_model::document::{FileKind, Level};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::control_file::unreadable::CONTROL_FILE;
use crate::findings::{Draft, Findings};

/// The rule.
pub static CONTROL_FILE_INCONSISTENT: Rule =
    Rule::from_page(include_str!("../../rules/control-file-inconsistent.md"));

/// See [`CONTROL_FILE_INCONSISTENT`].
pub struct ControlFileInconsistent;

const NO_CHECKPOINT: &str = "PANIC:  could not locate a valid checkpoint record";
const RESTORE_OWN: &str = "copy the cluster first; then put back the control file of this cluster, from where it was moved or from a backup or standby with its system identifier, and replay WAL from there; without it pgclinic salvage reads the rows, with the checkpoint that it finds in pg_wal";
const FROM_WAL: &str = "start no server with it, which would begin at the wrong place; pgclinic heal writes the control file from the last checkpoint in pg_wal, from which recovery runs";
const INCOMPATIBLE: Option<&str> = Some("FATAL:  database files are incompatible with server");

/// A value that makes no sense: what was seen, its bytes in the file, what the server says.
struct Nonsense {
    message: String,
    bytes: Range<usize>,
    server_says: Option<String>,
    severity: Severity,
}

impl ClusterCheck for ControlFileInconsistent {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CONTROL_FILE_INCONSISTENT] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let (control, trusted) = match &cluster.control {
            ControlState::Right(control) => (control, true),
            ControlState::WrongCrc(control) => (control, false),
            ControlState::Foreign { control, of_wal } => {
                return out.add(of_another_cluster(control, *of_wal));
            }
            ControlState::Older {
                control,
                checkpoint,
            } => return out.add(older_than_the_cluster(control, *checkpoint)),
            ControlState::Fault(_) | ControlState::Unreadable(_) => return,
        };
        let mut found = build_options(control);
        found.extend(numbers(control));
        found.extend(versions(control));
        for nonsense in found {
            let draft = Draft::new(&CONTROL_FILE_INCONSISTENT, nonsense.message)
                .severity(nonsense.severity);
            let draft = draft.bytes(nonsense.bytes.start, nonsense.bytes.end);
            let draft = draft.place(file_place(CONTROL_FILE, FileKind::ControlFile));
            // Behind a wrong checksum the server does not look at the values.
            out.add(match nonsense.server_says.filter(|_| trusted) {
                Some(words) => draft.server_says(words),
                None => draft,
            });
        }
    }
}

/// Nothing of the file is about this cluster.
fn of_another_cluster(control: &ControlFile, of_wal: u64) -> Draft {
    let own = control.system_identifier;
    let message = format!(
        "the file is that of another cluster: its system identifier is {own}, that of pg_wal {of_wal}, and pages carry LSNs of the records there"
    );
    let draft = Draft::new(&CONTROL_FILE_INCONSISTENT, message).bytes(0, 8);
    let draft = draft.fact("system_identifier", own.to_string());
    let draft = draft.fact("system_identifier_of_wal", of_wal.to_string());
    let draft = draft.remedy("restore-file-from-copy", Safety::ShowOnly, RESTORE_OWN);
    let place = file_place(CONTROL_FILE, FileKind::ControlFile);
    draft.rooted().server_says(NO_CHECKPOINT).place(place)
}

/// A server that begins with it finds no checkpoint, or goes on without recovery.
fn older_than_the_cluster(control: &ControlFile, checkpoint: Lsn) -> Draft {
    let own = control.checkpoint_lsn;
    let claim = match control.state {
        State::ShutDown => "says that the server was shut down with the checkpoint",
        _ => "names the checkpoint",
    };
    let message = format!(
        "the file is older than the cluster: it {claim} at {own}, pg_wal has a later history with its last checkpoint at {checkpoint}, and pages carry LSNs of the records there"
    );
    let draft = Draft::new(&CONTROL_FILE_INCONSISTENT, message).bytes(32, 40);
    let draft = draft.fact("checkpoint", own.to_string());
    let draft = draft.fact("checkpoint_of_wal", checkpoint.to_string());
    let draft = draft.remedy("control-file-from-wal", Safety::Exact, FROM_WAL);
    let place = file_place(CONTROL_FILE, FileKind::ControlFile);
    draft.rooted().place(place)
}

/// The complaint, if `wrong` holds.
fn damage(
    wrong: bool,
    message: String,
    bytes: Range<usize>,
    server_says: Option<&str>,
) -> Option<Nonsense> {
    wrong.then_some(Nonsense {
        message,
        bytes,
        server_says: server_says.map(str::to_owned),
        severity: Severity::Damage,
    })
}

fn is_power_of_two_within(value: u32, range: std::ops::RangeInclusive<u32>) -> bool {
    value.is_power_of_two() && range.contains(&value)
}

fn build_options(control: &ControlFile) -> Vec<Nonsense> {
    let block = control.blcksz;
    let block_is_wrong = !is_power_of_two_within(block, 1024..=32768);
    let segment = control.relseg_size;
    let wal_block = control.xlog_blcksz;
    let wal_segment = control.xlog_seg_size;
    let wal_segment_is_wrong = !is_power_of_two_within(wal_segment, 1 << 20..=1 << 30);
    let keys = control.index_max_keys;
    let chunk = control.toast_max_chunk_size;
    let large_object = control.loblksize;
    let found = [
        damage(
            block_is_wrong,
            format!("blcksz {block} is no block size"),
            216..220,
            INCOMPATIBLE,
        ),
        damage(
            segment == 0 || i32::try_from(segment).is_err(),
            format!("relseg_size {segment} is not a number of blocks for a segment"),
            220..224,
            INCOMPATIBLE,
        ),
        damage(
            !is_power_of_two_within(wal_block, 1024..=65536),
            format!("xlog_blcksz {wal_block} is not a size of a WAL page"),
            224..228,
            INCOMPATIBLE,
        ),
        damage(
            wal_segment_is_wrong,
            format!("xlog_seg_size {wal_segment} is no power of two between 1 MB and 1 GB"),
            228..232,
            Some(&wal_segment_words(control)),
        ),
        // Another length is a legal build, which is refused before any check runs.
        damage(
            control.name_data_len != 64,
            format!("nameDataLen {} is not 64", control.name_data_len),
            232..236,
            INCOMPATIBLE,
        ),
        damage(
            !(1..=1600).contains(&keys),
            format!("indexMaxKeys {keys} is not a number of columns"),
            236..240,
            INCOMPATIBLE,
        ),
        damage(
            !block_is_wrong && !is_toast_chunk(chunk, block),
            format!("toast_max_chunk_size {chunk} does not belong to a block size of {block}"),
            240..244,
            INCOMPATIBLE,
        ),
        damage(
            !block_is_wrong && large_object != block / 4,
            format!("loblksize {large_object} is not a quarter of the block size {block}"),
            244..248,
            INCOMPATIBLE,
        ),
        damage(
            control.max_align != 8,
            format!("maxAlign {} is not 8", control.max_align),
            204..208,
            INCOMPATIBLE,
        ),
    ];
    found.into_iter().flatten().collect()
}

/// 17 reworded it, and both count a single byte.
fn wal_segment_words(control: &ControlFile) -> String {
    let bytes = control.xlog_seg_size.cast_signed();
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    if control.pg_control_version >= 1700 {
        return format!("FATAL:  invalid WAL segment size in control file ({bytes} {unit})");
    }
    let rule = "WAL segment size must be a power of two between 1 MB and 1 GB";
    format!("FATAL:  {rule}, but the control file specifies {bytes} {unit}")
}

/// The chunk size for some number of chunks a page; every build that is known has four.
fn is_toast_chunk(chunk: u32, block: u32) -> bool {
    (1..=8u32).any(|per_page| {
        let tuple = block.saturating_sub((24 + 4 * per_page).next_multiple_of(8)) / per_page;
        let header_and_three_columns = 24 + 12;
        chunk != 0 && chunk == (tuple / 8 * 8).saturating_sub(header_and_three_columns)
    })
}

fn numbers(control: &ControlFile) -> Vec<Nonsense> {
    let checkpoint = &control.checkpoint;
    let (lsn, redo) = (control.checkpoint_lsn, checkpoint.redo);
    let (next, oldest) = (checkpoint.next_xid(), checkpoint.oldest_xid);
    let (next_multi, oldest_multi) = (checkpoint.next_multi, checkpoint.oldest_multi);
    // The short header of a WAL page: no record can begin before its end.
    const WAL_PAGE_HEADER: u64 = 24;
    let in_header = lsn
        .0
        .checked_rem(u64::from(control.xlog_blcksz))
        .is_none_or(|within| within < WAL_PAGE_HEADER);
    let state = match control.state {
        State::Unknown(number) => Some(number),
        _ => None,
    };
    let found = [
        damage(
            control.system_identifier == 0,
            "the system identifier is 0".into(),
            0..8,
            None,
        ),
        damage(
            state.is_some(),
            format!("state {} is unknown", state.unwrap_or_default()),
            16..20,
            Some("FATAL:  control file contains invalid database cluster state"),
        ),
        damage(
            in_header,
            format!("the checkpoint at {lsn} is no place for a record"),
            32..40,
            Some("FATAL:  control file contains invalid checkpoint location"),
        ),
        damage(
            redo > lsn,
            format!("redo {redo} is past its checkpoint at {lsn}"),
            40..48,
            None,
        ),
        damage(redo.0 == 0, "redo is 0/0".into(), 40..48, None),
        damage(
            checkpoint.timeline == 0,
            "the timeline is 0".into(),
            48..52,
            None,
        ),
        damage(
            checkpoint.prev_timeline == 0 || checkpoint.prev_timeline > checkpoint.timeline,
            format!(
                "the timeline before, {}, is not older than timeline {}",
                checkpoint.prev_timeline, checkpoint.timeline
            ),
            52..56,
            None,
        ),
        damage(
            !next.is_normal(),
            format!("the next transaction {next} is a reserved number"),
            64..72,
            None,
        ),
        damage(
            !oldest.is_normal() || (next.is_normal() && next.precedes(oldest)),
            format!("the oldest transaction {oldest} is not older than the next one {next}"),
            84..88,
            None,
        ),
        damage(
            // Just after a wrap-around the next multixact may be noted as 0.
            next_multi.0 != 0 && next_multi.precedes(oldest_multi),
            format!(
                "the oldest multixact {oldest_multi} is not older than the next one {next_multi}"
            ),
            92..96,
            None,
        ),
    ];
    let found = found.into_iter().chain(after_shutdown(control));
    found.chain(commit_times(control)).flatten().collect()
}

/// The record that a shutdown writes is its own redo point, and recovery is over by then.
fn after_shutdown(control: &ControlFile) -> [Option<Nonsense>; 2] {
    let shut_down = control.state == State::ShutDown;
    let (lsn, redo) = (control.checkpoint_lsn, control.checkpoint.redo);
    let end = control.min_recovery_point;
    [
        damage(
            shut_down && redo < lsn,
            format!("the server was shut down, but redo {redo} is before its checkpoint at {lsn}"),
            40..48,
            None,
        ),
        damage(
            shut_down && end.0 != 0,
            format!("the server was shut down, but recovery must reach {end}"),
            136..144,
            None,
        ),
    ]
}

/// Both ends of the range of commit times are set and cleared together.
fn commit_times(control: &ControlFile) -> [Option<Nonsense>; 1] {
    let checkpoint = &control.checkpoint;
    let [oldest, newest] = [
        checkpoint.oldest_commit_ts_xid,
        checkpoint.newest_commit_ts_xid,
    ]
    .map(|xid| xid.0);
    let impossible = oldest == 1 || newest == 1 || (oldest == 0) != (newest == 0);
    [damage(
        impossible,
        format!("commit times from transaction {oldest} to {newest} are no range"),
        112..120,
        None,
    )]
}

fn versions(control: &ControlFile) -> Vec<Nonsense> {
    let (catalog, version) = (control.catalog_version_no, control.pg_control_version);
    let known = Layout::of_catalog_version(catalog);
    let fits = known.is_some_and(|layout| layout.control_version == version);
    let bytes = 12..16;
    let message = format!(
        "catalog version {catalog} belongs to no release with pg_control version {version}"
    );
    let catalog = match known {
        _ if fits => None,
        // Betas have catalog versions of their own, made of the day and a digit.
        None if (201_909_000..=203_012_319).contains(&catalog) => Some(Nonsense {
            message,
            bytes,
            server_says: None,
            severity: Severity::Note,
        }),
        _ => damage(true, message, bytes, INCOMPATIBLE),
    };
    let checksums = control.data_checksum_version;
    let checksums = (checksums > 1).then(|| Nonsense {
        message: format!("data checksum version {checksums} is not known here"),
        bytes: CHECKSUM_VERSION_AT..CHECKSUM_VERSION_AT + 4,
        server_says: None,
        severity: Severity::Note,
    });
    catalog.into_iter().chain(checksums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_trial::{ClusterTrial, sound_control_file};
    use pgclinic_format::build::put_u32;
    use pgclinic_format::control_file::seal;

    fn said(at: usize, value: u32) -> Vec<String> {
        let mut bytes = sound_control_file();
        put_u32(&mut bytes, at, value);
        assert!(seal(&mut bytes), "a control file of 18");
        let drafts = ClusterTrial::with_control_file(Some(bytes)).drafts(&ControlFileInconsistent);
        drafts.into_iter().map(|draft| draft.message).collect()
    }

    #[test]
    fn each_nonsense_is_named() {
        assert!(said(16, 1).is_empty(), "the state of a sound file");
        assert_eq!(said(16, 9), ["state 9 is unknown"]);
        assert_eq!(said(216, 5000), ["blcksz 5000 is no block size"]);
        assert_eq!(
            said(220, 0),
            ["relseg_size 0 is not a number of blocks for a segment"]
        );
        assert_eq!(
            said(228, 12345),
            ["xlog_seg_size 12345 is no power of two between 1 MB and 1 GB"]
        );
        assert_eq!(
            said(240, 17),
            ["toast_max_chunk_size 17 does not belong to a block size of 8192"]
        );
        assert_eq!(
            said(48, 0),
            [
                "the timeline is 0",
                "the timeline before, 1, is not older than timeline 0"
            ]
        );
        assert_eq!(
            said(52, 2),
            ["the timeline before, 2, is not older than timeline 1"]
        );
        assert_eq!(
            said(136, 0x100),
            ["the server was shut down, but recovery must reach 0/100"]
        );
        assert_eq!(
            said(40, 0x0080_0000),
            ["the server was shut down, but redo 0/800000 is before its checkpoint at 0/1000028"]
        );
        assert_eq!(
            said(112, 700),
            ["commit times from transaction 700 to 0 are no range"]
        );
        assert_eq!(said(64, 2), ["the next transaction 2 is a reserved number"]);
        assert_eq!(
            said(84, 90_000),
            ["the oldest transaction 90000 is not older than the next one 1000"]
        );
        assert_eq!(
            said(12, 7),
            ["catalog version 7 belongs to no release with pg_control version 1800"]
        );
    }

    #[test]
    fn chunk_sizes_of_all_block_sizes_are_known() {
        // Taken from the formula in heaptoast.h with four tuples on a page.
        for (block, chunk) in [(4096, 972), (8192, 1996), (16384, 4044), (32768, 8140)] {
            assert!(is_toast_chunk(chunk, block), "{chunk} for {block}");
        }
        assert!(!is_toast_chunk(0, 8192));
    }
}
