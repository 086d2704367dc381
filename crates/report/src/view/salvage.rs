//! The account of a salvage: the outcome, what is lost, the tables that are not whole, what was
//! not salvaged.

use std::cmp::Reverse;

use pgclinic_model::document::{
    CheckAccount, CountAccount, LargeObjectsAccount, Outcome, ReplayAccount, RowCounts,
    SalvageReport, SequenceAccount, SnapshotAccount, TableAccount,
};

use super::permalinks;
use super::picture::{Fate, PartsBar};
use super::{
    Block, Fold, Frame, Look, Medium, ParagraphStyle, Part, Row, Style, Table, Tone, Verdict, View,
    Words, and_more, card, columns, entries, fold, in_terminal, left, list, looked_at, meaning,
    not_done, number, on_page, reasons, right, section, short_list, target_facts, text, words,
};
use crate::headline::UNVERIFIED;
use crate::salvaged::{
    CARVED, PlaceGroup, check_words, column_words, count_words, counts_words, extent, grouped,
    not_replayed_words, object_words, place_words, row_counts,
};
use crate::words as say;
use crate::words::{bytes, count, count_of, plural};

/// Places of loss that a terminal shows of one table.
const PLACES_SHOWN: usize = 10;
/// Tables that a terminal shows.
const TABLES_SHOWN: usize = 20;
/// A list of more places is closed at first.
const OPEN_PLACES: usize = 12;

pub(super) fn view(account: &SalvageReport) -> View {
    let verdict = verdict(account);
    let title = format!("Salvage {}", verdict.word);
    let (form, rows) = (&account.form, &account.rows);
    let mut facts = target_facts(&account.target);
    facts.extend([("output format", words(form)), ("rows", words(rows))]);
    let mut blocks = vec![Block::Verdict(verdict), on_page(vec![Block::Facts(facts)])];
    blocks.extend(tables_written(account));
    blocks.extend(snapshots(&account.snapshots));
    let lost = account.lost_databases.iter();
    let lost = lost.map(|lost| words(format!("database {}: {}", lost.database, lost.why)));
    blocks.extend(card(Tone::Bad, "Lost databases").unless_empty(list(lost)));
    let lost = account.lost_catalogs.iter();
    let lost = lost.map(|lost| words(format!("database {}: {}", lost.database, lost.why)));
    blocks.extend(card(Tone::Bad, "Lost catalogs").unless_empty(list(lost)));
    blocks.extend(not_done("Not salvaged", &account.not_salvaged));
    let is_running = account.source.is_some() || account.target.is_running();
    let replay = |own| self::replay(own, is_running);
    blocks.extend(account.replay.as_ref().map(replay));
    // What the run did not come to is named in one line.
    let is_undone = |table: &TableAccount| account.interrupted && table.file.is_none();
    let tables = account.tables.iter();
    let tables = tables.filter(|table| !is_plain(table) && !is_undone(table));
    let mut tables: Vec<&TableAccount> = tables.collect();
    tables.sort_by_key(|own| Reverse(own.rows.lost));
    let tables = tables.into_iter();
    let title_of_tables = Part::new(Frame::PageSection, "What is to be known of tables");
    blocks.extend(title_of_tables.unless_empty(tables.map(table).collect()));
    blocks.push(on_page(other_counts(account)));
    blocks.extend(counts(&account.counts));
    blocks.extend(keys(&account.checks));
    blocks.extend(large_objects(&account.large_objects));
    blocks.extend(sequences(&account.sequences));
    let inherent = account.not_salvaged.iter().filter(|entry| entry.inherent);
    let title_of_inherent =
        card(Tone::Plain, "To be known").about("it does not change the verdict");
    blocks.extend(title_of_inherent.unless_empty(reasons(inherent)));
    View::new(
        title,
        "pgclinic salvage",
        &account.target.spec,
        &account.tool,
        blocks,
    )
}

fn verdict(account: &SalvageReport) -> Verdict {
    let (tone, word) = match account.outcome {
        _ if account.interrupted => (Tone::Warn, "INTERRUPTED"),
        Outcome::Whole => (Tone::Good, "WHOLE"),
        Outcome::Damaged => (Tone::Bad, "DAMAGED"),
        Outcome::Incomplete => (Tone::Warn, "INCOMPLETE"),
    };
    let (parts, time) = (extent(account), say::seconds(account.elapsed_s));
    let unverified = account.target.checksums == Some(false);
    let is_damaged = account.outcome == Outcome::Damaged;
    let running = say::beside(&account.target);
    let beside: Vec<&str> = [running, UNVERIFIED]
        .into_iter()
        .filter(|own| !own.is_empty() && (*own != UNVERIFIED || (unverified && !is_damaged)))
        .collect();
    let unverified = (unverified && is_damaged).then(|| format!("; {UNVERIFIED}"));
    let extent = format!(
        "{} in {time}{}",
        parts.join(", "),
        unverified.unwrap_or_default()
    );
    Verdict::new(tone, word, extent)
        .beside(beside.join(", "))
        .about(looked_at(
            &account.target,
            &account.tool,
            &[format!("form {}, rows {}", account.form, account.rows)],
        ))
        .meaning(meaning::salvage(account))
        .bar(rows_bar(&account.totals))
}

/// What became of the rows.
fn rows_bar(rows: &RowCounts) -> PartsBar {
    let doubtful = rows.suspect.min(rows.written);
    let parts = [
        (Fate::Sound, rows.written - doubtful, "written"),
        (Fate::Doubtful, doubtful, "written, suspect"),
        (Fate::Bad, rows.lost, "lost"),
    ];
    PartsBar::of(parts, |number| plural(number, "row"))
}

/// Where a page tells of a table.
fn place_of(table: &TableAccount) -> String {
    permalinks::of_relation(
        Some(&table.database),
        Some(&table.schema),
        Some(&table.table),
        "",
    )
}

fn is_hurt(table: &TableAccount) -> bool {
    table.file.is_none() || !table.is_whole()
}

fn is_plain(table: &TableAccount) -> bool {
    !is_hurt(table) && table.notes.is_empty() && table.columns_as.is_empty()
}

/// The log of a cluster whose server runs, or did not write all to its files before it ended.
fn replay(replay: &ReplayAccount, is_running: bool) -> Block {
    let why = if is_running {
        "A server runs on these files: what stands in its write-ahead log alone was applied in memory."
    } else {
        "The cluster was not shut down in good order: what its files lack was applied in memory."
    };
    let facts = vec![
        ("from", words(&replay.start)),
        ("to", words(&replay.end)),
        ("ends because", words(&replay.why)),
        ("records", number(replay.records)),
        ("changes applied", number(replay.applied)),
        ("not applied", number(replay.not_applied)),
    ];
    let mut blocks = vec![text(why), Block::Facts(facts)];
    let faults = replay.faults.iter().map(words);
    blocks.extend(short_list(faults, PLACES_SHOWN, and_more));
    section("Write-ahead log").of(blocks)
}

fn snapshots(snapshots: &[SnapshotAccount]) -> Vec<Block> {
    let (line, sentence) = match snapshots {
        [] => return Vec::new(),
        [one] => (
            format!("all tables in one snapshot of {}", one.taken_at),
            "All tables were read in one snapshot, so that they fit together.",
        ),
        more => (
            format!(
                "the server went down meanwhile: tables are of {} snapshots",
                more.len()
            ),
            "The server went down meanwhile, and a new snapshot was begun each time: tables of different ones may not fit together.",
        ),
    };
    let rows = snapshots.iter().map(|own| {
        Row::of(vec![
            words(own.number.to_string()),
            words(&own.taken_at),
            Words::default().code(&own.transactions),
        ])
    });
    let columns = columns("Snapshot | Taken at | Transactions");
    let table = Table::new(columns, rows).style(Style::Board);
    vec![
        in_terminal(vec![text(line)]),
        on_page(vec![
            section("Snapshots").of(vec![text(sentence), Block::Table(table)]),
        ]),
    ]
}

/// A table that is not whole, or of which something should be known.
fn table(table: &TableAccount) -> Block {
    let of = if table.database.is_empty() {
        "a file without its cluster".into()
    } else {
        format!("database {}", table.database)
    };
    let mut rows: Vec<(&str, Words)> = vec![("rows", row_counts(table).into())];
    if table.changed_pages > 0 {
        let pages = plural(table.changed_pages, "page");
        let words = format!("the server wrote {pages} while it was read");
        rows.push(("note", words.into()));
    }
    if table.not_replayed > 0 {
        rows.push(("log", not_replayed_words(table).into()));
    }
    if table.file.is_none() {
        rows.push(("file", "not written whole, and removed".into()));
    }
    rows.extend(table.suspect_file.iter().map(|file| {
        let number = plural(table.rows.suspect, "row");
        (
            "suspect",
            format!("{number} in {file}, each with its reason").into(),
        )
    }));
    rows.extend(table.notes.iter().map(|note| ("note", words(note))));
    rows.extend(table.columns_as.iter().map(|column| {
        let words = format!("column {}", column_words(column));
        ("values", words.into())
    }));
    rows.extend(table.lost_keys.iter().map(|keys| {
        let number = plural(keys.keys, "key");
        let words = format!("{number} of {} in {}", keys.index, keys.file);
        ("keys", words.into())
    }));
    rows.extend(places(table));
    let is_short = is_hurt(table) && table.places.len() <= OPEN_PLACES;
    let name = Words::default().strong(format!("{}.{}", table.schema, table.table));
    let kind = if is_hurt(table) {
        Fold::Fault
    } else {
        Fold::Item
    };
    let fold = fold(kind, is_short, name).about(of);
    fold.id(place_of(table)).of(entries(8, rows))
}

/// What is wrong where, and which rows were found without a line pointer; a terminal has the first
/// places.
fn places(table: &TableAccount) -> Vec<(&'static str, Words)> {
    let (carved, damaged): (Vec<_>, Vec<_>) = grouped(&table.places)
        .into_iter()
        .partition(|own| own.why.starts_with(CARVED));
    let mut rows = places_of("damage", &damaged, table.places_omitted);
    rows.extend(places_of("carved", &carved, 0));
    rows
}

fn places_of(
    label: &'static str,
    places: &[PlaceGroup<'_>],
    omitted: u64,
) -> Vec<(&'static str, Words)> {
    let rows = places.iter().enumerate().map(|(at, place)| {
        let words = words(place_words(place));
        match at {
            0 => (label, words),
            _ if at < PLACES_SHOWN => ("", words),
            _ => ("", words.only(Medium::Page)),
        }
    });
    let mut rows: Vec<_> = rows.collect();
    let more = |places: u64| format!("and at {} more", plural(places, "place"));
    let hidden = places.iter().skip(PLACES_SHOWN);
    let hidden: u64 = hidden.map(PlaceGroup::len).sum();
    if omitted > 0 {
        rows.push(("", Words::default().on_page(more(omitted))));
    }
    if hidden + omitted > 0 {
        rows.push(("", Words::default().in_terminal(more(hidden + omitted))));
    }
    rows
}

/// Tables that hold less or more than they should first, then those that nothing counts.
fn counts(counts: &[CountAccount]) -> Vec<Block> {
    if counts.is_empty() {
        return Vec::new();
    }
    let all = counts.iter();
    let (uncounted, counted): (Vec<_>, Vec<_>) = all.partition(|own| own.led_to.is_none());
    let differing = counted.iter().filter(|own| !own.holds());
    let mut blocks = vec![text(counts_words(counts))];
    blocks.extend(list(differing.map(|own| words(count_words(own)))));
    let tables = plural(count_of(uncounted.len()), "table");
    let title = format!("{tables} without an index to count by");
    let uncounted = uncounted.iter().map(|own| words(count_words(own)));
    let uncounted = short_list(uncounted, PLACES_SHOWN, |more| {
        format!("and {} more not counted", plural(more, "table"))
    });
    blocks.extend(fold(Fold::Plain, false, title).unless_empty(uncounted));
    vec![card(Tone::Plain, "Counts").of(blocks)]
}

fn keys(checks: &[CheckAccount]) -> Vec<Block> {
    if checks.is_empty() {
        return Vec::new();
    }
    let held = checks
        .iter()
        .filter(|check| check.broken == 0 && check.not_checked.is_none());
    let (held, all) = (count_of(held.count()), count_of(checks.len()));
    let mut blocks = vec![text(format!(
        "{} of {} hold",
        count(held),
        plural(all, "key")
    ))];
    for check in checks {
        let Some(told) = check_words(check) else {
            continue;
        };
        let keys = short_list(check.listed.iter().map(words), PLACES_SHOWN, |more| {
            format!("and {} more", plural(more, "key"))
        });
        blocks.extend(if keys.is_empty() {
            list([words(told)])
        } else {
            vec![fold(Fold::Plain, false, told).of(keys)]
        });
    }
    vec![card(Tone::Plain, "Keys").of(blocks)]
}

/// A column of counts.
type Count = (&'static str, fn(&TableAccount) -> u64);

/// What everybody asks first, of every table.
const FIRST_COUNTS: [Count; 6] = [
    ("Written", |table| table.rows.written),
    ("Live", |table| table.rows.live),
    ("Partial", |table| table.rows.partial),
    ("Carved", |table| table.rows.carved),
    SUSPECT,
    ("Lost", |table| table.rows.lost),
];

/// It has a column where a table has some.
const SUSPECT: Count = ("Suspect", |table| table.rows.suspect);

/// The others; those that are zero for all tables are left out.
const OTHER_COUNTS: [Count; 10] = [
    ("Dead", |table| table.rows.dead),
    ("Mended", |table| table.rows.mended),
    ("Uncertain", |table| table.rows.uncertain),
    ("Withheld", |table| table.rows.withheld),
    ("Lost by estimate", |table| table.rows.lost_estimated),
    ("Not read", |table| table.rows.not_read),
    ("Damaged pages", |table| table.damaged_pages),
    ("Pages not read", |table| table.pages_not_read),
    ("Not replayed", |table| table.not_replayed),
    ("Changed pages", |table| table.changed_pages),
];

/// The name, which leads to what is to be known of a table.
fn name_of(table: &TableAccount) -> Words {
    let name = format!("{}.{}", table.schema, table.table);
    if is_plain(table) {
        words(name)
    } else {
        Words::default().and(Look::Link(format!("#{}", place_of(table))), name)
    }
}

/// Every table, the one that lost most first.
fn tables_written(account: &SalvageReport) -> Vec<Block> {
    if account.tables.is_empty() {
        return vec![Block::Text(
            ParagraphStyle::Quiet,
            "No table was written.".into(),
        )];
    }
    let mut tables: Vec<&TableAccount> = account.tables.iter().collect();
    tables.sort_by_key(|own| (Reverse(own.rows.lost), Reverse(is_hurt(own))));
    let snapshot = (account.snapshots.len() > 1).then(|| left("Snapshot"));
    let mut columns = vec![left("Table"), left("Database").only(Medium::Page)];
    let has_some = |of: fn(&TableAccount) -> u64| account.tables.iter().any(|own| of(own) > 0);
    let is_there = |(name, of): &&Count| *name != SUSPECT.0 || has_some(*of);
    let counts: Vec<&Count> = FIRST_COUNTS.iter().filter(is_there).collect();
    columns.extend(counts.iter().map(|(name, of)| {
        let is_shown = matches!(*name, "Written" | "Lost") || (*name != "Live" && has_some(*of));
        let medium = if is_shown { Medium::Both } else { Medium::Page };
        right(*name).only(medium)
    }));
    columns.extend(snapshot.clone());
    columns.extend([right("Bytes").only(Medium::Page), left("File")]);
    let rows = tables.into_iter().map(|table| {
        let mut cells = vec![name_of(table), words(&table.database)];
        cells.extend(counts.iter().map(|(_, of)| number(of(table))));
        let numbers = || Vec::from_iter(table.snapshots.iter().map(u32::to_string)).join(", ");
        cells.extend(snapshot.as_ref().map(|_| words(numbers())));
        let file = table.file.as_deref();
        cells.push(bytes(table.file_bytes).into());
        cells.push(file.unwrap_or("not written whole, and removed").into());
        Row::of(cells).fault(is_hurt(table))
    });
    let table = Table::new(columns, rows)
        .style(Style::Board)
        .short(TABLES_SHOWN, |more| {
            format!("{}, which stand in salvage.json", and_more(more))
        });
    vec![section("Tables").of(vec![Block::Table(table)])]
}

/// The other counts of tables that have some.
fn other_counts(account: &SalvageReport) -> Vec<Block> {
    let is_shown = |(_, of): &&Count| account.tables.iter().any(|table| of(table) > 0);
    let counts: Vec<&Count> = OTHER_COUNTS.iter().filter(is_shown).collect();
    let has_some = |table: &&TableAccount| counts.iter().any(|(_, of)| of(table) > 0);
    let rows = account.tables.iter().filter(has_some).map(|table| {
        let mut cells = vec![name_of(table), words(&table.database)];
        cells.extend(counts.iter().map(|(_, of)| number(of(table))));
        Row::of(cells).fault(is_hurt(table))
    });
    let mut columns = columns("Table | Database");
    columns.extend(counts.iter().map(|(name, _)| right(*name)));
    let table = Table::new(columns, rows).style(Style::Board);
    fold(Fold::Card, false, "Other counts of tables").unless_empty(table.unless_empty())
}

fn large_objects(files: &[LargeObjectsAccount]) -> Vec<Block> {
    let columns = columns("Database | Objects > | Bytes of objects > | Bytes of the file > | File");
    let rows = files.iter().map(|own| {
        Row::of(vec![
            words(&own.database),
            number(own.objects),
            bytes(own.bytes).into(),
            bytes(own.file_bytes).into(),
            words(&own.file),
        ])
        .fault(!own.places.is_empty())
    });
    let table = Table::new(columns, rows).style(Style::Board);
    let mut blocks = vec![on_page(table.unless_empty())];
    for own in files {
        let (objects, database) = (plural(own.objects, "large object"), &own.database);
        let line = format!("{objects} of database {database} in {}", own.file);
        blocks.push(in_terminal(vec![text(line)]));
        if own.lost_objects > 0 {
            let line = format!(
                "lost of {} of them: {}, by the entries of indexes",
                plural(own.lost_objects, "large object"),
                plural(own.lost_pages, "page")
            );
            blocks.push(text(line));
        }
        let places = grouped(&own.places);
        let places = places.iter().map(place_words);
        let lost = places.chain(own.doubtful.iter().map(object_words));
        let title = fold(Fold::Plain, true, format!("Lost of database {database}"));
        let lost = short_list(lost.map(words), PLACES_SHOWN, and_more);
        blocks.extend(title.unless_empty(lost));
    }
    if files.is_empty() {
        Vec::new()
    } else {
        vec![section("Large objects").of(blocks)]
    }
}

/// All of them on a page; in a terminal those whose values may be wrong.
fn sequences(sequences: &[SequenceAccount]) -> Vec<Block> {
    let name = |own: &SequenceAccount| format!("{}.{}", own.schema, own.sequence);
    let doubtful = sequences.iter().filter_map(|own| {
        let (name, doubt) = (name(own), own.doubt.as_ref()?);
        let (database, value) = (&own.database, own.last_value);
        Some(words(format!(
            "{name} of database {database}, {value}: {doubt}"
        )))
    });
    let doubtful = list(doubtful);
    let rows = sequences.iter().map(|own| {
        let given_out = if own.is_called { "yes" } else { "not yet" };
        let doubt = own.doubt.as_ref().map(|doubt| format!(": {doubt}"));
        Row::of(vec![
            name(own).into(),
            words(&own.database),
            own.last_value.to_string().into(),
            format!("{given_out}{}", doubt.unwrap_or_default()).into(),
        ])
    });
    let columns = columns("Sequence | Database | Last value > | Given out");
    let table = Table::new(columns, rows).style(Style::Board).unless_empty();
    let title = plural(count_of(sequences.len()), "sequence");
    let all = fold(Fold::Card, !doubtful.is_empty(), title).unless_empty(table);
    let card = card(Tone::Warn, "Sequences");
    vec![on_page(all), in_terminal(card.unless_empty(doubtful))]
}
