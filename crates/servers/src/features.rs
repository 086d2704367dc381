//! What a server was built with, asked of its programs without making a cluster.
//!
//! `postgres -C name -c name=value` prints a setting and ends, but first it checks the value as a
//! server would: a choice that was not compiled in is refused (`guc_tables.c` lists `lz4` and
//! `io_uring` only where they are).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::installation::Installation;

/// What an experiment may need and not every build has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Values and WAL compressed with LZ4.
    pub lz4: bool,
    /// WAL and backups compressed with Zstandard.
    pub zstd: bool,
    /// Queries compiled with LLVM: its library lies beside the server's others.
    pub jit: bool,
    /// `io_method = io_uring`; whether the kernel allows it is another matter, see
    /// [`io_uring_forbidden`].
    pub io_uring: bool,
    /// Connections with TLS.
    pub tls: bool,
}

impl Features {
    /// The names of those that are there.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            ("lz4", self.lz4),
            ("zstd", self.zstd),
            ("jit", self.jit),
            ("io_uring", self.io_uring),
            ("tls", self.tls),
        ];
        all.iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| *name)
            .collect()
    }
}

impl Installation {
    /// Whether its server takes this value for this setting: what was not compiled in is refused.
    pub fn accepts(&self, setting: &str, value: &str) -> bool {
        accepts(&self.bindir, setting, value)
    }

    /// Asks the server's program; takes some hundredths of a second.
    pub fn features(&self) -> Features {
        Features {
            lz4: self.accepts("default_toast_compression", "lz4"),
            zstd: self.accepts("wal_compression", "zstd"),
            jit: has_library(&self.bindir, "llvmjit.so"),
            io_uring: self.accepts("io_method", "io_uring"),
            tls: self.accepts("ssl", "on"),
        }
    }
}

/// Why this kernel refuses `io_uring` to unprivileged servers, where it says so.
pub fn io_uring_forbidden() -> Option<String> {
    let switch = "/proc/sys/kernel/io_uring_disabled";
    let value = std::fs::read_to_string(switch).ok()?;
    forbidden_by(value.trim()).then(|| format!("{switch} is {}", value.trim()))
}

/// 0 lets everybody, 1 a privileged group, 2 nobody.
fn forbidden_by(value: &str) -> bool {
    matches!(value, "1" | "2")
}

fn accepts(bindir: &Path, name: &str, value: &str) -> bool {
    let mut ask = Command::new(bindir.join("postgres"));
    ask.args(["-C", name, "-D", "/", "-c", "config_file=/dev/null", "-c"])
        .arg(format!("{name}={value}"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    ask.output().is_ok_and(|answer| {
        answer.status.success() && answer.stdout.trim_ascii() == value.as_bytes()
    })
}

/// Packagers put the server's libraries into `lib` or `lib/postgresql` beside `bin`.
fn has_library(bindir: &Path, name: &str) -> bool {
    [
        "../lib",
        "../lib/postgresql",
        "../lib64",
        "../lib64/postgresql",
    ]
    .iter()
    .any(|folder| bindir.join(folder).join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_not_named() {
        let some = Features {
            lz4: true,
            io_uring: true,
            ..Features::default()
        };
        assert_eq!(some.names(), ["lz4", "io_uring"]);
        assert!(!accepts(Path::new("/nonexistent"), "ssl", "on"));
    }

    #[test]
    fn a_kernel_may_keep_io_uring_to_itself() {
        assert!(!forbidden_by("0") && forbidden_by("1") && forbidden_by("2"));
    }
}
