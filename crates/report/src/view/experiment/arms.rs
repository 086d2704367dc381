//! Where it ran, and what differs between the arms.

use std::collections::BTreeMap;

use pgclinic_model::document::{ArmSummary, ExperimentDocument};

use super::super::{Block, Row, Table, Words, columns, left, reasons_of, section, words};
use crate::measured;

/// More arms than this have no room side by side, on a sheet of paper least of all.
const SIDE_BY_SIDE: usize = 5;

/// A thing, and its value in each arm.
type Values = (String, Vec<String>);

pub(super) fn all(document: &ExperimentDocument) -> Vec<Block> {
    let version = |arm: &ArmSummary| arm.version.clone().unwrap_or_else(|| "none ran".to_owned());
    let servers = document.arms.iter().map(version);
    let mut all = vec![("server".to_owned(), servers.collect())];
    all.extend(measured::differences(document));
    let table = if document.arms.len() > SIDE_BY_SIDE {
        by_value(document, &all)
    } else {
        side_by_side(document, &all)
    };
    let mut equal = Vec::new();
    for machine in &document.machines {
        let name = match document.machines.len() {
            1 => "",
            _ => machine.name.as_str(),
        };
        equal.extend(facts(name, &machine.environment));
    }
    equal.extend(facts("Servers", &equal_settings(document)));
    vec![
        section("What differs between the arms").of(vec![Block::Table(table)]),
        section("What was equal").of(equal),
    ]
}

fn side_by_side(document: &ExperimentDocument, all: &[Values]) -> Table {
    let mut columns = vec![left("")];
    columns.extend(document.arms.iter().map(|arm| left(&arm.name)));
    let rows = all.iter().enumerate().map(|(at, (name, values))| {
        let mut cells = vec![Words::default().quiet(name)];
        cells.extend(values.iter().map(|value| match at {
            0 => words(value),
            _ => Words::default().code(value),
        }));
        Row::of(cells)
    });
    Table::new(columns, rows)
}

/// Each thing that differs, and under it the arms that have it alike.
fn by_value(document: &ExperimentDocument, all: &[Values]) -> Table {
    let mut rows = Vec::new();
    for (name, values) in all {
        let mut told: Vec<&str> = Vec::new();
        for value in values {
            if told.contains(&value.as_str()) {
                continue;
            }
            told.push(value);
            let alike = document.arms.iter().zip(values);
            let alike = alike.filter(|(_, other)| *other == value);
            let names: Vec<&str> = alike.map(|(arm, _)| arm.name.as_str()).collect();
            rows.push(Row::of(vec![
                Words::default().quiet(if told.len() == 1 { name } else { "" }),
                Words::default().code(value),
                names.join(", ").into(),
            ]));
        }
    }
    Table::new(columns("What | Value | Arms"), rows)
}

/// What all arms have alike.
fn equal_settings(document: &ExperimentDocument) -> BTreeMap<String, String> {
    let differing = measured::differences(document);
    let Some(arm) = document.arms.first() else {
        return BTreeMap::new();
    };
    let all = arm.settings.iter().chain(&arm.environment);
    let equal = all.filter(|(name, _)| differing.iter().all(|(other, _)| other != *name));
    let equal = equal.map(|(name, value)| (name.clone(), value.clone()));
    equal.collect()
}

fn facts(title: &str, facts: &BTreeMap<String, String>) -> Vec<Block> {
    let reasons = facts
        .iter()
        .map(|(name, value)| (words(name), words(value)));
    let reasons = reasons_of(reasons);
    match title {
        "" => reasons,
        title => section(title).unless_empty(reasons),
    }
}
