//! A base backup that was taken under load and never started, and a standby that replayed beside
//! its primary.

use std::path::Path;
use std::time::Duration;

use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::{Workshop, copy};
use super::load::{SETTINGS, Scripts, prepare};
use crate::postgres;
use crate::shell::{self, at};

pub(super) const RECIPE: Recipe = Recipe {
    name: "replica",
    summary: "a plain base backup taken under load; a standby killed and stopped; their primary",
    quick: true,
    make,
};

const LOAD: Duration = Duration::from_secs(10);
/// The load is at work by then.
const BEFORE_THE_BACKUP: Duration = Duration::from_secs(2);

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let tools = shop.installed()?;
    for program in ["pgbench", "pg_basebackup"] {
        if !tools.folder().join(program).exists() {
            return Err(Unmade::Lacking(format!("no {program} is installed")));
        }
    }
    let scripts = Scripts::write(folder)?;
    let primary_folder = folder.join("primary");
    tools.new_cluster(&primary_folder)?;
    let primary = tools.start(&primary_folder, SETTINGS)?;
    prepare(&primary, folder, 2)?;
    let mut working = scripts.start(&primary, LOAD)?;
    std::thread::sleep(BEFORE_THE_BACKUP);
    let backup = folder.join("backup");
    let mut take = primary.client("pg_basebackup");
    take.args(["-U", "postgres", "-c", "fast", "-X", "stream", "-D"]);
    shell::capture(take.arg(&backup))?;

    // The primary's socket was in its data directory, and so in the backup.
    postgres::remove_locks(&backup)?;
    let killed = folder.join("standby-killed");
    copy(&backup, &killed)?;
    let signal = killed.join("standby.signal");
    std::fs::write(&signal, "").map_err(at(&signal))?;
    let from = format!(
        "primary_conninfo='host={} user=postgres'",
        primary_folder.display()
    );
    let mut settings = SETTINGS.to_vec();
    settings.push(&from);
    let mut standby = tools.start(&killed, &settings)?;
    for child in &mut working {
        child.wait().map_err(|error| format!("pgbench: {error}"))?;
    }
    standby.kill()?;
    let stopped = folder.join("standby-stopped");
    copy(&killed, &stopped)?;
    postgres::remove_locks(&stopped)?;
    tools.start(&stopped, &settings)?.stop()?;
    primary.stop()?;
    Ok(())
}
