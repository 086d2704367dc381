//! The pages of `docs/guide` that have commands: all SQL of all pages is run in the database
//! `guide` of one server, which is stopped, then every command. Lines of a `text` block must stand
//! in the answer of the command above it, one after the other in any place.

use crate::common;

use std::path::{Path, PathBuf};

use common::pgclinic;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

/// A fenced block: the words behind the fence, and what it holds.
struct Block {
    info: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut parts = page.split("```");
    parts.next();
    let mut blocks = Vec::new();
    while let (Some(fenced), Some(_)) = (parts.next(), parts.next()) {
        let (info, text) = fenced.split_once('\n').expect("a fence ends its line");
        blocks.push(Block {
            info: info.to_owned(),
            text: text.to_owned(),
        });
    }
    blocks
}

fn pages() -> Vec<(PathBuf, Vec<Block>)> {
    // Tests run in the folder of their package.
    let folder = Path::new("../../docs/guide");
    let entries = std::fs::read_dir(folder).expect("the guide");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a page").path()).collect();
    // The pages of messages show runs, which a test of their own repeats.
    paths.retain(|path| path.is_file());
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a page");
        let blocks = blocks(&text);
        (path, blocks)
    };
    paths.into_iter().map(read).collect()
}

/// Runs of blanks count as one, and so do the lines of a table.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_commands_of_the_guide_say_what_the_guide_says() {
    let pages = pages();
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("postgres").expect("a session");
    session
        .execute("CREATE DATABASE guide")
        .expect("a database");
    let mut session = running.connect("guide").expect("a session");
    let folder = tempfile::tempdir().expect("a directory");
    for (path, block) in pages
        .iter()
        .flat_map(|(path, all)| all.iter().map(move |block| (path, block)))
    {
        match block.info.split_once(' ') {
            Some((_, name)) => {
                std::fs::write(folder.path().join(name), &block.text).expect("a file")
            }
            None if block.info == "sql" => session
                .execute(&block.text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            None => {}
        }
    }
    let operated = session.query_value("SELECT pg_relation_filepath('surgery')");
    let operated = operated.expect("a table of the guide").expect("its file");
    drop(session);
    running.stop(StopMode::Fast).expect("it stops");
    for (path, blocks) in &pages {
        let mut said = String::new();
        for block in blocks {
            match block.info.as_str() {
                "sh" => {
                    let command = block.text.replace(OPERATED, &operated);
                    said = answer(&command, &copy.pgdata, folder.path());
                }
                "text" => hold(path, &said, &block.text),
                _ => {}
            }
        }
    }
}

/// The file that the guide operates on: nobody knows its number beforehand.
const OPERATED: &str = "base/5/16384";

/// What a command says. Names of files in it are those of the page.
fn answer(command: &str, pgdata: &Path, folder: &Path) -> String {
    let in_folder = |word: &str| folder.join(word).display().to_string();
    let words: Vec<String> = words_of(command)
        .into_iter()
        .skip(1)
        .map(|word| match word.rsplit_once('.') {
            _ if word == "PGDATA" => pgdata.display().to_string(),
            Some((_, "sql" | "csv" | "html" | "json")) => in_folder(word),
            _ => word.to_owned(),
        })
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = pgclinic(&words).exits(0);
    squeezed(&ran.out)
}

/// As a shell splits them: what stands in quotes is one word.
fn words_of(command: &str) -> Vec<&str> {
    let parts = command.split('"').zip([false, true].into_iter().cycle());
    parts
        .flat_map(|(part, is_quoted)| {
            if is_quoted {
                vec![part]
            } else {
                part.split_whitespace().collect()
            }
        })
        .collect()
}

fn hold(path: &Path, said: &str, expected: &str) {
    for line in expected.lines().filter(|line| !line.trim().is_empty()) {
        let line = squeezed(line);
        assert!(
            said.contains(&line),
            "{}: {line:?} is not in\n{said}",
            path.display()
        );
    }
}
