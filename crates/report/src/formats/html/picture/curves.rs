//! A chart for both widths, with its legend and caption.

use std::fmt::{self, Write};
use std::io;

use super::Esc;
use crate::chart::{Width, swatch};
use crate::view::picture::Curves;

pub(super) fn curves(own: &Curves, out: &mut dyn io::Write) -> io::Result<()> {
    let mut html = String::new();
    draw(own, &mut html).map_err(io::Error::other)?;
    out.write_all(html.as_bytes())
}

fn draw(own: &Curves, html: &mut String) -> fmt::Result {
    html.push_str("<figure class=chart>\n<p class=key>");
    for (style, is_foreign, name) in &own.names {
        html.push_str("<span>");
        swatch(*style, *is_foreign, html)?;
        write!(html, "{}</span> ", Esc(name))?;
    }
    for band in &own.chart.bands {
        let (class, words) = (band.class, Esc(&band.words));
        write!(html, "<span><i class={class}></i>{words}</span> ")?;
    }
    html.push_str("</p>\n");
    own.chart.svg(Width::Wide, html)?;
    own.chart.svg(Width::Narrow, html)?;
    if !own.caption.is_empty() {
        writeln!(html, "<figcaption>{}</figcaption>", Esc(&own.caption))?;
    }
    html.push_str("</figure>\n");
    Ok(())
}
