//! The contents of drills and tests, filled into a real server of every major.

use std::time::Instant;

use pgclinic_servers::{
    FillOptions, InitOptions, MAJORS, RunAs, Scratch, Server, Session, StartOptions, StopMode,
    Wanted, fill, find, initdb,
};

fn count(session: &mut Session, sql: &str) -> u64 {
    let value = session.query_value(sql).expect(sql).expect("a value");
    value.parse().expect("a number")
}

#[test]
fn every_major_can_be_filled() {
    for major in MAJORS {
        let run_as = RunAs::new(None).expect("a user");
        let installation = find(
            &Wanted {
                major: Some(major),
                ..Wanted::default()
            },
            &mut |_| {},
        )
        .expect("a server");
        let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
        let pgdata = scratch.folder("data").expect("a directory");
        let options = InitOptions {
            wal_segsize_mb: Some(1),
            ..InitOptions::default()
        };
        initdb(&installation, &run_as, &pgdata, &options).expect("a cluster");
        let mut server = Server::start(&installation, &run_as, &pgdata, &StartOptions::default())
            .expect("a start");
        let began = Instant::now();
        let filled = fill(&server, FillOptions::default())
            .unwrap_or_else(|error| panic!("{major}: {error}"));
        println!(
            "{major}: {:?}, skipped {:?}",
            began.elapsed(),
            filled.skipped
        );
        assert_eq!(filled.databases, ["postgres", "clinic", "od\"d näme"]);

        let mut session = server.connect("clinic").expect("a session");
        let methods = "SELECT count(DISTINCT amname) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'i' AND c.oid > 16384";
        assert_eq!(count(&mut session, methods), 6);
        let chunks = "SELECT count(*) FROM public.docs WHERE pg_column_size(body) > 4000";
        assert!(count(&mut session, chunks) > 40);
        let multixacts = "SELECT count(*) FROM ext.heap_page_items(ext.get_raw_page('public.locked', 0)) WHERE t_infomask & 4096 > 0";
        assert!(count(&mut session, multixacts) > 20);
        let dead = "SELECT count(*) FROM ext.heap_page_items(ext.get_raw_page('public.pruned', 0)) WHERE lp_flags = 3";
        let redirected = "SELECT count(*) FROM ext.heap_page_items(ext.get_raw_page('public.pruned', 0)) WHERE lp_flags = 2";
        assert!(count(&mut session, dead) > 0 && count(&mut session, redirected) > 0);
        let size = "SELECT sum(pg_database_size(oid)) FROM pg_database";
        let bytes = count(&mut session, size);
        println!("{major}: {} MB", bytes / 1_000_000);
        assert!(bytes < 80_000_000, "{major}: {bytes} bytes");
        server.stop(StopMode::Fast).expect("a stop");
    }
}
