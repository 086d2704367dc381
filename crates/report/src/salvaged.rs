//! What a salvage says, in words.

use pgclinic_model::document::{
    CheckAccount, ColumnAs, CountAccount, DoubtfulObject, LossPlace, LostBy, SalvageReport,
    TableAccount,
};

use crate::words::{self, count, count_of, plural};

/// Runs of line pointers that are named.
const ITEMS_SHOWN: usize = 12;

/// What was written, and what of it or beside it is not as it was.
pub(crate) fn extent(account: &SalvageReport) -> Vec<String> {
    let totals = &account.totals;
    let files = account.tables.iter().filter(|table| table.file.is_some());
    let bytes: u64 = files.clone().map(|table| table.file_bytes).sum();
    let (written, all) = (count_of(files.count()), count_of(account.tables.len()));
    let tables = if account.interrupted {
        format!("{} of {}", count(written), plural(all, "table"))
    } else {
        plural(written, "table")
    };
    let mut parts = vec![format!(
        "{} of {tables} written, {}",
        plural(totals.written, "row"),
        words::bytes(bytes)
    )];
    parts.extend(lost_words(totals.lost, &account.lost_by));
    parts.extend(not_read_words(account));
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
    let catalogs = count_of(account.lost_catalogs.len());
    if catalogs > 0 {
        let databases = plural(catalogs, "database");
        parts.push(format!("the catalogs of {databases} lost"));
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

/// `not read: about 18,000 rows of 1 table`.
fn not_read_words(account: &SalvageReport) -> Option<String> {
    let own = account.tables.iter();
    let tables = own.filter(|table| table.pages_not_read > 0).count();
    let rows = match account.totals.not_read {
        // Nothing counts them.
        0 => "an unknown number of rows".to_owned(),
        rows => format!("about {}", plural(rows, "row")),
    };
    let tables = (tables > 0).then(|| plural(count_of(tables), "table"))?;
    Some(format!("not read: {rows} of {tables}"))
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
        return Some(format!("{name} was not examined: {why}"));
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
    let bound = by
        .iter()
        .filter_map(|by| by.at_most)
        .reduce(u64::saturating_add);
    // Without a bound an estimate may be too small.
    let is_open = |by: &LostBy| is_estimate(&by.witness) && by.at_most.is_none();
    let bound = match bound {
        _ if by.iter().any(is_open) => ", and more may be missing".into(),
        Some(rows) => format!(", at most {}", count(rows)),
        None => String::new(),
    };
    Some(format!("lost about {rows} ({parts}{bound})"))
}

/// It names no single row.
fn is_estimate(witness: &str) -> bool {
    matches!(witness, "rows-per-page" | "pg-class")
}

/// A witness for people.
fn witness_words(witness: &str) -> &str {
    match witness {
        "index-keys" => "by index keys",
        "index-entries" => "by index entries",
        "foreign-keys" => "by foreign keys",
        "toast-values" => "by TOASTed values without a row",
        "unreadable-rows" => "unreadable",
        "destination" => "refused by the destination",
        own if is_estimate(own) => "by estimate",
        other => other,
    }
}

/// Changes that the write-ahead log holds and the files do not.
pub(crate) fn not_replayed_words(table: &TableAccount) -> String {
    let changes = plural(table.not_replayed, "change");
    format!("{changes} in the write-ahead log could not be applied to its files")
}

/// `object 70003: bytes 2048 to 4096 …`.
pub(crate) fn object_words(object: &DoubtfulObject) -> String {
    format!("object {}: {}", object.object, object.why)
}

/// `seen is text: it holds infinity`.
pub(crate) fn column_words(column: &ColumnAs) -> String {
    format!("{} is {}: {}", column.column, column.written_as, column.why)
}

/// How the reason of a row begins that was found by its structure, and is not lost.
pub(crate) const CARVED: &str = "carved: ";

/// Line pointers of one page with one reason.
pub(crate) struct PlaceGroup<'a> {
    first: &'a LossPlace,
    items: Vec<u16>,
    /// Why.
    pub(crate) why: &'a str,
}

impl PlaceGroup<'_> {
    /// So many places.
    pub(crate) fn len(&self) -> u64 {
        count_of(self.items.len()).max(1)
    }
}

/// Places one after the other that say the same are one.
pub(crate) fn grouped(places: &[LossPlace]) -> Vec<PlaceGroup<'_>> {
    let mut groups: Vec<PlaceGroup<'_>> = Vec::new();
    for place in places {
        let is_same = |own: &LossPlace| {
            let same = |of: &LossPlace| (of.block, of.in_toast, of.column.clone());
            same(own) == same(place) && own.why == place.why && own.item.is_some()
        };
        match (groups.last_mut(), place.item) {
            (Some(group), Some(item)) if is_same(group.first) => group.items.push(item),
            _ => groups.push(PlaceGroup {
                first: place,
                items: place.item.into_iter().collect(),
                why: &place.why,
            }),
        }
    }
    groups
}

/// `block 7, items 3-5, column body: …`.
pub(crate) fn place_words(place: &PlaceGroup<'_>) -> String {
    let LossPlace {
        block,
        in_toast,
        column,
        ..
    } = place.first;
    let mut words = if *in_toast {
        format!("TOAST block {block}")
    } else {
        format!("block {block}")
    };
    match place.items.as_slice() {
        [] => {}
        [one] => words.push_str(&format!(", item {one}")),
        more => {
            let ranges = words::to_ranges(more.iter().map(|item| u64::from(*item)));
            words.push_str(&format!(
                ", items {}",
                words::block_ranges(&ranges, ITEMS_SHOWN)
            ));
        }
    }
    if let Some(column) = column {
        words.push_str(&format!(", column {column}"));
    }
    let why = place.why.strip_prefix(CARVED).unwrap_or(place.why);
    format!("{words}: {why}")
}

/// `1,500 written, 1,400 live, 2 carved, 21 lost`.
pub(crate) fn row_counts(table: &TableAccount) -> String {
    let rows = &table.rows;
    let mut counts = vec![format!("{} written", count(rows.written))];
    if rows.suspect > 0 {
        counts.push(format!("{} of them suspect", count(rows.suspect)));
    }
    let others = [
        (rows.live, "live"),
        (rows.dead, "dead"),
        (rows.carved, "carved"),
        (rows.mended, "mended"),
        (rows.partial, "partial"),
        (rows.uncertain, "uncertain"),
        (rows.withheld, "withheld"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0);
    counts.extend(others.map(|(number, what)| format!("{} {what}", count(*number))));
    counts.extend(lost_words(rows.lost, &table.lost_by));
    if rows.not_read > 0 {
        counts.push(format!("about {} not read", count(rows.not_read)));
    }
    counts.join(", ")
}
