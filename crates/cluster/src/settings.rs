//! What the server's own files say of a setting: `postgresql.auto.conf`, else `postgresql.conf`.
//! Included files are not followed, and databases and roles may have settings of their own.
//!
//! Truth: `src/backend/utils/misc/guc-file.l`.

use pgclinic_source::{Source, read_all};

/// A longer file is not read.
const FILE_MAX: u64 = 1 << 20;

/// `postgresql.conf` and what `ALTER SYSTEM` wrote, the one that counts first.
const FILES: [&str; 2] = ["postgresql.auto.conf", "postgresql.conf"];

/// The files as they were read; nothing for one that could not be.
#[derive(Debug)]
pub(crate) struct SettingsFiles([Option<String>; 2]);

impl SettingsFiles {
    pub(crate) fn read(source: &dyn Source) -> Self {
        SettingsFiles(FILES.map(|file| {
            let bytes = read_all(source, file, FILE_MAX).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }))
    }

    /// What is not set in them has its default: both are there, and neither includes another.
    pub(crate) fn are_all(&self) -> bool {
        let mut all = self.0.iter();
        all.all(|text| text.as_ref().is_some_and(|text| !includes(text)))
    }

    /// The value without its quotes, as it was last set; nothing when no file sets it.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.0.iter().flatten().find_map(|text| in_file(text, name))
    }
}

fn includes(text: &str) -> bool {
    let words = text
        .lines()
        .filter_map(|line| line.split([' ', '\t', '=']).find(|word| !word.is_empty()));
    let mut words = words.map(str::to_ascii_lowercase);
    words.any(|word| matches!(&*word, "include" | "include_dir" | "include_if_exists"))
}

fn in_file(text: &str, name: &str) -> Option<String> {
    text.lines().rev().find_map(|line| {
        let (word, rest) = line
            .trim_start()
            .split_once(|c: char| c == '=' || c.is_whitespace())?;
        word.eq_ignore_ascii_case(name).then_some(())?;
        value(rest.trim_start().trim_start_matches('=').trim_start())
    })
}

fn value(text: &str) -> Option<String> {
    let value = match text.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next()?,
        None => text.split(|c: char| c.is_whitespace() || c == '#').next()?,
    };
    Some(value.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_sets_it_counts() {
        let text = "# default_toast_compression = 'pglz'\nport=5432\n default_toast_compression = 'pglz'\t# pglz, lz4\nDefault_Toast_Compression lz4 # so\n";
        assert_eq!(
            in_file(text, "default_toast_compression").as_deref(),
            Some("lz4")
        );
        assert_eq!(in_file(text, "port").as_deref(), Some("5432"));
        assert_eq!(in_file(text, "jit"), None);
    }

    #[test]
    fn a_file_that_includes_another_does_not_have_all_settings() {
        assert!(includes("port = 5432\n  include_dir 'conf.d'\n"));
        assert!(includes("INCLUDE='other.conf'"));
        assert!(!includes("#include_dir = 'conf.d'\ninclude_me = on\n"));
    }
}
