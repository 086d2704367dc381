//! Words between tags. This is the one place where words of a document become HTML.

use std::fmt::Write;

use super::escape::Esc;
use crate::view::{Look, Medium, Span, Words};
use crate::words;

/// The words with their tags, everything escaped.
pub(super) fn html(words: &Words) -> String {
    let mut html = String::new();
    let spans = words.0.iter();
    for own in spans.filter(|own| own.medium.is_in(Medium::Page) && !is_nothing(own)) {
        span(own, &mut html);
    }
    html
}

/// Severities and the like have their words from their look.
fn is_nothing(own: &Span) -> bool {
    own.text.is_empty() && !matches!(own.look, Look::Badge(_) | Look::Safety(_))
}

fn span(own: &Span, html: &mut String) {
    let tip = if own.tip.is_empty() {
        String::new()
    } else {
        format!(" title=\"{}\"", Esc(&own.tip))
    };
    let text = Esc(&own.text);
    let (open, tag) = match &own.look {
        Look::Plain => (String::new(), ""),
        Look::Strong => ("strong".to_owned(), "strong"),
        Look::Code => ("code".to_owned(), "code"),
        Look::Quiet => ("span class=q".to_owned(), "span"),
        Look::Place => ("span".to_owned(), "span"),
        Look::State => ("span class=state".to_owned(), "span"),
        Look::Preview => ("span class=preview".to_owned(), "span"),
        Look::Wrong => ("strong class=wrong".to_owned(), "strong"),
        Look::Right => ("span class=yes".to_owned(), "span"),
        Look::Tag(tone) => {
            let class = format!("{tone:?}").to_lowercase();
            (format!("span class=\"safety {class}\""), "span")
        }
        Look::Rule => (format!("a class=rule href=\"#rule-{text}\""), "a"),
        Look::Link(target) => (format!("a href=\"{}\"", Esc(target)), "a"),
        Look::Target => {
            let _ = write!(html, "<a id=\"{text}\"></a>");
            return;
        }
        Look::Server => {
            let lines: Vec<String> = own.text.lines().map(|line| Esc(line).to_string()).collect();
            let _ = write!(html, "<code class=server{tip}>{}</code>", lines.join("\n"));
            return;
        }
        Look::Share(share) => {
            let width = (share * 300.0).clamp(0.0, 300.0);
            let _ = write!(
                html,
                "<svg class=strip viewBox=\"0 0 300 12\" width=150 height=12 role=img \
                 aria-label=\"{text}\"><rect class=l width={width:.0} height=12 /></svg>"
            );
            return;
        }
        Look::Spark(figures) => {
            let points = spark(figures);
            let _ = write!(
                html,
                "<svg class=spark viewBox=\"0 0 120 16\" width=120 height=16 role=img \
                 aria-label=\"{text}\"><title>{text}</title><polyline fill=none \
                 points=\"{points}\" /></svg>"
            );
            return;
        }
        Look::Badge(severity) => {
            let name = severity.name();
            let _ = write!(html, "<span class=\"badge {name}\">{name}</span>");
            return;
        }
        Look::Safety(safety) => {
            let (class, name) = (words::safety_class(*safety), words::safety(*safety));
            let _ = write!(html, "<span class=\"safety {class}\">{name}</span>");
            return;
        }
    };
    let _ = if tag.is_empty() {
        write!(html, "{text}")
    } else {
        write!(html, "<{open}{tip}>{text}</{tag}>")
    };
}

/// Points of a line in a box of 120 by 16, from the smallest figure to the largest.
fn spark(figures: &[f64]) -> String {
    let known = figures.iter().copied().filter(|own| own.is_finite());
    let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), own| {
        (low.min(own), high.max(own))
    });
    let (last, range) = (figures.len().saturating_sub(1).max(1) as f64, high - low);
    let places = figures
        .iter()
        .enumerate()
        .filter(|(_, own)| own.is_finite());
    let points: Vec<(String, String)> = places
        .map(|(at, own)| {
            let height = if range > 0.0 {
                (own - low) / range
            } else {
                0.0
            };
            let (x, y) = (at as f64 / last * 120.0, 14.0 - height * 12.0);
            (format!("{x:.1}"), format!("{y:.1}"))
        })
        .collect();
    // Of a level stretch its ends are enough: most figures of an idle server are one.
    let is_within = |at: usize| {
        let height = |at: usize| points.get(at).map(|(_, y)| y);
        let before = at.checked_sub(1).and_then(height);
        before.is_some() && before == height(at) && height(at + 1) == height(at)
    };
    let kept = points.iter().enumerate().filter(|(at, _)| !is_within(*at));
    let kept = kept.map(|(_, (x, y))| format!("{x},{y}"));
    kept.collect::<Vec<_>>().join(" ")
}
