//! Parts of the commands that a plan shows: whole paths, so that they run from any directory.

use std::path::Path;

use pgclinic_model::shell_word;

use crate::target;

/// The data directory.
pub(super) fn pgdata_word(pgdata: &Path) -> String {
    shell_word(&target::spec_of(pgdata))
}

/// A directory beside the data directory: `/srv/data.healed`.
pub(super) fn beside(pgdata: &Path, ending: &str) -> String {
    let spec = target::spec_of(pgdata);
    shell_word(&format!("{}.{ending}", spec.trim_end_matches('/')))
}

/// Saves the rows that can be read, of one relation or of all, each into a directory of its own.
pub(super) fn salvage(pgdata: &Path, relation: Option<&str>) -> String {
    let (selected, into) = match relation {
        Some(own) => (
            format!(" --relation {}", shell_word(own)),
            format!("salvaged-{}", own.replace('/', "_")),
        ),
        None => (String::new(), "salvaged".to_owned()),
    };
    format!(
        "pgclinic salvage {}{selected} --to {}",
        pgdata_word(pgdata),
        beside(pgdata, &into)
    )
}
