//! What PostgreSQL's own regression suite leaves behind, stopped cleanly and killed before its end.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::Workshop;
use super::super::{debian, suite};
use crate::shell;

pub(super) const RECIPE: Recipe = Recipe {
    name: "regression",
    summary: "after the regression suite of 15: stopped, and killed near its end",
    quick: false,
    make,
};

/// Of the 217 tests of 15; by then nearly every kind of object is there.
const TESTS_BEFORE_THE_KILL: usize = 185;

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let tools = shop.fifteen()?;
    let debian = debian::ensure(shop)?;

    let stopped = folder.join("stopped");
    tools.new_cluster(&stopped)?;
    let server = tools.start(&stopped, suite::SETTINGS)?;
    suite::regression(&tools, &debian, folder.join("stopped-results")).run(&server)?;
    server.stop()?;

    let killed = folder.join("killed");
    let results = folder.join("killed-results");
    tools.new_cluster(&killed)?;
    let mut server = tools.start(&killed, suite::SETTINGS)?;
    let mut driver = suite::regression(&tools, &debian, results.clone()).command(&server)?;
    driver.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = driver
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", shell::line(&driver)))?;
    wait_for_tests(&mut running, &results.join("results"))?;
    server.kill()?;
    // It fails with its server, and that is meant.
    let _ = running.wait();
    Ok(())
}

fn wait_for_tests(running: &mut Child, results: &Path) -> Result<(), String> {
    loop {
        let count = std::fs::read_dir(results).map_or(0, Iterator::count);
        if count >= TESTS_BEFORE_THE_KILL {
            return Ok(());
        }
        if let Ok(Some(status)) = running.try_wait() {
            return Err(format!("the suite ended after {count} tests with {status}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
