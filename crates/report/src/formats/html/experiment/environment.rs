//! Where it ran, and what differs between the arms.

use std::collections::BTreeMap;
use std::io;

use pgclinic_model::document::{ArmSummary, ExperimentDocument};

use super::super::escape::Esc;
use crate::measured;

pub(super) fn all(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<section>\n<h2>What differs between the arms</h2>\n")?;
    arms(document, out)?;
    out.write_all(b"</section>\n<section>\n<h2>What was equal</h2>\n")?;
    for machine in &document.machines {
        let name = if document.machines.len() > 1 {
            machine.name.as_str()
        } else {
            ""
        };
        facts(name, &machine.environment, out)?;
    }
    let equal = equal_settings(document);
    if !equal.is_empty() {
        facts("Servers", &equal, out)?;
    }
    out.write_all(b"</section>\n")
}

/// More arms than this have no room side by side, on a sheet of paper least of all.
const SIDE_BY_SIDE: usize = 5;

fn arms(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    if document.arms.len() > SIDE_BY_SIDE {
        return arms_by_value(document, out);
    }
    out.write_all(b"<div class=wide><table>\n<thead><tr><th></th>")?;
    for arm in &document.arms {
        write!(out, "<th>{}</th>", Esc(&arm.name))?;
    }
    out.write_all(b"</tr></thead>\n<tbody>\n<tr><td class=q>server</td>")?;
    for arm in &document.arms {
        write!(
            out,
            "<td>{}</td>",
            Esc(arm.version.as_deref().unwrap_or("none ran"))
        )?;
    }
    out.write_all(b"</tr>\n")?;
    for (name, values) in measured::differences(document) {
        write!(out, "<tr><td class=q>{}</td>", Esc(name))?;
        for value in values {
            write!(out, "<td><code>{}</code></td>", Esc(value))?;
        }
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</tbody></table></div>\n")
}

/// Each thing that differs, and under it the arms that have it alike.
fn arms_by_value(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let version = |arm: &ArmSummary| arm.version.clone().unwrap_or_else(|| "none ran".to_owned());
    let servers: Vec<String> = document.arms.iter().map(version).collect();
    let mut all = vec![("server".to_owned(), servers)];
    all.extend(measured::differences(document));
    out.write_all(b"<div class=wide><table>\n<tbody>\n")?;
    for (name, values) in &all {
        let mut told: Vec<&str> = Vec::new();
        for value in values {
            if told.contains(&value.as_str()) {
                continue;
            }
            told.push(value);
            let alike = document.arms.iter().zip(values);
            let alike = alike.filter(|(_, other)| *other == value);
            let names: Vec<&str> = alike.map(|(arm, _)| arm.name.as_str()).collect();
            writeln!(
                out,
                "<tr><td class=q>{}</td><td><code>{}</code></td><td>{}</td></tr>",
                Esc(if told.len() == 1 { name } else { "" }),
                Esc(value),
                Esc(names.join(", "))
            )?;
        }
    }
    out.write_all(b"</tbody></table></div>\n")
}

/// What all arms have alike.
fn equal_settings(document: &ExperimentDocument) -> BTreeMap<String, String> {
    let differing = measured::differences(document);
    let Some(arm) = document.arms.first() else {
        return BTreeMap::new();
    };
    let all = arm.settings.iter().chain(&arm.environment);
    let equal = all.filter(|(name, _)| differing.iter().all(|(other, _)| other != *name));
    equal
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn facts(title: &str, facts: &BTreeMap<String, String>, out: &mut dyn io::Write) -> io::Result<()> {
    if !title.is_empty() {
        writeln!(out, "<h3>{}</h3>", Esc(title))?;
    }
    out.write_all(b"<dl class=reasons>\n")?;
    for (name, value) in facts {
        writeln!(out, "<dt>{}</dt><dd>{}</dd>", Esc(name), Esc(value))?;
    }
    out.write_all(b"</dl>\n")
}
