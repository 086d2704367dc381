//! What a statement or a sign needs of a server, and the words where it is missing.

use crate::facts::ServerFacts;

/// One condition. Where it does not hold, the sign is not available, with these words, and no zero
/// stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// What is read came with this major.
    Since(u16, &'static str),
    /// The server shows what other sessions do to members of `pg_read_all_stats` alone.
    AllStatistics,
    /// `track_io_timing`: without it the server counts no times.
    IoTiming,
    /// `track_counts`: without it the server counts no rows, transactions and checksum failures.
    Counts,
    /// `track_activities`: without it sessions do not say what they do.
    Activities,
    /// Data checksums.
    Checksums,
    /// What only a primary has.
    Primary,
    /// `io_method = worker`.
    IoWorkers,
    /// `archive_mode`.
    Archiving,
    /// The server is on this machine, reached by its socket.
    Local,
    /// A log that the server writes itself and this role may read. What is missing is known when
    /// it was tried.
    LogFile,
    /// `watch --scrub`.
    Scrub,
    /// `watch --measure`.
    Measure,
}

impl Need {
    /// Why it does not hold; `None` where it does.
    pub(crate) fn missing(self, facts: &ServerFacts) -> Option<String> {
        let setting = |name: &str| {
            facts
                .settings
                .get(name)
                .map_or("", |own| own.value.as_str())
        };
        let unless = |holds: bool, why: &str| (!holds).then(|| why.to_owned());
        match self {
            Need::Since(major, what) => (facts.major < major).then(|| {
                format!(
                    "{what} came with PostgreSQL {major}, this is {}",
                    facts.version
                )
            }),
            Need::AllStatistics => unless(
                facts.may_read_statistics,
                "this role lacks pg_monitor (pg_read_all_stats): GRANT pg_monitor TO it",
            ),
            Need::IoTiming => unless(
                setting("track_io_timing") == "on",
                "track_io_timing is off, so that the server measures no times of I/O",
            ),
            Need::Counts => unless(
                setting("track_counts") == "on",
                "track_counts is off, so that the server counts nothing of databases and tables",
            ),
            Need::Activities => unless(
                setting("track_activities") == "on",
                "track_activities is off, so that sessions do not say what they do",
            ),
            Need::Checksums => unless(
                setting("data_checksums") == "on",
                "data checksums are off, so that the server cannot see a page that changed on disk",
            ),
            Need::Primary => unless(
                !facts.is_standby,
                "this server is a standby; its primary has the figure",
            ),
            Need::IoWorkers => unless(
                setting("io_method") == "worker",
                &format!(
                    "io_method is {}: it has no I/O workers",
                    setting("io_method")
                ),
            ),
            Need::Archiving => unless(
                setting("archive_mode") != "off",
                "archive_mode is off: nothing is archived",
            ),
            Need::Local => unless(
                facts.is_local,
                "the server is not reached by a Unix socket, so that its processes may be on another machine",
            ),
            Need::LogFile => None,
            Need::Measure => unless(
                facts.is_measured,
                "its files are not measured: --measure 50MB/s does it, where they are on this machine",
            ),
            Need::Scrub => unless(
                facts.is_scrubbed,
                "its files are not scrubbed: --scrub 50MB/s does it, where they are on this machine",
            ),
        }
    }

    /// As the register's documentation says it.
    pub fn words(self) -> String {
        match self {
            Need::Since(major, what) => format!("PostgreSQL {major} or later ({what})"),
            Need::AllStatistics => "pg_monitor".to_owned(),
            Need::IoTiming => "track_io_timing".to_owned(),
            Need::Counts => "track_counts".to_owned(),
            Need::Activities => "track_activities".to_owned(),
            Need::Checksums => "data checksums".to_owned(),
            Need::Primary => "a primary".to_owned(),
            Need::IoWorkers => "io_method = worker".to_owned(),
            Need::Archiving => "archive_mode".to_owned(),
            Need::LogFile => {
                "logging_collector, and the file on this machine or `GRANT EXECUTE ON FUNCTION \
                 pg_current_logfile(), pg_ls_logdir(), pg_read_binary_file(text, bigint, bigint, boolean)`"
                    .to_owned()
            }
            Need::Measure => "`--measure`, with files on this machine".to_owned(),
            Need::Scrub => "`--scrub`, with the files on this machine".to_owned(),
            Need::Local => {
                "the server on this machine, by its socket, as its user or root".to_owned()
            }
        }
    }
}
