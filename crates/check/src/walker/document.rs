//! From the books to the findings document.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgclinic_cluster::{Cluster, target_of};
use pgclinic_model::document::{
    CheckDocument, Evidence, Finding, Level, NotChecked, RECOVERY_IS_DUE, RelationFate,
    SinceSummary, Target, Tool, Verdict,
};
use pgclinic_model::{Severity, plural};

use crate::advice;
use crate::files::missing_file::MISSING_FILE;
use crate::files::pages_beyond_end::PAGES_BEYOND_END;
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, Since, contradicted_status, missing_wal, root_causes};

/// The document of a cluster.
pub(crate) fn write(
    cluster: &Cluster,
    options: &CheckOptions,
    mut books: RunLedger,
) -> CheckDocument {
    if cluster.control.trusted().is_none() {
        books.not_checked(NotChecked {
            what: "checksums, limits, files against catalogs".into(),
            why: without_control(cluster),
            inherent: false,
        });
    }
    pgclinic_cluster::unreachable::tell(cluster, &mut books.coverage);
    if let Some(since) = &options.since {
        let entries = unchanged_since(&since_summary(since, &books), options.level);
        entries
            .into_iter()
            .for_each(|entry| books.not_checked(entry));
    }
    contradicted_status::accuse(cluster, &mut books);
    missing_wal::accuse(cluster, &mut books);
    if cluster.checksums() == Some(false) {
        books.not_checked(NotChecked {
            what: "values that were overwritten by others of their type".into(),
            why: "data checksums are off, so that no byte of the files vouches for a value".into(),
            inherent: true,
        });
    }
    if cluster.is_running() {
        books.not_checked(beside_a_server(options.level));
    } else if cluster.needs_recovery() && options.level >= Level::Structure {
        let what = "pages, maps, catalogs, SLRU files and relation files against each other";
        books.not_checked(NotChecked {
            what: what.into(),
            why: RECOVERY_IS_DUE.into(),
            inherent: false,
        });
    }
    assemble(
        target_of(cluster, &options.spec),
        cluster.needs_recovery() && !cluster.is_running(),
        options,
        books,
    )
}

/// What is not known where the control file cannot be trusted, and what WAL says of it.
fn without_control(cluster: &Cluster) -> String {
    let known = "the control file cannot be trusted: whether checksums are on";
    match cluster.control_from_wal() {
        None => format!(
            "{known}, which transactions exist and whether the cluster was shut down is unknown"
        ),
        Some(control) if !cluster.needs_recovery() => format!(
            "{known} is unknown; the last record in pg_wal, at {}, is the checkpoint of a shutdown",
            control.checkpoint_lsn
        ),
        Some(_) => {
            let redo = cluster.recovery().map(|recovery| recovery.start.redo);
            format!(
                "{known} and whether pg_wal holds all WAL is unknown; recovery begins at redo {}, found in pg_wal",
                redo.unwrap_or_default()
            )
        }
    }
}

fn since_summary(since: &Since, books: &RunLedger) -> SinceSummary {
    SinceSummary {
        lsn: since.lsn().to_string(),
        pages_unchanged: books.coverage.pages_unchanged,
        pages_again: books.unchanged.len() as u64,
        findings_carried: books.carried,
    }
}

/// What a run that only looks at changes leaves to the one before.
fn unchanged_since(since: &SinceSummary, level: Level) -> Vec<NotChecked> {
    let entry = |what: String, why: &str| NotChecked {
        what,
        why: why.into(),
        inherent: true,
    };
    let mut entries = Vec::new();
    if since.pages_unchanged > 0 {
        let what = format!(
            "{} that {} not changed since {}",
            plural(since.pages_unchanged, "page"),
            if since.pages_unchanged == 1 {
                "has"
            } else {
                "have"
            },
            since.lsn
        );
        entries.push(entry(what, "--since asks for changed pages only: damage that came without a change of the LSN is not seen in them"));
    }
    if since.findings_carried > 0 {
        let what = format!(
            "{} of an earlier run",
            plural(since.findings_carried, "finding")
        );
        entries.push(entry(what, "they are reported as they were known: only a run without --since, at their level and of the stopped cluster, looks for all of them"));
    }
    if level > Level::Pages {
        let what = "the pages of relations against each other";
        entries.push(entry(what.into(), "--since asks for changed pages only"));
    }
    entries
}

/// What no reader of files can compare while a server writes them one after the other.
fn beside_a_server(level: Level) -> NotChecked {
    let what = match level {
        Level::Pages => "lengths of relation files",
        Level::Structure | Level::Full => {
            "pages, visibility maps, catalogs, SLRU files and lengths of indexes and TOAST relations against each other"
        }
    };
    NotChecked {
        what: what.into(),
        why: "a server is running and writes them apart from each other: a base backup or the stopped cluster tells".into(),
        inherent: true,
    }
}

/// Blocks that `relpages` counts beyond the end of a file: an index or a map proves that they are
/// lost, and one that agrees with the file may be a copy as old as the file is.
/// From 18 on a dump may bring the number along from another server.
fn open_hint(
    finding: &Finding,
    all: &[Finding],
    target: &Target,
    level: Level,
) -> Option<NotChecked> {
    let is_hint = finding.rule == PAGES_BEYOND_END.name && target.major < Some(18);
    let fact = |name: &str| finding.facts.get(name).and_then(|fact| fact.as_u64());
    let (relpages, blocks) = (fact("relpages")?, fact("blocks")?);
    let is_settled = all
        .iter()
        .any(|other| other.severity == Severity::Damage && other.place.path == finding.place.path);
    let name = finding.place.relation_name();
    let settles = match level {
        Level::Pages => "level structure asks its indexes and its map".to_owned(),
        Level::Structure | Level::Full => format!(
            "its indexes and its map, if it has some, end where it does and may be as old, or VACUUM was killed before it counted again: ANALYZE {name} counts, and a backup or a standby shows what stood there"
        ),
    };
    (is_hint && !is_settled).then(|| NotChecked {
        what: format!("whether the last blocks of {name} are lost"),
        why: format!("pg_class counts {relpages} pages, and its file has {blocks}: {settles}"),
        inherent: false,
    })
}

/// What the level does not look at, which one does, and what it would cost.
fn beyond(level: Level, main_bytes: u64) -> Vec<NotChecked> {
    let entry = |what: &str, why: String| NotChecked {
        what: what.into(),
        why,
        inherent: false,
    };
    let mut entries = Vec::new();
    if level < Level::Structure {
        let what = "rows, line pointers, index pages, order and links inside indexes, SLRU files, catalogs against files";
        let why = "level structure examines them; it reads no more, and takes about twice the time from memory";
        entries.push(entry(what, why.into()));
    }
    if level < Level::Full {
        let what = "rows against index entries, TOASTed values against their pointers, values that do not decode, unique keys, references of catalogs, write-ahead log from before the last checkpoint";
        let bytes = bytes_for_people(main_bytes);
        let why = format!(
            "level full examines them; it reads tables and indexes, {bytes} here, two to four times"
        );
        entries.push(entry(what, why));
    }
    entries
}

fn bytes_for_people(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", bytes >> 30, ((bytes % (1 << 30)) * 10) >> 30),
    }
}

/// The document of any target.
pub(crate) fn assemble(
    target: Target,
    needs_recovery: bool,
    options: &CheckOptions,
    mut books: RunLedger,
) -> CheckDocument {
    let since = options.since.as_ref();
    let since = since.map(|since| since_summary(since, &books));
    let relations = books.take_relations();
    let mut coverage = books.coverage;
    coverage.beyond_level = beyond(options.level, books.main_bytes);
    let missing = books.findings.relations_with(&MISSING_FILE);
    coverage.book_relations(RelationFate::Missing, missing);
    assert!(
        coverage.is_balanced(),
        "the ledger does not balance: {coverage:?}"
    );
    let findings_total = books.findings.total();
    let omitted = books.findings.omitted();
    let mut findings = books.findings.into_findings();
    findings.sort_by(|a, b| order(a).cmp(&order(b)));
    root_causes::tell(&mut findings);
    findings.sort_by(|a, b| order(a).cmp(&order(b)));
    let plan = advice::advise(&mut findings, &target, options.level);
    let hints = findings
        .iter()
        .filter_map(|finding| open_hint(finding, &findings, &target, options.level));
    coverage.not_checked.extend(hints);
    let damaged = findings
        .iter()
        .any(|finding| finding.severity == Severity::Damage);
    let unknown = coverage.not_checked.iter().any(|entry| !entry.inherent);
    let gaps = coverage.bytes_skipped > 0 || coverage.bytes_unreadable > 0 || unknown;
    let verdict = match (damaged, gaps || needs_recovery || books.interrupted) {
        (true, _) => Verdict::Damaged,
        (false, true) => Verdict::Incomplete,
        (false, false) => Verdict::Healthy,
    };
    CheckDocument {
        measured: None,
        schema: "pgclinic.check/1".into(),
        tool: Tool::this(),
        target,
        level: options.level,
        verdict,
        needs_recovery,
        since,
        coverage,
        relations,
        evidence: books
            .evidence
            .into_iter()
            .map(|((path, block), page)| Evidence {
                path,
                block,
                page: STANDARD.encode(page),
            })
            .collect(),
        findings_total,
        findings_omitted: findings_total - findings.len() as u64,
        omitted,
        findings,
        plan,
        elapsed_s: 0.0,
        interrupted: books.interrupted,
    }
}

/// Worst first, then by place, roots before what follows from them.
fn order(finding: &Finding) -> impl Ord + '_ {
    let place = &finding.place;
    (
        finding.severity,
        (
            place.database_oid,
            place.filenode,
            &place.path,
            place.fork,
            place.block,
        ),
        finding.caused_by.is_some(),
        (place.item, &finding.rule, &finding.message),
    )
}
