//! Every FATAL and PANIC of a server's start, as `start_sites.tsv` lists them from the sources, has
//! its page in the textbook, or a reason why there is none.

use super::explain_message;

const SITES: &str = include_str!("start_sites.tsv");

/// One line of the list.
struct Site {
    message: &'static str,
    page: &'static str,
    reason: &'static str,
}

fn sites() -> Vec<Site> {
    let lines = SITES.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            let &[_, _, message, page, reason] = parts.as_slice() else {
                panic!("five columns: {line}");
            };
            Site {
                message,
                page,
                reason,
            }
        })
        .collect()
}

/// The message as a server would print it.
fn printed(site: &Site) -> String {
    let failure = match site.page {
        "input-output-error" => "Input/output error",
        _ => "No such file or directory",
    };
    let mut text = site.message.replace("%m", failure);
    for (place, value) in [
        ("%X/%08X", "0/3000060"),
        ("%X/%X", "0/3000060"),
        ("%zu", "512"),
        ("%lld", "512"),
        ("%lu", "5432001"),
        ("%u", "7"),
        ("%d", "7"),
        ("%p", "0x7f"),
        ("%s", "pg_wal/000000010000000000000003"),
    ] {
        text = text.replace(place, value);
    }
    format!("2026-11-25 08:00:00 UTC [4711] FATAL:  {text}")
}

#[test]
fn every_site_of_a_start_has_its_page_or_a_reason() {
    let sites = sites();
    assert!(sites.len() > 200, "{} sites", sites.len());
    let mut wrong = Vec::new();
    for site in &sites {
        let text = printed(site);
        let found: Vec<&str> = explain_message(&text)
            .iter()
            .map(|found| found.message.name)
            .collect();
        let is_right = match site.page {
            "-" => !site.reason.is_empty(),
            page => found.contains(&page),
        };
        if !is_right {
            wrong.push(format!("{text}: {} expected, {found:?} found", site.page));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
