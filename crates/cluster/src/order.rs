//! The order of an index's keys, as the catalogs describe it.

use pgclinic_format::Oid;
use pgclinic_format::datum::TypeInfo;
use pgclinic_format::order::{
    Facts, ForeignCollation, Order, OrderKey, RangeFacts, TextOrder, Unordered, equality_of,
    order_of,
};

use crate::catalog::Catalog;
use crate::collation::{Collation, CollationProvider};
use crate::index::Index;

impl Collation {
    /// How text under it is ordered.
    pub fn text_order(&self) -> TextOrder {
        let foreign = |library, locale: &str| {
            TextOrder::Foreign(ForeignCollation {
                oid: self.oid,
                name: self.name.clone(),
                library,
                locale: locale.to_owned(),
                deterministic: self.deterministic,
            })
        };
        match (self.provider, self.locale.as_deref()) {
            // Other names of the C library may stand for the order of bytes too, but not in each
            // of its versions.
            (CollationProvider::Libc, Some("C" | "POSIX")) => TextOrder::Bytes,
            (CollationProvider::Libc, Some(locale)) => foreign("libc", locale),
            (CollationProvider::Icu, Some(locale)) => foreign("ICU", locale),
            (CollationProvider::Builtin, Some("C" | "C.UTF-8" | "C.UTF8" | "PG_UNICODE_FAST")) => {
                TextOrder::Bytes
            }
            _ => TextOrder::Unknown,
        }
    }
}

impl Facts for Catalog {
    fn collation(&self, collation: Oid) -> TextOrder {
        self.collation(collation)
            .map_or(TextOrder::Unknown, Collation::text_order)
    }

    fn range(&self, range: Oid) -> Option<RangeFacts> {
        let row = self.types.range(range)?;
        // A class that the catalogs do not tell is none that is known.
        let class = self.classes.get(&row.class);
        let (family, input_type) = class.map_or((0, 0), |class| (class.family, class.input_type));
        Some(RangeFacts {
            family,
            input_type,
            collation: row.collation,
        })
    }
}

impl Catalog {
    /// How the values of an index's key column, from 0, are ordered by its operator class, leaving
    /// out that the column may be descending. `ty` is the type of the index's own column. `None`:
    /// the catalogs do not tell the class.
    pub fn key_order(
        &self,
        index: &Index,
        column: usize,
        ty: &TypeInfo,
    ) -> Option<Result<Order, Unordered>> {
        self.key(index, column, ty).map(|key| order_of(&key))
    }

    /// As [`Catalog::key_order`], of which only `Equal` counts; it exists for more collations.
    pub fn key_equality(
        &self,
        index: &Index,
        column: usize,
        ty: &TypeInfo,
    ) -> Option<Result<Order, Unordered>> {
        self.key(index, column, ty).map(|key| equality_of(&key))
    }

    fn key<'a>(&'a self, index: &Index, column: usize, ty: &'a TypeInfo) -> Option<OrderKey<'a>> {
        let class = index.classes.get(column)?;
        Some(OrderKey {
            family: class.family,
            input_type: class.input_type,
            ty,
            collation: *index.collations.get(column)?,
            facts: self,
        })
    }
}
