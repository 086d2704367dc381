//! The file around the words: policy, style, script, foot.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgclinic_model::document::Tool;
use sha2::{Digest, Sha256};

use super::escape::Esc;
use super::printer;
use crate::neighbours::{GENERATOR, STARTED, SUBJECT};
use crate::view::View;

const STYLE: &str = concat!(
    include_str!("report.css"),
    include_str!("../../chart/chart.css")
);
const SCRIPT: &str = concat!(
    include_str!("report.js"),
    include_str!("../../chart/chart.js")
);

/// Everything up to the verdict: what was run, and on what.
pub(super) fn open(view: &View, out: &mut dyn io::Write) -> io::Result<()> {
    let script = STANDARD.encode(Sha256::digest(SCRIPT));
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let title = Esc(&view.title);
    let (command, subject) = (Esc(&view.command), Esc(&view.subject));
    let refresh = view
        .refresh_s
        .map(|seconds| format!("<meta name=refresh content={seconds}>\n"));
    let refresh = refresh.unwrap_or_default();
    let started = view.tool.started.as_deref();
    let started = started.map(|moment| format!("{STARTED}{}\">\n", Esc(moment)));
    let started = started.unwrap_or_default();
    write!(
        out,
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=referrer content=no-referrer>\n\
         <meta name=color-scheme content=\"light dark\">\n\
         {refresh}{GENERATOR}{command}\">\n{SUBJECT}{subject}\">\n{started}\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )?;
    head(view, out)?;
    out.write_all(b"<main>\n")
}

/// What stays in sight: the answer, what was run and on what, and the way to each part.
fn head(view: &View, out: &mut dyn io::Write) -> io::Result<()> {
    let (command, subject) = (Esc(&view.command), Esc(&view.subject));
    out.write_all(b"<header class=top><p>")?;
    if let Some(verdict) = printer::verdict_of(&view.blocks) {
        let (class, word) = (printer::tone_class(verdict.tone), Esc(&verdict.word));
        write!(out, "<strong class={class}>{word}</strong>")?;
    }
    write!(
        out,
        "<span>{command}</span><span class=spec>{subject}</span></p>"
    )?;
    let mut parts = Vec::new();
    printer::parts(&view.blocks, &mut parts);
    if parts.len() > 1 {
        out.write_all(b"<nav aria-label=\"parts of this page\">")?;
        for (id, title) in parts {
            write!(out, "<a href=\"#{}\">{title}</a>", Esc(id))?;
        }
        out.write_all(b"</nav>")?;
    }
    out.write_all(b"</header>\n")
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
