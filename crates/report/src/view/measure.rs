//! The figures of a cluster's relations: the largest in tables, and of each its figures and
//! pictures. A terminal gives every figure of a few relations alone.

use pgclinic_model::document::{
    Advice, Figure, Growth, MeasureDocument, MeasuredColumn, MeasuredRelation, Sections,
};
use pgclinic_model::{FigureKinds, FigureList};

use super::figures::{figures, named_figures, shares};
use super::relation_names::RelationNames;
use super::{
    Block, Fold, FoldState, Frame, Look, ParagraphStyle, Part, Row, Style, Table, Tone, Verdict,
    View, Words, and_more, columns, fold, in_terminal, inherent, list, looked_at, meaning,
    not_done, number, on_page, section, short_list, space, target_facts, text, words,
};
use crate::Options;
use crate::figure_words::{interval, time};
use crate::measured::figure as short;
use crate::words as say;
use crate::words::{bytes, count, count_of, plural};

/// Relations of a kind that a terminal lists.
const LISTED_MAX: usize = 25;
/// So many relations or fewer are told in whole in a terminal.
const TERMINAL_WHOLE_MAX: usize = 8;
/// Relations and columns that get figures and pictures of their own on a page, which stays below a
/// megabyte with them.
const PAGE_WHOLE_MAX: usize = 40;
/// So many of them are the server's own.
const SERVERS_WHOLE_MAX: usize = 5;
/// Relations of one kind that a page lists, and of the server's own.
const PAGE_LISTED_MAX: usize = 250;
const SERVERS_LISTED_MAX: usize = 20;
/// Hints, limits, columns and relations that grow are listed up to this number in a terminal.
const NOTED_MAX: usize = 10;

pub(super) fn view(document: &MeasureDocument, options: &Options<'_>) -> View {
    let kinds = options.figures;
    let names = RelationNames::of(document);
    let mut relations: Vec<_> = document.relations.iter().collect();
    relations.sort_by_key(|own| std::cmp::Reverse(own.bytes));
    let whole = told_in_whole(&relations);
    let is_told = |own: &MeasuredRelation| whole.iter().any(|told| std::ptr::eq(*told, own));
    let mut blocks = vec![
        Block::Verdict(verdict(document)),
        on_page(vec![Block::Facts(target_facts(&document.target))]),
    ];
    blocks.extend(document.notes.iter().map(text));
    blocks.extend(document.sample_percent.map(sample));
    blocks.extend(not_done("Not measured", &document.coverage.not_checked));
    blocks.extend(inherent(&document.coverage.not_checked));
    // What follows from the figures comes before them.
    blocks.extend(space::space(document, &is_told));
    blocks.extend(advice(document));
    let told = Told {
        names: &names,
        is_told: &is_told,
    };
    if document.relations.len() <= TERMINAL_WHOLE_MAX {
        let all = document.relations.iter();
        let all = all.map(|own| whole_relation(FoldState::Yes, own, &names, kinds));
        blocks.push(in_terminal(all.collect()));
        blocks.push(on_page(overview(&relations, &told)));
    } else {
        blocks.extend(overview(&relations, &told));
        blocks.push(in_terminal(large_objects(document, &kinds.of_databases)));
    }
    blocks.push(on_page(databases(document, &kinds.of_databases)));
    let single = if whole.len() == 1 {
        FoldState::Yes
    } else {
        FoldState::No
    };
    let whole = whole
        .iter()
        .map(|own| whole_relation(single, own, &names, kinds));
    blocks.push(on_page(
        section("Relation by relation").unless_empty(whole.collect()),
    ));
    View::new(
        "Measurements",
        "pgclinic measure",
        &document.target.spec,
        &document.tool,
        blocks,
    )
}

/// Of users' relations the largest, and of the server's those that still have room: each takes some
/// kilobytes, and so does each of its columns.
fn told_in_whole<'a>(relations: &[&'a MeasuredRelation]) -> Vec<&'a MeasuredRelation> {
    let relations = relations.iter().copied();
    let with_figures = relations.filter(|own| !own.sections.is_empty());
    let (servers, own): (Vec<_>, Vec<_>) = with_figures.partition(|own| own.is_servers());
    let mut room = PAGE_WHOLE_MAX;
    let servers = servers.into_iter().take(SERVERS_WHOLE_MAX);
    let fitting = own.into_iter().chain(servers).filter(|own| {
        let needed = 1 + own.columns.len();
        let fits = needed <= room;
        room = room.saturating_sub(if fits { needed } else { 0 });
        fits
    });
    fitting.collect()
}

/// What relations are called, and of which a page tells more.
struct Told<'n, 'a> {
    names: &'n RelationNames<'a>,
    is_told: &'n dyn Fn(&MeasuredRelation) -> bool,
}

impl Told<'_, '_> {
    fn name(&self, own: &MeasuredRelation) -> Words {
        let name = self.names.name(own);
        let name = if (self.is_told)(own) {
            let link = Look::Link(format!("#{}", space::place(own)));
            Words::default().and(link, name)
        } else {
            words(name)
        };
        titled(name, own)
    }
}

fn verdict(document: &MeasureDocument) -> Verdict {
    let total = |name: &str| {
        let relations = document.relations.iter();
        let counts = relations.filter_map(|own| own.count("table", name));
        counts.sum::<u64>()
    };
    let (length, dead, free) = (
        total("table_len"),
        total("dead_tuple_len"),
        total("free_space"),
    );
    let share = |part| say::percent(part, length);
    let (dead, free) = (share(dead), share(free));
    let tables = format!("tables are {dead} % dead rows and {free} % free space");
    let coverage = &document.coverage;
    let relations = plural(coverage.relations, "relation");
    let (size, time) = (bytes(coverage.bytes_seen), say::seconds(document.elapsed_s));
    let has_gaps = coverage.not_checked.iter().any(|gap| !gap.inherent);
    let (tone, word) = match () {
        () if document.interrupted => (Tone::Warn, "INTERRUPTED"),
        () if has_gaps => (Tone::Warn, "INCOMPLETE"),
        () => (Tone::Good, "MEASURED"),
    };
    Verdict::new(tone, word, format!("{relations}, {size} in {time}"))
        .beside(say::beside(&document.target))
        .more(Vec::from_iter((length > 0).then(|| tables.into())))
        .about(looked_at(&document.target, &document.tool, &[]))
        .meaning(meaning::measure(document))
        .in_lines()
}

fn sample(percent: f64) -> Block {
    text(format!(
        "a sample of {} %: figures of large relations are estimates, in brackets where they lie with a confidence of 95 %",
        short(percent)
    ))
}

/// A table of relations of one kind.
struct Board {
    title: &'static str,
    /// Names of the columns after the first.
    columns: &'static str,
    picks: fn(&MeasuredRelation) -> bool,
    section: &'static str,
    /// Figures of the section, in the order of their columns after the size.
    figures: &'static [&'static str],
}

const BOARDS: [Board; 3] = [
    Board {
        title: "Tables",
        columns: "Table | Size > | Rows > | (Live %) > | Dead % > | Free % > | Rewrite frees >",
        picks: is_table,
        section: "table",
        figures: &[
            "tuple_count",
            "tuple_percent",
            "dead_tuple_percent",
            "free_percent",
            "rewrite_gives_back_bytes",
        ],
    },
    Board {
        title: "B-trees",
        columns: "B-tree = btree | Size > | Rows > | Density % > | Fragments % > | Rows a leaf = a leaf >",
        picks: |own| !is_table(own) && is_btree(own),
        section: "index",
        figures: &[
            "row_count",
            "avg_leaf_density",
            "leaf_fragmentation",
            "items_per_leaf",
        ],
    },
    Board {
        title: "Other relations",
        columns: "Other relation | Size > | Items > | Free % > | Kind",
        picks: |own| !is_table(own) && !is_btree(own),
        section: "index",
        figures: &["tuple_count", "free_percent"],
    },
];

fn is_table(own: &MeasuredRelation) -> bool {
    own.sections.contains_key("table")
}

fn is_btree(own: &MeasuredRelation) -> bool {
    own.access_method.as_deref() == Some("btree")
}

/// A figure in few letters, or a dash in a terminal.
fn cell(own: &MeasuredRelation, section: &str, name: &str) -> Words {
    match own.figure(section, name) {
        Some(Figure::Count(size)) if name.ends_with("_bytes") => bytes(*size).into(),
        Some(Figure::Count(count)) => number(*count),
        Some(Figure::Real(share)) => format!("{share:.1}").into(),
        Some(Figure::Spread(spread)) => format!("{:.2}", spread.mean).into(),
        _ => Words::none(),
    }
}

/// The tables of all relations, and how long values are kept.
fn overview(relations: &[&MeasuredRelation], told: &Told<'_, '_>) -> Vec<Block> {
    let mut blocks = vec![Block::Filter("#relations .board tbody tr", "")];
    for board in &BOARDS {
        let relations = relations.iter().copied();
        let picked: Vec<_> = relations.filter(|own| (board.picks)(own)).collect();
        if !picked.is_empty() {
            blocks.extend(board_of(board, &picked, told));
        }
    }
    blocks.extend(long_values(relations));
    let part = Part::new(Frame::PageSection, "Relations, the largest first");
    vec![part.id("relations").of(blocks)]
}

/// On a page all of people, and folded below them those of the server itself; in a terminal the
/// largest. What is under a thousandth of the largest is left out there.
fn board_of(board: &Board, picked: &[&MeasuredRelation], told: &Told<'_, '_>) -> Vec<Block> {
    let (servers, own): (Vec<_>, Vec<_>) = picked.iter().partition(|own| own.is_servers());
    let table = |rows: &[&MeasuredRelation]| {
        let rows = rows.iter().map(|own| row(board, own, told));
        Table::new(columns(board.columns), rows).style(Style::Board)
    };
    let first = |rows: &[&MeasuredRelation], limit: usize| {
        let (shown, rest) = rows.split_at(rows.len().min(limit));
        let mut blocks = table(shown).unless_empty();
        if !rest.is_empty() {
            let line = smaller(count_of(rest.len()));
            blocks.push(Block::Text(ParagraphStyle::Quiet, line.into()));
        }
        blocks
    };
    let mut page = first(&own, PAGE_LISTED_MAX);
    let mut servers_line = None;
    if !servers.is_empty() {
        let relations = plural(count_of(servers.len()), "relation");
        let size = bytes(servers.iter().map(|own| own.bytes).sum());
        servers_line = (!own.is_empty()).then(|| {
            text(format!(
                "and {relations} of the server itself, {size} together"
            ))
        });
        let title = words(format!("{relations} of the server itself")).quiet(format!(" {size}"));
        page.push(fold(Fold::More, own.is_empty(), title).of(first(&servers, SERVERS_LISTED_MAX)));
    }
    // Those of the server itself are a line, unless nothing else was asked for.
    let picked = if own.is_empty() {
        picked
    } else {
        own.as_slice()
    };
    let (picked, _) = picked.split_at(picked.partition_point(|own| own.bytes > 0));
    let least = picked.first().map_or(0, |own| own.bytes / 1000);
    let worth = picked.partition_point(|own| own.bytes >= least);
    let listed = table(picked).short(worth.min(LISTED_MAX), smaller);
    vec![
        on_page(vec![Part::new(Frame::PageSection, board.title).of(page)]),
        in_terminal(listed.unless_empty()),
        in_terminal(Vec::from_iter(servers_line)),
    ]
}

fn smaller(more: u64) -> String {
    format!(
        "and {} of smaller size; --relation NAME shows all figures of one, --format json those of all",
        count(more)
    )
}

fn row(board: &Board, own: &MeasuredRelation, told: &Told<'_, '_>) -> Row {
    let mut cells = vec![told.name(own), bytes(own.bytes).into()];
    let figures = board.figures.iter();
    cells.extend(figures.map(|name| cell(own, board.section, name)));
    // The last column of a board that has one more; printers leave out what has no column.
    let kind = own.access_method.as_deref();
    cells.push(kind.map_or_else(Words::none, words));
    Row::of(cells)
}

/// The name with its database.
pub(super) fn titled(name: Words, own: &MeasuredRelation) -> Words {
    match &own.database {
        Some(database) => name.quiet(format!(" in {database}")),
        None => name,
    }
}

/// Every figure of one relation.
fn whole_relation(
    opened: FoldState,
    own: &MeasuredRelation,
    names: &RelationNames<'_>,
    kinds: &FigureKinds,
) -> Block {
    let name = names.name(own);
    let mut about = format!("{}, {}", bytes(own.bytes), plural(own.blocks, "page"));
    if name != own.name() {
        about.push_str(&format!(", {}", own.name()));
    }
    let title = titled(Words::default().strong(name), own);
    let mut blocks = ledger(own);
    blocks.extend(figures(
        &kinds.of_relations,
        &own.sections,
        &|section, kind| interval(own, section, kind),
    ));
    for column in &own.columns {
        blocks.extend(whole_column(column, &kinds.of_columns));
    }
    let fold = Part::new(Frame::Fold(Fold::Item, opened), title).about(about);
    fold.id(space::place(own)).of(blocks)
}

fn whole_column(column: &MeasuredColumn, kinds: &FigureList) -> Vec<Block> {
    let mut blocks = make_up(&column.sections);
    blocks.extend(named_figures(kinds, &column.sections));
    let (name, type_name) = (&column.name, &column.type_name);
    let title = words(name).quiet(format!(" {type_name}"));
    let line = Words::default().strong(format!("column {name} ({type_name})"));
    vec![
        in_terminal(vec![text(line)]),
        Part::new(Frame::PageSection, title).of(blocks),
    ]
}

/// Where the bytes of a table go, as one bar.
fn ledger(own: &MeasuredRelation) -> Vec<Block> {
    const PARTS: [(&str, &str, &str); 6] = [
        ("live_bytes", "l", "live rows"),
        ("dead_bytes", "d", "dead row versions"),
        ("line_pointer_bytes", "h", "line pointers"),
        ("header_bytes", "h", "page headers"),
        ("padding_bytes", "s", "padding"),
        ("hole_bytes", "f", "free"),
    ];
    match own.count("table", "live_bytes") {
        None => Vec::new(),
        Some(_) => {
            let part = |name: &str| own.count("table", name).unwrap_or(0);
            vec![shares("where the bytes go", own.bytes, &PARTS, part)]
        }
    }
}

/// How the values of a column are kept, as one bar.
fn make_up(sections: &Sections) -> Vec<Block> {
    const PARTS: [(&str, &str, &str); 6] = [
        ("plain_bytes", "l", "in the row as they are"),
        ("pglz_bytes", "h", "in the row, pglz"),
        ("lz4_bytes", "t", "in the row, lz4"),
        ("external_bytes", "f", "outside as they are"),
        ("external_pglz_bytes", "s", "outside, pglz"),
        ("external_lz4_bytes", "d", "outside, lz4"),
    ];
    let part = |name: &str| toast(sections, name);
    let stored = part("stored_bytes");
    vec![shares("how its bytes are kept", stored, &PARTS, part)]
}

fn toast(sections: &Sections, name: &str) -> u64 {
    match sections.get("toast").and_then(|own| own.get(name)) {
        Some(Some(Figure::Count(number))) => *number,
        _ => 0,
    }
}

/// How the long values of columns are kept, the largest first.
fn long_values(relations: &[&MeasuredRelation]) -> Vec<Block> {
    const LONG: [&str; 5] = [
        "pglz_values",
        "lz4_values",
        "external_values",
        "external_pglz_values",
        "external_lz4_values",
    ];
    let all = relations
        .iter()
        .flat_map(|own| own.columns.iter().map(move |column| (*own, column)));
    let is_long = |column: &MeasuredColumn| {
        let mut names = LONG.iter();
        names.any(|name| toast(&column.sections, name) > 0)
    };
    let mut long: Vec<_> = all.filter(|(_, column)| is_long(column)).collect();
    // Those of the server itself are in its JSON, unless nothing else is there.
    if long.iter().any(|(own, _)| !own.is_servers()) {
        long.retain(|(own, _)| !own.is_servers());
    }
    long.sort_by_key(|(_, column)| std::cmp::Reverse(toast(&column.sections, "stored_bytes")));
    let rows = long.into_iter().map(|(own, column)| {
        let sum = |names: &[&str]| {
            let values = names.iter().map(|name| toast(&column.sections, name));
            values.sum::<u64>()
        };
        Row::of(vec![
            titled(words(format!("{}.{}", own.name(), column.name)), own),
            bytes(sum(&["stored_bytes"])).into(),
            bytes(sum(&["raw_bytes"])).into(),
            number(sum(&["plain_values", "external_values"])),
            number(sum(&["pglz_values", "external_pglz_values"])),
            number(sum(&["lz4_values", "external_lz4_values"])),
            number(sum(&LONG[2..])),
            number(sum(&["old_method_values"])),
        ])
    });
    let headers = columns(
        "TOASTed values of = TOASTed values of | Stored > | Decompressed > | As they are > | pglz > | lz4 > | Outside > | Old >",
    );
    let table = Table::new(headers, rows).style(Style::Board);
    let title = Part::new(Frame::PageSection, "TOASTed values");
    title.unless_empty(table.short(NOTED_MAX, smaller).unless_empty())
}

/// Large objects, where there are any.
fn large_objects(document: &MeasureDocument, kinds: &FigureList) -> Vec<Block> {
    let databases = document.databases.iter();
    let with_objects = databases.filter(|own| own.sections.contains_key("large_objects"));
    let kinds: FigureList = kinds
        .iter()
        .filter(|(section, _)| *section == "large_objects")
        .copied()
        .collect();
    let objects = with_objects.map(|own| {
        let title = section(format!("large objects of {}", own.database));
        title.of(named_figures(&kinds, &own.sections))
    });
    objects.collect()
}

fn databases(document: &MeasureDocument, kinds: &FigureList) -> Vec<Block> {
    let databases = document.databases.iter().map(|own| {
        let title = fold(Fold::Item, false, Words::default().strong(&own.database));
        title.of(named_figures(kinds, &own.sections))
    });
    section("Databases").unless_empty(databases.collect())
}

/// What follows from the figures: advice that applies, indexes that could go, and what grows.
fn advice(document: &MeasureDocument) -> Vec<Block> {
    let mut blocks = pieces(&document.advice);
    blocks.extend(hints(document));
    blocks.extend(document.growth.as_ref().map(growth));
    blocks
}

/// Each piece: its name, what was seen, and the commands as they are to be typed.
fn pieces(advice: &[Advice]) -> Vec<Block> {
    let all = advice.iter().flat_map(|own| {
        let mut title = Words::default().strong(&own.advice);
        if let Some(database) = &own.database {
            title = title.quiet(format!(" in {database}"));
        }
        let mut blocks = vec![text(&own.message)];
        blocks.extend(short_list(own.of.iter().map(words), NOTED_MAX, and_more));
        blocks.extend(own.commands.iter().cloned().map(Block::Command));
        blocks.push(text(format!("settled by {}", own.settled_by)));
        [
            in_terminal(vec![text(title.clone())]),
            Part::new(Frame::PageSection, title).of(blocks),
        ]
    });
    section("Advice that applies").unless_empty(all.collect())
}

fn hints(document: &MeasureDocument) -> Vec<Block> {
    let lines = document.hints.iter().map(|own| {
        let (hint, relation, database) = (&own.hint, &own.relation, &own.database);
        let (size, message) = (bytes(own.bytes), &own.message);
        words(format!(
            "{hint} {relation} in {database}, {size}: {message}"
        ))
    });
    let rows = document.hints.iter().map(|own| {
        Row::of(vec![
            words(&own.relation),
            words(&own.database),
            bytes(own.bytes).into(),
            words(&own.message),
        ])
    });
    let columns = columns("Index | Database | Size > | Why");
    let lines = short_list(lines, NOTED_MAX, |more| {
        format!("and {}", plural(more, "more hint"))
    });
    let table = Table::new(columns, rows).unless_empty();
    if document.hints.is_empty() {
        Vec::new()
    } else {
        vec![section("Indexes that could go").of(vec![in_terminal(lines), on_page(table)])]
    }
}

fn growth(growth: &Growth) -> Block {
    let hours = growth.seconds as f64 / 3600.0;
    let daily = |number: f64| short(number.round());
    let mut blocks = vec![text(format!(
        "in {} hours, a day: {} bytes of relations, {} dead rows, {} transactions, {} bytes of WAL",
        short(hours),
        daily(growth.bytes_per_day),
        daily(growth.dead_rows_per_day),
        daily(growth.xids_per_day),
        daily(growth.wal_bytes_per_day)
    ))];
    blocks.extend(list(growth.limits.iter().map(|limit| {
        words(format!(
            "{}: {} {}, and the limit of {} is reached on {} if all goes on like this",
            limit.what,
            count(limit.now),
            limit.of,
            count(limit.limit),
            time(limit.reached)
        ))
    })));
    let rows = growth.relations.iter().map(|own| {
        let dead = own.dead_rows_per_day.map(daily);
        Row::of(vec![
            words(&own.relation),
            bytes(own.bytes).into(),
            daily(own.bytes_per_day).into(),
            dead.map_or_else(Words::none, words),
        ])
    });
    let columns = columns("Relation = grows | Size > | Bytes a day > | Dead rows a day >");
    blocks.extend(
        Table::new(columns, rows)
            .short(NOTED_MAX, smaller)
            .unless_empty(),
    );
    section("Growth").of(blocks)
}
