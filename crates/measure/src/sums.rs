//! What measures add up over the pages of a relation, in any order and on any thread.

use std::collections::BTreeMap;

use pgclinic_model::document::{Figure, Spread};

/// Sums, highest and lowest values and spreads under names of their own; [`sums!`] declares a
/// struct of them.
pub trait Sums: Clone {
    /// Takes over what another has added up.
    fn absorb(&mut self, other: &Self);
    /// As if so many times as much had been seen: sums and spreads grow, lowest and highest values
    /// stay.
    fn scale(&mut self, times: f64);
}

/// Declares a struct whose fields are sums, and which is one itself.
macro_rules! sums {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $Type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Default, Debug)]
        $vis struct $Name {
            $($(#[$field_meta])* $field_vis $field: $Type,)*
        }

        impl Sums for $Name {
            fn absorb(&mut self, other: &Self) {
                $(self.$field.absorb(&other.$field);)*
            }

            fn scale(&mut self, times: f64) {
                $(self.$field.scale(times);)*
            }
        }
    };
}

sums! {
    /// Rows or items, and their bytes.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Items {
        /// How many.
        pub count: u64,
        /// Their bytes.
        pub bytes: u64,
    }
}

impl Items {
    /// One more.
    #[inline]
    pub(super) fn add(&mut self, bytes: u16) {
        self.count += 1;
        self.bytes += u64::from(bytes);
    }
}

impl Sums for u64 {
    fn absorb(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }

    fn scale(&mut self, times: f64) {
        *self = pgclinic_model::whole((*self as f64 * times).round());
    }
}

/// Of what is not measured there is nothing.
impl<T: Sums> Sums for Option<T> {
    fn absorb(&mut self, other: &Self) {
        if let (Some(own), Some(other)) = (self, other) {
            own.absorb(other);
        }
    }

    fn scale(&mut self, times: f64) {
        self.iter_mut().for_each(|own| own.scale(times));
    }
}

impl<T: Sums, const N: usize> Sums for [T; N] {
    fn absorb(&mut self, other: &Self) {
        self.iter_mut()
            .zip(other)
            .for_each(|(own, other)| own.absorb(other));
    }

    fn scale(&mut self, times: f64) {
        self.iter_mut().for_each(|own| own.scale(times));
    }
}

/// Both have as many.
impl<T: Sums> Sums for Vec<T> {
    fn absorb(&mut self, other: &Self) {
        self.iter_mut()
            .zip(other)
            .for_each(|(own, other)| own.absorb(other));
    }

    fn scale(&mut self, times: f64) {
        self.iter_mut().for_each(|own| own.scale(times));
    }
}

/// The highest value, if any was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Highest(pub(super) Option<u64>);

impl Highest {
    pub(super) fn note(&mut self, value: impl Into<u64>) {
        self.0 = self.0.max(Some(value.into()));
    }

    pub(super) fn figure(self) -> Option<Figure> {
        self.0.map(Figure::Count)
    }
}

impl Sums for Highest {
    fn absorb(&mut self, other: &Self) {
        self.0 = self.0.max(other.0);
    }

    fn scale(&mut self, _: f64) {}
}

/// The lowest value, if any was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lowest(pub(super) Option<u64>);

impl Lowest {
    pub(super) fn note(&mut self, value: u64) {
        self.0 = Some(self.0.map_or(value, |known| known.min(value)));
    }
}

impl Sums for Lowest {
    fn absorb(&mut self, other: &Self) {
        other.0.iter().for_each(|value| self.note(*value));
    }

    fn scale(&mut self, _: f64) {}
}

/// Values below this are counted in an array.
const SMALL: usize = 256;

/// How often each value occurs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    /// Of small values, by the value; empty or of length [`SMALL`].
    small: Vec<u64>,
    large: BTreeMap<u64, u64>,
}

impl Counts {
    #[inline]
    pub(super) fn note(&mut self, value: u64) {
        self.note_often(value, 1);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below SMALL")]
    pub(super) fn note_often(&mut self, value: u64, often: u64) {
        if value >= SMALL as u64 {
            *self.large.entry(value).or_default() += often;
            return;
        }
        if self.small.is_empty() {
            self.small.resize(SMALL, 0);
        }
        if let Some(count) = self.small.get_mut(value as usize) {
            *count += often;
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        let small = (0u64..).zip(self.small.iter().copied());
        let large = self.large.iter().map(|(value, often)| (*value, *often));
        small.filter(|(_, often)| *often > 0).chain(large)
    }

    /// How many values were counted.
    pub(super) fn total(&self) -> u64 {
        self.all().map(|(_, often)| often).sum()
    }

    pub(super) fn figure(&self) -> Option<Figure> {
        Spread::of(&self.all().collect()).map(Figure::Spread)
    }
}

impl Sums for Counts {
    fn absorb(&mut self, other: &Self) {
        other
            .all()
            .for_each(|(value, often)| self.note_often(value, often));
    }

    fn scale(&mut self, times: f64) {
        let counts = self.small.iter_mut().chain(self.large.values_mut());
        counts.for_each(|often| often.scale(times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    sums! {
        struct Own {
            sum: u64,
            lowest: Lowest,
            highest: Highest,
            counts: Counts,
            items: Option<Items>,
        }
    }

    #[test]
    fn what_two_threads_add_up_is_what_one_would() {
        let mut one = Own {
            items: Some(Items::default()),
            ..Own::default()
        };
        let mut other = one.clone();
        for (own, value) in [(&mut one, 3u16), (&mut other, 900)] {
            own.sum += u64::from(value);
            own.lowest.note(value.into());
            own.highest.note(value);
            own.counts.note(value.into());
            own.counts.note(7);
            own.items.iter_mut().for_each(|items| items.add(value));
        }
        one.absorb(&other);
        assert_eq!(
            (one.sum, one.lowest.0, one.highest.0),
            (903, Some(3), Some(900))
        );
        let counts: Vec<_> = one.counts.all().collect();
        assert_eq!(
            (counts, one.counts.total()),
            (vec![(3, 1), (7, 2), (900, 1)], 4)
        );
        let items = Items {
            count: 2,
            bytes: 903,
        };
        assert_eq!(one.items, Some(items));
    }

    #[test]
    fn a_sample_grows_in_what_is_counted() {
        let mut own = Own {
            sum: 3,
            highest: Highest(Some(9)),
            ..Own::default()
        };
        own.counts.note_often(300, 5);
        own.scale(2.5);
        assert_eq!((own.sum, own.highest.0, own.items), (8, Some(9), None));
        assert_eq!(own.counts.all().collect::<Vec<_>>(), [(300, 13)]);
    }
}
