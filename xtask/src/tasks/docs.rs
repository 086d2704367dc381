//! `docs/rules/README.md` and `docs/guide/articles.md`, which the program writes from its
//! registers.

use std::path::PathBuf;

use crate::args::Args;
use crate::shell::at;
use crate::task::{Outcome, Task};
use crate::{repository, shell};

pub(crate) const TASK: Task = Task {
    name: "docs",
    summary: "writes docs/rules/README.md and docs/guide/articles.md from their registers; --check only compares; --pgclinic PROGRAM asks that one instead of building it",
    in_ci: Some(&["--check"]),
    run,
};

/// A page that is generated: the option of `generate-docs` that writes it, and where it is kept.
const PAGES: [(&str, &str); 2] = [
    ("--rules", "docs/rules/README.md"),
    ("--articles", "docs/guide/articles.md"),
];

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let check = args.flag("--check");
    let program = args.value("--pgclinic")?;
    args.finish()?;

    let fresh = generate(program.as_deref())?;
    let root = repository::root();
    let stale = fresh.iter().filter(|(kept, text)| {
        let now = std::fs::read_to_string(root.join(kept));
        now.ok().as_ref() != Some(text)
    });
    let stale: Vec<_> = stale.collect();
    if check && !stale.is_empty() {
        let names: Vec<&str> = stale.iter().map(|(kept, _)| *kept).collect();
        let names = names.join(", ");
        return Err(format!("stale, `cargo xtask docs` writes it: {names}"));
    }
    for (kept, text) in stale {
        let path = root.join(kept);
        std::fs::write(&path, text).map_err(at(&path))?;
        println!("{kept}");
    }
    Ok(())
}

/// The path and the text of each page, as the program writes them now.
fn generate(program: Option<&str>) -> Result<Vec<(&'static str, String)>, String> {
    let mut command = match program {
        Some(program) => shell::command(program, &[]),
        None => shell::command("cargo", &["run", "--quiet", "-p", "pgclinic-cli", "--"]),
    };
    command.arg("generate-docs");
    let folder = repository::target().join("generated-docs");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    for (option, kept) in PAGES {
        command.arg(option).arg(scratch(kept));
    }
    shell::run(&mut command)?;
    let read = |(_, kept): (_, &'static str)| {
        let path = scratch(kept);
        let text = std::fs::read_to_string(&path).map_err(at(&path))?;
        Ok((kept, text))
    };
    PAGES.into_iter().map(read).collect()
}

/// Where the program writes a page before it is compared.
fn scratch(kept: &str) -> PathBuf {
    repository::target()
        .join("generated-docs")
        .join(kept.replace('/', "-"))
}
