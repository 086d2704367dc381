//! A server on fewer processors than the machine has, as `taskset` would start it: clients keep all
//! of them.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::bench::Bench;
use crate::error::{Error, Result};
use crate::need::Need;

/// What is missing on a machine that has fewer processors than wanted.
pub(crate) fn need(wanted: u32) -> Option<Need> {
    let has = allowed().len();
    let words = || format!("it needs {wanted} processors, and this machine gives us {has}");
    (usize::try_from(wanted).is_ok_and(|wanted| wanted > has)).then(|| Need::Missing(words()))
}

/// The processors that this process may run on.
fn allowed() -> Vec<usize> {
    let own = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| own.is_set(*cpu))
        .collect()
}

impl Bench<'_> {
    /// The server, which must not run yet, keeps to so many processors. A server that is not ours
    /// stays as it is, and the run says so.
    pub fn set_processors(&mut self, count: u32) {
        if self.site.given.is_some() {
            self.overlap("the server at the URL ran on all its processors");
            return;
        }
        self.processors = Some(count);
    }

    /// Bounds a server that has just come up; processes that it starts later are born into the same
    /// bounds.
    pub(crate) fn bound(&mut self, postmaster: u32) -> Result<()> {
        let Some(count) = self.processors else {
            return Ok(());
        };
        let mut set = CpuSet::new();
        for cpu in allowed()
            .into_iter()
            .take(usize::try_from(count).unwrap_or(usize::MAX))
        {
            set.set(cpu);
        }
        for process in std::iter::once(postmaster).chain(children(postmaster)) {
            bind(process, &set)?;
        }
        self.fact("server_processors", count.to_string());
        Ok(())
    }
}

/// A process that has ended meanwhile needs no bounds.
fn bind(process: u32, set: &CpuSet) -> Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    match sched_setaffinity(pid, set) {
        Err(error) if error != rustix::io::Errno::SRCH => {
            let what = format!("process {process} of the server");
            Err(Error::io("choose the processors of", what)(error.into()))
        }
        _ => Ok(()),
    }
}

/// Processes whose parent this is (`proc_pid_stat(5)`, the second field behind the name).
fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    numbers.filter(is_child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_gives_what_it_has() {
        let has = u32::try_from(allowed().len()).expect("a small number");
        assert!(has >= 1);
        assert_eq!(need(has), None);
        assert!(matches!(need(has + 1), Some(Need::Missing(why)) if why.contains("processors")));
    }
}
