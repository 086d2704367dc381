//! The first screen: what it means, and next commands that a shell runs as they are printed.

use std::path::Path;
use std::process::Command;

use pgclinic_servers::{Checksums, Scratch};
use pgclinic_testkit::{as_primary, copy_of, scratch, seed, server, value};

use crate::common::{Ran, pgclinic, skipped, text};

/// Bytes of two pages in the middle of `public.docs`, which become zeros.
const HURT: [usize; 2] = [7, 9];
const PAGE: usize = 8192;

/// A damaged cluster under a name that a shell would split.
fn damaged() -> (Scratch, String) {
    let home = scratch();
    let pgdata = home.path().join("it's a cluster");
    let healthy = seed(&server(15), Checksums::On).pgdata;
    let copied = Command::new("cp")
        .arg("-a")
        .args([&healthy, &pgdata])
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    let found = pgclinic(&[
        "inspect",
        text(&pgdata),
        "--database",
        "clinic",
        "--relation",
        "public.docs",
        "--format",
        "json",
    ]);
    let document: serde_json::Value = serde_json::from_str(&found.exits(0).out).expect("JSON");
    let path = pgdata.join(document["place"]["path"].as_str().expect("a path"));
    let mut bytes = std::fs::read(&path).expect("a file");
    for page in HURT {
        bytes[page * PAGE + 100..(page + 1) * PAGE].fill(0);
    }
    std::fs::write(&path, bytes).expect("a file");
    let pgdata = text(&pgdata).to_owned();
    (home, pgdata)
}

/// The commands under `NEXT`, in their order.
fn next_commands(out: &str) -> Vec<String> {
    let (_, next) = out.split_once("\nNEXT\n").expect("next commands");
    let lines = next.lines().take_while(|line| !line.is_empty());
    let commands = lines.filter_map(|line| line.strip_prefix("        "));
    commands.map(str::to_owned).collect()
}

/// Runs the line as a shell does that finds the program.
fn typed(command: &str) -> Ran {
    typed_with(command, &[])
}

/// The same, with more in its environment.
fn typed_with(command: &str, environment: &[(&str, &str)]) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_pgclinic"));
    let folder = program.parent().expect("a folder");
    let path = format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut shell = Command::new("sh");
    let answer = shell
        .args(["-c", command])
        .env("PATH", path)
        .envs(environment.iter().copied())
        .output()
        .expect("a shell");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    Ran {
        exit: answer
            .status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .expect("an exit code"),
        out: text(answer.stdout),
        err: text(answer.stderr),
    }
}

#[test]
fn next_commands_run_as_they_are_printed() {
    let (_home, pgdata) = damaged();
    let checked = pgclinic(&["check", &pgdata]).exits(1);
    let line = "; level structure; 1970-01-01 00:00:00 UTC on bedside by pgclinic ";
    let words = checked.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(line), "{}", checked.out);
    assert!(
        words.contains("Rows of public.docs are lost or cannot be relied on"),
        "{words}"
    );

    let commands = next_commands(&checked.out);
    let quoted = pgclinic_model::shell_word(&pgdata);
    let begins = [
        format!("cp -a {quoted} "),
        format!("pgclinic salvage {quoted} --database clinic --relation public.docs --to "),
        format!("pgclinic inspect {quoted} --database clinic --relation public.docs --block 7"),
    ];
    assert_eq!(commands.len(), begins.len(), "{commands:?}");
    for (command, begin) in commands.iter().zip(&begins) {
        assert!(command.starts_with(begin), "{command}");
        assert_eq!(
            checked.out.matches(command.as_str()).count(),
            1,
            "{}",
            checked.out
        );
    }
    let [copy, salvage, inspect] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert_eq!(typed(copy).exit, 0);
    assert!(typed(inspect).exits(0).out.contains("pd_lower"));
    let salvaged = typed(salvage).exits(1);
    assert!(
        salvaged.out.contains("public.docs is not whole"),
        "{}",
        salvaged.out
    );
    let commands = next_commands(&salvaged.out);
    assert_eq!(commands.len(), 3, "{commands:?}");
    // The first one loads what was written into a server, which is nowhere here.
    assert!(
        commands[0].ends_with("psql -X -d clinic -f load.sql"),
        "{commands:?}"
    );
    for command in commands.iter().skip(1) {
        let ran = typed(command);
        assert_ne!(ran.exit, 2, "{command}: {}", ran.err);
    }
}

#[test]
fn a_healthy_cluster_is_asked_at_most_for_the_rest() {
    let healthy = seed(&server(15), Checksums::On).pgdata;
    let healthy = text(&healthy);
    let checked = pgclinic(&["check", healthy]).exits(0);
    let deeper = format!("pgclinic check {healthy} --level full");
    assert_eq!(next_commands(&checked.out), [deeper]);
    let checked = pgclinic(&["check", healthy, "--level", "full"]).exits(0);
    assert!(!checked.out.contains("NEXT"), "{}", checked.out);
}

/// The command that loads what was salvaged is given to a real psql and a real server.
#[test]
fn the_command_that_loads_what_was_salvaged_loads_it() {
    if Command::new("psql").arg("--version").output().is_err() {
        skipped("no psql to load what was salvaged");
        return;
    }
    // The same server takes what it has, lz4 too.
    let source = copy_of(&seed(&server(15), Checksums::On));
    let home = scratch();
    let (to, ddl) = (
        home.path().join("what came out"),
        home.path().join("shop.sql"),
    );
    let place = ["--database", "clinic", "--relation", "public.docs"];
    let out = ["--to", text(&to), "--ddl", text(&ddl)];
    let salvage = [&["salvage", text(&source.pgdata)][..], &place, &out].concat();
    let salvaged = pgclinic(&salvage).exits(0);
    let commands = next_commands(&salvaged.out);
    let load = commands.first().expect("a command");
    assert!(load.ends_with("psql -X -d clinic -f load.sql"), "{load}");

    let server = source.start_with(&as_primary()).expect("a server");
    let rows = "SELECT count(*)::text || ' ' || sum(length(body))::text FROM public.docs";
    let before = value(&server, rows);
    let mut session = server.connect("postgres").expect("a session");
    for sql in [
        "ALTER DATABASE clinic RENAME TO original",
        "CREATE DATABASE clinic TEMPLATE template0",
    ] {
        session.execute(sql).expect(sql);
    }
    let host = text(server.socket_folder()).to_owned();
    let environment = [("PGHOST", host.as_str()), ("PGUSER", "postgres")];
    let loaded = typed_with(load, &environment);
    assert_eq!(loaded.exit, 0, "{}{}", loaded.out, loaded.err);
    assert!(!loaded.err.contains("ERROR"), "{}", loaded.err);
    assert_eq!(value(&server, rows), before);
}
