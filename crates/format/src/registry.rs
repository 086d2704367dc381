//! The one macro of the house: a register of things that are one file each.

/// Declares the modules of a register and the list of what they hold, in the order given.
///
/// ```ignore
/// registry! {
///     /// Every check of one page.
///     pub static PAGE_CHECKS: [PageCheck] = [lower_beyond_upper::LowerBeyondUpper];
/// }
/// ```
#[macro_export]
macro_rules! registry {
    ($(#[$meta:meta])* pub static $NAME:ident: [$Trait:path] = [$($module:ident :: $Type:ident),* $(,)?];) => {
        $(pub mod $module;)*
        $(#[$meta])*
        pub static $NAME: &[&'static (dyn $Trait)] = &[$(&$module::$Type),*];
    };
}
