//! `--save` and `--apply`: a plan in a file. It is believed only as far as it can be made again:
//! the request in it is planned for the bytes that are there, and whatever differs refuses it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pgclinic_format::digest::{Algorithm, Digest, hex};
use pgclinic_model::document::{Cure, HealDocument};
use pgclinic_report::Document;

use crate::exit::Failure;
use crate::output::write_file;

/// A plan of a whole heal is smaller.
const PLAN_BYTES_MAX: u64 = 1 << 30;

/// Writes the plan, whole or not at all.
pub(super) fn save(path: &Path, document: &HealDocument) -> Result<(), Failure> {
    let mut document = document.clone();
    document.basis.requests = Some(digest(&document));
    write_file(path, "plan", |out| {
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    })
}

/// Of what is asked for and of the cures that follow from it: what was taken out of both by hand
/// leaves a plan that could be made again.
fn digest(document: &HealDocument) -> String {
    let ids: Vec<&str> = document.cures.iter().map(|cure| cure.id.as_str()).collect();
    // Plain data, which always has a text.
    let text = serde_json::to_vec(&(&document.request, ids)).unwrap_or_default();
    let mut digest = Digest::new(Algorithm::Sha256);
    digest.update(&text);
    hex(&digest.finish())
}

fn refuse_edited(saved: &HealDocument) -> Result<(), Failure> {
    // A plan of an earlier release has none, and each of its cures is planned again anyway.
    let saved_with = saved.basis.requests.as_deref();
    if saved_with.is_none_or(|own| own == digest(saved)) {
        return Ok(());
    }
    Err(Failure::new(
        "the plan was edited: its requests and cures are not those that were saved. Nothing was written; make the plan again, and choose among its cures with --accept",
    ))
}

/// Reads a plan.
pub(super) fn read(path: &Path) -> Result<HealDocument, Failure> {
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::new(format!("the plan {} cannot be used: {why}", path.display()))
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let mut bytes = Vec::new();
    let read = file.take(PLAN_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(&error))?;
    match Document::from_json(&bytes) {
        Ok(Document::Heal(document)) => {
            let contains = document.tool.contains;
            if contains.is_some_and(|own| own.redacted) {
                let why = "it has pseudonyms; --save writes a plan that can be carried out";
                return Err(unreadable(&why));
            }
            refuse_edited(&document)?;
            Ok(document)
        }
        Ok(other) => Err(unreadable(&format!(
            "it is a document of {}",
            other.schema()
        ))),
        Err(error) => Err(unreadable(&error)),
    }
}

/// The saved plan is what is planned now.
pub(super) fn refuse_changed(saved: &HealDocument, now: &HealDocument) -> Result<(), Failure> {
    let refuse = |why: String| {
        Err(Failure::new(format!(
            "{why}: nothing was written, make the plan again"
        )))
    };
    let (old, new) = (&saved.basis, &now.basis);
    if old.system_identifier != new.system_identifier {
        return refuse(format!(
            "the plan was made for the cluster {}, and this one is {}",
            old.system_identifier, new.system_identifier
        ));
    }
    if old.control_file != new.control_file {
        return refuse("the control file is not that of the plan: a server ran since".into());
    }
    if saved.cures.len() != now.cures.len() {
        return refuse(
            "the plan was edited: it has another number of cures than its request".into(),
        );
    }
    for (saved, now) in saved.cures.iter().zip(&as_saved(now, saved).cures) {
        let pages = |cure: &Cure| {
            cure.pages
                .iter()
                .map(|page| page.before.clone())
                .collect::<Vec<_>>()
        };
        if pages(saved) != pages(now) {
            return refuse(format!("{} is not the page of the plan", now.place));
        }
        if substance(saved) != substance(now) {
            return refuse(format!(
                "the plan of {} was edited: it is not what would be planned",
                now.place
            ));
        }
    }
    Ok(())
}

/// As the report shows it that was saved: without values of rows, where it has none.
fn as_saved(now: &HealDocument, saved: &HealDocument) -> HealDocument {
    let has_values = saved.tool.contains.is_none_or(|own| own.values);
    let mut shown = Document::Heal(now.clone());
    if !has_values {
        shown.withhold_values();
    }
    match shown {
        Document::Heal(document) => document,
        _ => now.clone(),
    }
}

/// All of a cure but its sentences, which another version may word otherwise.
fn substance(cure: &Cure) -> Cure {
    Cure {
        summary: String::new(),
        evidence: Vec::new(),
        warnings: Vec::new(),
        rows: cure
            .rows
            .iter()
            .map(|row| pgclinic_model::document::HealRow {
                state: String::new(),
                ..row.clone()
            })
            .collect(),
        ..cure.clone()
    }
}
