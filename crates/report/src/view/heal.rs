//! A heal: the answer, what stands in its way, each cure with what goes and what comes, what to do
//! next.

use pgclinic_model::document::{
    Cure, DanglingEntries, FieldChange, HealDocument, HealOutcome, HealProof, HealRow,
    HealStatement, Level, NotHealed, StartCure,
};
use pgclinic_model::noun_of;
use pgclinic_model::plan::Safety;

use super::inspect::values;
use super::{
    Block, Fold, Look, ParagraphStyle, Row, Table, Tone, Verdict, View, Words, and_more, card,
    columns, finding, fold, in_terminal, list, looked_at, meaning, not_done, number, on_page, plan,
    section, target_facts, text, words,
};
use crate::words as say;
use crate::words::{count_of, plural};

/// Fields of a cure that a terminal shows.
const FIELDS_SHOWN: usize = 40;
/// The kind of a target that is a running server.
const SERVER: &str = "server";
/// The cure that fills up lost files of status logs.
const FILL_STATUS: &str = "fill-status-files";
/// Files of a cure that a terminal shows.
const FILES_SHOWN: usize = 12;
/// Tables of a cure that a terminal shows.
const TABLES_SHOWN: usize = 20;
/// Rows of a cure that a terminal shows.
const ROWS_SHOWN: usize = 10;

pub(super) fn view(document: &HealDocument) -> View {
    let mut blocks = vec![
        Block::Verdict(verdict(document)),
        on_page(vec![Block::Facts(target_facts(&document.target))]),
    ];
    let obstacles = document.obstacles.iter().map(words);
    let title = card(Tone::Bad, "Cannot be carried out here");
    blocks.extend(title.unless_empty(list(obstacles)));
    blocks.extend(level(document).map(text));
    let cures = (1..)
        .zip(&document.cures)
        .map(|(place, own)| cure(place, own));
    blocks.extend(cures);
    blocks.extend(where_values_are(document));
    blocks.extend(statements(&document.statements));
    blocks.extend(not_healed(&document.not_healed));
    blocks.extend(not_done("Not checked", &document.not_checked));
    blocks.extend(applied(document));
    blocks.extend(document.proof.iter().map(proof));
    let title = section("Other findings on the same pages, which this heal is not about");
    blocks.extend(title.unless_empty(finding::of_page(&document.other_findings)));
    let warnings = document.warnings.iter().map(words);
    blocks.extend(card(Tone::Warn, "To know").unless_empty(list(warnings)));
    let next = meaning::heal(document).next;
    blocks.extend(plan::plan(&document.follow_up, &next));
    View::new(
        "Heal",
        "pgclinic heal",
        &document.target.spec,
        &document.tool,
        blocks,
    )
}

/// The mildest that would do.
fn level(document: &HealDocument) -> Option<String> {
    let reach = document.reach.filter(|reach| reach.pages > 0)?;
    let pages = plural(reach.pages, "damaged or missing page");
    if reach.exact == reach.pages {
        return Some(format!(
            "exact cures suffice for all of {pages} ({})",
            say::count(reach.exact)
        ));
    }
    let mut words = format!(
        "exact cures suffice for {} of {pages}",
        say::count(reach.exact)
    );
    if reach.lossy > 0 {
        words = format!(
            "{words}; {} would need a lossy one",
            say::count(reach.lossy)
        );
    }
    if reach.other > 0 {
        words = format!(
            "{words}; for {} there is another way",
            say::count(reach.other)
        );
    }
    Some(words)
}

fn not_healed(all: &[NotHealed]) -> Vec<Block> {
    let one = |own: &NotHealed| {
        let name = own.relation.as_deref().unwrap_or(&own.path);
        let about = match (own.blocks.as_slice(), &own.relation) {
            ([], None) => String::new(),
            ([], Some(_)) => own.path.clone(),
            (blocks, _) => {
                let number = blocks
                    .iter()
                    .map(|[start, end]| end.saturating_sub(*start))
                    .sum();
                let noun = noun_of(number, "block");
                format!("{}, {noun} {}", own.path, say::block_ranges(blocks, 20))
            }
        };
        let mut blocks = list(own.why.iter().map(words));
        blocks.extend(own.commands.iter().cloned().map(Block::Command));
        section(name).about(about).of(blocks)
    };
    let title = card(Tone::Warn, "Not healed by this plan");
    title.unless_empty(all.iter().map(one).collect())
}

fn verdict(document: &HealDocument) -> Verdict {
    let (tone, word) = match document.outcome {
        HealOutcome::Planned => (Tone::Plain, "PLANNED"),
        HealOutcome::Healed => (Tone::Good, "HEALED"),
        HealOutcome::DamageRemains => (Tone::Bad, "DAMAGE REMAINS"),
        HealOutcome::PartlyUndecided => (Tone::Warn, "PARTLY UNDECIDED"),
        HealOutcome::NothingToHeal => (Tone::Good, "NOTHING TO HEAL"),
        HealOutcome::Undone => (Tone::Good, "UNDONE"),
    };
    // Without a control file nothing names the cluster.
    let identifier = Some(&document.basis.system_identifier).filter(|own| !own.is_empty());
    let identifier = identifier.map(|own| format!("system identifier {own}"));
    let facts = Vec::from_iter(identifier);
    Verdict::new(tone, word, extent(document))
        .about(looked_at(&document.target, &document.tool, &facts))
        .meaning(meaning::heal(document))
}

/// `2 cures, 1 exact and 1 lossy; 1 row is lost; nothing was written`.
fn extent(document: &HealDocument) -> String {
    let of = |safety| {
        let own = document.cures.iter().filter(|cure| cure.safety == safety);
        count_of(own.count())
    };
    let kinds = [
        (of(Safety::Exact), "exact"),
        (of(Safety::Lossy), "lossy"),
        (of(Safety::ShowOnly), "only shown"),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    let kinds = kinds.join(", ");
    if document.outcome == HealOutcome::NothingToHeal {
        return match document.scope.map(|scope| scope.level) {
            Some(Level::Full) => "the full check finds no damage".into(),
            _ => "the structure check finds no damaged page".into(),
        };
    }
    if document.target.kind == SERVER {
        return plural(count_of(document.statements.len()), "statement");
    }
    if document.cures.is_empty() && document.outcome == HealOutcome::DamageRemains {
        return "nothing in these files cures it; nothing was written".into();
    }
    if document.cures.is_empty() && document.applied.is_none() {
        return "no cure is planned; nothing was written".into();
    }
    let cures = plural(count_of(document.cures.len()), "cure");
    let written = match (&document.applied, document.outcome) {
        (_, HealOutcome::Undone) => "the first bytes are back".to_owned(),
        (Some(applied), _) => format!(
            "{} written to {}",
            plural(applied.changes, "change"),
            applied.pgdata
        ),
        (None, _) => "nothing was written".to_owned(),
    };
    format!("{cures} ({kinds}); {}; {written}", loss(document))
}

fn loss(document: &HealDocument) -> String {
    let cures = match document.outcome {
        HealOutcome::Undone => &[],
        _ => document.cures.as_slice(),
    };
    let known: u64 = cures.iter().filter_map(|cure| cure.rows_lost).sum();
    let rows = plural(known, "row");
    let mut uncounted = cures.iter().filter(|cure| cure.rows_lost.is_none());
    let Some(first) = uncounted.next() else {
        return format!("{rows} lost");
    };
    // Two cures predict the same tables, so that their counts are not to be added.
    match (hidden_by(first), uncounted.next()) {
        (Some(hidden), None) => format!(
            "{rows} lost, and {} hidden whose transactions may have been committed",
            plural(hidden, "row")
        ),
        _ => format!("{rows} lost, and others that nobody can count"),
    }
}

/// Rows that a server will not show once the status of their transactions is filled up, where the
/// tables of the plan count all of them. What goes with WAL is in no file.
fn hidden_by(cure: &Cure) -> Option<u64> {
    let start = cure.start.as_deref();
    let start = start.filter(|own| cure.name == FILL_STATUS && !own.tables.is_empty())?;
    let mut tables = start.tables.iter();
    let is_counted = tables.all(|own| own.undecided == 0 && own.pages_unreadable == 0);
    is_counted.then(|| start.tables.iter().map(|own| own.hidden).sum())
}

fn cure(place: usize, cure: &Cure) -> Block {
    let title = Words::default()
        .plain(format!("{place}. "))
        .strong(&cure.name)
        .plain(" ")
        .and(Look::Safety(cure.safety), "")
        .plain("  id ")
        .code(&cure.id);
    let mut blocks = vec![
        Block::Text(ParagraphStyle::Message, words(&cure.summary)),
        Block::Text(ParagraphStyle::Quiet, words(cure.outcome.words())),
    ];
    blocks.extend(list(cure.evidence.iter().map(words)));
    blocks.extend(warnings(&cure.warnings));
    blocks.extend(fields(&cure.fields));
    blocks.extend(rows(&cure.rows));
    blocks.extend(dangling(&cure.dangling));
    blocks.extend(cure.start.as_deref().map_or_else(Vec::new, start));
    blocks.extend(finding::of_page(&cure.findings));
    section(title).about(cure.place.to_string()).of(blocks)
}

/// The files that are written or set aside, and what a server will show of each table.
fn start(start: &StartCure) -> Vec<Block> {
    let rows = start
        .files
        .iter()
        .map(|own| Row::of(vec![Words::default().code(&own.path), words(&own.what)]));
    let files = Table::new(columns("File | What is done"), rows);
    let mut blocks = files.short(FILES_SHOWN, and_more).unless_empty();
    let heads = "Table | Rows seen > | Hidden > | Kept > | Refused > | Pages unreadable >";
    // Those about which something is unknown come first.
    let (doubtful, others): (Vec<_>, Vec<_>) =
        start.tables.iter().partition(|own| own.is_doubtful());
    let rows = doubtful.into_iter().chain(others).map(|own| {
        let database = own.database.as_deref().unwrap_or("(shared)");
        Row::of(vec![
            words(format!("{database}: {}.{}", own.schema, own.relation)),
            number(own.rows),
            number(own.hidden),
            number(own.kept),
            number(own.undecided),
            number(own.pages_unreadable),
        ])
    });
    let tables = Table::new(columns(heads), rows);
    blocks.extend(tables.short(TABLES_SHOWN, and_more).unless_empty());
    blocks
}

fn warnings(warnings: &[String]) -> Vec<Block> {
    let warnings = warnings.iter();
    let loud =
        warnings.map(|own| Block::Text(ParagraphStyle::Loud, words(format!("warning: {own}"))));
    loud.collect()
}

fn fields(fields: &[FieldChange]) -> Vec<Block> {
    let columns = columns("Of | Field | Before | After");
    let rows = fields.iter().map(|own| {
        Row::of(vec![
            words(&own.of),
            Words::default().code(&own.name),
            Words::default().code(&own.before),
            Words::default().code(&own.after),
        ])
    });
    let table = Table::new(columns, rows);
    table.short(FIELDS_SHOWN, and_more).unless_empty()
}

fn rows(rows: &[HealRow]) -> Vec<Block> {
    let mut blocks: Vec<Block> = rows.iter().take(ROWS_SHOWN).map(row).collect();
    let rest: Vec<Block> = rows.iter().skip(ROWS_SHOWN).map(row).collect();
    let more = count_of(rest.len());
    if more > 0 {
        blocks.push(in_terminal(vec![text(format!(
            "{} rows, which stand in --format json",
            and_more(more)
        ))]));
    }
    blocks.push(on_page(rest));
    blocks
}

/// Whoever decides about rows may want to see them.
fn where_values_are(document: &HealDocument) -> Option<Block> {
    let contains = document.tool.contains?;
    let has_rows = document.cures.iter().any(|cure| !cure.rows.is_empty());
    let is_withheld = has_rows && !contains.values && !contains.redacted;
    is_withheld.then(|| text("with --values the rows are shown with their values"))
}

fn row(row: &HealRow) -> Block {
    let fate = if row.lost { " and will be lost" } else { "" };
    let title = Words::default()
        .strong(format!("row ({},{})", row.block, row.item))
        .plain(format!(" is {}{fate}", row.state));
    fold(Fold::Item, row.lost, title).of(values(&row.values))
}

fn dangling(dangling: &[DanglingEntries]) -> Vec<Block> {
    let columns = columns("Index | Entries that dangle > | Note");
    let rows = dangling.iter().map(|own| {
        Row::of(vec![
            words(format!("{}.{}", own.schema, own.index)),
            own.entries.map_or_else(|| words("unknown"), number),
            words(own.why.as_deref().unwrap_or_default()),
        ])
    });
    Table::new(columns, rows).unless_empty()
}

/// SQL for a running server, each statement with what it locks.
fn statements(all: &[HealStatement]) -> Vec<Block> {
    let title = card(Tone::Plain, "Statements for the running server");
    title.unless_empty(all.iter().map(statement).collect())
}

fn statement(own: &HealStatement) -> Block {
    let title = Words::default()
        .plain(format!("{}. ", own.number))
        .and(Look::Safety(own.safety), "")
        .plain("  id ")
        .code(&own.id);
    let mut blocks = vec![
        Block::Command(format!("{};", own.sql)),
        Block::Text(
            ParagraphStyle::Quiet,
            words(format!("locks: {}", own.locks)),
        ),
        text(own.why.clone()),
    ];
    if let Some(answer) = &own.answer {
        let done = if answer.done {
            "it was run"
        } else {
            "it was run and failed"
        };
        blocks.push(Block::Text(ParagraphStyle::Loud, words(done)));
        blocks.extend(list(answer.messages.iter().map(words)));
    }
    section(title)
        .about(format!("in database {}", own.database))
        .of(blocks)
}

/// What a real server read, and its messages.
fn proof(proof: &HealProof) -> Block {
    let mut blocks = vec![text(proof_words(proof))];
    blocks.extend(list(proof.not_verified.iter().map(words)));
    let columns = columns("Database | Table | Rows by the server > | Rows by the files >");
    let count = |rows: Option<u64>| rows.map_or_else(|| words("unknown"), number);
    let rows = proof.counts.iter().map(|own| {
        Row::of(vec![
            words(&own.database),
            words(&own.relation),
            count(own.server),
            count(own.files),
        ])
    });
    blocks.extend(Table::new(columns, rows).unless_empty());
    blocks.extend(warnings(&proof.messages));
    section("Proof")
        .about(format!("PostgreSQL {}", proof.server))
        .of(blocks)
}

fn proof_words(proof: &HealProof) -> String {
    if !proof.started {
        return "the server does not start on a copy".into();
    }
    let with = match proof.messages.len() {
        0 => "without an error".to_owned(),
        many => format!("with {}", plural(count_of(many), "message")),
    };
    format!(
        "a server started on a copy and read {} in {} {with}; amcheck verified {} and {}",
        plural(proof.relations, "relation"),
        plural(proof.databases, "database"),
        plural(proof.tables_verified, "table"),
        plural(proof.indexes_verified, "B-tree"),
    )
}

fn applied(document: &HealDocument) -> Vec<Block> {
    let Some(applied) = &document.applied else {
        return Vec::new();
    };
    let saved = applied.rows_saved.iter().map(|own| {
        let hex = match own.as_hex {
            0 => String::new(),
            rows => format!(", {rows} of them as hexadecimal digits"),
        };
        words(format!("{}: {}{hex}", own.file, plural(own.rows, "row")))
    });
    let mut blocks = vec![text(format!("journal {}", applied.journal))];
    blocks.extend(list(saved));
    if document.outcome != HealOutcome::Undone {
        blocks.push(Block::Command(format!(
            "pgclinic heal --undo {}",
            pgclinic_model::shell_word(&applied.journal)
        )));
    }
    vec![section("Journal").of(blocks)]
}
