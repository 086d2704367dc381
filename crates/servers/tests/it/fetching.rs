//! Two who want the same server at the same time share one download (of the smallest build, into an
//! empty cache).

use std::path::Path;

use pgclinic_servers::{RunAs, Scratch, Wanted, fetched};

fn fetch_into(cache: &Path) -> (String, usize) {
    let wanted = Wanted {
        major: Some(13),
        minor: Some(22),
        cache: Some(cache.to_path_buf()),
        ..Wanted::default()
    };
    let mut lines = 0;
    let found = fetched(&wanted, &mut |_| lines += 1).expect("a download");
    (found.version, lines)
}

#[test]
fn two_at_once_share_one_download_of_just_the_wanted_minor() {
    let run_as = RunAs::new(None).expect("a user");
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| fetch_into(&cache));
        (fetch_into(&cache), other.join().expect("no panic"))
    });
    assert_eq!((first.0.as_str(), second.0.as_str()), ("13.22", "13.22"));
    assert_eq!(first.1.min(second.1), 0, "one of them hears of no download");
    let left = std::fs::read_dir(&cache).expect("a directory").count();
    assert_eq!(left, 2, "the server and the lock, nothing half done");
}
