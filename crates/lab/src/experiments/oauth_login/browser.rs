//! A person's browser, as much of it as the pages of a login need: cookies, redirects, forms.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::ClientConfig;

use super::https::{exchange, parse_url};

/// Pages that lead to pages that lead to pages are given up.
const STEPS_MAX: usize = 12;

pub(super) struct Browser {
    trust: Arc<ClientConfig>,
    cookies: BTreeMap<String, String>,
}

/// A page that was opened, and where it came from.
struct Page {
    url: String,
    body: String,
}

impl Browser {
    pub(super) fn new(trust: &Arc<ClientConfig>) -> Self {
        Self {
            trust: Arc::clone(trust),
            cookies: BTreeMap::new(),
        }
    }

    /// Opens a page and fills in its forms, and those that follow, with what is known; over when a
    /// page asks for nothing of it. An answer is given once: a page that asks for it again has
    /// refused it.
    pub(super) fn fill_in(&mut self, url: &str, known: &[(&str, &str)]) -> Result<(), String> {
        let mut page = self.open(url, None)?;
        let mut given: Vec<&str> = Vec::new();
        for _ in 0..STEPS_MAX {
            let asked = known.iter().filter(|(name, _)| page.asks_for(name));
            let answers: Vec<(&str, &str)> = asked.copied().collect();
            let Some((first, _)) = answers.first() else {
                return Ok(());
            };
            if given.contains(first) {
                return Err(format!("{} asks for {first} again", page.url));
            }
            given.extend(answers.iter().map(|(name, _)| name));
            page = self.send(&page, &answers)?;
        }
        Err(format!("{url} leads to no end"))
    }

    fn send(&mut self, page: &Page, answers: &[(&str, &str)]) -> Result<Page, String> {
        let action = page
            .action()
            .ok_or_else(|| format!("{} has no form", page.url))?;
        let hidden = page.hidden();
        let mut form: Vec<(&str, &str)> = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        form.extend(answers);
        self.open(&absolute(&page.url, &action), Some(&form))
    }

    fn open(&mut self, url: &str, form: Option<&[(&str, &str)]>) -> Result<Page, String> {
        let (mut url, mut form) = (url.to_owned(), form);
        for _ in 0..STEPS_MAX {
            let pairs = self.cookies.iter();
            let cookies: Vec<String> = pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let (head, body) = exchange(&self.trust, &url, &cookies.join("; "), form)?;
            for cookie in head.values("set-cookie") {
                let pair = cookie.split(';').next().unwrap_or_default();
                if let Some((name, value)) = pair.split_once('=') {
                    self.cookies.insert(name.to_owned(), value.to_owned());
                }
            }
            match (head.status(), head.values("location").next()) {
                (Some(301..=308), Some(next)) => {
                    url = absolute(&url, next);
                    form = None;
                }
                (Some(200), _) => {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    return Ok(Page { url, body });
                }
                (status, _) => {
                    let status = status.map_or("no status".to_owned(), |status| status.to_string());
                    return Err(format!("{url} answers with {status}"));
                }
            }
        }
        Err(format!("{url} leads to itself"))
    }
}

impl Page {
    /// Whether a field or button of this name can be filled in.
    fn asks_for(&self, name: &str) -> bool {
        let mut fields = tags(&self.body, "input").chain(tags(&self.body, "button"));
        fields.any(|tag| value(tag, "name").as_deref() == Some(name))
    }

    fn action(&self) -> Option<String> {
        tags(&self.body, "form").find_map(|tag| value(tag, "action"))
    }

    fn hidden(&self) -> Vec<(String, String)> {
        let hidden =
            tags(&self.body, "input").filter(|tag| value(tag, "type").as_deref() == Some("hidden"));
        hidden
            .filter_map(|tag| Some((value(tag, "name")?, value(tag, "value")?)))
            .collect()
    }
}

/// Every tag of this name, without its brackets.
fn tags<'a>(body: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!("<{name} ");
    let all = body
        .match_indices(&start)
        .map(|(at, _)| at)
        .collect::<Vec<_>>();
    all.into_iter().filter_map(move |at| {
        let rest = body.get(at..)?;
        rest.get(..rest.find('>')?)
    })
}

/// `&amp;` is all that addresses in a page hide.
fn value(tag: &str, name: &str) -> Option<String> {
    let start = format!(" {name}=\"");
    let from = tag.find(&start)? + start.len();
    let rest = tag.get(from..)?;
    Some(rest.get(..rest.find('"')?)?.replace("&amp;", "&"))
}

/// Where a link of a page leads.
fn absolute(page: &str, link: &str) -> String {
    match (link.starts_with('/'), parse_url(page)) {
        (true, Some((host, port, _))) => format!("https://{host}:{port}{link}"),
        _ => link.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str = r#"<form id="kc-form-login" action="/realms/a/login?code=1&amp;tab=2" method="post">
        <input tabindex="2" id="username" name="username" value="" type="text">
        <input type="hidden" id="x" name="credentialId" value="7"/>
        <button name="login" type="submit">Sign In</button></form>"#;

    #[test]
    fn a_form_is_read_as_a_browser_reads_it() {
        let page = Page {
            url: "https://localhost:8443/realms/a/device?x=1".to_owned(),
            body: LOGIN.to_owned(),
        };
        assert!(page.asks_for("username") && page.asks_for("login") && !page.asks_for("accept"));
        assert_eq!(page.hidden(), [("credentialId".to_owned(), "7".to_owned())]);
        let action = page.action().expect("an action");
        assert_eq!(
            absolute(&page.url, &action),
            "https://localhost:8443/realms/a/login?code=1&tab=2"
        );
        assert_eq!(absolute(&page.url, "https://b/c"), "https://b/c");
    }
}
