//! `--to -`: the rows of one table on stdout, while the threads of the salvage find them.

use std::sync::mpsc::Receiver;

use pgclinic_model::document::SalvageReport;

use crate::env::Env;
use crate::exit::Failure;

/// What gives the parts of a stream.
pub(super) type Parts = Receiver<Vec<u8>>;

/// Does the work, and writes the parts of its stream, if it has one. They end when `work` is done
/// and gone.
pub(super) fn taken(
    parts: Option<Parts>,
    world: &mut Env<'_>,
    work: impl FnOnce() -> Result<SalvageReport, Failure> + Send,
) -> Result<SalvageReport, Failure> {
    let Some(parts) = parts else {
        return work();
    };
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        let mut written = Ok(());
        while written.is_ok() {
            let Ok(part) = parts.recv() else { break };
            written = world.stdout.write_all(&part);
        }
        // Nobody takes more: whoever writes is told.
        drop(parts);
        let account = working.join();
        let account = account.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let written = written.and_then(|()| world.stdout.flush());
        written.map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
        account
    })
}
