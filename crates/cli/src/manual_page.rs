//! A manual page in the sections that pages of Unix have. `clap_mangen` gives the parts.

use std::io;

use clap::Command as ClapCommand;
use clap_mangen::Man;

/// What holds for every command.
const ENVIRONMENT_AND_FILES: &str = include_str!("manual_page/environment_and_files.roff");

/// The page of a command, as troff.
pub(crate) fn manual_page(command: ClapCommand) -> io::Result<String> {
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let of_every_run = of_every_run(&command);
    let version = command.get_long_version().or(command.get_version());
    let has_version = version.is_some();
    let has_commands = command.get_subcommands().any(|own| !own.is_hide_set());
    let man = Man::new(command);
    let part = |render: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut text = Vec::new();
        render(&mut text)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&text).into_owned())
    };
    let mut page = part(&|out| man.render_title(out))?;
    page += &part(&|out| man.render_name_section(out))?;
    page += &part(&|out| man.render_synopsis_section(out))?;
    page += &part(&|out| man.render_description_section(out))?;
    page += &options(
        &part(&|out| man.render_options_section(out))?,
        &of_every_run,
    );
    if has_commands {
        page += &part(&|out| man.render_subcommands_section(out))?;
    }
    page += &closing(&after);
    page += ENVIRONMENT_AND_FILES;
    if has_version {
        page += &part(&|out| man.render_version_section(out))?;
    }
    Ok(page)
}

/// Options that every command has, with their help: `--config`.
fn of_every_run(command: &ClapCommand) -> String {
    let global = command.get_arguments().filter(|own| own.is_global_set());
    let global = global.filter_map(|own| {
        let (long, help) = (own.get_long()?, own.get_help()?);
        let long = long.replace('-', "\\-");
        let value = own.get_value_names().and_then(<[_]>::first);
        let value = value.map_or_else(String::new, |name| format!(" <\\fI{name}\\fR>"));
        Some(format!(
            ".TP\n\\fB\\-\\-{long}\\fR{value}\n{}\n",
            escaped(&help.to_string())
        ))
    });
    global.collect()
}

/// One list of options a heading; lists of values keep their lines.
fn options(sections: &str, of_every_run: &str) -> String {
    // What stands before the first heading defines the apostrophe, as the title has done.
    let parts = sections.split(".SH ").skip(1);
    let mut text = String::new();
    let mut is_first = true;
    for part in parts {
        let is_of_every_run = part.starts_with("OPTIONS\n") && part.contains("\\-\\-config");
        if is_of_every_run && !is_first {
            continue;
        }
        let lines = part.replace("\n\\- ", "\n.br\n\\- ");
        text.push_str(&format!(".SH {lines}"));
        is_first = false;
    }
    if !of_every_run.is_empty() {
        text.push_str(&format!(".SH \"OPTIONS OF EVERY COMMAND\"\n{of_every_run}"));
    }
    text
}

/// What help ends with, by what its paragraphs are: examples, exit codes, and anything else.
fn closing(after: &str) -> String {
    let (mut notes, mut examples, mut codes) = (String::new(), String::new(), String::new());
    for paragraph in after.split("\n\n") {
        let text = escaped(paragraph);
        if let Some(lines) = text.strip_prefix("Examples:\n") {
            examples.push_str(&format!(".nf\n{lines}\n.fi\n"));
        } else if text.starts_with("Exit codes:") {
            codes.push_str(&format!(".PP\n{text}\n"));
        } else if !text.is_empty() {
            notes.push_str(&format!(".PP\n{text}\n"));
        }
    }
    let sections = [
        ("NOTES", notes),
        ("EXAMPLES", examples),
        ("EXIT STATUS", codes),
    ];
    let sections = sections.iter().filter(|(_, text)| !text.is_empty());
    let sections = sections.map(|(title, text)| format!(".SH \"{title}\"\n{text}"));
    sections.collect()
}

/// Letters that troff takes for its own.
fn escaped(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Command as ClapCommand;

    use super::manual_page;
    use crate::command_line;

    fn assert_headings_are_words(command: &ClapCommand) {
        let page = manual_page(command.clone()).expect("a page");
        let name = command.get_name();
        assert!(!page.contains(".SH ."), "{name}: {page}");
        assert_eq!(page.matches(".SH OPTIONS\n").count(), 1, "{name}: {page}");
        let shown = command.get_subcommands().filter(|own| !own.is_hide_set());
        shown
            .filter(|own| own.get_name() != "help")
            .for_each(assert_headings_are_words);
    }

    #[test]
    fn no_page_has_a_request_for_a_heading() {
        let mut root = command_line();
        root.build();
        assert_headings_are_words(&root);
    }

    #[test]
    fn a_page_has_the_sections_of_its_kind_once() {
        let mut root = command_line();
        root.build();
        let check = root.find_subcommand("check").expect("a command");
        let page = manual_page(check.clone()).expect("a page");
        let titles = page.lines().filter(|line| line.starts_with(".SH "));
        let titles: Vec<&str> = titles.map(|line| line.trim_start_matches(".SH ")).collect();
        let mut once = titles.clone();
        once.dedup();
        assert_eq!(titles, once);
        for title in ["OPTIONS", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"] {
            assert!(titles.contains(&title), "{title}: {titles:?}");
        }
        assert!(!titles.contains(&"EXTRA"), "{titles:?}");
        assert!(page.contains("\n.br\n\\- pages: "), "{page}");
        assert!(page.contains("Options from this file"), "{page}");
        assert!(page.contains("config\\fR <\\fIFILE\\fR>\n"), "{page}");
        assert!(!titles.contains(&"SUBCOMMANDS"), "{titles:?}");
    }
}
