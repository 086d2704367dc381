//! The repository as the tasks see it: its root, its files, its commit.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::shell;

/// One file of the repository.
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    /// The text, or `None` when the file is not UTF-8.
    pub(crate) text: Option<String>,
}

/// The files of the repository in order of their paths.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Reads every file that git knows or would add.
    pub(crate) fn read() -> Result<Self, String> {
        let mut files = Vec::new();
        for path in paths()? {
            let bytes = match std::fs::read(root().join(&path)) {
                Ok(bytes) => bytes,
                // Deleted in the work tree, still in the index.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{path}: {error}")),
            };
            files.push(File {
                path,
                text: String::from_utf8(bytes).ok(),
            });
        }
        Ok(Self { files })
    }

    /// The text of the file at `path`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|file| file.path == path)?
            .text
            .as_deref()
    }

    /// Paths and texts of the Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// Paths and texts of all text files.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
    }
}

/// The root of the repository: what cargo says when it runs us, for a build folder outlives the
/// clone that filled it.
pub(crate) fn root() -> &'static Path {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
    });
    own.parent().expect("xtask lies in the root")
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |path| root().join(path))
}

/// Paths of the files that git knows or would add, relative to the root, sorted.
pub(crate) fn paths() -> Result<Vec<String>, String> {
    let words = [
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let list = shell::capture(&mut shell::command("git", &words))?;
    let mut paths: Vec<String> = list
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(String::from)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The hash of the commit that is checked out.
pub(crate) fn commit() -> Result<String, String> {
    let words = ["-c", "safe.directory=*", "rev-parse", "HEAD"];
    Ok(shell::capture(&mut shell::command("git", &words))?
        .trim()
        .to_string())
}

#[cfg(test)]
impl Tree {
    /// A tree made of `(path, text)` pairs.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_string(),
            text: Some((*text).to_string()),
        });
        Self {
            files: files.collect(),
        }
    }
}
