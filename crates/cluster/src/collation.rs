//! Which order text has: what `pg_collation` and `pg_database` say.
//!
//! Truth: `src/include/catalog/{pg_collation,pg_database}.h`.

use pgclinic_format::Oid;

/// Who orders text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CollationProvider {
    /// `d`: as the database does.
    Default,
    /// `c`: the C library.
    Libc,
    /// `i`: ICU.
    Icu,
    /// `b`: PostgreSQL itself, 17 and later.
    Builtin,
    /// A letter that no PostgreSQL writes.
    Unknown(u8),
}

impl CollationProvider {
    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'd' => CollationProvider::Default,
            b'c' => CollationProvider::Libc,
            b'i' => CollationProvider::Icu,
            b'b' => CollationProvider::Builtin,
            other => CollationProvider::Unknown(other),
        }
    }
}

/// An order of text. The database's own one (OID 100) stands here with the database's locale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collation {
    /// OID; 100 for the database's own.
    pub oid: Oid,
    /// `collname`.
    pub name: String,
    /// Who orders; never `Default` where the database's own row could be read.
    pub provider: CollationProvider,
    /// Equal means equal bytes.
    pub deterministic: bool,
    /// The locale's name for the provider: `collcollate`, or the ICU or built-in locale.
    pub locale: Option<String>,
    /// The version recorded when it was made.
    pub version: Option<String>,
    /// `collicurules`: ICU orders by further rules of its own, 16 and later.
    pub has_rules: bool,
}

/// What the libraries of the machine that reads say of their collations; unknown stays unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MachineCollations {
    /// Version of the C library, as PostgreSQL records it: `2.36`.
    pub libc: Option<String>,
    /// Version of ICU's root collation, as PostgreSQL records it: `153.120`.
    pub icu: Option<String>,
}

/// The recorded version of a collation against this machine's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CollationVersion {
    /// Its order never changes, or no library has a part in it.
    Fixed,
    /// The same here as when it was recorded.
    Same,
    /// Another one here.
    Changed {
        /// As recorded.
        recorded: String,
        /// This machine's.
        here: String,
    },
    /// One of the two is unknown, with the reason.
    Unknown(&'static str),
}

/// `DEFAULT_COLLATION_OID`.
pub(crate) const DEFAULT_COLLATION: Oid = 100;

impl Collation {
    /// Whether its order may be another one on a machine with these libraries.
    pub fn version_on(&self, machine: &MachineCollations) -> CollationVersion {
        let here = match self.provider {
            CollationProvider::Icu => &machine.icu,
            _ => &machine.libc,
        };
        self.version_against(here.as_deref())
    }

    /// Whether its order may be another one where its library has this version.
    pub fn version_against(&self, here: Option<&str>) -> CollationVersion {
        match self.provider {
            CollationProvider::Libc if self.is_fixed_in_libc() => return CollationVersion::Fixed,
            CollationProvider::Libc | CollationProvider::Icu => {}
            _ => return CollationVersion::Fixed,
        }
        match (&self.version, here) {
            (None, _) => CollationVersion::Unknown("the catalogs record no version of it"),
            (_, None) => {
                CollationVersion::Unknown("the version of this machine's library is not known")
            }
            (Some(recorded), Some(here)) if self.is_same(recorded, here) => CollationVersion::Same,
            (Some(recorded), Some(here)) => CollationVersion::Changed {
                recorded: recorded.clone(),
                here: here.to_owned(),
            },
        }
    }

    /// Locales for which the server records no version.
    fn is_fixed_in_libc(&self) -> bool {
        let locale = self.locale.as_deref().unwrap_or_default();
        let start = locale.get(..2).unwrap_or(locale);
        start.eq_ignore_ascii_case("C")
            || start.eq_ignore_ascii_case("C.")
            || locale.eq_ignore_ascii_case("POSIX")
    }

    /// ICU adds the version of a language's own rules to that of the root collation.
    fn is_same(&self, recorded: &str, here: &str) -> bool {
        let root = |version: &str| -> Vec<String> {
            version.split('.').take(2).map(str::to_owned).collect()
        };
        match self.provider {
            CollationProvider::Icu => root(recorded) == root(here),
            _ => recorded == here,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(provider: CollationProvider, locale: &str, version: &str) -> CollationVersion {
        let collation = Collation {
            oid: 16384,
            name: "own".into(),
            provider,
            deterministic: true,
            locale: Some(locale.into()),
            version: (!version.is_empty()).then(|| version.into()),
            has_rules: false,
        };
        collation.version_on(&MachineCollations {
            libc: Some("2.36".into()),
            icu: Some("153.120".into()),
        })
    }

    #[test]
    fn versions_are_compared_as_their_library_writes_them() {
        use CollationProvider::{Builtin, Icu, Libc};
        assert_eq!(version(Libc, "en_US.utf8", "2.36"), CollationVersion::Same);
        let changed = |recorded: &str, here: &str| CollationVersion::Changed {
            recorded: recorded.into(),
            here: here.into(),
        };
        assert_eq!(version(Libc, "en_US", "2.3"), changed("2.3", "2.36"));
        assert_eq!(version(Icu, "sv", "153.120.42"), CollationVersion::Same);
        assert_eq!(
            version(Icu, "sv", "153.14.42"),
            changed("153.14.42", "153.120")
        );
        for fixed in ["C", "POSIX", "C.UTF-8"] {
            assert_eq!(version(Libc, fixed, ""), CollationVersion::Fixed);
        }
        assert_eq!(version(Builtin, "C.UTF-8", "1"), CollationVersion::Fixed);
        assert!(matches!(
            version(Libc, "de_DE", ""),
            CollationVersion::Unknown(_)
        ));
    }
}
