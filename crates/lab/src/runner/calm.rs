//! The noise gate: a run whose metric is time waits until the machine is calm; when it does not
//! calm down, the run is made all the same and says so.

use std::time::{Duration, Instant};

use crate::error::Result;

/// When the machine counts as calm.
#[derive(Debug, Clone)]
pub struct CalmOptions {
    /// Share of all processors that may be busy with other things, 0 to 1.
    pub busy_share: f64,
    /// How long to wait for it.
    pub patience: Duration,
}

impl Default for CalmOptions {
    fn default() -> Self {
        Self {
            busy_share: 0.15,
            patience: Duration::from_secs(20),
        }
    }
}

/// How long one look takes.
const LOOK: Duration = Duration::from_millis(250);

/// Waits until the machine is calm. Gives words when it was not within the time; `check` may end
/// the wait.
pub(super) fn wait(
    options: &CalmOptions,
    check: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<Option<String>> {
    let end = Instant::now() + options.patience;
    loop {
        let Some(before) = busy_and_all() else {
            return Ok(None);
        };
        std::thread::sleep(LOOK);
        let Some(after) = busy_and_all() else {
            return Ok(None);
        };
        let share = share(before, after);
        check(share)?;
        if share <= options.busy_share {
            return Ok(None);
        }
        if Instant::now() >= end {
            return Ok(Some(format!(
                "the machine was not calm before this run: {:.0} % of its processors were busy",
                share * 100.0
            )));
        }
    }
}

fn share(before: (u64, u64), after: (u64, u64)) -> f64 {
    let all = after.1.saturating_sub(before.1);
    let busy = after.0.saturating_sub(before.0);
    busy as f64 / all.max(1) as f64
}

fn busy_and_all() -> Option<(u64, u64)> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The first line of `/proc/stat` (`proc(5)`): user nice system idle iowait irq softirq steal.
fn parse(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let all: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all.saturating_sub(idle), all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_disk_is_not_busy_and_stolen_time_is() {
        let before = parse("cpu  100 0 50 800 50 0 0 0 0 0\n").expect("a line");
        let after = parse("cpu  100 0 50 850 90 0 0 10 0 0\n").expect("a line");
        assert!((share(before, after) - 0.1).abs() < 1e-9);
    }
}
