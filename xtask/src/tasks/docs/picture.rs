//! The picture of the README: the page of a check of the cluster that `pgclinic demo` carries, with
//! one sector lost. Its outline is kept beside it, so that a page which has changed since is
//! noticed where there is no browser.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::shell::at;
use crate::task::Outcome;
use crate::{repository, shell};

/// What the page is made of, each kind of element once.
pub(super) const OUTLINE: &str = "docs/images/check.outline.txt";
const PICTURE: &str = "docs/images/check.png";

/// Where the cluster of a reader would lie.
const PGDATA: &str = "/var/lib/postgresql/15/main";
/// Where the demonstration puts it.
const CLUSTER: &str = "demo/shop";
const INJURY: [&str; 6] = [
    "--injury",
    "zeroed-sector",
    "--relation",
    "public.orders",
    "--block",
    "12",
];

/// Columns and rows of the window.
const WINDOW: &str = "--window-size=1280,1180";

/// The page, as this program writes it now.
pub(super) struct Page {
    path: PathBuf,
    pub(super) outline: String,
}

/// Makes the page; `program` is how pgclinic is started.
pub(super) fn page(program: &dyn Fn() -> std::process::Command) -> Result<Page, String> {
    let folder = repository::target().join("generated-docs").join("picture");
    // What an earlier run left there is in the way of this one.
    let _absent_at_first = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let cluster = folder.join(CLUSTER);
    let demo = folder.join("demo");
    shell::capture(program().arg("demo").arg("--to").arg(&demo))?;
    shell::capture(program().arg("injure").arg(&cluster).args(INJURY))?;
    let mut check = program();
    check.arg("check").arg(&cluster).args(["--format", "json"]);
    let found = shell::output(&mut check)?;
    if found.status.code() != Some(1) {
        return Err(format!(
            "no damage in {}\n{}",
            cluster.display(),
            shell::both(&found)
        ));
    }
    let json = named(&String::from_utf8_lossy(&found.stdout), &cluster)?;
    let document = folder.join("check.json");
    std::fs::write(&document, json).map_err(at(&document))?;
    let mut report = program();
    report
        .arg("report")
        .arg(&document)
        .args(["--format", "html"]);
    let html = shell::capture(&mut report)?;
    let path = folder.join("check.html");
    std::fs::write(&path, &html).map_err(at(&path))?;
    let outline = outline(&html);
    Ok(Page { path, outline })
}

/// As on a machine of a reader.
fn named(json: &str, cluster: &Path) -> Result<String, String> {
    let json = json.replace(&cluster.display().to_string(), PGDATA);
    let mut document: serde_json::Value =
        serde_json::from_str(&json).map_err(|error| error.to_string())?;
    if let Some(host) = document.pointer_mut("/tool/host") {
        *host = "db1".into();
    }
    Ok(document.to_string())
}

/// Takes the picture, with a browser that has no window.
pub(super) fn take(page: &Page) -> Outcome {
    let picture = repository::root().join(PICTURE);
    let mut browser = shell::command("chromium", &["--headless", "--no-sandbox", WINDOW]);
    browser.args(["--hide-scrollbars", "--disable-gpu"]);
    browser.arg(format!("--screenshot={}", picture.display()));
    browser.arg(format!("file://{}", page.path.display()));
    shell::capture(&mut browser)
        .map_err(|error| format!("{PICTURE} needs Debian's chromium: {error}"))?;
    println!("{PICTURE}");
    Ok(())
}

/// Each element with its class once, in the order of the page, and the titles of its sections.
fn outline(html: &str) -> String {
    let mut known = BTreeSet::new();
    let mut lines = String::new();
    let (_, body) = html.split_once("<body").unwrap_or(("", html));
    for tag in body.split('<').skip(1) {
        let (inside, text) = tag.split_once('>').unwrap_or((tag, ""));
        let Some(line) = line_of(inside, text) else {
            continue;
        };
        if known.insert(line.clone()) {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    lines
}

fn line_of(inside: &str, text: &str) -> Option<String> {
    let name = inside
        .split([' ', '/'])
        .next()
        .filter(|name| !name.is_empty())?;
    if name == "h2" {
        return Some(format!("h2 {}", text.trim()));
    }
    let (_, class) = inside.split_once(" class=")?;
    let class = match class.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => class.split(' ').next(),
    };
    Some(format!("{name}.{}", class?))
}

#[cfg(test)]
mod tests {
    use super::outline;

    #[test]
    fn an_outline_has_each_kind_once() {
        let html = "<head></head><body class=a><p class=\"b c\">x</p><p class=\"b c\">y</p><h2 id=d>T</h2></body>";
        assert_eq!(outline(html), "p.b c\nh2 T\n");
    }
}
