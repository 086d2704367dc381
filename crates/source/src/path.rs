//! Which paths a source accepts.

use crate::{Result, SourceError, SourceErrorKind};

/// Refuses ([`SourceErrorKind::Refused`]) paths that could leave the tree or have two spellings:
/// absolute ones, empty, `.` and `..` components, NUL. Every source asks this first.
pub fn check(path: &str) -> Result<()> {
    let refused = |why: &str| Err(SourceError::new(path, SourceErrorKind::Refused, why));
    if path.is_empty() {
        return Ok(());
    }
    if path.starts_with('/') {
        return refused("paths are relative to the root of the source, this one is absolute");
    }
    if path.contains('\0') {
        return refused("the path holds a NUL byte");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refused("the path has an empty, '.' or '..' component");
    }
    Ok(())
}

/// The part of `path` below `folder`: `base/5/1` below `base` is `5/1`; `None` when it lies
/// elsewhere.
pub(crate) fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_the_tree_are_refused() {
        for path in [
            "/etc/passwd",
            "..",
            "base/../../x",
            "base//5",
            "./base",
            "base/",
            "a\0b",
        ] {
            assert_eq!(
                check(path).map_err(|error| error.kind),
                Err(SourceErrorKind::Refused),
                "{path:?}"
            );
        }
        for path in ["", "base/5/16384.1", "a..b", ".hidden"] {
            assert_eq!(check(path), Ok(()), "{path:?}");
        }
    }

    #[test]
    fn below_needs_a_whole_component() {
        assert_eq!(below("base/5/1", "base"), Some("5/1"));
        assert_eq!(below("base2/5", "base"), None);
        assert_eq!(below("base", ""), Some("base"));
    }
}
