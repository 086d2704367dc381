//! The pages in `docs/rules/` and `docs/guide/articles.md`, which the program writes from its
//! registers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::args::Args;
use crate::shell::at;
use crate::task::{Outcome, Task};
use crate::{repository, shell};

pub(crate) const TASK: Task = Task {
    name: "docs",
    summary: "writes docs/rules/ and docs/guide/articles.md from their registers; --check only compares; --pgclinic PROGRAM asks that one instead of building it",
    in_ci: Some(&["--check"]),
    run,
};

type Pages = BTreeMap<String, String>;

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let check = args.flag("--check");
    let program = args.value("--pgclinic")?;
    args.finish()?;

    let kept = repository::root().join("docs/rules");
    let kept_articles = repository::root().join("docs/guide/articles.md");
    let (fresh, articles) = generate(program.as_deref())?;
    let mut stale = differences(&read(&kept)?, &fresh);
    if std::fs::read_to_string(&kept_articles).ok().as_ref() != Some(&articles) {
        stale.push("  articles.md differs".to_owned());
    }
    if stale.is_empty() {
        return Ok(());
    }
    if check {
        return Err(format!(
            "docs is stale; `cargo xtask docs` writes it:\n{}",
            stale.join("\n")
        ));
    }
    std::fs::write(&kept_articles, articles).map_err(at(&kept_articles))?;
    write(&kept, &fresh)
}

/// The pages of rules, and the page of articles.
fn generate(program: Option<&str>) -> Result<(Pages, String), String> {
    let folder = repository::target().join("generated-rules");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let articles = repository::target().join("generated-articles.md");
    let mut command = match program {
        Some(program) => shell::command(program, &[]),
        None => shell::command("cargo", &["run", "--quiet", "-p", "pgclinic-cli", "--"]),
    };
    command.arg("generate-docs");
    shell::run(command.arg(&folder).arg("--articles").arg(&articles))?;
    let pages = read(&folder)?;
    if pages.is_empty() {
        return Err("generate-docs wrote no page".into());
    }
    let articles = std::fs::read_to_string(&articles).map_err(at(&articles))?;
    Ok((pages, articles))
}

fn read(folder: &Path) -> Result<Pages, String> {
    let mut pages = Pages::new();
    if !folder.exists() {
        return Ok(pages);
    }
    for entry in std::fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let text = std::fs::read_to_string(&path).map_err(at(&path))?;
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        pages.insert(name, text);
    }
    Ok(pages)
}

fn write(folder: &Path, pages: &Pages) -> Outcome {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(at(folder))?;
    }
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    for (name, text) in pages {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(at(&path))?;
    }
    println!("{} pages in {}", pages.len(), folder.display());
    Ok(())
}

fn differences(kept: &Pages, fresh: &Pages) -> Vec<String> {
    let gone = kept
        .keys()
        .filter(|name| !fresh.contains_key(*name))
        .map(|name| format!("  {name} has no rule"));
    let other = fresh
        .iter()
        .filter(|(name, text)| kept.get(*name) != Some(text));
    gone.chain(other.map(|(name, _)| format!("  {name} differs")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_went_came_or_changed_are_named() {
        let pages = |list: &[(&str, &str)]| -> Pages {
            list.iter()
                .map(|(name, text)| ((*name).into(), (*text).into()))
                .collect()
        };
        let kept = pages(&[("a.md", "1"), ("b.md", "1"), ("c.md", "1")]);
        let fresh = pages(&[("b.md", "2"), ("c.md", "1"), ("d.md", "1")]);
        assert_eq!(
            differences(&kept, &fresh),
            ["  a.md has no rule", "  b.md differs", "  d.md differs"]
        );
    }
}
