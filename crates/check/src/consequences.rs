//! What follows from findings of a page: what the server says, which rows are at risk, what to do.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{ReplayEffect, Stop};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{Fork, LpFlags, Page};
use pgclinic_model::Severity;
use pgclinic_model::document::{FileKind, Remedy};
use pgclinic_model::plan::Safety;

use crate::check::{Checksum, PageCx};
use crate::findings::Draft;
use crate::page::line_pointers_lost::has_rows_without_pointers;

/// The cure of what recovery mends.
pub(crate) const LET_A_COPY_RECOVER: &str = "let-a-copy-recover";
/// The cure of WAL that is missing.
pub(crate) const FETCH_WAL: &str = "fetch-wal";
/// Named last in every plan.
pub(crate) const RESET_WAL: &str = "reset-wal";

/// Fills in what the checks left open.
pub(crate) fn complete(drafts: &mut [Draft], page: Page<'_>, cx: &PageCx<'_>) {
    if cx.fork.is_running() {
        if is_uncommitted(cx) {
            return drafts.iter_mut().for_each(leave_to_its_maker);
        }
    } else if replay_will_mend(page, cx) {
        return drafts.iter_mut().for_each(leave_to_replay);
    }
    let refused = refusal(page, cx);
    let rows = rows_on(page, cx);
    for draft in drafts {
        if let Some(words) = &refused {
            draft.server_says = Some(words.clone());
        }
        if draft.severity == Severity::Damage {
            let of_page = if draft.item.is_some() {
                rows.map(|rows| rows.min(1))
            } else {
                rows
            };
            draft.rows = draft.rows.or(of_page);
            draft.remedies.extend(remedies(cx));
        } else {
            draft.rows = draft.rows.or(Some(0));
        }
    }
}

/// The cluster needs recovery, and that writes the page anew before anything reads it, or removes
/// its file. Where the WAL that is here does not tell, the page's LSN does: its first change since
/// the redo point put an image of the whole page into the WAL.
fn replay_will_mend(page: Page<'_>, cx: &PageCx<'_>) -> bool {
    let fork = cx.fork;
    let Some(replay) = fork.cluster.and_then(Cluster::replay) else {
        return false;
    };
    let (file, lsn) = (fork.file_number(), page.pd_lsn());
    let is_in_reach = || {
        let is_past_end = fork.wal_end().is_some_and(|end| lsn > end);
        !is_past_end && replay.range().contains(&lsn)
    };
    match replay.fate(file, fork.fork(), cx.block) {
        ReplayEffect::Rewritten | ReplayEffect::Removed => true,
        ReplayEffect::Unknown => is_in_reach(),
        // Nobody has committed what made these files.
        _ if fork.relation.is_none() && replay.creates(file) => true,
        _ if replay.stop == Stop::Elsewhere => is_in_reach(),
        _ => lsn >= replay.start && fork.is_overtaken(),
    }
}

/// The cluster crashed, all of its WAL is there, and none of it touches the page.
pub(crate) fn replay_leaves_alone(cx: &PageCx<'_>) -> bool {
    let replay = cx.fork.cluster.and_then(Cluster::replay);
    replay
        .filter(|replay| replay.is_complete())
        .is_some_and(|replay| {
            let fate = replay.fate(cx.fork.file_number(), cx.fork.fork(), cx.block);
            fate == ReplayEffect::Kept
        })
}

/// Nobody has committed what made the file: whoever makes it may not have written its pages yet.
fn is_uncommitted(cx: &PageCx<'_>) -> bool {
    let replay = cx.fork.cluster.and_then(Cluster::replay);
    let creates = replay.is_some_and(|replay| replay.creates(cx.fork.file_number()));
    cx.fork.relation.is_none() && creates
}

/// Leaves out what a server at work has made untrue since its WAL was read. Of a cluster that was
/// opened as a running one such pages are looked at again instead, unless nobody has committed
/// their file.
pub(crate) fn drop_overtaken(drafts: &mut Vec<Draft>, cx: &PageCx<'_>) {
    let overtaken = |draft: &Draft| is_of_the_future(draft.rule.name);
    if cx.fork.limits.is_some() || !drafts.iter().any(overtaken) {
        return;
    }
    let drops = if cx.fork.is_running() {
        is_uncommitted(cx)
    } else {
        cx.fork.is_overtaken()
    };
    if drops {
        drafts.retain(|draft| !overtaken(draft));
    }
}

/// The rule compares with the end of the WAL.
pub(crate) fn is_of_the_future(rule: &str) -> bool {
    OF_THE_FUTURE.contains(&rule)
}

/// Rules that compare with the end of the WAL.
const OF_THE_FUTURE: &[&str] = &[
    "lsn-beyond-wal",
    "prune-xid-in-the-future",
    "xmin-in-the-future",
    "xmax-in-the-future",
    "multixact-in-the-future",
];

/// Recovery writes what pages of a relation disagree about.
pub(crate) fn leave_to_recovery(draft: &mut Draft) {
    if draft.severity != Severity::Note {
        draft
            .message
            .push_str("; the cluster needs recovery, after which it may be right");
    }
    draft.severity = Severity::Note;
    draft.rows = Some(0);
    draft.server_says = None;
}

/// What is missed may be in the part of the files that is not there.
pub(crate) fn leave_to_the_whole(draft: &mut Draft) {
    if draft.severity != Severity::Note {
        draft
            .message
            .push_str("; not all of the files are there, and with the rest it may be right");
    }
    draft.severity = Severity::Note;
    draft.rows = Some(0);
    draft.server_says = None;
}

fn leave_to_its_maker(draft: &mut Draft) {
    draft.severity = draft.severity.max(Severity::Note);
    draft.rows = Some(0);
    draft.server_says = None;
    draft.message.push_str(
        "; no transaction that has committed names the file, and one running may be filling it",
    );
}

fn leave_to_replay(draft: &mut Draft) {
    draft.severity = draft.severity.max(Severity::Note);
    draft.rows = Some(0);
    draft.server_says = None;
    draft
        .message
        .push_str("; the cluster needs recovery, which writes this page again");
    let words = "copy the cluster, start the copy so that it recovers, stop it and check it again";
    draft
        .remedies
        .push(remedy(LET_A_COPY_RECOVER, Safety::ShowOnly, words.into()));
}

/// Fills in what a check of files left open.
pub(crate) fn complete_file(draft: &mut Draft) {
    if draft.severity != Severity::Damage {
        draft.rows = draft.rows.or(Some(0));
        return;
    }
    let Some(place) = &draft.place else { return };
    if place.kind == FileKind::Index {
        // The table has them all.
        draft.rows = draft.rows.or(Some(0));
    }
    let (path, name) = (&place.path, place.relation_name());
    let more = match place.kind {
        FileKind::ControlFile => vec![
            remedy("restore-file-from-copy", Safety::ShowOnly, format!("copy the cluster first; then take {path} from a backup or standby of this cluster and replay WAL from there")),
            remedy(RESET_WAL, Safety::ShowOnly, "as a last resort, on a copy only: pg_resetwal -f -n shows what it would guess; dump and reload what comes up".into()),
        ],
        FileKind::RelationMap => {
            vec![remedy("restore-file-from-copy", Safety::ShowOnly, format!("copy the cluster first; then take {path} from a backup or standby, made after the last VACUUM FULL or REINDEX of a system catalog"))]
        }
        FileKind::Wal => vec![remedy(FETCH_WAL, Safety::ShowOnly, format!("fetch {path} from the archive, a standby or a backup of pg_wal, before it is removed there; put it into pg_wal of a copy of the cluster and check the copy again"))],
        FileKind::Index => vec![remedy("reindex", Safety::Exact, format!("REINDEX INDEX {name};"))],
        FileKind::MaterializedView => vec![remedy("refresh", Safety::Exact, format!("REFRESH MATERIALIZED VIEW {name};"))],
        FileKind::Sequence => vec![
            remedy("restore-file-from-copy", Safety::ShowOnly, format!("copy the cluster first; then take {path} from a backup or standby")),
            remedy("recreate-sequence", Safety::Lossy, format!("DROP and CREATE SEQUENCE {name} with its old options, then setval() from the largest value in use")),
        ],
        _ => vec![remedy("restore-file-from-copy", Safety::ShowOnly, format!("copy the cluster first; then take {path} from a backup or standby whose copy pgclinic check calls sound"))],
    };
    // A check that knows better what to restore, and when, has said so.
    let is_new = |own: &Remedy| draft.remedies.iter().all(|known| known.name != own.name);
    let more: Vec<_> = more.into_iter().filter(is_new).collect();
    draft.remedies.extend(more);
}

/// The words with which the server refuses the whole page, if it does.
fn refusal(page: Page<'_>, cx: &PageCx<'_>) -> Option<String> {
    let summed = !page.is_new() && matches!(cx.checksum, Checksum::Wrong { .. });
    let refused = summed || (!page.is_new() && !page.header_is_sane_to_the_server());
    // Both maps are read with leave to throw a bad page away, and an init fork only by recovery.
    if !refused || cx.fork.fork() != Fork::Main || cx.fork.cluster.is_none() {
        return None;
    }
    let path = cx.fork.files.path(0);
    let path = path.as_str();
    Some(match cx.fork.major() {
        ..=17 => format!(
            "ERROR:  invalid page in block {} of relation {path}",
            cx.block
        ),
        _ => format!(
            "ERROR:  invalid page in block {} of relation \"{path}\"",
            cx.block
        ),
    })
}

/// Rows with line pointers on a heap page; unknown when the header cannot be trusted.
fn rows_on(page: Page<'_>, cx: &PageCx<'_>) -> Option<u64> {
    match (cx.fork.kind, cx.fork.fork()) {
        (
            FileKind::Table | FileKind::Toast | FileKind::MaterializedView | FileKind::Sequence,
            Fork::Main,
        ) => {}
        (FileKind::Unknown, _) => return None,
        _ => return Some(0),
    }
    if usize::from(page.pd_lower()) > page.len() || page.is_new() {
        return None;
    }
    let is_bare = page.line_pointers().next().is_none() && page.pd_upper() < page.pd_special();
    if usize::from(page.pd_lower()) < HEADER_BYTES || is_bare || has_rows_without_pointers(page, cx)
    {
        return page.rows_despite_lower();
    }
    Some(
        page.line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
            .count() as u64,
    )
}

fn remedies(cx: &PageCx<'_>) -> Vec<Remedy> {
    let Some(relation) = cx.fork.relation else {
        return vec![restore_page(cx)];
    };
    let name = relation.sql_name();
    match (cx.fork.kind, cx.fork.fork()) {
        (_, Fork::Fsm) => {
            let words = format!(
                "stop the server, move {} away and start it: VACUUM {name} builds the map anew",
                cx.fork.files.path(0)
            );
            vec![remedy("rebuild-free-space-map", Safety::Exact, words)]
        }
        (_, Fork::Vm) => {
            vec![remedy(
                "rebuild-visibility-map",
                Safety::Exact,
                format!(
                    "SELECT pg_truncate_visibility_map('{}'); VACUUM {name};",
                    name.replace('\'', "''")
                ),
            )]
        }
        (FileKind::Index, _) if relation.schema == "pg_catalog" => {
            let words = format!(
                "REINDEX INDEX {name}; -- in single-user mode with ignore_system_indexes if the server cannot start"
            );
            vec![remedy("reindex", Safety::Exact, words)]
        }
        (FileKind::Index, _) => vec![remedy(
            "reindex",
            Safety::Exact,
            format!("REINDEX INDEX CONCURRENTLY {name};"),
        )],
        (FileKind::Sequence, _) => {
            let words = format!(
                "DROP and CREATE SEQUENCE {name} with its old options, then SELECT setval('{}', …) from the largest value in use",
                name.replace('\'', "''")
            );
            vec![
                restore_page(cx),
                remedy("recreate-sequence", Safety::Lossy, words),
            ]
        }
        (FileKind::MaterializedView, _) => {
            vec![remedy(
                "refresh",
                Safety::Exact,
                format!("REFRESH MATERIALIZED VIEW {name};"),
            )]
        }
        _ => vec![restore_page(cx)],
    }
}

fn restore_page(cx: &PageCx<'_>) -> Remedy {
    let words = format!(
        "copy the cluster first; then take block {} of {} from a backup or standby whose copy pgclinic check calls sound",
        cx.block,
        cx.fork.files.path(0)
    );
    remedy("restore-page-from-copy", Safety::ShowOnly, words)
}

/// A way out.
pub(crate) fn remedy(name: &str, safety: Safety, command: String) -> Remedy {
    Remedy {
        name: name.into(),
        safety,
        command,
    }
}
