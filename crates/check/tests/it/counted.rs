//! Relations are counted as bytes are: each one that was selected is somewhere, and the witnesses
//! that were asked are counted.

use std::fs;

use pgclinic_model::document::{Coverage, Witness};
use pgclinic_model::{CheckDocument, Level};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{checked, clinic, copy_of, open, seed, server};

fn asked(coverage: &Coverage, witness: Witness) -> u64 {
    let mut own = coverage.witnesses.iter();
    own.find(|own| own.witness == witness)
        .map_or(0, |own| own.asked)
}

#[test]
fn every_relation_is_somewhere_and_its_witnesses_are_counted() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let sound: CheckDocument = checked(&open(&copy.pgdata), Level::Structure);
    let all = sound.coverage.relations;
    assert_eq!(sound.coverage.relations_selected, all);
    for witness in [
        Witness::IndexEntries,
        Witness::VisibilityMaps,
        Witness::PageCounts,
    ] {
        assert!(asked(&sound.coverage, witness) > 50, "{witness:?}");
    }

    let cluster = open(&copy.pgdata);
    let catalog = clinic(&cluster);
    let mut relations = catalog.relations.values();
    let docs = relations.find(|own| own.name == "docs").expect("a table");
    let folder = format!("base/{}", catalog.database);
    fs::remove_file(copy.pgdata.join(folder).join(docs.filenode.to_string())).expect("removed");
    let hurt = checked(&open(&copy.pgdata), Level::Structure).coverage;
    let counts = (hurt.relations, hurt.relations_missing);
    assert_eq!(counts, (all - 1, 1));
    assert_eq!(hurt.relations_selected, all);

    let pages = checked(&open(&copy.pgdata), Level::Pages).coverage;
    assert_eq!(asked(&pages, Witness::IndexEntries), 0, "nobody is asked");
}
