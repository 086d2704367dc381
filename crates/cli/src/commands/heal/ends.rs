//! Tables that end too early, or whose file is missing: how far they reached, and what proves the
//! blocks that are gone.

use std::collections::BTreeMap;

use pgclinic_cluster::wal::{Evidence, ForkEnd, NotProven};
use pgclinic_cluster::{Cluster, ForkFiles, RelationFileName};
use pgclinic_format::Fork;
use pgclinic_model::document::{CheckDocument, CureRequest, FileKind, NotHealed};
use pgclinic_model::{Finding, Severity, shell_word};
use pgclinic_surgery::cures::{ProvenPage, RESTORE_END};

use super::evidence::{Found, Search, address_of, words};
use crate::exit::Failure;

/// More blocks would make a journal that is too large to be read again.
const BLOCKS_MAX: u32 = 8192;
/// Rules by which a table ends too early.
const RULES: [&str; 4] = [
    "file-truncated",
    "pages-beyond-end",
    "missing-file",
    "partial-block",
];

/// A table that ends too early.
pub(super) struct TruncatedTable {
    pub(super) files: ForkFiles,
    relation: String,
    /// The first block that is missing.
    pub(super) first: u32,
    /// No segment is missing between others; the last one may end within a block.
    has_no_gap: bool,
    /// The last one that another file names.
    last_named: Option<u32>,
    /// A saved plan asks for it, which was made with what other files name.
    is_planned: bool,
}

/// Blocks that come back with one plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    /// The first one that does not.
    until: u32,
    /// Where the table ends.
    end: u32,
}

/// The finding is that a table ends too early.
pub(super) fn is_of_end(finding: &Finding) -> bool {
    let kinds = [FileKind::Table, FileKind::Toast, FileKind::MaterializedView];
    let place = &finding.place;
    finding.severity == Severity::Damage
        && RULES.contains(&finding.rule.as_str())
        && kinds.contains(&place.kind)
        && place.fork.is_none_or(|fork| fork == Fork::Main)
}

/// All of them that a document finds.
pub(super) fn truncated_tables(
    document: &CheckDocument,
    cluster: &Cluster,
    forks: &BTreeMap<String, ForkFiles>,
) -> Vec<TruncatedTable> {
    let findings = document.findings.iter().filter(|own| is_of_end(own));
    let mut found: BTreeMap<String, TruncatedTable> = BTreeMap::new();
    for finding in findings {
        let Some(path) = first_file(&finding.place.path) else {
            continue;
        };
        let Some(files) = files_of(&path, cluster, forks) else {
            continue;
        };
        let last = finding.facts.get("last_missing");
        let last = last.and_then(|last| u32::try_from(last.as_u64()?).ok());
        let table = table_of(files, finding.place.relation_name(), cluster, last);
        let own = found.entry(path).or_insert(table);
        own.last_named = own.last_named.max(last);
    }
    found.into_values().collect()
}

/// Those that a saved plan gives blocks back to.
pub(super) fn planned_tables(
    requests: &[CureRequest],
    cluster: &Cluster,
    forks: &BTreeMap<String, ForkFiles>,
) -> Vec<TruncatedTable> {
    let own = requests.iter().filter(|own| own.cure == RESTORE_END);
    let tables = own.filter_map(|request| {
        let files = files_of(&request.path, cluster, forks)?;
        let table = table_of(files, String::new(), cluster, None);
        Some(TruncatedTable {
            is_planned: true,
            ..table
        })
    });
    tables.collect()
}

fn table_of(
    files: ForkFiles,
    relation: String,
    cluster: &Cluster,
    last_named: Option<u32>,
) -> TruncatedTable {
    let build = cluster.build;
    let first = files.blocks(build.block_size, build.segment_bytes);
    let bytes: u64 = files.segments.iter().map(|segment| segment.len).sum();
    let block_size = u64::from(build.block_size);
    let rest = bytes.saturating_sub(first.saturating_mul(block_size));
    TruncatedTable {
        has_no_gap: rest < block_size,
        first: u32::try_from(first).unwrap_or(u32::MAX),
        files,
        relation,
        last_named,
        is_planned: false,
    }
}

/// The first file of the relation that has this one.
fn first_file(path: &str) -> Option<String> {
    let (directory, name) = path.rsplit_once('/')?;
    let name = RelationFileName::parse(name)?;
    Some(format!("{directory}/{}", name.filenode))
}

/// The finding is of this table.
pub(super) fn is_of_table(finding: &Finding, table: &TruncatedTable) -> bool {
    first_file(&finding.place.path).is_some_and(|path| path == table.files.path(0))
}

/// The files of a main fork; of a missing one its directory and number.
fn files_of(
    path: &str,
    cluster: &Cluster,
    forks: &BTreeMap<String, ForkFiles>,
) -> Option<ForkFiles> {
    if let Some(files) = forks.get(path) {
        return Some(files.clone());
    }
    let (directory, name) = path.rsplit_once('/')?;
    let name = RelationFileName::parse(name)?;
    let home = cluster.homes.iter().find(|home| home.folder == directory)?;
    Some(ForkFiles {
        home: home.clone(),
        filenode: name.filenode,
        fork: Fork::Main,
        temporary: None,
        segments: Vec::new(),
    })
}

/// Where the table ended, if WAL or a copy proves that.
fn proven_end(table: &TruncatedTable, end: Option<&ForkEnd>) -> Result<u32, String> {
    if !table.has_no_gap {
        return Err(
            "a segment between others is missing: what stands after it would be in the way".into(),
        );
    }
    let end = end.ok_or("no WAL could be read that says where the table ended")?;
    let blocks = match (end.is_from_wal, end.in_copies) {
        (true, _) => end.blocks,
        (false, Some(in_copies)) => end.blocks.max(in_copies),
        (false, None) => {
            return Err("where the table ended is not proven: WAL neither makes nor truncates its file, and no copy with all WAL since has it".into());
        }
    };
    if end.may_be_longer {
        return Err("where the table ended is not proven: its file was copied with its database, or made while wal_level may have been minimal, and what is written so has no records".into());
    }
    if let Some(named) = table.last_named.filter(|named| *named >= blocks) {
        return Err(format!(
            "by WAL and copies the table ends before block {blocks}, and other files name its block {named}"
        ));
    }
    if blocks <= table.first {
        return Err(format!(
            "by WAL and copies the table has {blocks} blocks, and no more"
        ));
    }
    Ok(blocks)
}

/// As many blocks as one journal holds. The rest is left for the next plan only where that is sure
/// to find it: where another file names a block of it, so that the table counts as damaged until
/// then.
fn part_of(table: &TruncatedTable, end: u32) -> Result<Part, String> {
    let missing = end - table.first;
    if missing <= BLOCKS_MAX {
        return Ok(Part { until: end, end });
    }
    let until = table.first.saturating_add(BLOCKS_MAX);
    let is_found_again = table.last_named.is_some_and(|last| last >= until);
    if is_found_again || table.is_planned {
        return Ok(Part { until, end });
    }
    Err(format!(
        "{missing} blocks are missing, one plan gives back {BLOCKS_MAX} at most, and no other file names a block after those, so that nothing would show that the rest is missing: restore the file from a backup, with the cluster rolled forward"
    ))
}

fn end_words(blocks: u32, end: Option<&ForkEnd>) -> String {
    let is_from_wal = end.is_some_and(|end| end.is_from_wal);
    if is_from_wal {
        format!(
            "WAL makes or truncates the file, and names no later block than {}",
            blocks - 1
        )
    } else {
        format!("the table has {blocks} blocks by the copy and all WAL since")
    }
}

impl Search<'_, '_> {
    /// Asks for every block that is missing; all of them are proven, or none comes back.
    pub(super) fn prove_end(
        &self,
        table: &TruncatedTable,
        end: Option<&ForkEnd>,
        evidence: &Evidence<'_>,
        found: &mut Found,
    ) -> Result<(), Failure> {
        let result = match proven_end(table, end) {
            Ok(blocks) => self.blocks_up_to(table, (blocks, end), evidence, found)?,
            Err(why) => Err(why),
        };
        match result {
            Ok(()) => found.requests.push(CureRequest {
                cure: RESTORE_END.into(),
                path: table.files.path(0),
                block: table.first,
                item: None,
                column: None,
            }),
            Err(why) => found.not_healed.push(self.not_given_back(table, why)),
        }
        Ok(())
    }

    fn blocks_up_to(
        &self,
        table: &TruncatedTable,
        (blocks, end): (u32, Option<&ForkEnd>),
        evidence: &Evidence<'_>,
        found: &mut Found,
    ) -> Result<Result<(), String>, Failure> {
        let part = match part_of(table, blocks) {
            Ok(part) => part,
            Err(why) => return Ok(Err(why)),
        };
        let addresses: Vec<_> = (table.first..part.until)
            .map(|block| address_of(&table.files, block))
            .collect();
        let recovered = self.recover(evidence, &addresses);
        // The server makes a table longer by more blocks than it fills: those at the end may never
        // have been written.
        let named = end.map_or(0, |end| end.blocks);
        let named = named.max(table.last_named.map_or(0, |last| last.saturating_add(1)));
        let mut pages = Vec::new();
        for block in &recovered.blocks {
            let number = block.address.block;
            match &block.outcome {
                Ok(exact) => {
                    let bytes = recovered.page(block).map_err(|error| {
                        Failure::new(format!("a recovered page is lost: {error}"))
                    })?;
                    let Some(bytes) = bytes else { continue };
                    let mut evidence = exact.evidence();
                    if number == table.first {
                        evidence.push(end_words(blocks, end));
                    }
                    pages.push((
                        number,
                        ProvenPage {
                            bytes,
                            evidence,
                            is_unverified: self.is_unverified(&exact.origin),
                        },
                    ));
                }
                Err(NotProven::NoPage { .. }) if number >= named && number > table.first => {}
                Err(why) => return Ok(Err(format!("block {number}: {why}"))),
            }
        }
        let is_run = pages
            .iter()
            .zip(table.first..)
            .all(|((own, _), block)| *own == block);
        if !is_run {
            return Ok(Err("blocks between others are not proven".into()));
        }
        if part.until < part.end {
            found.not_healed.push(self.left_for_the_next(table, part));
        }
        let path = table.files.path(0);
        let pages = pages.into_iter();
        found
            .proven
            .extend(pages.map(|(block, page)| ((path.clone(), block), page)));
        Ok(Ok(()))
    }

    /// Until then the table counts as damaged.
    fn left_for_the_next(&self, table: &TruncatedTable, part: Part) -> NotHealed {
        let mut command = vec![
            "pgclinic heal".to_owned(),
            shell_word(&self.pgdata.display().to_string()),
        ];
        command.extend(words(self.evidence));
        command.push("--yes".into());
        NotHealed {
            path: table.files.path(0),
            relation: Some(table.relation.clone()),
            blocks: vec![[u64::from(part.until), u64::from(part.end)]],
            needs_loss: false,
            why: vec![format!(
                "one plan gives back {BLOCKS_MAX} blocks at most: the next one goes on with block {}. Start no server before the table has its {} blocks",
                part.until, part.end
            )],
            commands: vec![command.join(" ")],
        }
    }

    fn not_given_back(&self, table: &TruncatedTable, why: String) -> NotHealed {
        let pgdata = shell_word(&self.pgdata.display().to_string());
        NotHealed {
            path: table.files.path(0),
            relation: Some(table.relation.clone()),
            blocks: vec![[u64::from(table.first), u64::from(table.first) + 1]],
            needs_loss: true,
            why: vec![why],
            commands: vec![format!(
                "pgclinic salvage {pgdata} --relation {} --to DIR",
                shell_word(&table.relation)
            )],
        }
    }
}
