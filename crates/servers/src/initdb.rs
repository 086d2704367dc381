//! Making a cluster (`src/bin/initdb/initdb.c`).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::installation::Installation;
use crate::run_as::RunAs;

/// Whether pages carry checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Checksums {
    /// `pg_checksums` can enable them later.
    Off,
    /// The default of 18, and here of all majors.
    #[default]
    On,
}

/// How a cluster is made. The superuser is `postgres`, and nobody is asked for a password.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// Data checksums.
    pub checksums: Checksums,
    /// The encoding of the template databases.
    pub encoding: String,
    /// The locale of the template databases.
    pub locale: String,
    /// Size of a WAL segment in MB, a power of two; `None` is the 16 of `initdb`.
    pub wal_segsize_mb: Option<u32>,
    /// More arguments, as they are.
    pub extra: Vec<String>,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self {
            checksums: Checksums::default(),
            encoding: "UTF8".to_owned(),
            locale: "C".to_owned(),
            wal_segsize_mb: None,
            extra: Vec::new(),
        }
    }
}

/// Makes a cluster in `pgdata`, a folder that is missing or empty, as the server's user, without
/// syncing to disk.
pub fn initdb(
    installation: &Installation,
    run_as: &RunAs,
    pgdata: &Path,
    options: &InitOptions,
) -> Result<()> {
    let mut command = Command::new(installation.bindir.join("initdb"));
    run_as.apply(&mut command);
    command
        .arg("-D")
        .arg(pgdata)
        .args(arguments(installation.major, options));
    run(command, run_as)
}

fn arguments(major: u16, options: &InitOptions) -> Vec<String> {
    let mut arguments = vec![
        "--username=postgres".to_owned(),
        "--auth=trust".to_owned(),
        "--no-sync".to_owned(),
        format!("--encoding={}", options.encoding),
        format!("--locale={}", options.locale),
    ];
    match options.checksums {
        Checksums::On => arguments.push("--data-checksums".to_owned()),
        Checksums::Off if major >= 18 => arguments.push("--no-data-checksums".to_owned()),
        Checksums::Off => {}
    }
    if let Some(megabytes) = options.wal_segsize_mb {
        arguments.push(format!("--wal-segsize={megabytes}"));
    }
    arguments.extend(options.extra.iter().cloned());
    arguments
}

/// Runs a program to its end; an error holds the end of what it said.
pub(crate) fn run(mut command: Command, run_as: &RunAs) -> Result<()> {
    let program = command.get_program().to_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| Error::Spawn {
        program: program.clone().into(),
        user: run_as.name.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&said).into_owned();
    Err(Error::Failed {
        program: program.into(),
        status: output.status.to_string(),
        output: tail(&output_text, 12),
    })
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(lines);
    all.get(from..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_off_needs_a_word_only_since_18() {
        let off = InitOptions {
            checksums: Checksums::Off,
            ..InitOptions::default()
        };
        assert!(arguments(18, &off).contains(&"--no-data-checksums".to_owned()));
        assert!(
            !arguments(17, &off)
                .iter()
                .any(|argument| argument.contains("checksums"))
        );
        assert!(arguments(13, &InitOptions::default()).contains(&"--data-checksums".to_owned()));
    }
}
