//! Blocks of other sizes and segments of a few blocks, by servers compiled once from Debian's
//! source.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::debian::{self, Debian};
use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::Workshop;
use super::super::{contents, suite};
use crate::postgres::Tools;
use crate::shell::{self, at};
use crate::task::Outcome;

pub(super) const RECIPE: Recipe = Recipe {
    name: "block-sizes",
    summary: "blocks of 4, 32, 1 and 16 kB in small segments, servers compiled for them",
    quick: false,
    make,
};

/// Block size in kB, and blocks in a segment where it is not the usual GiB.
const BUILDS: [(u32, Option<u32>); 4] = [(4, None), (32, Some(16)), (1, Some(1000)), (16, Some(7))];

const PARTS: [&str; 7] = [
    "src/backend",
    "src/backend/snowball",
    "src/backend/utils/mb/conversion_procs",
    "src/timezone",
    "src/pl/plpgsql",
    "src/bin/initdb",
    "src/bin/pg_ctl",
];
const CONTRIB: [&str; 7] = [
    "amcheck",
    "btree_gin",
    "btree_gist",
    "hstore",
    "pageinspect",
    "pg_trgm",
    "pg_visibility",
];

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let client = shop.fifteen()?;
    let debian = debian::ensure(shop)?;
    for (kilobytes, segment) in BUILDS {
        let tools = built(shop, &debian, kilobytes, segment)?;
        let cluster = folder.join(format!("{kilobytes}k"));
        tools.new_cluster(&cluster)?;
        let server = tools.start(&cluster, suite::SETTINGS)?;
        contents::fill(&client, &server, folder)?;
        let results = folder.join(format!("{kilobytes}k-results"));
        suite::regression(&client, &debian, results).run(&server)?;
        server.stop()?;
    }
    Ok(())
}

/// The programs for this block size, compiled now if they are not there.
fn built(
    shop: &Workshop,
    debian: &Debian,
    kilobytes: u32,
    segment: Option<u32>,
) -> Result<Tools, Unmade> {
    let home = shop.folder().join(format!("built/15-{kilobytes}k"));
    if !home.join("complete").exists() {
        println!("compiling PostgreSQL 15 with blocks of {kilobytes} kB");
        compile(debian, &home, kilobytes, segment)?;
    }
    let tools = Tools::at(home.join("bin"));
    tools.ok_or_else(|| Unmade::Failed(format!("{} holds no programs", home.display())))
}

fn compile(debian: &Debian, home: &Path, kilobytes: u32, segment: Option<u32>) -> Outcome {
    let objects: PathBuf = home.join("objects");
    if home.exists() {
        std::fs::remove_dir_all(home).map_err(at(home))?;
    }
    std::fs::create_dir_all(&objects).map_err(at(&objects))?;
    let mut configure = Command::new(debian.source.join("configure"));
    configure
        .arg(format!("--prefix={}", home.display()))
        .arg(format!("--with-blocksize={kilobytes}"))
        // What is compiled runs for seconds: quick to make beats quick to run.
        .args([
            "--without-readline",
            "--without-zlib",
            "--quiet",
            "CFLAGS=-O0 -w",
        ])
        .current_dir(&objects);
    shell::capture(&mut configure)?;
    if let Some(blocks) = segment {
        set_segment(&objects.join("src/include/pg_config.h"), blocks)?;
    }
    for part in PARTS {
        make_in(&objects, &["-C", part])?;
    }
    for module in CONTRIB {
        make_in(&objects, &["-C", &format!("contrib/{module}")])?;
    }
    std::fs::remove_dir_all(&objects).map_err(at(&objects))?;
    let done = home.join("complete");
    std::fs::write(&done, "").map_err(at(&done))
}

/// The option of 15 knows whole GiB only.
fn set_segment(header: &Path, blocks: u32) -> Outcome {
    let text = std::fs::read_to_string(header).map_err(at(header))?;
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("#define RELSEG_SIZE ") {
            Some(_) => format!("#define RELSEG_SIZE {blocks}\n"),
            None => format!("{line}\n"),
        });
    std::fs::write(header, lines.collect::<String>()).map_err(at(header))
}

fn make_in(objects: &Path, words: &[&str]) -> Outcome {
    let mut make = Command::new("nice");
    make.args(["-n", "10", "make", "-s", "-j2"])
        .args(words)
        .arg("install");
    shell::capture(make.current_dir(objects)).map(drop)
}
