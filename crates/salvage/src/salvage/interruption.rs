//! What a run that was stopped left undone, and how it is gone on with.

use pgclinic_model::document::{NotChecked, SalvageReport, TableAccount};
use pgclinic_model::plural;

use super::options::Destination;
use super::plan::not_salvaged;

/// Names that a list gives.
const NAMES_MAX: usize = 5;

/// A database that the run did not come to.
pub(super) fn not_begun(database: &str) -> NotChecked {
    let what = format!("database {database}");
    not_salvaged(&what, "the run was stopped before it was begun")
}

/// Counts the tables that were not written whole.
pub(crate) fn tell(account: &mut SalvageReport, destination: &Destination) {
    if !account.interrupted {
        return;
    }
    let undone = account.tables.iter().filter(|table| table.file.is_none());
    let undone: Vec<&TableAccount> = undone.collect();
    let all = account.tables.len();
    let named: Vec<String> = undone
        .iter()
        .take(NAMES_MAX)
        .map(|table| format!("{}.{}", table.schema, table.table))
        .collect();
    let more = undone.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let how = match destination {
        Destination::Folder(_) => {
            "the same command with --resume goes on with them and keeps what is whole"
        }
        Destination::Server(_) => "the same command goes on with them",
        Destination::Stream(_) => "a stream is begun again from its first row",
    };
    let gap = match named.as_slice() {
        [] => not_salvaged("what comes after the rows", how),
        named => {
            let what = format!("{} of {}", undone.len(), plural(all, "table"));
            let why = format!(
                "the run was stopped before they were written whole: {}{more}; {how}",
                named.join(", ")
            );
            not_salvaged(&what, &why)
        }
    };
    account.not_salvaged.push(gap);
}
