//! The register of tasks. Adding one is its file and its line here; `ci` runs them in this order.

use crate::task::Task;

macro_rules! registry {
    ($(#[$doc:meta])* $static:ident: [$($name:ident,)*]) => {
        $(mod $name;)*
        $(#[$doc])*
        pub(crate) static $static: &[Task] = &[$($name::TASK,)*];
    };
}

registry! {
    /// Every task.
    TASKS: [
        fmt,
        lint,
        tidy,
        licences,
        test,
        golden,
        docs,
        drill,
        fuzz_smoke,
        dist,
        bench,
        corpus,
        compare,
        servers,
        charsets,
        healed_pages,
        demo_cluster,
        ci,
    ]
}
