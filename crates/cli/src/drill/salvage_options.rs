//! What a drill asks of a salvage: the rows that a server would show, as they are found.

use std::num::NonZeroUsize;
use std::path::Path;

use pgclinic_model::Selection;
use pgclinic_salvage::formats::form_named;
use pgclinic_salvage::{
    Destination, Durability, Encoding, LOCK_WAIT, Partial, Rows, SalvageOptions, TextStyle,
};
use pgclinic_spill::MemoryPlan;

use crate::exit::Failure;

/// Of everything, in this form, into the directory `to`; what does not fit into memory lies in
/// `spill`.
///
/// # Errors
/// When there is no such form.
pub(crate) fn salvage_options(
    form: &str,
    (to, spill): (&Path, &Path),
    threads: NonZeroUsize,
) -> Result<SalvageOptions, Failure> {
    let known = form_named(form);
    Ok(SalvageOptions {
        destination: Destination::Folder(to.to_owned()),
        form: known.ok_or_else(|| Failure::new(format!("there is no form {form}")))?,
        rows: Rows::Live,
        generated: false,
        dropped: false,
        ddl: None,
        given: Vec::new(),
        without_catalogs: false,
        partial: Partial::Null,
        verify: false,
        encoding: Encoding::Utf8,
        text: TextStyle::default(),
        durability: Durability::Buffered,
        resume: false,
        threads,
        memory: MemoryPlan::default(),
        selection: Selection::default(),
        spec: "drill".into(),
        spill_folder: spill.to_owned(),
        lock_wait: LOCK_WAIT,
    })
}
