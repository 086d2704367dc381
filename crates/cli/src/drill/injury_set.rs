//! Which injuries a drill makes: all, those that were named, or a few that stand for all.

use std::collections::BTreeSet;

use pgclinic_surgery::{Injury, injuries_by_family};

/// The injuries of one drill.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InjurySet<'a> {
    /// Every injury.
    All,
    /// Those of these names.
    Named(&'a [String]),
    /// One of each family and of each kind of page or file, and what needs the large filling.
    Default,
}

impl InjurySet<'_> {
    /// The injuries of the set, in the order of the register.
    pub(crate) fn injuries(self) -> Vec<&'static Injury> {
        let all = injuries_by_family();
        match self {
            InjurySet::All => all.map(|(_, injury)| injury).collect(),
            InjurySet::Named(names) => all
                .map(|(_, injury)| injury)
                .filter(|injury| names.iter().any(|name| name == injury.name))
                .collect(),
            InjurySet::Default => default_injuries(),
        }
    }
}

/// The register alone decides, so that a new family or kind is shown without a line here: the
/// first injury of each family, and the first that is made for one kind of page or file only.
/// Those for the large filling are all there: who asks for that filling asks for them.
fn default_injuries() -> Vec<&'static Injury> {
    let (mut families, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut chosen = Vec::new();
    for (family, injury) in injuries_by_family() {
        if injury.wants.needs_large {
            chosen.push(injury);
            continue;
        }
        let is_first_of_family = families.insert(family);
        let is_first_of_kind = match injury.wants.kinds {
            [kind] => kinds.insert(*kind),
            _ => false,
        };
        if is_first_of_family || is_first_of_kind {
            chosen.push(injury);
        }
    }
    chosen
}

/// The ways to make an injury: each has a name, and may make the checksum of the page true again.
pub(crate) fn variants(injury: &Injury) -> &'static [(&'static str, bool)] {
    if injury.wants.page_injury {
        &[("raw", false), ("sealed", true)]
    } else {
        &[("raw", false)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts of a server that fit into a minute on two cores, with time to spare.
    const STARTS_MAX: usize = 110;

    fn small() -> impl Iterator<Item = (&'static str, &'static Injury)> {
        injuries_by_family().filter(|(_, injury)| !injury.wants.needs_large)
    }

    fn default_names() -> BTreeSet<&'static str> {
        let chosen = InjurySet::Default.injuries().into_iter();
        chosen.map(|injury| injury.name).collect()
    }

    #[test]
    fn the_default_set_has_every_family_of_the_register() {
        let chosen = default_names();
        let families: BTreeSet<&str> = small().map(|(family, _)| family).collect();
        assert!(families.contains("btree") && families.contains("wal"));
        for family in families {
            let mut kin = small().filter(|(own, _)| *own == family);
            assert!(
                kin.any(|(_, injury)| chosen.contains(injury.name)),
                "no injury of {family}"
            );
        }
    }

    #[test]
    fn the_default_set_has_every_kind_of_page_and_file() {
        let kinds = |injuries: &mut dyn Iterator<Item = &'static Injury>| -> BTreeSet<_> {
            let kinds = injuries.map(|injury| injury.wants.kinds);
            kinds.flatten().copied().collect()
        };
        let alone = |injury: &&Injury| injury.wants.kinds.len() == 1;
        let chosen = InjurySet::Default.injuries();
        assert_eq!(
            kinds(&mut chosen.into_iter().filter(alone)),
            kinds(&mut injuries_by_family().map(|(_, injury)| injury)),
        );
    }

    #[test]
    fn the_default_set_is_made_within_a_minute() {
        // Raw: once with checksums and once without. Sealed: with them alone.
        let starts = |injury: &Injury| variants(injury).len() + 1;
        let chosen = InjurySet::Default.injuries().into_iter();
        let small = chosen.filter(|injury| !injury.wants.needs_large);
        let count: usize = small.map(starts).sum();
        assert!(count <= STARTS_MAX, "{count} starts of a server");
    }

    #[test]
    fn all_are_all_and_names_are_names() {
        assert_eq!(
            InjurySet::All.injuries().len(),
            pgclinic_surgery::injuries().len()
        );
        let names = ["lost-file".to_owned(), "btree-sibling".to_owned()];
        let named = InjurySet::Named(&names).injuries();
        let named: Vec<&str> = named.iter().map(|injury| injury.name).collect();
        assert_eq!(named, ["btree-sibling", "lost-file"]);
    }
}
