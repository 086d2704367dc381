//! A wound that is made again and again, each time on a fresh copy.

use pgclinic_surgery::{Consent, Injury, Operation, PlannedInjury, apply};

use super::scene::{Object, Spot, Sums};
use crate::drill::bench_copy::BenchCopy;
use crate::exit::Failure;

/// An injury at its place.
pub(super) struct Wound<'a> {
    pub(super) injury: &'a Injury,
    pub(super) object: Object,
    pub(super) sums: Sums,
    pub(super) plan: PlannedInjury,
    pub(super) spot: Spot,
}

impl<'a> Wound<'a> {
    pub(super) fn new(
        injury: &'a Injury,
        (object, sums): (Object, Sums),
        plan: PlannedInjury,
        relation: String,
    ) -> Self {
        let spot = Spot {
            relation,
            block: plan.place.block.unwrap_or_default(),
            item: plan.damage.item,
        };
        Wound {
            injury,
            object,
            sums,
            plan,
            spot,
        }
    }

    /// Makes the copy fresh, and hurts it.
    pub(super) fn make(&self, copy: &mut BenchCopy) -> Result<(), Failure> {
        copy.refresh()?;
        let journal = copy.pgdata.with_file_name("journal");
        if journal.exists() {
            std::fs::remove_dir_all(&journal)?;
        }
        let operation = Operation {
            pgdata: &copy.pgdata,
            patch: &self.plan.patch,
            journal: &journal,
            consent: Consent::Marked,
            what: self.injury.name,
            time: None,
            beside: &[],
            control_file: None,
        };
        apply(&operation)?;
        if self.sums == Sums::Off {
            copy.disable_checksums()?;
        }
        Ok(())
    }

    /// It is one of a page, and not of a file.
    pub(super) fn has_page(&self) -> bool {
        self.plan.place.block.is_some()
    }

    /// As `heal --at` takes it.
    pub(super) fn at(&self) -> String {
        let place = format!("{}:{}", self.plan.place.path, self.spot.block);
        match self.spot.item {
            Some(item) => format!("{place}:{item}"),
            None => place,
        }
    }
}
