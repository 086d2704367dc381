//! `backup_manifest`: which files a base backup holds, with their lengths and checksums.
//!
//! ```text
//! { "PostgreSQL-Backup-Manifest-Version": 2, "System-Identifier": 7…,
//! "Files": [
//! { "Path": "base/5/1259", "Size": 122880, "Last-Modified": "…", "Checksum-Algorithm": "CRC32C", "Checksum": "…" }, …
//! ],
//! "WAL-Ranges": [ { "Timeline": 1, "Start-LSN": "0/2000028", "End-LSN": "0/2000100" } ],
//! "Manifest-Checksum": "…"}
//! ```
//!
//! The last line carries the SHA-256 of all lines before it. A name that is not UTF-8 is given as
//! `Encoded-Path`, in hex. Truth: `src/common/parse_manifest.c`,
//! `src/backend/backup/backup_manifest.c`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::digest::{Algorithm, Digest, unhex};
use crate::types::Lsn;
use crate::wal::parse_lsn;

/// What a manifest says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BackupManifest {
    /// 1, or 2 from PostgreSQL 17 on.
    pub version: u64,
    /// Of the cluster, from version 2 on.
    pub system_identifier: Option<u64>,
    /// Files by their path below the data directory.
    pub files: BTreeMap<String, ManifestFile>,
    /// Names that are not UTF-8: nobody can look for them here.
    pub foreign_names: u64,
    /// WAL that must be replayed before the backup fits together.
    pub wal: Vec<WalRange>,
    /// The last line fits those before it.
    pub sum_is_right: bool,
}

/// One file of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestFile {
    /// Bytes.
    pub size: u64,
    /// Its checksum, unless the backup was made without.
    pub sum: Option<(Algorithm, Vec<u8>)>,
}

/// A stretch of WAL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalRange {
    /// Its timeline.
    pub timeline: u32,
    /// Where it begins.
    pub start: Lsn,
    /// Where it ends.
    pub end: Lsn,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "PostgreSQL-Backup-Manifest-Version")]
    version: u64,
    #[serde(rename = "System-Identifier")]
    system_identifier: Option<u64>,
    #[serde(rename = "Files", default)]
    files: Vec<FileLine>,
    #[serde(rename = "WAL-Ranges", default)]
    wal: Vec<RangeLine>,
    #[serde(rename = "Manifest-Checksum")]
    sum: String,
}

#[derive(Deserialize)]
struct FileLine {
    #[serde(rename = "Path")]
    path: Option<String>,
    #[serde(rename = "Encoded-Path")]
    encoded: Option<String>,
    #[serde(rename = "Size")]
    size: u64,
    #[serde(rename = "Checksum-Algorithm")]
    algorithm: Option<String>,
    #[serde(rename = "Checksum")]
    sum: Option<String>,
}

#[derive(Deserialize)]
struct RangeLine {
    #[serde(rename = "Timeline")]
    timeline: u32,
    #[serde(rename = "Start-LSN")]
    start: String,
    #[serde(rename = "End-LSN")]
    end: String,
}

impl BackupManifest {
    /// Reads the file; the error says what is not as the server writes it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if !matches!(document.version, 1 | 2) {
            return Err(format!("version {} is not known", document.version));
        }
        let mut manifest = BackupManifest {
            version: document.version,
            system_identifier: document.system_identifier,
            sum_is_right: sum_is_right(bytes, &document.sum),
            ..BackupManifest::default()
        };
        for line in document.files {
            manifest.add(line)?;
        }
        for line in document.wal {
            let lsn = |text: &str| parse_lsn(text).ok_or_else(|| format!("{text:?} is no LSN"));
            manifest.wal.push(WalRange {
                timeline: line.timeline,
                start: lsn(&line.start)?,
                end: lsn(&line.end)?,
            });
        }
        Ok(manifest)
    }

    fn add(&mut self, line: FileLine) -> Result<(), String> {
        let path = match (line.path, line.encoded) {
            (Some(path), None) => path,
            (None, Some(encoded)) => {
                let bytes = unhex(&encoded)
                    .ok_or_else(|| format!("the path {encoded:?} is no pairs of digits"))?;
                match String::from_utf8(bytes) {
                    Ok(path) => path,
                    Err(_) => {
                        self.foreign_names += 1;
                        return Ok(());
                    }
                }
            }
            _ => return Err("a file has no path, or two".into()),
        };
        let sum = sum_of(line.algorithm.as_deref(), line.sum.as_deref())
            .map_err(|why| format!("{path:?}: {why}"))?;
        let file = ManifestFile {
            size: line.size,
            sum,
        };
        match self.files.insert(path.clone(), file) {
            None => Ok(()),
            Some(_) => Err(format!("{path:?} is named twice")),
        }
    }
}

fn sum_of(
    algorithm: Option<&str>,
    sum: Option<&str>,
) -> Result<Option<(Algorithm, Vec<u8>)>, String> {
    let (Some(algorithm), Some(sum)) = (algorithm, sum) else {
        return Ok(None);
    };
    let known = Algorithm::of_name(algorithm)
        .ok_or_else(|| format!("the algorithm {algorithm:?} is not known"))?;
    let bytes = unhex(sum).filter(|bytes| bytes.len() == known.bytes());
    let bytes = bytes.ok_or_else(|| format!("{sum:?} is no checksum of {known}"))?;
    Ok(Some((known, bytes)))
}

/// The SHA-256 of everything up to the last line.
fn sum_is_right(bytes: &[u8], told: &str) -> bool {
    let Some(text) = bytes.strip_suffix(b"\n") else {
        return false;
    };
    let Some(last) = text.iter().rposition(|byte| *byte == b'\n') else {
        return false;
    };
    let mut digest = Digest::new(Algorithm::Sha256);
    digest.update(bytes.get(..=last).unwrap_or_default());
    unhex(told).is_some_and(|told| told == digest.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hex;

    fn sealed(body: &str) -> Vec<u8> {
        let mut digest = Digest::new(Algorithm::Sha256);
        digest.update(body.as_bytes());
        let sum = hex(&digest.finish());
        format!("{body}\"Manifest-Checksum\": \"{sum}\"}}\n").into_bytes()
    }

    const BODY: &str = "{ \"PostgreSQL-Backup-Manifest-Version\": 2,\n\"System-Identifier\": 7123456789012345678,\n\"Files\": [\n\
        { \"Path\": \"base/5/1259\", \"Size\": 8192, \"Last-Modified\": \"2026-01-01 00:00:00 GMT\", \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"839206e3\" },\n\
        { \"Encoded-Path\": \"62617365\", \"Size\": 1, \"Last-Modified\": \"\" },\n\
        { \"Encoded-Path\": \"ff\", \"Size\": 1, \"Last-Modified\": \"\" }\n],\n\"WAL-Ranges\": [\n\
        { \"Timeline\": 3, \"Start-LSN\": \"0/2000028\", \"End-LSN\": \"1/2000100\" }\n],\n";

    #[test]
    fn what_a_server_writes_is_read() {
        let manifest = BackupManifest::parse(&sealed(BODY)).expect("a manifest");
        assert!(manifest.sum_is_right);
        assert_eq!(manifest.system_identifier, Some(7_123_456_789_012_345_678));
        assert_eq!(manifest.foreign_names, 1);
        let file = &manifest.files["base/5/1259"];
        assert_eq!(file.size, 8192);
        assert_eq!(
            file.sum,
            Some((Algorithm::Crc32c, vec![0x83, 0x92, 0x06, 0xe3]))
        );
        assert_eq!(manifest.files["base"].sum, None);
        assert_eq!(
            manifest.wal,
            [WalRange {
                timeline: 3,
                start: Lsn(0x200_0028),
                end: Lsn(0x1_0200_0100)
            }]
        );
    }

    #[test]
    fn a_changed_line_shows_in_the_last_one() {
        let changed = String::from_utf8(sealed(BODY))
            .expect("text")
            .replace("8192", "8193");
        let manifest = BackupManifest::parse(changed.as_bytes()).expect("a manifest");
        assert!(!manifest.sum_is_right);
    }

    #[test]
    fn what_no_server_writes_is_told() {
        let told = |body: &str| BackupManifest::parse(&sealed(body)).expect_err("no manifest");
        assert!(told(&BODY.replace("Version\": 2", "Version\": 3")).contains("version 3"));
        assert!(told(&BODY.replace("839206e3", "8392")).contains("no checksum of CRC32C"));
        assert!(told(&BODY.replace("62617365", "626173652f352f31323539")).contains("named twice"));
        assert!(told(&BODY.replace("0/2000028", "x")).contains("no LSN"));
        assert!(BackupManifest::parse(b"").is_err());
    }
}
