//! The account of a salvage as text: the outcome, the tables that are not whole, what was not
//! looked at.

use std::io;

use pgclinic_model::document::{
    CheckAccount, ColumnAs, CountAccount, DoubtfulObject, LossPlace, LostBy, Outcome,
    SalvageReport, TableAccount,
};

use super::sheet::{Ink, Sheet};
use crate::words::{self, clean, count, count_of, plural};

/// Places of loss that are shown of one table.
const PLACES_SHOWN: usize = 10;

pub(super) fn render(account: &SalvageReport, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.raw(&headline(account, sheet))?;
    let about = clean(&words::target(&account.target));
    let rows = clean(&account.rows);
    sheet.text(
        2,
        &format!("{about}; form {}, rows {rows}", clean(&account.form)),
    )?;
    if let Some(replay) = &account.replay {
        let words = format!(
            "the write-ahead log from {} to {} was applied in memory: {} changes in {} records, {} not applied",
            clean(&replay.start),
            clean(&replay.end),
            count(replay.applied),
            count(replay.records),
            count(replay.not_applied)
        );
        sheet.text(2, &words)?;
        for fault in replay.faults.iter().take(PLACES_SHOWN) {
            sheet.entry(4, "-", 2, &clean(fault))?;
        }
    }
    match account.snapshots.as_slice() {
        [] => {}
        [one] => sheet.text(
            2,
            &format!("all tables in one snapshot of {}", clean(&one.taken_at)),
        )?,
        more => sheet.text(
            2,
            &format!(
                "the server went down meanwhile: tables are of {} snapshots",
                more.len()
            ),
        )?,
    }
    for objects in &account.large_objects {
        let words = format!(
            "{} of database {} in {}",
            plural(objects.objects, "large object"),
            clean(&objects.database),
            clean(&objects.file)
        );
        sheet.text(2, &words)?;
        for place in objects.places.iter().take(PLACES_SHOWN) {
            sheet.entry(4, "-", 2, &place_words(place))?;
        }
        for object in objects.doubtful.iter().take(PLACES_SHOWN) {
            sheet.entry(4, "-", 2, &object_words(object))?;
        }
        let more = objects.places.len().saturating_sub(PLACES_SHOWN)
            + objects.doubtful.len().saturating_sub(PLACES_SHOWN);
        if more > 0 {
            sheet.text(6, &format!("and {} more", count(count_of(more))))?;
        }
    }
    render_lost_databases(account, sheet)?;
    for table in account.tables.iter().filter(|table| !is_plain(table)) {
        render_table(table, sheet)?;
    }
    render_counts(&account.counts, sheet)?;
    render_sequences(account, sheet)?;
    render_checks(&account.checks, sheet)?;
    render_gaps(account, sheet)
}

/// What was left out, and apart from it what lies in the nature of things.
fn render_gaps(account: &SalvageReport, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let all = account.not_salvaged.iter();
    let (inherent, ours): (Vec<_>, Vec<_>) = all.partition(|reason| reason.inherent);
    for (reasons, ink, title) in [
        (ours, Ink::Warn, "NOT SALVAGED"),
        (inherent, Ink::Strong, "TO BE KNOWN"),
    ] {
        if reasons.is_empty() {
            continue;
        }
        sheet.gap()?;
        let title = sheet.ink(ink, title);
        sheet.raw(&title)?;
        for reason in reasons {
            let words = format!("{}: {}", clean(&reason.what), clean(&reason.why));
            sheet.entry(2, "-", 2, &words)?;
        }
    }
    Ok(())
}

fn render_lost_databases(account: &SalvageReport, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if account.lost_databases.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Bad, "LOST");
    sheet.raw(&title)?;
    for lost in &account.lost_databases {
        let words = format!("database {}: {}", clean(&lost.database), clean(&lost.why));
        sheet.entry(2, "-", 2, &words)?;
    }
    Ok(())
}

fn render_counts(counts: &[CountAccount], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "COUNTS");
    sheet.raw(&title)?;
    sheet.text(2, &counts_words(counts))?;
    let (uncounted, counted): (Vec<_>, Vec<_>) =
        counts.iter().partition(|count| count.led_to.is_none());
    for count in counted.iter().filter(|count| !count.holds()) {
        sheet.entry(2, "-", 2, &clean(&count_words(count)))?;
    }
    for count in uncounted.iter().take(PLACES_SHOWN) {
        sheet.entry(2, "-", 2, &clean(&count_words(count)))?;
    }
    let more = uncounted.len().saturating_sub(PLACES_SHOWN);
    if more > 0 {
        let words = format!("and {} more not counted", plural(count_of(more), "table"));
        sheet.text(4, &words)?;
    }
    Ok(())
}

/// How many tables have the rows that an index counts.
pub(crate) fn counts_words(counts: &[CountAccount]) -> String {
    let held = counts.iter().filter(|count| count.holds());
    format!(
        "{} of {} with as many rows as an index has",
        count(count_of(held.count())),
        plural(count_of(counts.len()), "table")
    )
}

/// `public.docs: 990 rows written, docs_pkey leads to 1,000: 10 are missing`.
pub(crate) fn count_words(told: &CountAccount) -> String {
    let name = format!("{}.{}", told.schema, told.table);
    let written = plural(told.written, "row");
    let Some(known) = told.led_to else {
        let why = told.not_counted.as_deref().unwrap_or("");
        let estimate = match told.estimate {
            Some(rows) => format!("pg_class estimates {}", count(rows)),
            None => "pg_class has no estimate".into(),
        };
        return format!("{name}: {written} written, not counted: {why}; {estimate}");
    };
    let index = told.index.as_deref().unwrap_or("");
    let fate = match (told.missing(), told.unknown()) {
        (0, 0) => String::new(),
        (0, more) => format!(": {} more than it has", count(more)),
        (missing, _) if told.nowhere > 0 => format!(
            ", and {} to where nothing can be read: up to {} missing",
            count(told.nowhere),
            count(missing)
        ),
        (missing, _) => format!(": {} missing", count(missing)),
    };
    format!(
        "{name}: {written} written, {index} leads to {}{fate}",
        count(known)
    )
}

/// Those whose values may be wrong.
fn render_sequences(account: &SalvageReport, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let mut open = account.sequences.iter().filter(|one| one.doubt.is_some());
    if account.sequences.iter().all(|one| one.doubt.is_none()) {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Warn, "SEQUENCES");
    sheet.raw(&title)?;
    open.try_for_each(|sequence| {
        let words = format!(
            "{}.{} of database {}, {}: {}",
            clean(&sequence.schema),
            clean(&sequence.sequence),
            clean(&sequence.database),
            sequence.last_value,
            clean(sequence.doubt.as_deref().unwrap_or_default())
        );
        sheet.entry(2, "-", 2, &words)
    })
}

fn render_checks(checks: &[CheckAccount], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if checks.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "KEYS");
    sheet.raw(&title)?;
    let held = checks
        .iter()
        .filter(|check| check.broken == 0 && check.not_checked.is_none());
    let words = format!(
        "{} of {} hold",
        count(count_of(held.count())),
        plural(count_of(checks.len()), "key")
    );
    sheet.text(2, &words)?;
    for check in checks {
        if let Some(words) = check_words(check) {
            sheet.entry(2, "-", 2, &clean(&words))?;
        }
        for key in check.listed.iter().take(PLACES_SHOWN) {
            sheet.text(6, &clean(key))?;
        }
        let more = check.listed.len().saturating_sub(PLACES_SHOWN);
        if more > 0 {
            sheet.text(6, &format!("and {} more", plural(count_of(more), "key")))?;
        }
    }
    Ok(())
}

/// What a person should know of a key; nothing where it holds.
pub(crate) fn check_words(check: &CheckAccount) -> Option<String> {
    let name = format!(
        "{} of {}.{} ({})",
        check.key,
        check.schema,
        check.table,
        check.columns.join(", ")
    );
    if let Some(why) = &check.not_checked {
        return Some(format!("{name} was not looked at: {why}"));
    }
    let rows = plural(check.broken, "row");
    match (check.broken, &check.references) {
        (0, _) => None,
        (_, Some(parent)) => Some(format!(
            "{name}: {rows} without the row of {parent} that it leads to"
        )),
        (_, None) => Some(format!("{name}: {rows} with the key of another row")),
    }
}

fn headline(account: &SalvageReport, sheet: &Sheet<'_>) -> String {
    let (ink, word) = match account.outcome {
        _ if account.interrupted => (Ink::Warn, "INTERRUPTED"),
        Outcome::Whole => (Ink::Good, "WHOLE"),
        Outcome::Damaged => (Ink::Bad, "DAMAGED"),
        Outcome::Incomplete => (Ink::Warn, "INCOMPLETE"),
    };
    let word = sheet.ink(ink, word);
    let parts = extent(account);
    format!(
        "{word}{}  {} in {}",
        words::beside(&account.target),
        parts.join(", "),
        words::seconds(account.elapsed_s)
    )
}

/// What was written, and what of it or beside it is not as it was.
pub(crate) fn extent(account: &SalvageReport) -> Vec<String> {
    let totals = &account.totals;
    let files = account.tables.iter().filter(|table| table.file.is_some());
    let bytes: u64 = files.clone().map(|table| table.file_bytes).sum();
    let mut parts = vec![format!(
        "{} of {} written, {}",
        plural(totals.written, "row"),
        plural(count_of(files.count()), "table"),
        words::bytes(bytes)
    )];
    parts.extend(lost_words(totals.lost, &account.lost_by));
    for (number, what) in [
        (totals.partial, "partial"),
        (totals.carved, "carved"),
        (totals.mended, "mended"),
        (totals.uncertain, "uncertain"),
        (totals.withheld, "withheld"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", count(number)));
        }
    }
    let databases = count_of(account.lost_databases.len());
    if databases > 0 {
        parts.push(format!("{} lost", plural(databases, "database")));
    }
    let pages: u64 = account.tables.iter().map(|table| table.damaged_pages).sum();
    if pages > 0 {
        parts.push(plural(pages, "damaged page"));
    }
    let doubtful = account.sequences.iter().filter(|one| one.doubt.is_some());
    let doubtful = count_of(doubtful.count());
    if doubtful > 0 {
        parts.push(plural(doubtful, "uncertain sequence"));
    }
    parts
}

/// `lost about 8,549 rows (8,541 by index keys, 8 by estimate)`, or `21 lost` where the number is
/// proven.
pub(crate) fn lost_words(lost: u64, by: &[LostBy]) -> Option<String> {
    (lost > 0).then_some(())?;
    if by.iter().all(|by| by.exact) {
        return Some(format!("{} lost", count(lost)));
    }
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for by in by {
        let words = witness_words(&by.witness);
        match sums.iter_mut().find(|(known, _)| *known == words) {
            Some((_, rows)) => *rows += by.rows,
            None => sums.push((words, by.rows)),
        }
    }
    let parts: Vec<String> = match sums.as_slice() {
        [(words, _)] => vec![(*words).to_owned()],
        more => more
            .iter()
            .map(|(words, rows)| format!("{} {words}", count(*rows)))
            .collect(),
    };
    let (rows, parts) = (plural(lost, "row"), parts.join(", "));
    Some(format!("lost about {rows} ({parts})"))
}

/// A witness for people.
fn witness_words(witness: &str) -> &str {
    match witness {
        "index-keys" => "by index keys",
        "index-entries" => "by index entries",
        "unreadable-rows" => "unreadable",
        "destination" => "refused by the destination",
        "rows-per-page" | "pg-class" => "by estimate",
        other => other,
    }
}

fn is_plain(table: &TableAccount) -> bool {
    table.is_whole()
        && table.notes.is_empty()
        && table.columns_as.is_empty()
        && table.file.is_some()
}

fn render_table(table: &TableAccount, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let name = format!("{}.{}", clean(&table.schema), clean(&table.table));
    let name = sheet.ink(Ink::Strong, &name);
    let rows = &table.rows;
    let of = match table.database.is_empty() {
        true => "a file without its cluster".into(),
        false => format!("database {}", clean(&table.database)),
    };
    sheet.raw(&format!("{name}  {of}"))?;
    let mut counts = vec![format!("{} written", count(rows.written))];
    for (number, what) in [
        (rows.live, "live"),
        (rows.dead, "dead"),
        (rows.carved, "carved"),
        (rows.mended, "mended"),
        (rows.partial, "partial"),
        (rows.uncertain, "uncertain"),
        (rows.withheld, "withheld"),
    ] {
        if number > 0 {
            counts.push(format!("{} {what}", count(number)));
        }
    }
    counts.extend(lost_words(rows.lost, &table.lost_by));
    sheet.entry(2, "rows", 8, &counts.join(", "))?;
    if table.changed_pages > 0 {
        let words = format!(
            "the server wrote {} while it was read",
            plural(table.changed_pages, "page")
        );
        sheet.entry(2, "note", 8, &words)?;
    }
    if table.not_replayed > 0 {
        sheet.entry(2, "log", 8, &not_replayed_words(table))?;
    }
    if table.file.is_none() {
        sheet.entry(2, "file", 8, "not written whole, and removed")?;
    }
    for note in &table.notes {
        sheet.entry(2, "note", 8, &clean(note))?;
    }
    for column in &table.columns_as {
        sheet.entry(2, "column", 8, &clean(&column_words(column)))?;
    }
    for keys in &table.lost_keys {
        let words = format!(
            "{} of {} in {}",
            plural(keys.keys, "key"),
            clean(&keys.index),
            clean(&keys.file)
        );
        sheet.entry(2, "keys", 8, &words)?;
    }
    for place in table.places.iter().take(PLACES_SHOWN) {
        sheet.entry(2, "lost", 8, &place_words(place))?;
    }
    let more = count_of(table.places.len().saturating_sub(PLACES_SHOWN)) + table.places_omitted;
    if more > 0 {
        sheet.entry(2, "", 8, &format!("and at {} more", plural(more, "place")))?;
    }
    Ok(())
}

/// Changes that the write-ahead log holds and the files do not.
pub(crate) fn not_replayed_words(table: &TableAccount) -> String {
    let changes = plural(table.not_replayed, "change");
    format!("{changes} in the write-ahead log could not be applied to its files")
}

/// `object 70003: bytes 2048 to 4096 …`.
pub(crate) fn object_words(object: &DoubtfulObject) -> String {
    format!("object {}: {}", object.object, clean(&object.why))
}

/// `seen is text: it holds infinity`.
pub(crate) fn column_words(column: &ColumnAs) -> String {
    format!("{} is {}: {}", column.column, column.written_as, column.why)
}

/// `block 7, item 3, column body: …`.
pub(crate) fn place_words(place: &LossPlace) -> String {
    let mut words = match place.in_toast {
        true => format!("TOAST block {}", place.block),
        false => format!("block {}", place.block),
    };
    if let Some(item) = place.item {
        words.push_str(&format!(", item {item}"));
    }
    if let Some(column) = &place.column {
        words.push_str(&format!(", column {}", clean(column)));
    }
    format!("{words}: {}", clean(&place.why))
}
