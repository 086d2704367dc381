//! What this machine's libraries say of their collations. The program may be linked without the C
//! library of the machine, so the library's own file is asked, and then `getconf`.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use pgclinic_cluster::MachineCollations;

/// Where glibc lies on the machines that PostgreSQL runs on.
const LIBRARIES: [&str; 7] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
    "/lib/libc.so.6",
    "/run/current-system/sw/lib/libc.so.6",
];
/// A library is a few megabytes.
const LIBRARY_BYTES_MAX: u64 = 64 << 20;
/// Begins glibc's word about itself: `GNU C Library (Debian …) stable release version 2.36.`
const BANNER: &[u8] = b"GNU C Library (";
const BANNER_BYTES_MAX: usize = 200;

/// The versions that can be found out without a server; ICU's is none of them.
pub(crate) fn collations() -> MachineCollations {
    MachineCollations {
        libc: library_version().or_else(getconf_version),
        icu: None,
    }
}

fn library_version() -> Option<String> {
    LIBRARIES.iter().find_map(|path| {
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(LIBRARY_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        version_in_library(&bytes)
    })
}

fn version_in_library(bytes: &[u8]) -> Option<String> {
    let at = bytes
        .windows(BANNER.len())
        .position(|window| window == BANNER)?;
    let banner = bytes.get(at..)?;
    let banner = banner.get(..BANNER_BYTES_MAX).unwrap_or(banner);
    let text = String::from_utf8_lossy(banner);
    let (_, after) = text.split_once("release version ")?;
    version_at_start(after)
}

/// `glibc 2.36`.
fn getconf_version() -> Option<String> {
    let mut command = Command::new("getconf");
    command.arg("GNU_LIBC_VERSION").stdin(Stdio::null());
    let answer = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&answer.stdout);
    version_at_start(text.strip_prefix("glibc ")?)
}

/// Digits and points, without the full stop of the sentence.
fn version_at_start(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let version = text.get(..end.unwrap_or(text.len()))?;
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_tells_its_version_in_a_sentence() {
        let library = b"\x7fELF\0\0GNU C Library (Debian GLIBC 2.36-9+deb12u13) stable release version 2.36.\nCopyright";
        assert_eq!(version_in_library(library), Some("2.36".to_owned()));
        assert_eq!(version_in_library(b"GNU C Library (cut"), None);
        assert_eq!(version_in_library(b"\x7fELF musl libc"), None);
    }
}
