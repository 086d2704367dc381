//! What the isolation suite leaves behind: sessions that meet in every order that PostgreSQL's
//! authors thought of.

use std::path::Path;

use super::super::debian;
use super::super::recipe::{Recipe, Unmade};
use super::super::suite::{Driver, SETTINGS, Suite};
use super::super::workshop::Workshop;

pub(super) const RECIPE: Recipe = Recipe {
    name: "isolation",
    summary: "after the isolation suite of 15",
    quick: false,
    make,
};

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let tools = shop.fifteen()?;
    let debian = debian::ensure(shop)?;
    let cluster = folder.join("stopped");
    tools.new_cluster(&cluster)?;
    let server = tools.start(&cluster, SETTINGS)?;
    let input = debian.source.join("src/test/isolation");
    let schedule = format!("--schedule={}", input.join("isolation_schedule").display());
    let suite = Suite {
        driver: Driver::Isolation,
        tools: &tools,
        debian: &debian,
        input,
        output: folder.join("results"),
        arguments: vec![schedule],
    };
    suite.run(&server)?;
    server.stop()?;
    Ok(())
}
