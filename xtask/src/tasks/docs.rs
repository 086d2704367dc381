//! `docs/rules/README.md`, `docs/guide/articles.md`, `docs/signs.md` and the index of
//! `docs/guide/messages`, which the program writes from its registers; the words of the program;
//! the picture of the README; and the pages of the messages, for which it runs every scenario on a
//! real server.

mod picture;
mod vocabulary;

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::shell::at;
use crate::task::{Outcome, Task};
use crate::{repository, shell};

pub(crate) const TASK: Task = Task {
    name: "docs",
    summary: "writes docs/rules/README.md, docs/guide/articles.md, docs/signs.md and the index of docs/guide/messages from their registers, the words of the program for --redact, and the picture of the README where its page has changed; --messages runs every scenario on a real PostgreSQL and writes the pages there, --only NAME one of them; --check only compares; --pgclinic PROGRAM asks that one instead of building it",
    in_ci: Some(&["--check"]),
    run,
};

/// A page that is generated: the option of `generate-docs` that writes it, and where it is kept.
const PAGES: [(&str, &str); 4] = [
    ("--rules", "docs/rules/README.md"),
    ("--articles", "docs/guide/articles.md"),
    ("--gallery", "docs/guide/messages/README.md"),
    ("--signs", "docs/signs.md"),
];

/// Where the pages of the messages are kept.
const MESSAGES: &str = "docs/guide/messages";

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let check = args.flag("--check");
    let only = args.value("--only")?;
    let messages = args.flag("--messages") || only.is_some();
    let program = args.value("--pgclinic")?;
    args.finish()?;

    let mut fresh = generate(program.as_deref(), messages, only.as_deref())?;
    let page = picture::page(&|| started(program.as_deref()))?;
    fresh.push((picture::OUTLINE.to_owned(), page.outline.clone()));
    let root = repository::root();
    let stale = fresh.iter().filter(|(kept, text)| {
        let now = std::fs::read_to_string(root.join(kept));
        now.ok().as_ref() != Some(text)
    });
    let stale: Vec<_> = stale.collect();
    if check && !stale.is_empty() {
        let names: Vec<&str> = stale.iter().map(|(kept, _)| kept.as_str()).collect();
        let names = names.join(", ");
        return Err(format!("stale, `cargo xtask docs` writes it: {names}"));
    }
    if stale.iter().any(|(kept, _)| kept == picture::OUTLINE) {
        picture::take(&page)?;
    }
    for (kept, text) in stale {
        let path = root.join(kept);
        std::fs::write(&path, text).map_err(at(&path))?;
        println!("{kept}");
    }
    Ok(())
}

/// pgclinic, without its words.
fn started(program: Option<&str>) -> std::process::Command {
    match program {
        Some(program) => shell::command(program, &[]),
        None => shell::command("cargo", &["run", "--quiet", "-p", "pgclinic-cli", "--"]),
    }
}

/// The path and the text of each page, as the program writes them now.
fn generate(
    program: Option<&str>,
    messages: bool,
    only: Option<&str>,
) -> Result<Vec<(String, String)>, String> {
    let mut command = started(program);
    command.arg("generate-docs");
    let folder = repository::target().join("generated-docs");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    for (option, kept) in PAGES {
        command.arg(option).arg(scratch(kept));
    }
    let gallery = folder.join("messages");
    if messages {
        // What an earlier run left there is no page of this one.
        let _absent_at_first = std::fs::remove_dir_all(&gallery);
        std::fs::create_dir_all(&gallery).map_err(at(&gallery))?;
        command.arg("--messages").arg(&gallery);
        command.args(only.map(|name| format!("--only={name}")));
    }
    shell::run(&mut command)?;
    let read = |path: PathBuf, kept: String| {
        let text = std::fs::read_to_string(&path).map_err(at(&path))?;
        Ok((kept, text))
    };
    let words = (vocabulary::KEPT.to_owned(), vocabulary::text()?);
    let of_registers = PAGES.map(|(_, kept)| (scratch(kept), kept.to_owned()));
    let of_runs = if messages {
        written(&gallery)?
    } else {
        Vec::new()
    };
    let all = of_registers.into_iter().chain(of_runs);
    let pages = all.map(|(path, kept)| read(path, kept));
    pages.chain([Ok(words)]).collect()
}

/// The pages that lie in this folder, and where they are kept.
fn written(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kept = format!("{MESSAGES}/{name}");
        pages.push((path, kept));
    }
    pages.sort();
    Ok(pages)
}

/// Where the program writes a page before it is compared.
fn scratch(kept: &str) -> PathBuf {
    repository::target()
        .join("generated-docs")
        .join(kept.replace('/', "-"))
}
