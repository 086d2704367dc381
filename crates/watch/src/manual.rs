//! `docs/signs.md`: the register as documentation.

use std::fmt::Write as _;

use pgclinic_model::document::{SignKind, SignUnit};

use crate::sign::Sign;
use crate::signs::FAMILIES;

const HEAD: &str = "# Signs

What `pgclinic watch` reads of a running server: every sign with its metric, what is normal, what it means when it is not, and what settles it.
`cargo xtask docs` writes this page from the register in [crates/watch/src/signs](../crates/watch/src/signs).

Every session is read-only, with a limit on each statement and lock. The role needs `pg_monitor` for the signs that say so, and no right for the
others. A sign that cannot be read is reported with the reason, and never as zero. What only grows is shown as a rate; its metric ends in `_total`.

";

/// The page.
pub fn manual() -> String {
    let mut page = HEAD.to_owned();
    for (family, signs) in FAMILIES {
        let _ = writeln!(page, "## {}\n", family.title());
        for sign in *signs {
            entry(sign, &mut page);
        }
    }
    let length = page.trim_end().len();
    page.truncate(length);
    page.push('\n');
    page
}

fn entry(sign: &Sign, page: &mut String) {
    let _ = writeln!(page, "### {}\n\n{}.\n", sign.name, capital(sign.summary));
    let labels = sign.labels();
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!(", by {}", labels.join(", "))
    };
    let kind = match sign.kind {
        SignKind::Counter => "counter",
        SignKind::Gauge => "gauge",
    };
    let unit = match sign.unit {
        SignUnit::Count => "",
        SignUnit::Bytes => " in bytes",
        SignUnit::Seconds => " in seconds",
        SignUnit::Moment => " in seconds since 1970",
        SignUnit::Ratio => " from 0 to 1",
    };
    let _ = writeln!(page, "* metric: `{}`, {kind}{unit}{labels}", sign.metric);
    let needs: Vec<String> = sign
        .all_needs()
        .into_iter()
        .map(|need| need.words())
        .collect();
    if !needs.is_empty() {
        let _ = writeln!(page, "* needs: {}", needs.join(", "));
    }
    let _ = writeln!(page, "* normal: {}", sign.normal);
    let _ = writeln!(page, "* meaning: {}", sign.meaning);
    let _ = writeln!(page, "* settled by: {}", sign.settled_by);
    let mut costs: Vec<&str> = sign.source.probes().iter().map(|own| own.cost).collect();
    costs.dedup();
    if costs.is_empty() {
        costs.push(sign.cost);
    }
    let _ = writeln!(page, "* cost: {}", costs.join(" "));
    for alert in sign.alerts {
        let urgency = alert.urgency.name();
        let _ = writeln!(
            page,
            "* alert: `{}` ({urgency}, after {})",
            alert.name, alert.hold
        );
    }
    page.push('\n');
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    /// As `cargo xtask docs --check` does it, without building the program.
    #[test]
    fn the_page_of_the_repository_is_that_of_the_register() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/signs.md");
        let kept = std::fs::read_to_string(path).expect("docs/signs.md");
        assert!(
            kept == super::manual(),
            "stale: `cargo xtask docs` writes it"
        );
    }
}
