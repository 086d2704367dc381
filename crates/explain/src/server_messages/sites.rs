//! Every FATAL and PANIC of a server's start (`start_sites.tsv`) and everything that servers,
//! amcheck and the programs beside them print about storage (`storage_sites.tsv`) has its page in
//! the textbook, or a reason why there is none. Both lists come from the sources of 13, 15 and 18.

use std::collections::BTreeSet;

use super::explain_message;

const START_SITES: &str = include_str!("start_sites.tsv");
const STORAGE_SITES: &str = include_str!("storage_sites.tsv");

/// Begins the reason of a message whose cause only the operating system knows.
const SYSTEM_REFUSES: &str = "the operating system refuses";

/// Reasons for having no page; more would be pages that nobody wrote.
const REASONS_MAX: usize = 16;

/// One line of a list. A `program` named `start` is a server that starts.
#[derive(Clone, Copy)]
struct Site {
    program: &'static str,
    message: &'static str,
    page: &'static str,
    reason: &'static str,
}

fn columns(list: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect())
}

fn start_sites() -> Vec<Site> {
    columns(START_SITES)
        .map(|columns| {
            let &[_, _, message, page, reason] = columns.as_slice() else {
                panic!("five columns: {columns:?}");
            };
            Site {
                program: "start",
                message,
                page,
                reason,
            }
        })
        .collect()
}

fn storage_sites() -> Vec<Site> {
    columns(STORAGE_SITES)
        .map(|columns| {
            let &[program, _, _, message, page, reason] = columns.as_slice() else {
                panic!("six columns: {columns:?}");
            };
            Site {
                program,
                message,
                page,
                reason,
            }
        })
        .collect()
}

impl Site {
    /// What the system answers where the message has `%m`: what the page is about, or something
    /// that no page is about.
    fn failure(&self) -> &'static str {
        match (self.page, self.reason) {
            ("input-output-error", _) => "Input/output error",
            ("no-space-left", _) => "No space left on device",
            ("file-exists", _) => "File exists",
            (_, reason) if reason.starts_with(SYSTEM_REFUSES) => "Too many open files",
            _ => "No such file or directory",
        }
    }

    /// The message as it is printed, with values in place of its conversions.
    fn printed(&self) -> String {
        let text = with_values(&self.message.replace("%m", self.failure()));
        match self.program {
            "start" => format!("2026-11-25 08:00:00 UTC [4711] FATAL:  {text}"),
            "server" => format!("2026-11-25 08:00:00 UTC [4711] ERROR:  {text}"),
            "amcheck" => format!("ERROR:  {text}"),
            program => format!("{program}: error: {text}"),
        }
    }

    /// Whether the page found first is the one that the list says.
    fn is_right(&self, found: &[&str]) -> bool {
        match self.page {
            "-" => !self.reason.is_empty() && found.is_empty(),
            page => self.reason.is_empty() && found.first() == Some(&page),
        }
    }
}

/// The conversions of C's `printf` replaced by what they print.
fn with_values(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, behind)) = rest.split_once('%') {
        let (value, len) = value_of_conversion(behind);
        text.push_str(before);
        text.push_str(value);
        rest = behind.get(len..).unwrap_or_default();
    }
    text + rest
}

/// What stands for the conversion that begins behind a percent sign, and the length of this.
fn value_of_conversion(behind: &str) -> (&'static str, usize) {
    let digits_and_length = |char: char| char.is_ascii_digit() || "lzh".contains(char);
    let letter_and_rest = behind.trim_start_matches(digits_and_length);
    let value = match letter_and_rest.chars().next() {
        Some('d' | 'u') => "7",
        Some('x' | 'X') => "7F",
        Some('p') => "0x7f",
        Some('c') => "x",
        Some('s') => "pg_wal/000000010000000000000003",
        Some('%') => "%",
        other => panic!("no value for a conversion {other:?} before {letter_and_rest:?}"),
    };
    (value, behind.len() - letter_and_rest.len() + 1)
}

/// What is wrong with the lines of a list, for people.
fn wrong(sites: &[Site]) -> Vec<String> {
    let checked = sites.iter().filter_map(|site| {
        let text = site.printed();
        let found: Vec<&str> = explain_message(&text)
            .iter()
            .map(|found| found.message.name)
            .collect();
        let expected = site.page;
        (!site.is_right(&found)).then(|| format!("{text}: {expected} expected, {found:?} found"))
    });
    checked.collect()
}

#[test]
fn every_site_of_a_start_has_its_page_or_a_reason() {
    let sites = start_sites();
    assert!(sites.len() > 200, "{} sites", sites.len());
    let wrong = wrong(&sites);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_message_about_storage_has_its_page_or_a_reason() {
    let sites = storage_sites();
    assert!(sites.len() > 3000, "{} sites", sites.len());
    let wrong = wrong(&sites);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reasons_for_having_no_page_are_few() {
    let sites = storage_sites();
    let reasons: BTreeSet<&str> = sites.iter().map(|site| site.reason).collect();
    assert!(reasons.len() <= REASONS_MAX, "{reasons:#?}");
}
