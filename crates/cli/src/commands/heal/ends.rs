//! Tables that end too early, or whose file is missing: how far they reached, and what proves the
//! blocks that are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgclinic_cluster::wal::{Evidence, ForkEnd, NotProven};
use pgclinic_cluster::{Cluster, ForkFiles, MissingBlocks, RelationFileName};
use pgclinic_format::Fork;
use pgclinic_model::document::{CheckDocument, CureRequest, FileKind, NotHealed};
use pgclinic_model::plural;
use pgclinic_model::{Finding, Severity};
use pgclinic_surgery::cures::{ProvenRun, RESTORE_END};

use super::evidence::{Found, Search, address_of};
use super::shown_commands;
use crate::exit::Failure;

/// Rules by which a table ends too early.
const RULES: [&str; 6] = [
    "file-truncated",
    "pages-beyond-end",
    "missing-file",
    "missing-segment",
    "partial-block",
    "short-segment",
];

/// A table that ends too early.
pub(super) struct TruncatedTable {
    pub(super) files: ForkFiles,
    relation: String,
    pub(super) missing: MissingBlocks,
    /// The last one that another file names.
    last_named: Option<u32>,
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
    let mut found: BTreeMap<(String, u32), TruncatedTable> = BTreeMap::new();
    for finding in findings {
        let Some(path) = first_file(&finding.place.path) else {
            continue;
        };
        let Some(files) = files_of(&path, cluster, forks) else {
            continue;
        };
        let last = finding.facts.get("last_missing");
        let last = last.and_then(|last| u32::try_from(last.as_u64()?).ok());
        let relation = finding.place.relation_name();
        let missing = files.missing_blocks(cluster.build);
        let has_gap = missing.len() > 1;
        for missing in missing {
            let names_more = last.is_some_and(|last| last >= missing.first);
            // A gap says nothing of what would come behind the last segment.
            if has_gap && missing.gap_end.is_none() && !names_more {
                continue;
            }
            let own = found.entry((path.clone(), missing.first));
            let own = own.or_insert_with(|| TruncatedTable {
                missing,
                files: files.clone(),
                relation: relation.clone(),
                last_named: None,
            });
            own.last_named = own.last_named.max(last);
        }
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
        let mut missing = files.missing_blocks(cluster.build).into_iter();
        Some(TruncatedTable {
            missing: missing.find(|missing| missing.first == request.block)?,
            files,
            relation: String::new(),
            last_named: None,
        })
    });
    tables.collect()
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

/// Where the table ended, if WAL or a copy proves that; before a segment that is there, all blocks
/// are missing.
fn proven_end(table: &TruncatedTable, end: Option<&ForkEnd>) -> Result<u32, String> {
    if let Some(next) = table.missing.gap_end {
        return Ok(next);
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
    if blocks <= table.missing.first {
        return Err(format!(
            "by WAL and copies the table has {blocks}, and no more",
            blocks = plural(blocks, "block")
        ));
    }
    Ok(blocks)
}

fn end_words(table: &TruncatedTable, blocks: u32, end: Option<&ForkEnd>) -> String {
    if table.missing.gap_end.is_some() {
        return format!("the next segment begins with block {blocks}");
    }
    let is_from_wal = end.is_some_and(|end| end.is_from_wal);
    if is_from_wal {
        format!(
            "WAL makes or truncates the file, and names no later block than {}",
            blocks - 1
        )
    } else {
        format!(
            "the table has {blocks} by the copy and all WAL since",
            blocks = plural(blocks, "block")
        )
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
                block: table.missing.first,
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
        let addresses: Vec<_> = (table.missing.first..blocks)
            .map(|block| address_of(&table.files, block))
            .collect();
        let recovered = self.recover(evidence, &addresses);
        // The server makes a table longer by more blocks than it fills: those at the end may never
        // have been written.
        let named = end.map_or(0, |end| end.blocks);
        let named = named
            .max(table.missing.gap_end.unwrap_or(0))
            .max(table.last_named.map_or(0, |last| last.saturating_add(1)));
        let mut run = ProvenRun {
            blocks: table.missing.first..table.missing.first,
            evidence: Vec::new(),
            is_unverified: false,
            recovered: Arc::new(recovered),
        };
        for block in &run.recovered.blocks {
            let number = block.address.block;
            match &block.outcome {
                Ok(exact) if number == run.blocks.end => {
                    run.blocks.end += 1;
                    run.is_unverified |= self.is_unverified(&exact.origin);
                    if number == table.missing.first {
                        run.evidence = exact.evidence();
                        run.evidence.push(end_words(table, blocks, end));
                    }
                }
                Ok(_) => return Ok(Err("blocks between others are not proven".into())),
                Err(NotProven::NoPage { .. })
                    if number >= named && number > table.missing.first => {}
                Err(why) => return Ok(Err(format!("block {number}: {why}"))),
            }
        }
        let own = (table.files.path(0), table.missing.first);
        found.proven.runs.insert(own, run);
        Ok(Ok(()))
    }

    fn not_given_back(&self, table: &TruncatedTable, why: String) -> NotHealed {
        NotHealed {
            path: table.files.path(0),
            relation: Some(table.relation.clone()),
            blocks: vec![[
                u64::from(table.missing.first),
                u64::from(table.missing.first) + 1,
            ]],
            needs_loss: true,
            why: vec![why],
            commands: vec![shown_commands::salvage(self.pgdata, Some(&table.relation))],
        }
    }
}
