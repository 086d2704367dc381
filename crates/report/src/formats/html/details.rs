//! What was not checked, and the manual.

use std::collections::BTreeSet;
use std::io;

use pgclinic_model::document::NotChecked;

use super::escape::Esc;
use super::markdown;
use crate::Options;

pub(super) fn not_checked(entries: &[NotChecked], out: &mut dyn io::Write) -> io::Result<()> {
    let (inherent, ours): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.inherent);
    if !ours.is_empty() {
        out.write_all(b"<section class=\"card warn\">\n<h2>Not checked</h2>\n")?;
        reasons(&ours, out)?;
        out.write_all(b"</section>\n")?;
    }
    if !inherent.is_empty() {
        out.write_all(
            b"<details class=card><summary>What no reader of files can decide</summary>\n",
        )?;
        out.write_all(b"<p>It does not change the verdict.</p>\n")?;
        reasons(&inherent, out)?;
        out.write_all(b"</details>\n")?;
    }
    Ok(())
}

/// What a deeper look would add.
pub(super) fn beyond_level(entries: &[NotChecked], out: &mut dyn io::Write) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    out.write_all(b"<details class=card><summary>Beyond this level, not looked at</summary>\n")?;
    reasons(&entries.iter().collect::<Vec<_>>(), out)?;
    out.write_all(b"</details>\n")
}

/// What, and why not.
pub(super) fn reasons(entries: &[&NotChecked], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<dl class=reasons>\n")?;
    for entry in entries {
        writeln!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            Esc(&entry.what),
            Esc(&entry.why)
        )?;
    }
    out.write_all(b"</dl>\n")
}

/// The manual of every rule that is named, each closed.
pub(super) fn manuals<'a>(
    rules: impl Iterator<Item = &'a str>,
    options: &Options<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let rules: BTreeSet<&str> = rules.collect();
    if rules.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section>\n<h2>The rules</h2>\n")?;
    for rule in rules {
        match (options.explain)(rule) {
            Some(text) => {
                writeln!(
                    out,
                    "<details class=manual><summary><code>{0}</code> {1}</summary><div id=\"rule-{0}\">",
                    Esc(rule),
                    Esc(text.summary)
                )?;
                markdown::write(text.explain, out)?;
                out.write_all(b"</div></details>\n")?;
            }
            None => writeln!(
                out,
                "<p id=\"rule-{0}\"><code>{0}</code>: this version has no manual for it</p>",
                Esc(rule)
            )?,
        }
    }
    out.write_all(b"</section>\n")
}
