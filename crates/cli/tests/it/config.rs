//! Files of options: what they may say, and what goes before what.

use std::path::{Path, PathBuf};

use pgclinic_model::Level;
use tempfile::TempDir;

use crate::common::{Ran, pgclinic, pgclinic_with_config, text};

struct Home {
    folder: TempDir,
    pgdata: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let demo = folder.path().join("demo");
        pgclinic(&["demo", "--to", text(&demo)]).exits(0);
        Home {
            pgdata: demo.join("shop"),
            folder,
        }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    fn check(&self, options: &[&str], files: &[&Path]) -> Ran {
        let line = ["check", text(&self.pgdata), "--format", "json"];
        pgclinic_with_config(&[&line[..], options].concat(), files)
    }

    #[track_caller]
    fn level(&self, options: &[&str], files: &[&Path]) -> Level {
        self.check(options, files).exits(0).document().level
    }
}

#[test]
fn the_command_line_goes_first_then_ones_own_file_then_the_machines() {
    let home = Home::new();
    let machine = home.file("machine.toml", "[check]\nlevel = \"full\"\njobs = 1\n");
    let own = home.file("own.toml", "[check]\nlevel = \"pages\"\n");
    let nowhere = home.folder.path().join("nowhere.toml");
    assert_eq!(home.level(&[], &[]), Level::Structure);
    assert_eq!(home.level(&[], &[&machine, &nowhere]), Level::Full);
    let out_of_reach = own.join("pgclinic.toml");
    assert_eq!(home.level(&[], &[&machine, &out_of_reach]), Level::Full);
    assert_eq!(home.level(&[], &[&machine, &own]), Level::Pages);
    let asked = ["--level", "structure", "-j2"];
    assert_eq!(home.level(&asked, &[&machine, &own]), Level::Structure);
    let named = ["--config", text(&machine)];
    assert_eq!(home.level(&named, &[&own]), Level::Full);
    let before = [
        "--config",
        text(&machine),
        "check",
        text(&home.pgdata),
        "--format",
        "json",
    ];
    let before = pgclinic_with_config(&before, &[&own]).exits(0);
    assert_eq!(before.document().level, Level::Full);
}

#[test]
fn lists_flags_and_commands_of_two_words() {
    let home = Home::new();
    let wound = ["--injury", "page-checksum", "--relation", "public.orders"];
    pgclinic(&[&["injure", text(&home.pgdata)], &wound[..]].concat()).exits(0);
    let file = home.file(
        "all.toml",
        "[check]\nfail-on = [\"incomplete\", \"recovery\"]\nstatus-line = true\n\n[\"heal checksums\"]\nno-sync = true\n",
    );
    let line = ["check", text(&home.pgdata)];
    let ran = pgclinic_with_config(&line, &[&file]).exits(0);
    assert!(ran.out.starts_with("PGCLINIC OK - DAMAGED"), "{}", ran.out);
}

#[test]
fn a_mistake_in_a_file_is_named_with_its_place() {
    let home = Home::new();
    for (content, why) in [
        ("[check]\nlevle = \"full\"\n", "check has no option levle"),
        ("[chek]\nlevel = \"full\"\n", "there is no command chek"),
        ("[heal]\nyes = true\n", "yes is for one run"),
        ("[check]\nquiet = 1\n", "quiet is true or false"),
        ("level = \"full\"\n", "there is no command level"),
        ("[check\n", "cannot be used"),
    ] {
        let file = home.file("wrong.toml", content);
        let ran = home.check(&[], &[&file]).exits(2);
        assert!(ran.err.contains(why), "{why}: {}", ran.err);
        assert!(ran.err.contains("wrong.toml"), "{}", ran.err);
    }
    let missing = ["--config", "/nowhere/pgclinic.toml"];
    let ran = home.check(&missing, &[]).exits(2);
    assert!(ran.err.contains("/nowhere/pgclinic.toml"), "{}", ran.err);
    let value = home.file("value.toml", "[check]\nlevel = \"deep\"\n");
    let ran = home.check(&[], &[&value]).exits(2);
    assert!(ran.err.contains("--level"), "{}", ran.err);
}
