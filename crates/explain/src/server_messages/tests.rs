//! The gallery is recognised, and what is read out of its messages.

use super::gallery::GALLERY;
use super::*;

fn first(text: &str) -> Match {
    explain_message(text)
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("nothing explains {text:?}"))
}

#[test]
fn the_gallery_is_recognised() {
    for (text, name) in GALLERY {
        assert_eq!(first(text).message.name, *name, "{text}");
    }
}

#[test]
fn every_message_of_the_register_stands_in_the_gallery_and_has_its_page() {
    let mut names = std::collections::BTreeSet::new();
    for message in SERVER_MESSAGES.iter() {
        let name = message.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(
            GALLERY.iter().any(|(_, known)| *known == name),
            "no example of {name}"
        );
        let words = message.meaning.split_whitespace().count();
        assert!((100..=270).contains(&words), "{name} has {words} words");
        assert!(
            message.meaning.contains("**Never**"),
            "{name} does not say what never to do"
        );
        let small = message
            .patterns
            .iter()
            .all(|template| template.to_lowercase() == **template);
        assert!(small, "a template of {name} has capitals");
        // Every template is put together once, so that a wrong name in braces shows here.
        assert!(message.find(&Pasted::new("nothing of the kind")).is_none());
        for template in &message.patterns {
            assert!(
                pattern::find(template, &Pasted::new(template)).is_some() || template.contains('{')
            );
        }
    }
}

#[test]
fn names_and_numbers_are_read() {
    let facts = first("ERROR: XX001-invalid page in block 578 of relation base/16384/28751").facts;
    assert_eq!(
        (facts.relation_path.as_deref(), facts.block),
        (Some("base/16384/28751"), Some(578))
    );
    let facts =
        first("ERROR:  3 invalid pages among blocks 4..9 of relation \"base/16384/29724\"").facts;
    assert_eq!((facts.blocks, facts.block), (Some([4, 10]), Some(4)));
    let facts = first(
        "unexpected chunk number −556107646 (expected 20) for toast value 29611 in pg_toast_29580",
    )
    .facts;
    assert_eq!(
        (facts.toast_value, facts.toast_relation.as_deref()),
        (Some(29611), Some("pg_toast_29580"))
    );
    let facts = first("ERROR:  MultiXactId 1074710815 has not been created yet").facts;
    assert_eq!(facts.multixact.map(|multi| multi.0), Some(1_074_710_815));
    let facts = first("checksum verification failed in file \"./base/5/28751.1\", block 7: calculated checksum 4C91 but block contains 98").facts;
    assert_eq!(
        (
            facts.block_in_file,
            facts.computed_checksum,
            facts.expected_checksum
        ),
        (Some(7), Some(0x4C91), Some(0x98))
    );
    let facts = first("invalid memory alloc request size 18446744073709551594").facts;
    assert_eq!(facts.bytes, Some(18_446_744_073_709_551_594));
}

#[test]
fn settings_tools_and_files_are_known_by_their_names() {
    for (term, name) in [
        ("zero_damaged_pages", "zero-damaged-pages-setting"),
        ("ignore-checksum-failure", "ignore-checksum-failure-setting"),
        ("checksum_failures", "checksum-failures-counter"),
        ("wraparound", "wraparound-protection"),
        ("PG_SURGERY", "pg-surgery"),
        ("pg_resetwal", "pg-resetwal"),
        ("pg_amcheck", "amcheck"),
        ("REINDEX SYSTEM", "ignore-system-indexes-setting"),
        ("pg_filenode.map", "relation-map-damaged"),
        ("invalid-page", "invalid-page"),
    ] {
        let found = message_named(term).map(|message| message.name);
        assert_eq!(found, Some(name), "{term}");
    }
    assert!(message_named("").is_none());
}

#[test]
fn a_term_and_an_sqlstate_have_one_page_each() {
    let mut terms = std::collections::BTreeSet::new();
    for message in SERVER_MESSAGES.iter() {
        let answers = message.terms.iter().chain(&message.stands_for);
        for answer in answers {
            assert!(terms.insert(as_term(answer)), "{answer} has two pages");
        }
    }
}

#[test]
fn files_and_blocks_are_read_in_any_language() {
    for text in [
        "FEHLER:  XX001: ungültige Seite in Block 5 von Relation »base/5/16384«",
        "リレーション\"base/5/16384\"のブロック5に不正なページ\nSQL state: XX001",
        "ОШИБКА:  XX001: неверная страница в блоке 5 отношения base/5/16384",
        "ERREUR: page invalide dans le bloc 5 de la relation base/5/16384\nÉtat SQL : XX001",
    ] {
        let facts = first(text).facts;
        assert_eq!(
            (facts.relation_path.as_deref(), facts.block),
            (Some("base/5/16384"), Some(5)),
            "{text}"
        );
    }
}

#[test]
fn what_stands_around_a_message_counts_too() {
    let text = "ERROR: could not access status of transaction 3353862211\nDETAIL: Could not open file \"pg_xact/0C7E\": No such file or directory.\npg_dump: error: The command was: COPY public.docs (id) TO stdout;";
    let facts = first(text).facts;
    assert_eq!(facts.xid.map(|xid| xid.0), Some(3_353_862_211));
    assert_eq!(
        (facts.file.as_deref(), facts.relation_name.as_deref()),
        (Some("pg_xact/0C7E"), Some("public.docs"))
    );
    let text = "WARNING:  page verification failed, calculated checksum 19601 but expected 152\nERROR:    invalid page in block 0 of relation base/16384/16402";
    let facts = first(text).facts;
    assert_eq!(
        (
            facts.computed_checksum,
            facts.expected_checksum,
            facts.block
        ),
        (Some(19601), Some(152), Some(0))
    );
    let text = "ERROR:  found xmin 700 from before relfrozenxid 1200\nCONTEXT:  while scanning block 3 and offset 7 of relation \"public.docs\"";
    let facts = first(text).facts;
    assert_eq!(
        (facts.block, facts.item, facts.relation_name.as_deref()),
        (Some(3), Some(7), Some("public.docs"))
    );
}

#[test]
fn the_first_line_is_to_take_a_copy() {
    for (text, _) in GALLERY {
        let answer = render(&first(text), None);
        assert!(answer.starts_with("First of all take a copy"), "{text}");
        assert!(answer.contains("pgclinic check PGDATA"), "{answer}");
    }
    assert!(render_unknown().starts_with("First of all take a copy"));
    assert!(explain_message("ERROR: syntax error at or near \"FORM\"").is_empty());
}

#[test]
fn commands_carry_the_names_of_the_message() {
    let answer = render(
        &first("invalid page in block 578 of relation base/16384/28751"),
        None,
    );
    assert!(
        answer.contains("`pgclinic inspect PGDATA --filenode 28751 --block 578`"),
        "{answer}"
    );
    let answer = render(
        &first("index \"docs_pkey\" contains unexpected zero page at block 3"),
        None,
    );
    assert!(
        answer.contains("REINDEX INDEX CONCURRENTLY docs_pkey;"),
        "{answer}"
    );
    assert!(
        answer.contains("pgclinic inspect PGDATA --relation '*.docs_pkey' --block 3"),
        "{answer}"
    );
}

#[test]
fn hostile_text_does_no_harm() {
    let huge = "invalid page in block 9 of relation ".repeat(100_000);
    let texts = [
        String::new(),
        "\0\u{1b}[31m\u{202e}".into(),
        huge,
        "invalid page in block 99999999999999999999999 of relation \"".into(),
        format!(
            "invalid page in block 1 of relation \"{}\"",
            "x".repeat(100_000)
        ),
        "invalid page in block 1 of relation \"base/1/2'; rm -rf / #\u{1b}[2J\"".into(),
        "unexpected chunk number — (expected ”) for toast value é in ü".into(),
        "-".repeat(70_000),
        "\u{2014}".repeat(70_000),
    ];
    for text in texts {
        for found in explain_message(&text) {
            let answer = render(&found, None);
            assert!(!answer.chars().any(|char| char.is_control() && char != '\n'));
        }
    }
}

#[test]
fn names_that_are_shell_commands_stay_in_quotes() {
    let text = "index \"x'; rm -rf / #\" contains unexpected zero page at block 3";
    let answer = render(&first(text), None);
    assert!(
        answer.contains(r"--relation '*.x'\''; rm -rf / #' --block 3`"),
        "{answer}"
    );
    assert!(answer.contains("CONCURRENTLY INDEX_NAME;"), "{answer}");
}

#[test]
fn a_rule_is_shown_with_its_page() {
    use pgclinic_model::{Rule, Severity};
    static RULE: Rule = Rule {
        name: "a-b",
        formerly: Some("a-c"),
        severity: Severity::Damage,
        summary: "a is b",
        explain: "Because.",
    };
    assert_eq!(
        explain_rule(&RULE),
        "# a-b (damage)\n\na is b\n\nFormerly a-c.\n\nBecause.\n"
    );
}

/// On clusters that a server made.
mod seeded {
    use super::*;

    /// A filled cluster of PostgreSQL 15, opened without a change.
    fn cluster() -> pgclinic_cluster::Cluster {
        let seeded = pgclinic_testkit::seed(&pgclinic_testkit::server(15), Default::default());
        let source =
            pgclinic_source::DataDirectory::open(&seeded.pgdata).expect("a data directory");
        pgclinic_cluster::Cluster::open(std::sync::Arc::new(source)).expect("a cluster")
    }

    fn database(cluster: &pgclinic_cluster::Cluster) -> pgclinic_cluster::Catalog {
        let clinic = cluster
            .databases
            .values()
            .find(|database| database.name.as_deref() == Some("clinic"));
        cluster.catalog(clinic.expect("the seeds have it").oid)
    }

    #[test]
    fn a_file_and_block_become_a_table_with_its_rows() {
        let cluster = cluster();
        let catalog = database(&cluster);
        let docs = catalog
            .by_name("public", "docs")
            .expect("the seeds have it");
        let text = format!(
            "ERROR:  invalid page in block 1 of relation base/{}/{}",
            catalog.database, docs.filenode
        );
        let found = first(&text);
        let resolved = resolve(&cluster, &found.facts);
        assert_eq!(
            resolved.relation.as_ref().map(|named| named.name.as_str()),
            Some("public.docs")
        );
        assert_eq!(resolved.bytes, Some([8192, 16384]));
        let rows = resolved.rows.clone().expect("a heap has rows");
        assert!(rows.rows > 0 && !rows.estimated, "{rows:?}");
        let answer = render(&found, Some(&resolved));
        assert!(
            answer.contains("- table public.docs of database clinic"),
            "{answer}"
        );
        assert!(
            answer.contains("--database 'clinic' --relation 'public.docs' --block 1`"),
            "{answer}"
        );
    }

    #[test]
    fn a_toast_relation_becomes_the_table_that_owns_it() {
        let cluster = cluster();
        let catalog = database(&cluster);
        let docs = catalog
            .by_name("public", "docs")
            .expect("the seeds have it")
            .oid;
        let text = format!("ERROR:  missing chunk number 0 for toast value 1 in pg_toast_{docs}");
        let resolved = resolve(&cluster, &first(&text).facts);
        assert_eq!(
            resolved.owner.map(|named| named.name).as_deref(),
            Some("public.docs")
        );
    }

    #[test]
    fn an_index_becomes_a_command_that_rebuilds_it() {
        let cluster = cluster();
        let found = first("ERROR:  index \"docs_title\" contains unexpected zero page at block 0");
        let resolved = resolve(&cluster, &found.facts);
        assert!(resolved.rows.is_none(), "an index holds no rows");
        let answer = render(&found, Some(&resolved));
        assert!(
            answer.contains("REINDEX INDEX CONCURRENTLY public.docs_title;"),
            "{answer}"
        );
        assert!(answer.contains("an index of table public.docs"), "{answer}");
    }

    #[test]
    fn a_transaction_from_nowhere_is_said_to_be_one() {
        let cluster = cluster();
        let resolved = resolve(
            &cluster,
            &first("could not access status of transaction 3353862211").facts,
        );
        assert!(
            resolved
                .notes
                .iter()
                .any(|note| note.contains("is not one of them")),
            "{:?}",
            resolved.notes
        );
        let resolved = resolve(
            &cluster,
            &first("invalid page in block 1 of relation base/999999/4").facts,
        );
        assert!(
            resolved
                .notes
                .iter()
                .any(|note| note.contains("right cluster")),
            "{:?}",
            resolved.notes
        );
    }

    #[test]
    fn every_page_is_in_the_register_under_its_name_and_each_of_its_steps_can_be_filled_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server_messages/texts");
        let files = std::fs::read_dir(folder).expect("the pages are there");
        let files: std::collections::BTreeSet<String> = files
            .map(|file| {
                file.expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        let names = SERVER_MESSAGES
            .iter()
            .map(|message| format!("{}.md", message.name));
        assert_eq!(files, names.collect());
        let facts = Facts::default();
        let names = Names {
            facts: &facts,
            resolved: None,
        };
        for message in SERVER_MESSAGES.iter() {
            assert!(
                !message.patterns.is_empty(),
                "{} has no wording",
                message.name
            );
            let is_state =
                |state: &&str| state.len() == 5 && state.bytes().all(|b| b.is_ascii_alphanumeric());
            assert!(message.sqlstates.iter().all(is_state), "{}", message.name);
            let steps = message.next_steps(&names);
            assert!(steps.len() >= 2, "{} has only {steps:?}", message.name);
            assert!(
                steps.iter().all(|step| !step.contains(['{', '}'])),
                "{steps:?}"
            );
        }
    }
}
