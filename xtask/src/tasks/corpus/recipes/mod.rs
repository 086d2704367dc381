//! The register of recipes. Adding one is its file and its line here.

use super::recipe::Recipe;

macro_rules! registry {
    ($(#[$doc:meta])* $static:ident: [$($name:ident,)*]) => {
        $(pub(super) mod $name;)*
        $(#[$doc])*
        pub(super) static $static: &[Recipe] = &[$($name::RECIPE,)*];
    };
}

registry! {
    /// Every recipe, quick ones first.
    RECIPES: [
        load,
        replica,
        encodings,
        regression,
        isolation,
        contrib,
        majors,
        wraparound,
        upgrade,
        block_sizes,
    ]
}
