//! Data checksums enabled, disabled or compared: the answer, what is in the way, the nodes, and
//! what is to be done.

use pgclinic_model::document::{
    ChecksumsAction, ChecksumsDocument, ChecksumsNode, ChecksumsOutcome, DamagedPage,
    DamagedPageChoice,
};

use super::{
    Block, ParagraphStyle, Row, Style, Table, Tone, Verdict, View, and_more, columns, looked_at,
    meaning, not_done, number, on_page, plan, section, target_facts, text, words,
};
use crate::words as say;

/// Damaged pages that a terminal names.
const PAGES_SHOWN: usize = 20;

pub(super) fn view(document: &ChecksumsDocument) -> View {
    let mut blocks = vec![
        Block::Verdict(verdict(document)),
        on_page(vec![Block::Facts(target_facts(&document.target))]),
    ];
    if let Some(why) = &document.why {
        blocks.push(Block::Text(ParagraphStyle::Loud, words(why)));
    }
    blocks.extend(elsewhere(document).map(text));
    blocks.extend(not_done("Not read", &document.not_checked));
    blocks.extend(damaged(document));
    blocks.extend(nodes(&document.nodes));
    blocks.extend(plan::plan(
        &document.plan,
        &meaning::checksums(document).next,
    ));
    blocks.extend(undo(document));
    View::new(
        "Data checksums",
        "pgclinic heal checksums",
        &document.target.spec,
        &document.tool,
        blocks,
    )
}

fn verdict(document: &ChecksumsDocument) -> Verdict {
    let (tone, word) = match (document.outcome, document.action) {
        (ChecksumsOutcome::Done, ChecksumsAction::Enable) => (Tone::Good, "ENABLED"),
        (ChecksumsOutcome::Done, ChecksumsAction::Disable) => (Tone::Good, "DISABLED"),
        (ChecksumsOutcome::Done, _) => (Tone::Good, "UNDONE"),
        (ChecksumsOutcome::Unchanged, _) => (Tone::Good, "UNCHANGED"),
        (ChecksumsOutcome::Planned, _) => (Tone::Plain, "PLANNED"),
        (ChecksumsOutcome::Refused, _) => (Tone::Bad, "REFUSED"),
        (ChecksumsOutcome::Interrupted, _) => (Tone::Warn, "INTERRUPTED"),
        (ChecksumsOutcome::Differs, _) => (Tone::Bad, "DIFFERS"),
        (ChecksumsOutcome::Same, _) => (Tone::Good, "SAME"),
        (ChecksumsOutcome::Incomplete, _) => (Tone::Warn, "INCOMPLETE"),
    };
    Verdict::new(tone, word, extent(document))
        .about(looked_at(&document.target, &document.tool, &[]))
        .meaning(meaning::checksums(document))
        .in_lines()
}

fn extent(document: &ChecksumsDocument) -> String {
    let time = say::seconds(document.elapsed_s);
    let on_or_off = match document.target.checksums {
        Some(true) => "data checksums are on",
        Some(false) => "data checksums are off",
        None => "it is unknown whether data checksums are on",
    };
    let pages = say::plural(document.pages, "page");
    let size = say::bytes(document.bytes);
    let files = say::plural(document.files, "file");
    let to_write = say::count(document.pages_to_write);
    let written = say::plural(document.pages_written, "page");
    match (document.outcome, document.action) {
        (ChecksumsOutcome::Done, ChecksumsAction::Enable) if document.files > 0 => format!(
            "{on_or_off}; {written} of {pages} in {files} ({size}) got their checksum, and all were read again; {time}{}",
            not_synced(document)
        ),
        (ChecksumsOutcome::Done, ChecksumsAction::Disable) => {
            format!(
                "{on_or_off}; no page was written; {time}{}",
                not_synced(document)
            )
        }
        (ChecksumsOutcome::Done, _) => {
            format!(
                "{on_or_off}; {written} written; {time}{}",
                not_synced(document)
            )
        }
        (ChecksumsOutcome::Planned | ChecksumsOutcome::Refused, _) => format!(
            "{on_or_off}, and nothing was written: {to_write} of {pages} in {files} ({size}) would get their checksum; {time}"
        ),
        (ChecksumsOutcome::Interrupted, _) => {
            format!("{on_or_off}, and the cluster starts as before; {written} written; {time}")
        }
        (ChecksumsOutcome::Unchanged, _) => format!("{on_or_off} already; nothing was written"),
        _ => format!("{on_or_off}; nothing was written; {time}"),
    }
}

fn not_synced(document: &ChecksumsDocument) -> &'static str {
    if document.synced {
        ""
    } else {
        "; writes may not be on the disk yet (--no-sync)"
    }
}

fn elsewhere(document: &ChecksumsDocument) -> Option<String> {
    let found = document.findings_elsewhere;
    (found > 0).then(|| {
        format!(
            "the structure check also has {} of damage that belong to no page: pgclinic check {} names them",
            say::plural(found, "finding"),
            document.target.spec
        )
    })
}

fn damaged(document: &ChecksumsDocument) -> Vec<Block> {
    let columns = columns("Page | Relation | What is wrong | Its checksum");
    let rows = document.damaged.iter().map(|page| {
        Row::of(vec![
            words(format!("{}:{}", page.path, page.block)),
            words(page.relation.clone().unwrap_or_default()),
            words(what_is_wrong(page)),
            words(choice(page.choice)),
        ])
    });
    let table = Table::new(columns, rows).style(Style::Board);
    let table = table.short(PAGES_SHOWN, |more| {
        format!("{}; --format json has the first 1,000", and_more(more))
    });
    let mut blocks = table.unless_empty();
    if document.damaged_omitted > 0 {
        blocks.push(text(and_more(document.damaged_omitted)));
    }
    section("Damaged pages").unless_empty(blocks)
}

fn what_is_wrong(page: &DamagedPage) -> String {
    match page.rules.as_slice() {
        [] => "damaged".into(),
        rules => format!("{}: {}", rules.join(", "), page.message),
    }
}

fn choice(choice: DamagedPageChoice) -> &'static str {
    match choice {
        DamagedPageChoice::Undecided => "undecided",
        DamagedPageChoice::Left => "left as it is",
        DamagedPageChoice::Included => "as it stands",
    }
}

fn nodes(nodes: &[ChecksumsNode]) -> Vec<Block> {
    let columns = columns("Node | Role | PostgreSQL > | State | Data checksums | Matches");
    let rows = nodes.iter().map(|node| {
        let target = &node.target;
        let on_or_off = |on| if on { "on" } else { "off" };
        let answer = |yes| if yes { "yes" } else { "NO" };
        Row::of(vec![
            words(&target.spec),
            words(&node.role),
            target
                .major
                .map_or_else(|| words(""), |major| number(major.into())),
            words(target.state.clone().unwrap_or_default()),
            words(target.checksums.map_or("unknown", on_or_off)),
            words(node.matches.map_or("unknown", answer)),
        ])
    });
    let mut blocks = Table::new(columns, rows).style(Style::Board).unless_empty();
    for node in nodes {
        let notes = node.notes.iter();
        blocks.extend(notes.map(|note| text(format!("{}: {note}", node.target.spec))));
    }
    section("Nodes").unless_empty(blocks)
}

/// How what was written is taken back, or gone on with.
fn undo(document: &ChecksumsDocument) -> Vec<Block> {
    let Some(journal) = &document.journal else {
        return Vec::new();
    };
    let journal = pgclinic_model::shell_word(journal);
    let undo = format!("pgclinic heal checksums --undo {journal}");
    let resume = format!("pgclinic heal checksums --resume {journal}");
    let (title, commands) = match (document.outcome, document.action) {
        (ChecksumsOutcome::Interrupted, ChecksumsAction::Undo) => ("Go on", vec![undo]),
        (ChecksumsOutcome::Interrupted, _) => ("Go on, or undo it", vec![resume, undo]),
        (ChecksumsOutcome::Done, ChecksumsAction::Undo) => return Vec::new(),
        _ => ("Undo", vec![undo]),
    };
    let commands = commands.into_iter().map(Block::Command);
    vec![section(title).of(commands.collect())]
}
