//! Values of rows and bytes of pages, taken out of a document.

use pgclinic_model::document::{
    Contents, Cure, FieldChange, Finding, HealDocument, InspectDocument, REFUSED_ROW,
    RehearsalDocument, SalvageReport,
};
use pgclinic_model::plan::Change;

use crate::Document;

impl Document {
    /// What stands in it.
    pub fn contents(&self) -> Contents {
        let lacks = |withhold: fn(&mut Document)| {
            let mut without = self.clone();
            withhold(&mut without);
            without != *self
        };
        let known = self.tool().contains.unwrap_or_default();
        // The bytes of a page are those of its rows.
        let pages = lacks(Document::withhold_pages);
        Contents {
            names: !known.redacted,
            values: pages || (!known.redacted && lacks(Document::withhold_values)),
            pages,
            redacted: known.redacted,
        }
    }

    /// Takes values and keys of rows out, and what servers and findings quote of them. Their counts
    /// and places stay.
    pub fn withhold_values(&mut self) {
        for finding in self.findings_mut() {
            finding.withhold_values();
        }
        match self {
            Document::Inspect(document) => withhold_items(document),
            Document::Salvage(account) => withhold_keys(account),
            Document::Heal(document) => withhold_rows(document),
            Document::Rehearsal(document) => withhold_details(document),
            Document::Check(_)
            | Document::Drill(_)
            | Document::Blind(_)
            | Document::Loss(_)
            | Document::StartDrill(_)
            | Document::Measure(_)
            | Document::CatalogCost(_)
            | Document::Diff(_)
            | Document::Checksums(_)
            | Document::Experiment(_)
            | Document::Watch(_) => {}
        }
    }

    /// Takes bytes of pages out.
    pub(super) fn withhold_pages(&mut self) {
        match self {
            Document::Check(document) => document.evidence.clear(),
            Document::Inspect(document) => {
                document.anatomy.page.clear();
                document.anatomy.ranges.clear();
            }
            Document::Heal(document) => {
                let pages = document.cures.iter_mut().flat_map(|cure| &mut cure.pages);
                pages.for_each(|page| withhold_bytes(&mut page.change));
            }
            Document::Drill(_)
            | Document::Blind(_)
            | Document::Loss(_)
            | Document::StartDrill(_)
            | Document::Rehearsal(_)
            | Document::Measure(_)
            | Document::CatalogCost(_)
            | Document::Diff(_)
            | Document::Checksums(_)
            | Document::Salvage(_)
            | Document::Experiment(_)
            | Document::Watch(_) => {}
        }
    }

    fn findings_mut(&mut self) -> Vec<&mut Finding> {
        match self {
            Document::Check(document) => document.findings.iter_mut().collect(),
            Document::Inspect(document) => document.findings.iter_mut().collect(),
            Document::Heal(document) => {
                let cures = document.cures.iter_mut();
                let of_cures = cures.flat_map(|cure| &mut cure.findings);
                of_cures.chain(&mut document.other_findings).collect()
            }
            Document::Drill(_)
            | Document::Blind(_)
            | Document::Loss(_)
            | Document::StartDrill(_)
            | Document::Rehearsal(_)
            | Document::Measure(_)
            | Document::CatalogCost(_)
            | Document::Diff(_)
            | Document::Checksums(_)
            | Document::Salvage(_)
            | Document::Experiment(_)
            | Document::Watch(_) => Vec::new(),
        }
    }
}

fn withhold_items(document: &mut InspectDocument) {
    for item in &mut document.anatomy.items {
        for value in &mut item.values {
            value.value = None;
        }
    }
}

fn withhold_keys(account: &mut SalvageReport) {
    for check in &mut account.checks {
        check.listed.clear();
    }
    let notes = account.tables.iter_mut().flat_map(|table| &mut table.notes);
    for note in notes.filter(|note| note.starts_with(REFUSED_ROW)) {
        let error = note.lines().next().unwrap_or_default();
        let error = error.split("; it begins ").next().unwrap_or_default();
        *note = without_quoted(error);
    }
}

fn withhold_rows(document: &mut HealDocument) {
    for cure in &mut document.cures {
        cure.rows.iter_mut().for_each(|row| row.values.clear());
        withhold_changed_values(cure);
    }
    let answers = document.statements.iter_mut();
    let answers = answers.filter_map(|own| own.answer.as_mut());
    let heard = answers.flat_map(|answer| &mut answer.messages);
    let proof = document.proof.iter_mut();
    let heard = heard.chain(proof.flat_map(|proof| &mut proof.messages));
    heard.for_each(without_quoted_rows);
}

/// A column keeps the state of its value: `value`, `null`, `external`.
fn withhold_changed_values(cure: &mut Cure) {
    let is_column = |field: &&mut FieldChange| field.name.starts_with("column ");
    for field in cure.fields.iter_mut().filter(is_column) {
        for side in [&mut field.before, &mut field.after] {
            if let Some((state, _)) = side.split_once(" \"") {
                *side = state.to_owned();
            }
        }
    }
}

fn withhold_details(document: &mut RehearsalDocument) {
    let server = document.server.iter_mut();
    let heard = server.flat_map(|server| &mut server.answer.messages);
    heard.for_each(without_quoted_rows);
}

/// Leaves out the lines in which a server quotes a row: `DETAIL:  Key (id)=(5) is duplicated.`
fn without_quoted_rows(message: &mut String) {
    let quotes = |line: &str| {
        [")=(", "row contains (", ": \""]
            .iter()
            .any(|sign| line.contains(sign))
    };
    let is_more = |line: &str| {
        let line = line.trim_start();
        line.starts_with("DETAIL:") || line.starts_with("CONTEXT:")
    };
    if !message.lines().any(|line| is_more(line) && quotes(line)) {
        return;
    }
    let kept = message
        .lines()
        .filter(|line| !(is_more(line) && quotes(line)));
    *message = kept.collect::<Vec<_>>().join("\n");
}

/// `invalid input syntax for type integer: "…"`.
fn without_quoted(words: &str) -> String {
    let parts = words.split('"').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 { "…" } else { part });
    parts.collect::<Vec<_>>().join("\"")
}

/// The change keeps its place, and its length in the document of those who made it.
fn withhold_bytes(change: &mut Change) {
    match change {
        Change::Bytes { before, after, .. } => {
            before.clear();
            after.clear();
        }
        Change::Extend { after, .. } => after.clear(),
        Change::Write { bytes, .. } => bytes.clear(),
        Change::Append { .. }
        | Change::Cut { .. }
        | Change::Remove { .. }
        | Change::Directory { .. }
        | Change::RemoveDirectory { .. }
        | Change::Mode { .. }
        | Change::Link { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_quotes_of_a_row_goes() {
        let mut message = "ERROR:  could not create unique index \"docs_pkey\"\nDETAIL:  Key (id)=(5) is duplicated.".to_owned();
        without_quoted_rows(&mut message);
        let kept = "ERROR:  could not create unique index \"docs_pkey\"";
        assert_eq!(message, kept);
        let error = "ERROR:  invalid input syntax for type integer: \"a secret\"";
        let kept = "ERROR:  invalid input syntax for type integer: \"…\"";
        assert_eq!(without_quoted(error), kept);
    }
}
