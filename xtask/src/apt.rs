//! apt in folders of its own: the machine's package lists and its installed packages stay as they
//! are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::at;
use crate::task::Outcome;

/// Makes what [`apt`] works in.
pub(crate) fn make_folders(home: &Path) -> Outcome {
    for folder in [
        "sources.d",
        "lists/partial",
        "cache/archives/partial",
        "packages",
    ] {
        let folder = home.join(folder);
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    Ok(())
}

/// A program of apt with all its state below `home`, working where packages go.
pub(crate) fn apt(home: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(home.join("packages"));
    for (option, value) in [
        ("Dir::Etc::sourcelist", PathBuf::from("/dev/null")),
        ("Dir::Etc::sourceparts", home.join("sources.d")),
        ("Dir::State::lists", home.join("lists")),
        ("Dir::Cache", home.join("cache")),
    ] {
        command
            .arg("-o")
            .arg(format!("{option}={}", value.display()));
    }
    command.args(["-o", "APT::Sandbox::User=root"]);
    command
}

/// The machine's own package sources of this release, with sources asked for.
pub(crate) fn sources() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let Some(codename) = codename else {
        return String::new();
    };
    let mut text = String::new();
    let folder = std::fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten();
    let mut files: Vec<PathBuf> = folder
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.push("/etc/apt/sources.list".into());
    for file in files {
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => text.push_str(&stanzas_with_sources(&found, codename)),
            Some("list") => text.push_str(&lines_with_sources(&found, codename)),
            _ => {}
        }
    }
    text
}

/// The stanzas of a deb822 file that are of this release, asking for sources too.
fn stanzas_with_sources(text: &str, codename: &str) -> String {
    let mut kept = String::new();
    for stanza in text.split("\n\n") {
        let is_ours = stanza
            .lines()
            .any(|line| line.starts_with("Suites:") && line.contains(codename));
        if !is_ours {
            continue;
        }
        for line in stanza.lines() {
            let types = line.starts_with("Types:");
            kept.push_str(if types { "Types: deb deb-src" } else { line });
            kept.push('\n');
        }
        kept.push('\n');
    }
    kept
}

/// The same for the older form, one source a line: made into stanzas.
fn lines_with_sources(text: &str, codename: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line
            .split_whitespace()
            .filter(|word| !word.starts_with('[') && !word.ends_with(']'))
            .collect();
        if let ["deb", uri, suite, components @ ..] = words.as_slice()
            && suite.starts_with(codename)
        {
            let components = components.join(" ");
            kept.push_str(&format!(
                "Types: deb deb-src\nURIs: {uri}\nSuites: {suite}\nComponents: {components}\n\n"
            ));
        }
    }
    kept
}

/// The stanza that asks this machine's mirror for another release.
pub(crate) fn source_of(release: &str) -> Option<String> {
    stanza_of(&sources(), release)
}

/// The mirror that this machine asks for packages.
pub(crate) fn mirror() -> Option<String> {
    let stanza = source_of("any")?;
    let uris = stanza.lines().find_map(|line| line.strip_prefix("URIs:"));
    uris?.split_whitespace().next().map(str::to_owned)
}

fn stanza_of(own: &str, release: &str) -> Option<String> {
    let stanza = own.split("\n\n").find(|stanza| {
        let suites = stanza.lines().find_map(|line| line.strip_prefix("Suites:"));
        suites.is_some_and(|suites| !suites.contains("-security") && !suites.trim().is_empty())
    })?;
    let mut text = format!("Types: deb\nSuites: {release}\nComponents: main\n");
    for line in stanza.lines() {
        if line.starts_with("URIs:") || line.starts_with("Signed-By:") {
            text.push_str(line);
            text.push('\n');
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_this_release_are_asked_for_and_others_left_out() {
        let text =
            "Types: deb\nURIs: http://x/debian\nSuites: bookworm\n\nTypes: deb\nSuites: nodistro\n";
        assert_eq!(
            stanzas_with_sources(text, "bookworm"),
            "Types: deb deb-src\nURIs: http://x/debian\nSuites: bookworm\n\n"
        );
        let lines = "# deb http://y z main\ndeb [arch=amd64] http://x/debian bookworm-updates main contrib\n";
        assert_eq!(
            lines_with_sources(lines, "bookworm"),
            "Types: deb deb-src\nURIs: http://x/debian\nSuites: bookworm-updates\nComponents: main contrib\n\n"
        );
    }

    #[test]
    fn another_release_is_asked_of_the_same_mirror() {
        let own = "Types: deb\nURIs: http://x/sec\nSuites: bookworm-security\n\nTypes: deb\nURIs: http://x/debian\nSuites: bookworm bookworm-updates\nSigned-By: /k.gpg\n\n";
        assert_eq!(
            stanza_of(own, "sid").as_deref(),
            Some(
                "Types: deb\nSuites: sid\nComponents: main\nURIs: http://x/debian\nSigned-By: /k.gpg\n"
            )
        );
        assert_eq!(stanza_of("", "sid"), None);
    }
}
