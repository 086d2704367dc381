//! The regression SQL of 15 on every other major: what fails there is no matter, what is left
//! behind is odd enough.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::Workshop;
use super::super::{contents, debian, suite};
use crate::postgres::{Server, Tools};
use crate::shell;
use crate::task::Outcome;

pub(super) const RECIPE: Recipe = Recipe {
    name: "majors",
    summary: "the regression SQL of 15 on 13, 14, 16, 17 and 18, as far as it goes",
    quick: false,
    make,
};

const MAJORS: [u32; 5] = [13, 14, 16, 17, 18];

/// A server that has crashed answers again after this long.
const PATIENCE: Duration = Duration::from_secs(120);

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    // Fetched servers come without psql.
    let client = shop.fifteen()?;
    let debian = debian::ensure(shop)?;
    for major in MAJORS {
        let tools = shop.fetched(major)?;
        let cluster = folder.join(major.to_string());
        tools.new_cluster(&cluster)?;
        let server = tools.start(&cluster, suite::SETTINGS)?;
        let results = folder.join(format!("{major}-results"));
        suite::regression(&client, &debian, results).run(&server)?;
        // What another major's test does may crash a server; it comes back by itself.
        wait_until_it_answers(&client, &server)?;
        server.stop()?;
    }
    Ok(())
}

fn wait_until_it_answers(client: &Tools, server: &Server<'_>) -> Outcome {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut psql = contents::psql(client, server, "postgres");
        let answer = shell::capture(psql.args(["-c", "CHECKPOINT"])).map(drop);
        if answer.is_ok() || Instant::now() > end {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
