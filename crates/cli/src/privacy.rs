//! What a report may hold of the data of those whose cluster it is about.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Args;
use pgclinic_report::{Document, RedactionKey, redacted};

use crate::exit::Failure;

/// A key that is shorter can be guessed.
const KEY_BYTES_MIN: usize = 16;
/// Of a longer file the beginning is the key.
const KEY_BYTES_MAX: u64 = 1 << 16;
/// Where the key of one run comes from.
const RANDOM: &str = "/dev/urandom";

/// What may stand in a report.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PrivacyArgs {
    /// Show values and keys of rows in the report
    ///
    /// Findings, keys that do not hold, rows that a server refuses or that a cure takes away are
    /// counted and placed without it; inspect shows the values of its page in any case. The files
    /// of a salvage hold them anyway.
    #[arg(long, conflicts_with_all = ["redact", "redact_with"])]
    pub(crate) values: bool,
    /// Pseudonyms for names, values, hosts and paths
    ///
    /// For a report that goes to somebody else: relation-3f9a12cd stands for a table wherever it is
    /// named. What the server names itself stays, and numbers: OIDs, files, blocks, LSNs. It
    /// changes the report alone, never rows that are written. Another run gives other pseudonyms.
    #[arg(long)]
    pub(crate) redact: bool,
    /// The same, with pseudonyms that follow from this file
    ///
    /// Runs with the same file give a name the same pseudonym. Keep the file secret: whoever has it
    /// can try names. It has 16 random bytes or more (head -c 32 /dev/urandom > FILE).
    #[arg(long, value_name = "FILE")]
    pub(crate) redact_with: Option<PathBuf>,
    /// The key of this run: all documents of it have the same pseudonyms.
    #[arg(skip)]
    drawn: OnceLock<Vec<u8>>,
}

impl PrivacyArgs {
    /// Refuses a key that is none, before any work is done.
    pub(crate) fn refuse_early(&self) -> Result<(), Failure> {
        self.key().map(|_| ())
    }

    /// The document of this run with what it may hold, and what that is. The values on a page that
    /// is taken apart are what was asked for.
    pub(crate) fn apply(&self, document: &mut Document) -> Result<(), Failure> {
        if !self.values && !matches!(document, Document::Inspect(_)) {
            document.withhold_values();
        }
        let contents = document.contents();
        for tool in document.tools_mut() {
            tool.contains = Some(contents);
        }
        self.redact(document)
    }

    /// The same of a document that another run wrote, which says what it holds.
    pub(crate) fn redact(&self, document: &mut Document) -> Result<(), Failure> {
        if let Some(key) = self.key()? {
            *document = redacted(document, &key)?;
        }
        Ok(())
    }

    fn key(&self) -> Result<Option<RedactionKey>, Failure> {
        if !self.is_redacting() {
            return Ok(None);
        }
        if let Some(secret) = self.drawn.get() {
            return Ok(Some(RedactionKey::from_secret(secret)));
        }
        let secret = match &self.redact_with {
            Some(path) => secret_of(path)?,
            None => random()?,
        };
        let secret = self.drawn.get_or_init(|| secret);
        Ok(Some(RedactionKey::from_secret(secret)))
    }

    /// Names have pseudonyms in what this run writes.
    pub(crate) fn is_redacting(&self) -> bool {
        self.redact || self.redact_with.is_some()
    }
}

fn secret_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::new(format!("cannot read the key {}: {error}", path.display()));
    let mut secret = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(KEY_BYTES_MAX)
        .read_to_end(&mut secret)
        .map_err(failed)?;
    if secret.len() < KEY_BYTES_MIN {
        return Err(Failure::new(format!(
            "the key {} has {} bytes, and names could be guessed with fewer than {KEY_BYTES_MIN}: make one with head -c 32 /dev/urandom",
            path.display(),
            secret.len()
        )));
    }
    Ok(secret)
}

fn random() -> Result<Vec<u8>, Failure> {
    let mut secret = vec![0; 32];
    let file = File::open(RANDOM);
    file.and_then(|mut file| file.read_exact(&mut secret))
        .map_err(|error| Failure::new(format!("cannot read {RANDOM}: {error}")))?;
    Ok(secret)
}
