//! Two copies of one cluster against each other, as a page.

use std::io;

use pgclinic_model::document::{Copy, DiffBlock, DiffDocument, DiffFile, DiffFork, Difference};

use super::escape::Esc;
use super::{details, shell};
use crate::diffed;
use crate::words::count;

pub(super) fn render(document: &DiffDocument, out: &mut dyn io::Write) -> io::Result<()> {
    shell::open("Two copies", out)?;
    shell::kicker("pgclinic diff", &document.a, out)?;
    let class = match document.verdict {
        verdict if diffed::is_bad(verdict) => "bad",
        verdict if diffed::is_good(verdict) => "good",
        _ => "warn",
    };
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{}</h1>\n<p class=extent>{}</p>\n</section>",
        diffed::word(document.verdict),
        Esc(&diffed::extent(document))
    )?;
    if let Some(words) = diffed::parting(document) {
        writeln!(out, "<p>{}</p>", Esc(&words))?;
    }
    for (name, target, position) in [
        ("A", &document.a, &document.position_a),
        ("B", &document.b, &document.position_b),
    ] {
        writeln!(out, "<h2>{name}: {}</h2>", Esc(&target.spec))?;
        let mut facts = shell::target_facts(target);
        if let Some(position) = position {
            facts.push(("redo point", position.redo.clone()));
            facts.push(("end of its WAL", position.end.clone()));
            let timeline = position.timeline.map(|timeline| timeline.to_string());
            facts.extend(timeline.map(|timeline| ("timeline", timeline)));
        }
        shell::facts(&facts, out)?;
    }
    details::not_checked(&document.coverage.not_checked, out)?;
    files(&document.files, out)?;
    out.write_all(b"<section>\n<h2>Files in which blocks differ</h2>\n")?;
    let told = document.forks.iter().filter(|fork| !fork.is_hints_only());
    for fork in told {
        self::fork(fork, out)?;
    }
    out.write_all(b"</section>\n")?;
    shell::close(&document.tool, out)
}

/// Relation maps and files with the status of transactions.
fn files(files: &[DiffFile], out: &mut dyn io::Write) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section>\n<h2>Files beside the relations that differ</h2>\n<div class=wide><table class=board>\n\
          <thead><tr><th>File</th><th>Difference</th><th>Why</th></tr></thead>\n<tbody>\n",
    )?;
    for file in files {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            Esc(&file.path),
            Esc(&diffed::file(file)),
            Esc(&file.why)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn fork(fork: &DiffFork, out: &mut dyn io::Write) -> io::Result<()> {
    let open = if fork.contradicts() || fork.has(Difference::Parted) {
        " open"
    } else {
        ""
    };
    writeln!(
        out,
        "<details class=item{open}><summary><strong>{}</strong> <span class=q>{}</span></summary>\n<p>{}</p>",
        Esc(&fork.name()),
        Esc(&diffed::ways(fork)),
        Esc(&diffed::about(fork))
    )?;
    out.write_all(
        b"<div class=wide><table class=board>\n<thead><tr><th class=n>Block</th><th>Difference</th><th>Copy</th>\
          <th>LSN in A</th><th>LSN in B</th><th>Why</th></tr></thead>\n<tbody>\n",
    )?;
    for block in &fork.blocks {
        row(block, out)?;
    }
    out.write_all(b"</tbody></table></div>\n")?;
    if fork.blocks_omitted > 0 {
        writeln!(out, "<p>and {} more</p>", count(fork.blocks_omitted))?;
    }
    out.write_all(b"</details>\n")
}

fn row(block: &DiffBlock, out: &mut dyn io::Write) -> io::Result<()> {
    let copy = match block.copy {
        Some(Copy::A) => "A",
        Some(Copy::B) => "B",
        None => "",
    };
    writeln!(
        out,
        "<tr><td class=n>{}</td><td>{}</td><td>{copy}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        block.block,
        block.difference.name(),
        Esc(block.lsn_a.as_deref().unwrap_or("")),
        Esc(block.lsn_b.as_deref().unwrap_or("")),
        Esc(&block.why)
    )
}
