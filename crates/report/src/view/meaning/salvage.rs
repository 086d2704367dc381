//! A salvage: is everything there that was to be saved.

use std::collections::BTreeSet;

use pgclinic_model::document::{LossPlace, Outcome, Place, SalvageReport, TableAccount};
use pgclinic_model::shell_word;

use super::Meaning;
use crate::view::next::{self, Next};
use crate::words::{count_of, plural};

/// A script for several databases goes from one to the other by itself.
const MAINTENANCE_DATABASE: &str = "postgres";

pub(crate) fn salvage(account: &SalvageReport) -> Meaning {
    let mut sentence = sentence(account);
    sentence.extend(whereabouts(account));
    Meaning::of(sentence, commands(account))
}

/// Where the rows are.
fn whereabouts(account: &SalvageReport) -> Option<String> {
    let destination = account.destination.as_ref()?;
    let spec = destination.spec.as_ref()?;
    Some(match destination.kind.as_str() {
        "directory" if account.totals.written == 0 => {
            format!(" Nothing but this report is in {spec}, as salvage.html.")
        }
        "directory" => format!(" The rows are in {spec}, and so is this report, as salvage.html."),
        _ => format!(" The rows are in {spec}."),
    })
}

/// Loads what was written; nothing where no script does.
fn load(account: &SalvageReport, next: Next) -> Next {
    let Some(destination) = &account.destination else {
        return next;
    };
    let (Some(spec), Some(script)) = (&destination.spec, &destination.load_script) else {
        return next;
    };
    if account.totals.written == 0 && account.outcome == Outcome::Damaged {
        return next;
    }
    let written = account.tables.iter().filter(|table| table.file.is_some());
    let databases: BTreeSet<&str> = written.map(|table| table.database.as_str()).collect();
    let mut databases = databases.into_iter();
    let (database, why) = match (databases.next(), databases.next()) {
        (Some(one), None) if destination.with_schema => {
            (one, "load it into an empty database: tables, rows, indexes")
        }
        (Some(one), None) => (one, "load it into a database that has these tables"),
        _ if destination.with_schema => (
            MAINTENANCE_DATABASE,
            "load it into empty databases of these names: tables, rows, indexes",
        ),
        _ => (
            MAINTENANCE_DATABASE,
            "load it into databases of these names that have these tables",
        ),
    };
    let (spec, database) = (shell_word(spec), shell_word(database));
    let script = shell_word(script);
    next.and(
        why,
        format!("cd {spec} && psql -X -d {database} -f {script}"),
    )
}

fn sentence(account: &SalvageReport) -> String {
    let hurt = account.tables.iter().filter(|table| table.is_hurt());
    let hurt: Vec<&TableAccount> = hurt.collect();
    match account.outcome {
        _ if account.interrupted => {
            let written = account.tables.iter().filter(|table| table.file.is_some());
            let (written, all) = (count_of(written.count()), count_of(account.tables.len()));
            let tables = plural(all, "table");
            format!("The run was stopped when {written} of {tables} were written whole: a table that was not is not there, and what is left to do is listed here.")
        }
        Outcome::Whole => {
            "Nothing speaks against it: every row that was asked for was read, and stands in what was written.".into()
        }
        Outcome::Incomplete => {
            "What was read was written, and no row is known to be lost; but not everything could be examined, so that more may be missing.".into()
        }
        Outcome::Damaged if !hurt.is_empty() => {
            let tables = match hurt.as_slice() {
                [one] => format!("{}.{} is", one.schema, one.table),
                more => format!("{} are", plural(count_of(more.len()), "table")),
            };
            let written = match hurt.as_slice() {
                more if more.iter().all(|own| own.rows.written == 0) => "no row could be read",
                [_] => "what could be read of it was written",
                _ => "what could be read of them was written",
            };
            let others = if hurt.len() == account.tables.len() {
                "."
            } else {
                others(account)
            };
            format!(
                "{tables} not whole: {written}, and what is missing or doubtful is listed here{others}"
            )
        }
        Outcome::Damaged => {
            "Every table that was read was written, but something beside their rows is lost or doubtful, and is named here.".into()
        }
    }
}

/// What holds of the tables that are not named. Where somebody could not be asked, or values have
/// no checksum, nobody knows that they are as the server had them.
fn others(account: &SalvageReport) -> &'static str {
    let has_gaps = account.not_salvaged.iter().any(|gap| !gap.inherent);
    if has_gaps {
        "; of every other table no loss is known, as far as what was not salvaged leaves it open."
    } else if account.target.checksums == Some(false) {
        "; of every other table no loss is known; without data checksums nobody can verify its values."
    } else {
        "; every other table that was asked for was written as the server had it."
    }
}

fn commands(account: &SalvageReport) -> Next {
    let next = load(account, Next::default());
    if account.outcome == Outcome::Whole && !account.interrupted {
        return next;
    }
    let target = &account.target;
    let is_of_files = !target.spec.is_empty();
    if !is_of_files {
        return next;
    }
    let check = match target.kind.as_str() {
        // Nothing but its pages can be asked of a file.
        "relation-file" => format!("pgclinic check {}", target.as_arguments()),
        _ => next::check_in_full(target),
    };
    let next = next.and("learn what is damaged, and what heals it", check);
    let page = first_loss(account).and_then(|place| next::inspect(target, &place));
    let why = if account.totals.lost > 0 {
        "see the first page of which rows are missing"
    } else {
        "see the first page with rows that are doubtful"
    };
    let next = next.and_maybe(why, page);
    match (target.kind.as_str(), target.is_running()) {
        ("data-directory", false) => next.and(
            "see what of it can be cured; nothing is written without consent",
            format!("pgclinic heal {}", target.as_arguments()),
        ),
        _ => next,
    }
}

/// The first place of the table that lost most.
fn first_loss(account: &SalvageReport) -> Option<Place> {
    let hurt = account.tables.iter().filter(|table| table.is_hurt());
    let with_places = hurt.filter(|table| place(table).is_some());
    with_places
        .min_by_key(|table| std::cmp::Reverse(table.rows.lost))
        .and_then(place)
}

fn place(table: &TableAccount) -> Option<Place> {
    let is_there = |place: &&LossPlace| {
        let is_beyond_the_end = place.item.is_none() && place.why.contains("missing");
        !place.in_toast && !is_beyond_the_end
    };
    let lost = table.places.iter().find(is_there)?;
    Some(Place {
        database: (!table.database.is_empty()).then(|| table.database.clone()),
        schema: Some(table.schema.clone()),
        relation: Some(table.table.clone()),
        block: Some(lost.block),
        ..Place::default()
    })
}
