//! The score of a blind drill as a page.

use std::io;

use pgclinic_model::document::{BlindDocument, BlindTrial};

use super::escape::Esc;
use super::{details, shell};
use crate::words::{self, byte_range, count, percent};

pub(super) fn render(document: &BlindDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let (word, class) = match (document.interrupted, document.passed) {
        (true, _) => ("INTERRUPTED", "warn"),
        (false, true) => ("PASSED", "good"),
        (false, false) => ("FAILED", "bad"),
    };
    let kinds = &document.kinds;
    let hurtful = kinds
        .iter()
        .map(|kind| kind.hurtful)
        .fold(0, u64::saturating_add);
    let found = kinds
        .iter()
        .map(|kind| kind.hurtful_found)
        .fold(0, u64::saturating_add);
    shell::open(&format!("Blind drill {word}"), out)?;
    shell::kicker("pgclinic drill --blind", &document.target, out)?;
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{word}</h1>\n<p class=extent>found {} of {} shots \
         that hurt in {}</p>\n<p>{}, seed {}</p>\n</section>",
        count(found),
        count(hurtful),
        words::seconds(document.elapsed_s),
        Esc(&document.server),
        document.seed
    )?;
    shell::facts(&shell::target_facts(&document.target), out)?;
    details::not_checked(&document.coverage.not_checked, out)?;
    scores(document, out)?;
    misses(&document.misses, out)?;
    shell::close(&document.tool, out)
}

fn scores(document: &BlindDocument, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<section>\n<h2>Score</h2>\n<div class=wide><table>\n<thead><tr><th>Kind</th><th>Checksums</th>\
          <th class=n>Shots</th><th class=n>Found</th><th class=n>That hurt</th><th class=n>Of them found</th>\
          <th class=n>Rate</th></tr></thead>\n<tbody>\n",
    )?;
    for kind in &document.kinds {
        let rate = match kind.hurtful {
            0 => String::new(),
            hurtful => format!("{} %", percent(kind.hurtful_found, hurtful)),
        };
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td>\
             <td class=n>{}</td><td class=n>{rate}</td></tr>",
            Esc(&kind.kind),
            if kind.checksums { "on" } else { "off" },
            count(kind.trials),
            count(kind.found),
            count(kind.hurtful),
            count(kind.hurtful_found)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn misses(misses: &[BlindTrial], out: &mut dyn io::Write) -> io::Result<()> {
    if misses.is_empty() {
        return out.write_all(b"<p class=none>Nothing was missed.</p>\n");
    }
    out.write_all(
        b"<section>\n<h2>Missed</h2>\n<div class=tools data-filter=\"tbody tr[data-mark]\" data-marks=\"all hurts harmless\"></div>\n\
          <div class=wide><table>\n<thead><tr><th>Kind</th><th>Checksums</th><th>Hurts</th><th>Where</th>\
          <th>Bytes of the file</th><th>Server</th></tr></thead>\n<tbody>\n",
    )?;
    for miss in misses {
        let (mark, hurts) = if miss.hurts {
            ("hurts", "yes")
        } else {
            ("harmless", "no")
        };
        writeln!(
            out,
            "<tr data-mark={mark}><td>{}</td><td>{}</td><td>{hurts}</td><td>{}</td><td class=q>{}</td>\
             <td><code class=server>{}</code></td></tr>",
            Esc(&miss.kind),
            if miss.checksums { "on" } else { "off" },
            Esc(miss.place.to_string()),
            byte_range(miss.file_bytes),
            Esc(miss.server.as_deref().unwrap_or_default())
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}
