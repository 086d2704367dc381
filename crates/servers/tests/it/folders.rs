//! What a build can do, and finding it in whatever folder holds it.

use std::path::Path;

use pgclinic_servers::{Installation, RunAs, Scratch, Wanted, fetched};

fn fetched_18() -> Installation {
    let wanted = Wanted {
        major: Some(18),
        ..Wanted::default()
    };
    fetched(&wanted, &mut |_| {}).expect("a fetched 18")
}

#[test]
fn features_are_those_of_the_build() {
    let fetched = fetched_18().features();
    assert!(
        !fetched.lz4 && !fetched.jit && !fetched.io_uring,
        "{fetched:?}"
    );
    let debian = Path::new("/usr/lib/postgresql/15/bin");
    if let Ok(debian) = Installation::at(debian) {
        let features = debian.features();
        assert!(
            features.lz4 && features.zstd && features.jit,
            "{features:?}"
        );
        assert!(!features.io_uring, "15 has no io_method");
    }
}

#[test]
fn an_installation_is_found_in_any_folder_that_holds_one() {
    let installation = fetched_18();
    let home = installation.bindir.parent().expect("a home").to_path_buf();
    let run_as = RunAs::new(None).expect("a user");
    let scratch = Scratch::new(&run_as, None).expect("a directory");
    let below = |path: &str| {
        let link = scratch.path().join(path);
        std::fs::create_dir_all(link.parent().expect("a parent")).expect("folders");
        std::os::unix::fs::symlink(&home, &link).expect("a link");
        scratch.path().join(path.split('/').next().expect("a name"))
    };
    let tree = below("tree/usr/lib/postgresql/18");
    let wheel = below("wheel/some_package/pginstall");
    for folder in [installation.bindir.clone(), home.clone(), tree, wheel] {
        let found = Installation::in_folder(&folder).expect("found");
        assert_eq!(found.version, installation.version, "{}", folder.display());
    }
    let refused = Installation::in_folder(scratch.path()).expect_err("nothing there");
    assert!(
        refused.to_string().contains("initdb is missing"),
        "{refused}"
    );
}

/// Numbers of processes come again, and what was killed leaves its folder.
#[test]
fn a_folder_left_behind_under_our_number_is_in_nobodys_way() {
    let run_as = RunAs::new(None).expect("a user");
    let base = tempfile::tempdir().expect("a directory");
    let number = std::process::id();
    for count in 0..200 {
        let left = base.path().join(format!("{number}-{count}/data"));
        std::fs::create_dir_all(left).expect("a directory");
    }
    let scratch = Scratch::new(&run_as, Some(base.path())).expect("a directory");
    assert!(!scratch.path().join("data").exists());
}
