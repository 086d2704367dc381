//! `pgclinic heal`: cures of rows and pages by hand, on real servers before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common;

use common::{Ran, files, pgclinic, text};
use pgclinic_model::document::{CureOutcome, HealDocument, HealOutcome};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, execute, seed, server, value};

/// A table whose rows are on block 0, and are frozen, with an index of its own beside the key.
const TABLE: &str = "CREATE TABLE healed (id int PRIMARY KEY, body text, other int);
    INSERT INTO healed SELECT g, 'row ' || g, g % 7 FROM generate_series(1, 50) g;
    CREATE INDEX healed_other ON healed (other)";

/// A stopped cluster with a table.
pub(crate) struct Ward {
    pub(crate) copy: TempCopy,
    /// `base/16384/16400`.
    pub(crate) path: String,
}

impl Ward {
    /// Of this major, after these statements; `path` is that of the table `healed`.
    pub(crate) fn of(major: u16, statements: &[&str]) -> Ward {
        let installation = match major {
            15 => server(15),
            other => {
                let mut all = all_majors().into_iter();
                all.find(|one| one.major == other).expect("a major")
            }
        };
        let copy = copy_of(&seed(&installation, Checksums::On));
        let mut running = copy.start().expect("a server");
        execute(&running, TABLE);
        statements.iter().for_each(|sql| execute(&running, sql));
        let path = value(&running, "SELECT pg_relation_filepath('healed')");
        running.stop(StopMode::Fast).expect("a stop");
        Ward { copy, path }
    }

    pub(crate) fn pgdata(&self) -> &str {
        text(&self.copy.pgdata)
    }

    pub(crate) fn at(&self, place: &str) -> String {
        format!("{}:{place}", self.path)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        PathBuf::from(format!("{}.heal.journal", self.pgdata()))
    }

    pub(crate) fn start(&self) -> Server {
        self.copy.start().expect("the server starts")
    }

    /// The plan, as a document; nothing is written.
    #[track_caller]
    pub(crate) fn plan(&self, place: &str, cure: &[&str]) -> HealDocument {
        let before = files(&self.copy.pgdata);
        let ran = self.heal(place, cure, &["--format", "json"]).exits(3);
        assert_eq!(files(&self.copy.pgdata), before, "a plan writes nothing");
        document(&ran)
    }

    pub(crate) fn heal(&self, place: &str, cure: &[&str], more: &[&str]) -> Ran {
        let at = self.at(place);
        let line = [&["heal", self.pgdata(), "--at", &at][..], cure, more].concat();
        pgclinic(&line)
    }

    /// Plans, consents to the one cure, and carries it out.
    #[track_caller]
    fn cured(&self, place: &str, cure: &[&str]) -> HealDocument {
        let plan = self.plan(place, cure);
        let id = plan.cures.first().expect("a cure").id.clone();
        let ran = self.heal(place, cure, &["--accept", &id, "--format", "json"]);
        let healed = document(&ran.exits(0));
        assert_eq!(healed.outcome, HealOutcome::Healed);
        healed
    }

    /// Hurts a row of the table, and makes the checksum true again.
    pub(crate) fn injure(&self, injury: &str, item: &str) {
        let control = self.copy.pgdata.join("global/pg_control");
        let bytes = fs::read(control).expect("a control file");
        let identifier = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")).to_string();
        let journal = format!("{}.{injury}.injury", self.pgdata());
        let within = ["--database", "clinic", "--relation", "public.healed"];
        let at = ["--block", "0", "--item", item, "--sealed"];
        let consent = [
            "--this-is-not-production",
            &identifier,
            "--journal",
            &journal,
        ];
        let line = [
            &["injure", self.pgdata(), "--injury", injury][..],
            &within,
            &at,
            &consent,
        ];
        pgclinic(&line.concat()).exits(0);
    }

    #[track_caller]
    pub(crate) fn undo(&self) -> HealDocument {
        let journal = self.journal();
        let line = ["heal", "--undo", text(&journal), "--format", "json"];
        document(&pgclinic(&line).exits(0))
    }
}

#[track_caller]
pub(crate) fn document(ran: &Ran) -> HealDocument {
    serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ran.out, ran.err))
}

/// Exit 2, nothing on stdout, and these words on stderr.
#[track_caller]
pub(crate) fn refused(ran: Ran, words: &str) {
    let ran = ran.exits(2);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains(words), "{words:?} is not in {}", ran.err);
}

fn fields(document: &HealDocument) -> BTreeMap<(String, String), (String, String)> {
    let fields = document.cures.iter().flat_map(|cure| &cure.fields);
    let pair = |own: &pgclinic_model::document::FieldChange| {
        (
            (own.of.clone(), own.name.clone()),
            (own.before.clone(), own.after.clone()),
        )
    };
    fields.map(pair).collect()
}

/// amcheck finds nothing wrong with the table and its indexes.
fn is_content(server: &Server) {
    for index in ["healed_pkey", "healed_other"] {
        let sql = format!("SELECT ext.bt_index_check('{index}', true)");
        value(server, &format!("SELECT count(*) FROM ({sql}) x"));
    }
    // verify_heapam came with 14.
    if value(server, "SHOW server_version_num").as_str() >= "140000" {
        let found = value(server, "SELECT count(*) FROM ext.verify_heapam('healed')");
        assert_eq!(found, "0");
    }
}

#[test]
fn a_killed_row_is_saved_gone_and_given_back() {
    for major in [13, 15, 18] {
        let ward = Ward::of(major, &["VACUUM (FREEZE) healed"]);
        let before = files(&ward.copy.pgdata);
        let plan = ward.plan("0:7", &["--kill"]);
        let cure = &plan.cures[0];
        assert_eq!((cure.safety, cure.rows_lost), (Safety::Lossy, Some(1)));
        assert_eq!(cure.rows[0].values, [], "nobody asked for values");
        let shown = ward.plan("0:7", &["--kill", "--values"]);
        let shown = &shown.cures[0].rows[0];
        assert_eq!(shown.values[1].value.as_deref(), Some("row 7"));
        let entries: Vec<_> = cure
            .dangling
            .iter()
            .map(|own| (own.index.as_str(), own.entries))
            .collect();
        assert_eq!(
            entries,
            [("healed_other", Some(1)), ("healed_pkey", Some(1))]
        );
        let fields = fields(&plan);
        let field = |of: &str, name: &str| fields[&(of.to_owned(), name.to_owned())].clone();
        assert_eq!(
            field("line pointer 7", "lp_flags"),
            ("LP_NORMAL".into(), "LP_DEAD".into())
        );
        let (set, cleared) = field("page header", "pd_flags");
        assert!(set.contains("PD_ALL_VISIBLE") && !cleared.contains("PD_ALL_VISIBLE"));
        let bits = ("ALL_VISIBLE, ALL_FROZEN".into(), "none".into());
        assert_eq!(field("visibility map", "bits of block 0"), bits);

        let healed = ward.cured("0:7", &["--kill"]);
        let applied = healed.applied.expect("it was written");
        assert_eq!(applied.changes, 2);
        let saved = Path::new(&applied.journal).join(&applied.rows_saved[0].file);
        let csv = fs::read_to_string(saved).expect("the rows that went");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 2, "{csv}");
        assert!(
            lines[0].ends_with("id,body,other") && lines[1].ends_with(",7,row 7,0"),
            "{csv}"
        );

        ward.undo();
        assert_eq!(files(&ward.copy.pgdata), before, "the first bytes are back");
        fs::remove_dir_all(ward.journal()).expect("the journal");

        let healed = ward.cured("0:7", &["--kill"]);
        let reindex = &healed.follow_up[0].commands;
        assert_eq!(
            reindex[0],
            "REINDEX INDEX public.healed_other; -- in database clinic"
        );
        let mut server = ward.start();
        assert_eq!(value(&server, "SELECT count(*) FROM healed"), "49");
        assert_eq!(
            value(&server, "SELECT count(*) FROM healed WHERE id = 7"),
            "0"
        );
        for command in healed
            .follow_up
            .iter()
            .take(2)
            .flat_map(|step| &step.commands)
        {
            execute(&server, command.split(" -- ").next().expect("a statement"));
        }
        is_content(&server);
        execute(&server, "INSERT INTO healed VALUES (7, 'again', 0)");
        server.stop(StopMode::Fast).expect("a stop");
        let journal = ward.journal();
        refused(
            pgclinic(&["heal", "--undo", text(&journal)]),
            "something else wrote to it, nothing was written",
        );
    }
}

#[test]
fn a_row_from_the_future_is_readable_after_freezing() {
    for major in [13, 15, 18] {
        let ward = Ward::of(major, &[]);
        ward.injure("xmin-in-the-future", "9");
        let mut server = ward.start();
        let mut session = server.connect("clinic").expect("a session");
        let asked = session.query_value("SELECT body FROM healed WHERE id = 9");
        assert_ne!(
            asked.ok().flatten().as_deref(),
            Some("row 9"),
            "the row is lost"
        );
        drop(session);
        server.stop(StopMode::Fast).expect("a stop");
        let healed = ward.cured("0:9", &["--freeze"]);
        assert_eq!(healed.cures[0].safety, Safety::Lossy);
        let server = ward.start();
        assert_eq!(
            value(&server, "SELECT body FROM healed WHERE id = 9"),
            "row 9"
        );
        assert_eq!(value(&server, "SELECT count(*) FROM healed"), "50");
        execute(&server, "VACUUM (FREEZE) healed");
        is_content(&server);
    }
}

#[test]
fn an_exact_cure_needs_one_word_and_a_lossy_one_its_id() {
    let ward = Ward::of(15, &[]);
    let plan = ward.plan("0:3", &["--freeze"]);
    assert_eq!(plan.cures[0].safety, Safety::Exact);
    // One word is not enough for a lossy cure.
    let ran = ward
        .heal("0:4", &["--kill"], &["--yes", "--format", "json"])
        .exits(3);
    assert_eq!(document(&ran).outcome, HealOutcome::Planned);
    refused(
        ward.heal("0:4", &["--kill"], &["--accept", "00000000"]),
        "no cure of this plan has the id 00000000",
    );
    ward.heal("0:3", &["--freeze"], &["--yes"]).exits(0);
    refused(
        ward.heal("0:3", &["--freeze"], &["--yes"]),
        "nothing is left to do",
    );
}

#[test]
fn the_server_asks_pg_xact_again_about_a_row_with_wrong_hints() {
    let ward = Ward::of(15, &["SELECT count(*) FROM healed"]);
    let exact = ward.plan("0:5", &["--clear-hint-bits"]);
    assert_eq!(exact.cures[0].safety, Safety::Exact);
    ward.injure("xmin-hint-invalid", "5");
    ward.cured("0:5", &["--clear-hint-bits"]);
    let mut server = ward.start();
    assert_eq!(
        value(&server, "SELECT body FROM healed WHERE id = 5"),
        "row 5"
    );
    execute(&server, "VACUUM (FREEZE) healed");
    is_content(&server);
    server.stop(StopMode::Fast).expect("a stop");
    refused(
        ward.heal("0:5", &["--clear-hint-bits"], &[]),
        "the row is frozen",
    );
}

#[test]
fn an_emptied_line_pointer_is_exact_only_where_no_index_leads_to_it() {
    let ward = Ward::of(
        15,
        &[
            "DELETE FROM healed WHERE id = 11",
            "VACUUM (INDEX_CLEANUP off) healed",
        ],
    );
    let lossy = ward.plan("0:11", &["--empty-line-pointer"]);
    let cure = &lossy.cures[0];
    assert_eq!((cure.safety, cure.rows_lost), (Safety::Lossy, Some(0)));
    assert_eq!(cure.dangling.len(), 2);
    let mut server = ward.start();
    execute(&server, "REINDEX TABLE healed");
    server.stop(StopMode::Fast).expect("a stop");
    let exact = ward.plan("0:11", &["--empty-line-pointer"]);
    assert_eq!(exact.cures[0].safety, Safety::Exact);
    ward.heal("0:11", &["--empty-line-pointer"], &["--yes"])
        .exits(0);
    let server = ward.start();
    execute(&server, "INSERT INTO healed VALUES (1000, 'new', 0)");
    let ctid = value(&server, "SELECT ctid FROM healed WHERE id = 1000");
    assert_eq!(ctid, "(0,11)");
    is_content(&server);
}

#[test]
fn a_page_is_given_up_with_all_its_rows_saved() {
    let ward = Ward::of(15, &["VACUUM (FREEZE) healed"]);
    let plan = ward.plan("0", &["--zero-page"]);
    assert_eq!(plan.cures[0].rows_lost, Some(50));
    let healed = ward.cured("0", &["--zero-page"]);
    let applied = healed.applied.expect("it was written");
    assert_eq!(
        (applied.rows_saved[0].rows, applied.rows_saved.len()),
        (50, 1)
    );
    let server = ward.start();
    assert_eq!(value(&server, "SELECT count(*) FROM healed"), "0");
    execute(&server, "REINDEX TABLE healed");
    execute(&server, "VACUUM healed");
    is_content(&server);
}

/// Values that stand in TOAST, in a row with columns before and after them.
const TOASTED: &str = "DROP TABLE healed;
    CREATE TABLE healed (id int, long text, after timestamp, must text NOT NULL, list int[] NOT NULL);
    ALTER TABLE healed ALTER long SET STORAGE external, ALTER must SET STORAGE external, ALTER list SET STORAGE external;
    INSERT INTO healed SELECT g, repeat('x', 5000), '2024-02-29', repeat('y', 5000), array_fill(g, ARRAY[2000]) FROM generate_series(1, 3) g";

#[test]
fn a_toasted_value_is_replaced_by_one_that_can_be_read() {
    let ward = Ward::of(15, &[TOASTED]);
    let healed = ward.cured("0:2", &["--cut-toast-value", "long"]);
    let csv = healed.applied.expect("it was written").rows_saved;
    assert_eq!((csv[0].rows, csv.len()), (1, 1));
    fs::rename(ward.journal(), format!("{}.first", ward.pgdata())).expect("a name");
    ward.cured("0:2", &["--cut-toast-value", "must"]);
    refused(
        ward.heal("0:2", &["--cut-toast-value", "list"], &[]),
        "has no empty value that could be written",
    );
    refused(
        ward.heal("0:2", &["--cut-toast-value", "after"], &[]),
        "holds no TOAST pointer",
    );
    let server = ward.start();
    let row = value(
        &server,
        "SELECT concat_ws('|', id, coalesce(long, 'null'), after, '<' || must || '>', cardinality(list)) FROM healed WHERE id = 2",
    );
    assert_eq!(row, "2|null|2024-02-29 00:00:00|<>|2000");
    assert_eq!(
        value(&server, "SELECT sum(length(long)) FROM healed"),
        "10000"
    );
    assert_eq!(
        value(&server, "SELECT count(*) FROM ext.verify_heapam('healed')"),
        "0"
    );
}

#[test]
fn a_hot_chain_stays_whole_when_one_of_its_versions_is_killed() {
    let ward = Ward::of(
        15,
        &[
            "VACUUM healed",
            "UPDATE healed SET body = 'newer' WHERE id = 20",
        ],
    );
    // The older version at its root: the index leads on to the newer one.
    let healed = ward.cured("0:20", &["--kill"]);
    assert_eq!(healed.cures[0].rows_lost, Some(0));
    let mut server = ward.start();
    assert_eq!(
        value(
            &server,
            "SET enable_seqscan = off; SELECT body FROM healed WHERE id = 20"
        ),
        "newer"
    );
    is_content(&server);
    let ctid = value(&server, "SELECT ctid FROM healed WHERE id = 20");
    server.stop(StopMode::Fast).expect("a stop");
    fs::rename(ward.journal(), format!("{}.first", ward.pgdata())).expect("a name");
    // The newer version, to which the root now redirects: both are dead.
    let place = ctid.trim_matches(['(', ')']).replace(',', ":");
    let healed = ward.cured(&place, &["--kill"]);
    assert_eq!(healed.cures[0].rows_lost, Some(1));
    let server = ward.start();
    assert_eq!(value(&server, "SELECT count(*) FROM healed"), "49");
    execute(&server, "VACUUM healed");
    execute(&server, "REINDEX TABLE healed");
    is_content(&server);
}

#[test]
fn a_copy_is_healed_and_the_original_stays() {
    let ward = Ward::of(15, &[]);
    let before = files(&ward.copy.pgdata);
    let id = ward.plan("0:7", &["--kill"]).cures[0].id.clone();
    let folder = tempfile::tempdir().expect("a directory");
    let copy = folder.path().join("copy");
    let ran = ward.heal(
        "0:7",
        &["--kill"],
        &[
            "--accept",
            &id,
            "--copy-to",
            text(&copy),
            "--format",
            "json",
        ],
    );
    let healed = document(&ran.exits(0));
    assert!(healed.applied.expect("it was written").is_copy);
    assert_eq!(files(&ward.copy.pgdata), before);
    let changed = ward.path.clone();
    assert_ne!(
        files(&copy)[&copy.join(&changed)],
        before[&ward.copy.pgdata.join(&changed)]
    );
}

#[test]
fn a_journal_that_was_interrupted_is_completed_once() {
    let ward = Ward::of(15, &["VACUUM (FREEZE) healed"]);
    ward.cured("0:7", &["--kill"]);
    let after = files(&ward.copy.pgdata);
    ward.undo();
    let journal = ward.journal();
    let file = journal.join("journal.json");
    let undone = fs::read_to_string(&file).expect("a journal");
    let resume = || pgclinic(&["heal", "--resume", text(&journal), "--format", "json"]);
    refused(resume(), "it was undone");
    // As a kill after the journal was written leaves it.
    fs::write(
        &file,
        undone.replace("\"state\": \"undone\"", "\"state\": \"planned\""),
    )
    .expect("a journal");
    let resumed = document(&resume().exits(0));
    assert_eq!(resumed.outcome, HealOutcome::Healed);
    assert_eq!(files(&ward.copy.pgdata), after);
    assert_eq!(
        document(&resume().exits(0))
            .applied
            .expect("it was written")
            .changes,
        0
    );
    fs::write(&file, &undone[..undone.len() / 2]).expect("a journal");
    refused(resume(), "it is damaged");
    refused(
        pgclinic(&["heal", "--undo", text(&journal)]),
        "it is damaged",
    );
}

#[test]
fn an_exact_cure_is_done_while_a_lossy_one_of_the_plan_is_left_out() {
    let ward = Ward::of(15, &[]);
    ward.injure("xmin-in-the-future", "9");
    let (exact, lossy) = (ward.at("0:3"), ward.at("0:9"));
    let line = [
        "heal",
        ward.pgdata(),
        "--at",
        &exact,
        "--at",
        &lossy,
        "--freeze",
    ];
    let ran = pgclinic(&[&line[..], &["--yes", "--format", "json"]].concat());
    let healed = document(&ran.exits(3));
    assert_eq!(healed.outcome, HealOutcome::PartlyUndecided);
    let outcomes: Vec<_> = healed.cures.iter().map(|cure| cure.outcome).collect();
    assert_eq!(outcomes, [CureOutcome::Healed, CureOutcome::LeftOut]);
}

#[test]
fn damage_that_remains_on_a_healed_row_is_found_again() {
    let ward = Ward::of(15, &[]);
    ward.injure("attribute-count", "3");
    let ran = ward.heal("0:3", &["--freeze"], &["--yes", "--format", "json"]);
    let hurt = document(&ran.exits(1));
    assert_eq!(hurt.outcome, HealOutcome::DamageRemains);
    let rules: Vec<_> = hurt.cures[0]
        .findings
        .iter()
        .map(|own| own.rule.as_str())
        .collect();
    assert!(rules.contains(&"too-many-attributes"), "{rules:?}");
    // Of another row of the page it is listed, and is not this heal's.
    let ran = ward.heal("0:4", &["--freeze"], &["--yes", "--format", "json"]);
    let other = document(&ran.exits(0));
    assert!(!other.other_findings.is_empty());
}

/// Overwrites bytes of the table's first page.
fn overwrite(ward: &Ward, offset: u64, bytes: &[u8]) {
    let path = ward.copy.pgdata.join(&ward.path);
    let file = fs::OpenOptions::new().write(true).open(path);
    let file = file.expect("a file");
    file.write_all_at(bytes, offset).expect("hurt");
}

#[test]
fn a_row_that_its_line_pointer_lost_is_saved_by_its_structure() {
    let ward = Ward::of(15, &[]);
    ward.injure("line-pointer-beyond-page", "6");
    let healed = ward.cured("0:6", &["--kill"]);
    let saved = healed.applied.expect("it was written");
    let file = &saved.rows_saved[0];
    let csv = fs::read_to_string(Path::new(&saved.journal).join(&file.file)).expect("rows");
    assert!(csv.ends_with(",\"(0,6)\",carved,6,row 6,6\n"), "{csv}");
    let server = ward.start();
    assert_eq!(value(&server, "SELECT count(*) FROM healed"), "49");
    execute(&server, "REINDEX TABLE healed");
    execute(&server, "VACUUM healed");
    is_content(&server);
}

#[test]
fn a_row_that_cannot_be_decoded_is_saved_as_hexadecimal_digits() {
    let ward = Ward::of(15, &[]);
    // The sixth of rows of 40 bytes, from the end of the page on.
    overwrite(&ward, 8192 - 6 * 40, &[0xFF; 40]);
    let healed = ward.cured("0:6", &["--kill"]);
    let saved = healed.applied.expect("it was written");
    let of_hex = saved.rows_saved.iter().find(|file| file.as_hex == 1);
    let file = &of_hex.expect("its bytes").file;
    let hex = fs::read_to_string(Path::new(&saved.journal).join(file)).expect("rows");
    assert_eq!(hex, format!("block,item,bytes\n0,6,{}\n", "ff".repeat(40)));
    let server = ward.start();
    assert_eq!(value(&server, "SELECT count(*) FROM healed"), "49");
    execute(&server, "REINDEX TABLE healed");
    is_content(&server);
}

#[test]
fn a_checksum_that_is_wrong_makes_a_cure_lossy() {
    let ward = Ward::of(15, &[]);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(ward.copy.pgdata.join(&ward.path));
    // A byte of the hole, which no check of structure asks for.
    file.expect("a file")
        .write_all_at(&[7], 1000)
        .expect("hurt");
    let plan = ward.plan("0:3", &["--freeze"]);
    assert_eq!(plan.cures[0].safety, Safety::Lossy);
    assert!(plan.cures[0].warnings[0].contains("does not match its computed checksum"));
}

/// What was written stays written, and whoever gets no report learns so, with the way back.
#[test]
fn a_report_that_does_not_fit_names_what_was_written_and_the_journal() {
    let ward = Ward::of(15, &[]);
    let id = ward.plan("0:7", &["--kill"]).cures[0].id.clone();
    let ran = ward.heal(
        "0:7",
        &["--kill"],
        &["--accept", &id, "--output", "/dev/full"],
    );
    let journal = ward.journal();
    let undo = format!("pgclinic heal --undo {}", text(&journal));
    let words = ran.exits(2).err;
    assert!(words.contains("written to"), "{words}");
    assert!(words.contains(&undo), "{words}");
    ward.undo();
}
