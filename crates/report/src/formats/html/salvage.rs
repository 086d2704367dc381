//! The account of a salvage as a page.

use std::io;

use pgclinic_rows::{Account, CheckAccount, Outcome, TableAccount};

use super::escape::Esc;
use super::{details, shell};
use crate::formats::text::{check_words, column_words, place_words};
use crate::words::{self, bytes, count, plural};

pub(super) fn render(account: &Account, out: &mut dyn io::Write) -> io::Result<()> {
    let (word, class) = match account.outcome {
        _ if account.interrupted => ("INTERRUPTED", "warn"),
        Outcome::Whole => ("WHOLE", "good"),
        Outcome::Damaged => ("DAMAGED", "bad"),
        Outcome::Incomplete => ("INCOMPLETE", "warn"),
    };
    shell::open(&format!("Salvage {word}"), out)?;
    shell::kicker("pgclinic salvage", &account.target, out)?;
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{word}{}</h1>\n<p class=extent>{} written in {}</p>\n\
         <p>form {}, rows {}</p>\n</section>",
        words::beside(&account.target),
        plural(account.totals.written, "row"),
        words::seconds(account.elapsed_s),
        Esc(&account.form),
        Esc(&account.rows)
    )?;
    shell::facts(&shell::target_facts(&account.target), out)?;
    details::not_checked(&account.not_salvaged, out)?;
    tables(&account.tables, out)?;
    checks(&account.checks, out)?;
    losses(&account.tables, out)?;
    shell::close(&account.tool, out)
}

fn tables(tables: &[TableAccount], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<section>\n<h2>Tables</h2>\n<div class=wide><table>\n<thead><tr><th>Table</th><th>Database</th>\
          <th class=n>Written</th><th class=n>Live</th><th class=n>Dead</th><th class=n>Carved</th>\
          <th class=n>Partial</th><th class=n>Uncertain</th><th class=n>Lost</th><th class=n>Damaged pages</th>\
          <th class=n>Bytes</th></tr></thead>\n<tbody>\n",
    )?;
    for table in tables {
        let rows = &table.rows;
        writeln!(
            out,
            "<tr><td>{}.{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td>\
             <td class=n>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td>\
             <td class=n>{}</td><td class=n>{}</td></tr>",
            Esc(&table.schema),
            Esc(&table.table),
            Esc(&table.database),
            count(rows.written),
            count(rows.live),
            count(rows.dead),
            count(rows.carved),
            count(rows.partial),
            count(rows.uncertain),
            count(rows.lost),
            count(table.damaged_pages),
            bytes(table.file_bytes)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
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
        writeln!(
            out,
            "<details class=card><summary>{}</summary>\n<ul>",
            Esc(words)
        )?;
        for key in &check.listed {
            writeln!(out, "<li>{}</li>", Esc(key))?;
        }
        out.write_all(b"</ul>\n</details>\n")?;
    }
    out.write_all(b"</section>\n")
}

fn losses(tables: &[TableAccount], out: &mut dyn io::Write) -> io::Result<()> {
    let told = |table: &&TableAccount| {
        !table.places.is_empty() || !table.notes.is_empty() || !table.columns_as.is_empty()
    };
    for table in tables.iter().filter(told) {
        writeln!(
            out,
            "<details class=card><summary>{}.{}, database {}</summary>\n<ul>",
            Esc(&table.schema),
            Esc(&table.table),
            Esc(&table.database)
        )?;
        for note in &table.notes {
            writeln!(out, "<li>{}</li>", Esc(note))?;
        }
        for column in &table.columns_as {
            writeln!(out, "<li>column {}</li>", Esc(column_words(column)))?;
        }
        for keys in &table.lost_keys {
            let words = format!(
                "{} of {} in {}",
                plural(keys.keys, "key"),
                keys.index,
                keys.file
            );
            writeln!(out, "<li>{}</li>", Esc(words))?;
        }
        for place in &table.places {
            writeln!(out, "<li>{}</li>", Esc(place_words(place)))?;
        }
        if table.places_omitted > 0 {
            writeln!(
                out,
                "<li>and at {} more</li>",
                plural(table.places_omitted, "place")
            )?;
        }
        out.write_all(b"</ul>\n</details>\n")?;
    }
    Ok(())
}
