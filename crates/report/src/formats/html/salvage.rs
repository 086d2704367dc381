//! The account of a salvage as a page.

use std::io;

use pgclinic_model::document::{
    CheckAccount, CountAccount, LargeObjectsAccount, LossPlace, NotChecked, Outcome, ReplayAccount,
    SalvageReport, SequenceAccount, SnapshotAccount, TableAccount,
};

use super::details::reasons;
use super::escape::Esc;
use super::shell;
use crate::formats::text::{
    check_words, column_words, count_words, counts_words, extent, lost_words, not_replayed_words,
    object_words, place_words,
};
use crate::words::{self, bytes, count, count_of, plural};

/// A list of more places is closed at first.
const OPEN_PLACES: usize = 12;

pub(super) fn render(account: &SalvageReport, out: &mut dyn io::Write) -> io::Result<()> {
    let (word, class) = match account.outcome {
        _ if account.interrupted => ("INTERRUPTED", "warn"),
        Outcome::Whole => ("WHOLE", "good"),
        Outcome::Damaged => ("DAMAGED", "bad"),
        Outcome::Incomplete => ("INCOMPLETE", "warn"),
    };
    shell::open(&format!("Salvage {word}"), out)?;
    shell::kicker("pgclinic salvage", &account.target, out)?;
    let parts = extent(account);
    let (written, hurt) = parts
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{word}{}</h1>\n<p class=extent>{} in {}</p>",
        words::beside(&account.target),
        Esc(written),
        words::seconds(account.elapsed_s)
    )?;
    if !hurt.is_empty() {
        writeln!(out, "<p class=extent>{}</p>", Esc(hurt.join(", ")))?;
    }
    writeln!(
        out,
        "<p>form {}, rows {}</p>\n</section>",
        Esc(&account.form),
        Esc(&account.rows)
    )?;
    shell::facts(&shell::target_facts(&account.target), out)?;
    lost_databases(account, out)?;
    not_salvaged(&account.not_salvaged, out)?;
    if let Some(replay) = &account.replay {
        log(replay, out)?;
    }
    snapshots(&account.snapshots, out)?;
    losses(&account.tables, out)?;
    counts(&account.counts, out)?;
    checks(&account.checks, out)?;
    tables(account, out)?;
    large_objects(&account.large_objects, out)?;
    sequences(&account.sequences, out)?;
    shell::close(&account.tool, out)
}

fn not_salvaged(entries: &[NotChecked], out: &mut dyn io::Write) -> io::Result<()> {
    let (inherent, ours): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.inherent);
    if !ours.is_empty() {
        out.write_all(b"<section class=\"card warn\">\n<h2>Not salvaged</h2>\n")?;
        reasons(&ours, out)?;
        out.write_all(b"</section>\n")?;
    }
    if !inherent.is_empty() {
        out.write_all(
            b"<section class=card>\n<h2>To be known</h2>\n<p class=q>Nothing is lost by it.</p>\n",
        )?;
        reasons(&inherent, out)?;
        out.write_all(b"</section>\n")?;
    }
    Ok(())
}

fn lost_databases(account: &SalvageReport, out: &mut dyn io::Write) -> io::Result<()> {
    if account.lost_databases.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section class=\"card bad\">\n<h2>Lost databases</h2>\n")?;
    let lost = account.lost_databases.iter();
    let words: Vec<String> = lost
        .map(|lost| format!("{}: {}", lost.database, lost.why))
        .collect();
    items(words.iter(), out)?;
    out.write_all(b"</section>\n")
}

fn log(replay: &ReplayAccount, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<section>\n<h2>Write-ahead log</h2>\n\
          <p>The cluster was not shut down in good order: what its files lack was applied in memory.</p>\n",
    )?;
    let facts = [
        ("from", replay.start.clone()),
        ("to", replay.end.clone()),
        ("ends because", replay.why.clone()),
        ("records", count(replay.records)),
        ("changes applied", count(replay.applied)),
        ("not applied", count(replay.not_applied)),
    ];
    shell::facts(&facts, out)?;
    items(replay.faults.iter(), out)?;
    out.write_all(b"</section>\n")
}

fn snapshots(snapshots: &[SnapshotAccount], out: &mut dyn io::Write) -> io::Result<()> {
    let words = match snapshots {
        [] => return Ok(()),
        [_] => "All tables were read in one snapshot, so that they fit together.",
        _ => {
            "The server went down meanwhile, and a new snapshot was begun each time: tables of different ones may not fit together."
        }
    };
    writeln!(
        out,
        "<section>\n<h2>Snapshots</h2>\n<p>{words}</p>\n<div class=wide><table class=board>\n\
         <thead><tr><th>Snapshot</th><th>Taken at</th><th>Transactions</th></tr></thead>\n<tbody>"
    )?;
    for snapshot in snapshots {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td><code>{}</code></td></tr>",
            snapshot.number,
            Esc(&snapshot.taken_at),
            Esc(&snapshot.transactions)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

/// A column of counts; all but the first two are left out where they are zero for all tables.
type Count = (&'static str, fn(&TableAccount) -> u64);

const COUNTS: [Count; 13] = [
    ("Written", |table| table.rows.written),
    ("Live", |table| table.rows.live),
    ("Dead", |table| table.rows.dead),
    ("Carved", |table| table.rows.carved),
    ("Mended", |table| table.rows.mended),
    ("Partial", |table| table.rows.partial),
    ("Uncertain", |table| table.rows.uncertain),
    ("Withheld", |table| table.rows.withheld),
    ("Lost", |table| table.rows.lost),
    ("Of these estimated", |table| table.rows.lost_estimated),
    ("Damaged pages", |table| table.damaged_pages),
    ("Not replayed", |table| table.not_replayed),
    ("Changed pages", |table| table.changed_pages),
];

fn tables(account: &SalvageReport, out: &mut dyn io::Write) -> io::Result<()> {
    if account.tables.is_empty() {
        return out.write_all(b"<p class=none>No table was written.</p>\n");
    }
    let is_shown = |(name, of): &&Count| {
        matches!(*name, "Written" | "Live") || account.tables.iter().any(|table| of(table) > 0)
    };
    let counts: Vec<&Count> = COUNTS.iter().filter(is_shown).collect();
    let has_snapshots = account.snapshots.len() > 1;
    out.write_all(
        b"<section>\n<h2>Tables</h2>\n<div class=wide><table class=\"board cards\">\n\
          <thead><tr><th>Table</th><th>Database</th>",
    )?;
    for (name, _) in &counts {
        write!(out, "<th class=n>{name}</th>")?;
    }
    if has_snapshots {
        out.write_all(b"<th>Snapshot</th>")?;
    }
    out.write_all(b"<th class=n>Bytes</th><th>File</th></tr></thead>\n<tbody>\n")?;
    for table in &account.tables {
        let class = if is_hurt(table) { " class=fault" } else { "" };
        write!(
            out,
            "<tr{class}><td>{}.{}</td><td data-name=database>{}</td>",
            Esc(&table.schema),
            Esc(&table.table),
            Esc(&table.database),
        )?;
        for (name, of) in &counts {
            write!(
                out,
                "<td class=n data-name=\"{}\">{}</td>",
                name.to_lowercase(),
                count(of(table))
            )?;
        }
        if has_snapshots {
            let numbers: Vec<String> = table.snapshots.iter().map(u32::to_string).collect();
            write!(out, "<td data-name=snapshot>{}</td>", numbers.join(", "))?;
        }
        let file = table
            .file
            .as_deref()
            .unwrap_or("not written whole, and removed");
        writeln!(
            out,
            "<td class=n data-name=bytes>{}</td><td>{}</td></tr>",
            bytes(table.file_bytes),
            Esc(file)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn is_hurt(table: &TableAccount) -> bool {
    table.file.is_none() || !table.is_whole()
}

fn large_objects(files: &[LargeObjectsAccount], out: &mut dyn io::Write) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section>\n<h2>Large objects</h2>\n<div class=wide><table class=\"board cards\">\n\
          <thead><tr><th>Database</th><th class=n>Objects</th><th class=n>Bytes of objects</th>\
          <th class=n>Bytes of the file</th><th>File</th></tr></thead>\n<tbody>\n",
    )?;
    for objects in files {
        let class = if objects.places.is_empty() {
            ""
        } else {
            " class=fault"
        };
        writeln!(
            out,
            "<tr{class}><td>{}</td><td class=n data-name=objects>{}</td><td class=n data-name=\"bytes of objects\">{}</td>\
             <td class=n data-name=\"bytes of the file\">{}</td><td>{}</td></tr>",
            Esc(&objects.database),
            count(objects.objects),
            bytes(objects.bytes),
            bytes(objects.file_bytes),
            Esc(&objects.file)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n")?;
    for objects in files.iter().filter(|objects| !objects.places.is_empty()) {
        writeln!(
            out,
            "<details class=card open><summary>Lost of database {}</summary>",
            Esc(&objects.database)
        )?;
        places(&objects.places, out)?;
        items(objects.doubtful.iter().map(object_words), out)?;
        out.write_all(b"</details>\n")?;
    }
    out.write_all(b"</section>\n")
}

fn sequences(sequences: &[SequenceAccount], out: &mut dyn io::Write) -> io::Result<()> {
    if sequences.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<details class=card{}><summary>{}</summary>\n<div class=wide><table class=board>\n\
         <thead><tr><th>Sequence</th><th>Database</th><th class=n>Last value</th><th>Given out</th></tr></thead>\n<tbody>",
        match sequences.iter().any(|one| one.doubt.is_some()) {
            true => " open",
            false => "",
        },
        plural(count_of(sequences.len()), "sequence")
    )?;
    for sequence in sequences {
        writeln!(
            out,
            "<tr><td>{}.{}</td><td>{}</td><td class=n>{}</td><td>{}{}{}</td></tr>",
            Esc(&sequence.schema),
            Esc(&sequence.sequence),
            Esc(&sequence.database),
            sequence.last_value,
            if sequence.is_called { "yes" } else { "not yet" },
            if sequence.doubt.is_some() { ": " } else { "" },
            Esc(sequence.doubt.as_deref().unwrap_or_default())
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</details>\n")
}

/// A list, where there is something.
fn items<T: AsRef<str>>(words: impl Iterator<Item = T>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut words = words.peekable();
    if words.peek().is_none() {
        return Ok(());
    }
    out.write_all(b"<ul class=brief>\n")?;
    for word in words {
        writeln!(out, "<li>{}</li>", Esc(word.as_ref()))?;
    }
    out.write_all(b"</ul>\n")
}

fn places(places: &[LossPlace], out: &mut dyn io::Write) -> io::Result<()> {
    items(places.iter().map(place_words), out)
}

/// Tables that hold less or more than they should first, then those that nothing counts.
fn counts(counts: &[CountAccount], out: &mut dyn io::Write) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section>\n<h2>Counts</h2>\n<p>{}</p>",
        Esc(counts_words(counts))
    )?;
    let (uncounted, counted): (Vec<_>, Vec<_>) =
        counts.iter().partition(|count| count.led_to.is_none());
    let differing = counted.iter().filter(|count| !count.holds());
    items(differing.map(|count| count_words(count)), out)?;
    if !uncounted.is_empty() {
        writeln!(
            out,
            "<details class=card><summary>{} without an index to count by</summary>",
            plural(count_of(uncounted.len()), "table")
        )?;
        items(uncounted.iter().map(|count| count_words(count)), out)?;
        out.write_all(b"</details>\n")?;
    }
    out.write_all(b"</section>\n")
}

fn checks(checks: &[CheckAccount], out: &mut dyn io::Write) -> io::Result<()> {
    if checks.is_empty() {
        return Ok(());
    }
    let held = checks
        .iter()
        .filter(|check| check.broken == 0 && check.not_checked.is_none());
    writeln!(
        out,
        "<section>\n<h2>Keys</h2>\n<p>{} of {} hold</p>",
        count(held.count() as u64),
        plural(checks.len() as u64, "key")
    )?;
    for check in checks {
        let Some(words) = check_words(check) else {
            continue;
        };
        if check.listed.is_empty() {
            writeln!(out, "<p>{}</p>", Esc(words))?;
            continue;
        }
        writeln!(out, "<details class=card><summary>{}</summary>", Esc(words))?;
        items(check.listed.iter(), out)?;
        out.write_all(b"</details>\n")?;
    }
    out.write_all(b"</section>\n")
}

fn losses(tables: &[TableAccount], out: &mut dyn io::Write) -> io::Result<()> {
    let told = |table: &&TableAccount| {
        is_hurt(table) || !table.notes.is_empty() || !table.columns_as.is_empty()
    };
    let told: Vec<&TableAccount> = tables.iter().filter(told).collect();
    if told.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section>\n<h2>What is to be known of tables</h2>\n")?;
    for table in told {
        let is_short = is_hurt(table) && table.places.len() <= OPEN_PLACES;
        let open = if is_short { " open" } else { "" };
        writeln!(
            out,
            "<details class=card{open}><summary><strong>{}.{}</strong> <span class=q>database {}</span></summary>",
            Esc(&table.schema),
            Esc(&table.table),
            Esc(&table.database)
        )?;
        let mut words: Vec<String> = table.notes.clone();
        words.extend(lost_words(table.rows.lost, &table.lost_by));
        if table.file.is_none() {
            words.push("its file was not written whole, and removed".into());
        }
        if table.not_replayed > 0 {
            words.push(not_replayed_words(table));
        }
        let columns = table.columns_as.iter();
        words.extend(columns.map(|column| format!("column {}", column_words(column))));
        words.extend(table.lost_keys.iter().map(|keys| {
            let number = plural(keys.keys, "key");
            format!("{number} of {} in {}", keys.index, keys.file)
        }));
        let more = plural(table.places_omitted, "place");
        let more = (table.places_omitted > 0).then(|| format!("and at {more} more"));
        words.extend(table.places.iter().map(place_words));
        words.extend(more);
        items(words.iter(), out)?;
        out.write_all(b"</details>\n")?;
    }
    out.write_all(b"</section>\n")
}
