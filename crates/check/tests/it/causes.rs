//! Each cause leaves marks on a real page, and is named by them.

use std::sync::Arc;

use pgclinic_check::{check_page, fork_cx};
use pgclinic_cluster::{Cluster, DatabaseContext};
use pgclinic_format::{Fork, Page};
use pgclinic_model::Level;
use pgclinic_servers::Checksums;
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{seed, server};

const PAGE: usize = 8192;

/// Two healthy pages of `public.measurements`, blocks 3 and 4, and the cause that is named for a
/// page at block 3.
fn with_pages(test: impl Fn(&[u8], &[u8], &dyn Fn(&[u8]) -> Option<String>)) {
    let seeded = seed(&server(18), Checksums::On);
    let source = DataDirectory::open(&seeded.pgdata).expect("the seed");
    let cluster = Cluster::open(Arc::new(source)).expect("a cluster");
    let clinic = cluster
        .databases
        .values()
        .find(|database| database.name.as_deref() == Some("clinic"));
    let database = clinic.expect("the seed has it").oid;
    let catalog = cluster.catalog(database);
    let relation = catalog
        .by_name("public", "measurements")
        .expect("the seed has it");
    let homes = cluster
        .homes
        .iter()
        .filter(|home| home.database == database);
    let forks: Vec<_> = homes
        .flat_map(|home| cluster.files(home).expect("listed"))
        .collect();
    let view = DatabaseContext {
        cluster: &cluster,
        catalog: &catalog,
        forks: &forks,
    };
    let wanted = |files: &&pgclinic_cluster::ForkFiles| {
        files.filenode == relation.filenode && files.fork == Fork::Main
    };
    let files = forks.iter().find(wanted).expect("its file");
    let fork = fork_cx(&view, files, Level::Structure);
    let block = |number| {
        pgclinic_cluster::read_block(cluster.source().as_ref(), files, cluster.build, number)
    };
    let (first, second) = (block(3).expect("a page"), block(4).expect("a page"));
    let cause_of = |page: &[u8]| {
        let findings = check_page(page, 3, &fork, 0);
        findings
            .into_iter()
            .find_map(|finding| finding.cause)
            .map(|cause| cause.name)
    };
    assert_eq!(
        cause_of(&first),
        None,
        "a healthy page has nothing to explain"
    );
    test(&first, &second, &cause_of);
}

#[test]
fn marks_name_their_cause() {
    with_pages(|first, second, cause_of| {
        let wounded = |hurt: &dyn Fn(&mut Vec<u8>)| {
            let mut page = first.to_vec();
            hurt(&mut page);
            cause_of(&page)
        };
        let lower = usize::from(Page::parse(first).expect("a page").pd_lower());
        assert!(lower > 100, "the page is full of rows");
        assert_eq!(cause_of(second).as_deref(), Some("stray-write"));
        let flipped = wounded(&|page| page[40] ^= 0x40);
        assert_eq!(flipped.as_deref(), Some("bit-flip"));
        let text = b"2026-11-20 03:00:01 backup.sh: copying files to the archive";
        let overwritten = wounded(&|page| page[..text.len()].copy_from_slice(text));
        assert_eq!(overwritten.as_deref(), Some("text-overwrite"));
        let rows = PAGE - 2000..PAGE - 2000 + text.len();
        let among_rows = wounded(&|page| page[rows.clone()].copy_from_slice(text));
        assert_ne!(among_rows.as_deref(), Some("bit-flip"), "much is wrong");
        let sector = wounded(&|page| page[PAGE - 1024..PAGE - 512].fill(0));
        assert_eq!(sector.as_deref(), Some("zeroed-sectors"));
        let torn = wounded(&|page| page[PAGE / 2..].fill(0));
        assert_eq!(torn.as_deref(), Some("torn-page"));
        let unsummed = wounded(&|page| page[8..10].fill(0));
        assert_eq!(unsummed.as_deref(), Some("checksums-off-when-written"));
    });
}
