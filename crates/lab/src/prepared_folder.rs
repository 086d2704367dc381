//! A folder that a person has prepared and maybe named: a file system, mounted with the options to
//! be compared.

use std::path::PathBuf;

/// A directory that a user has prepared as an arm, with its name if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedFolder {
    /// What the person calls it; the experiment finds a name otherwise.
    pub name: Option<String>,
    /// Where it is, by its whole path.
    pub path: PathBuf,
}

impl PreparedFolder {
    /// Reads `DIR` or `NAME=DIR`. An error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            // A path may hold the sign too.
            Some((name, path)) if !name.contains('/') => (Some(name.to_owned()), path),
            _ => (None, text),
        };
        if name.as_deref().is_some_and(str::is_empty) || path.is_empty() {
            return Err(format!("{text:?} is no directory; write DIR or NAME=DIR"));
        }
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        if path.is_dir() {
            Ok(Self { name, path })
        } else {
            Err("there is no such directory".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_may_have_a_name_and_its_path_an_equals_sign() {
        let home = tempfile::tempdir().expect("a directory");
        let odd = home.path().join("a=b");
        std::fs::create_dir(&odd).expect("a directory");
        let path = odd.display();
        let named =
            PreparedFolder::parse(&format!("zfs-noatime-lz4-16k={path}")).expect("a directory");
        assert_eq!(
            (named.name.as_deref(), &named.path),
            (Some("zfs-noatime-lz4-16k"), &odd)
        );
        let plain = PreparedFolder::parse(&path.to_string()).expect("a directory");
        assert_eq!((plain.name, plain.path), (None, odd));
        assert!(PreparedFolder::parse("name=").is_err());
        assert!(PreparedFolder::parse("/no/such/folder").is_err());
    }
}
