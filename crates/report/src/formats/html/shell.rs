//! The file around the words: policy, style, script, foot.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgclinic_model::document::{Target, Tool};
use sha2::{Digest, Sha256};

use super::escape::Esc;
use crate::words;

const STYLE: &str = concat!(
    include_str!("report.css"),
    include_str!("../../chart/chart.css")
);
const SCRIPT: &str = concat!(
    include_str!("report.js"),
    include_str!("../../chart/chart.js")
);

/// Everything up to the opened `main`.
pub(super) fn open(title: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let script = STANDARD.encode(Sha256::digest(SCRIPT));
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let title = Esc(title);
    write!(
        out,
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=referrer content=no-referrer>\n\
         <meta name=color-scheme content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )
}

/// Everything from the closed `main`.
pub(super) fn close(tool: &Tool, out: &mut dyn io::Write) -> io::Result<()> {
    let (name, version) = (Esc(&tool.name), Esc(&tool.version));
    write!(
        out,
        "</main>\n<footer>Written by {name} {version}. This file holds everything it shows and \
         asks no network for anything.</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// The small line above the verdict.
pub(super) fn kicker(words: &str, target: &Target, out: &mut dyn io::Write) -> io::Result<()> {
    command(words, &target.spec, out)
}

/// The small line above the verdict: what was run, and on what.
pub(super) fn command(words: &str, subject: &str, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(
        out,
        "<header class=kicker><p>{}</p><p class=spec>{}</p></header>",
        Esc(words),
        Esc(subject)
    )
}

/// A list of facts.
pub(super) fn facts(facts: &[(&str, String)], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<dl class=facts>\n")?;
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            Esc(name),
            Esc(value)
        )?;
    }
    out.write_all(b"</dl>\n")
}

/// What is known of the target, for [`facts`].
pub(super) fn target_facts(target: &Target) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_owned();
    let checksums = target
        .checksums
        .map_or_else(unknown, |on| if on { "on" } else { "off" }.into());
    vec![
        ("target", target.kind.replace('-', " ")),
        (
            "PostgreSQL",
            target.major.map_or_else(unknown, |major| major.to_string()),
        ),
        ("state", target.state.clone().unwrap_or_default()),
        ("data checksums", checksums),
        (
            "block size",
            target
                .block_size
                .map_or_else(unknown, |size| words::bytes(size.into())),
        ),
        (
            "system identifier",
            target.system_identifier.clone().unwrap_or_default(),
        ),
    ]
}
