//! The state of a long check in a file, so that the next one goes on where it ended.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use pgclinic_check::{RunState, StateKeeper};

use crate::destination::refuse_early;
use crate::exit::Failure;
use crate::output::write_file;

/// What the file is called.
const STATE: &str = "state";

/// Writes each state over the one before; what first went wrong is told at the end.
pub(crate) struct StateFile {
    path: PathBuf,
    failure: RefCell<Option<Failure>>,
}

impl StateFile {
    /// A file that is not there yet, unless a run goes on with it, and that can be written outside
    /// of the targets.
    pub(crate) fn new(path: &Path, resume: bool, targets: &[&Path]) -> Result<Self, Failure> {
        if !resume && path.symlink_metadata().is_ok() {
            return Err(Failure::new(format!(
                "{} is there already: --resume goes on with it, or name another file",
                path.display()
            )));
        }
        refuse_early(path, STATE, targets)?;
        Ok(StateFile {
            path: path.to_owned(),
            failure: RefCell::new(None),
        })
    }

    /// What another run left.
    pub(crate) fn read(&self) -> Result<RunState, Failure> {
        read(&self.path).map_err(|why| {
            let path = self.path.display();
            Failure::new(format!("cannot go on with {path}: {why}"))
        })
    }

    /// Why a state could not be written, if one could not up to now.
    pub(crate) fn is_written(&self) -> Result<(), Failure> {
        let failure = self.failure.borrow();
        failure.clone().map_or(Ok(()), Err)
    }
}

/// What another run left, or why that cannot be read.
pub(crate) fn read(path: &Path) -> Result<RunState, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    serde_json::from_reader(BufReader::new(file))
        .map_err(|error| format!("it is no state of a run: {error}"))
}

impl StateKeeper for StateFile {
    fn keep(&self, state: &RunState) {
        let written = write_file(&self.path, STATE, |out| {
            serde_json::to_writer(out, state).map_err(Into::into)
        });
        if let Err(error) = written {
            self.failure.borrow_mut().get_or_insert(error);
        }
    }
}
