//! The page header and the space between its offsets.

use pgclinic_format::Page;
use pgclinic_format::flags::PD_FLAGS;
use pgclinic_format::page::{HEADER_BYTES, LAYOUT_VERSION, PD_VALID_FLAG_BITS};
use pgclinic_model::document::Field;

use super::cover::{Cover, Part};
use super::field::{Entry, Show, named, read};

const ENTRIES: &[Entry] = &[
    ("pd_lsn", 0, Show::Lsn),
    ("pd_checksum", 8, Show::Hex16),
    ("pd_flags", 10, Show::Flags(PD_FLAGS)),
    ("pd_lower", 12, Show::U16),
    ("pd_upper", 14, Show::U16),
    ("pd_special", 16, Show::U16),
    ("pd_pagesize_version", 18, Show::Hex16),
    ("pd_prune_xid", 20, Show::U32),
];

/// Labels for what the header's offsets divide; items are laid over them.
pub(super) fn paint_space(page: Page<'_>, cover: &mut Cover) {
    let [lower, upper, special] =
        [page.pd_lower(), page.pd_upper(), page.pd_special()].map(usize::from);
    cover.paint(HEADER_BYTES..page.len(), Part::Free, "unused");
    cover.paint(lower.max(HEADER_BYTES)..upper, Part::Free, "free space");
    cover.paint(
        special.max(HEADER_BYTES)..page.len(),
        Part::Special,
        "special space",
    );
}

/// Labels for the header itself, over everything else.
pub(super) fn paint(cover: &mut Cover) {
    for (at, end, name) in [
        (0, 8, "pd_lsn"),
        (8, 10, "pd_checksum"),
        (10, 12, "pd_flags"),
        (12, 14, "pd_lower"),
        (14, 16, "pd_upper"),
        (16, 18, "pd_special"),
        (18, 20, "pd_pagesize_version"),
        (20, 24, "pd_prune_xid"),
    ] {
        cover.paint(at..end, Part::Header, name);
    }
}

/// The header's fields with what they mean and what is wrong with them.
pub(super) fn fields(page: Page<'_>, checksum: &str, computed: u16) -> Vec<Field> {
    let mut fields = read(page.bytes(), 0, ENTRIES);
    let zeroed = page.is_zeroed();
    if let Some(field) = named(&mut fields, "pd_checksum") {
        field.meaning.push(checksum.into());
        let wrong = checksum == "wrong";
        field.fault = wrong.then(|| format!("computed checksum is 0x{computed:04x}"));
    }
    if let Some(field) = named(&mut fields, "pd_pagesize_version") {
        field.meaning.push(format!(
            "page size {}, layout version {}",
            page.page_size(),
            page.layout_version()
        ));
    }
    if let Some(field) = named(&mut fields, "pd_prune_xid") {
        field
            .meaning
            .extend((page.pd_prune_xid().0 == 0).then(|| "nothing to prune".to_owned()));
    }
    if !zeroed {
        faults(page, &mut fields);
    }
    fields
}

fn faults(page: Page<'_>, fields: &mut [Field]) {
    let len = page.len();
    let [lower, upper, special] =
        [page.pd_lower(), page.pd_upper(), page.pd_special()].map(usize::from);
    let unknown = page.pd_flags() & !PD_VALID_FLAG_BITS;
    let mut set = |name: &str, wrong: bool, words: String| {
        if let Some(field) = named(fields, name)
            && wrong
            && field.fault.is_none()
        {
            field.fault = Some(words);
        }
    };
    set(
        "pd_flags",
        unknown != 0,
        format!("bits 0x{unknown:04x} mean nothing"),
    );
    set(
        "pd_lower",
        lower < HEADER_BYTES,
        format!("lies inside the header of {HEADER_BYTES} bytes"),
    );
    set(
        "pd_lower",
        lower > upper,
        format!("is beyond pd_upper {upper}"),
    );
    set(
        "pd_upper",
        upper > special,
        format!("is beyond pd_special {special}"),
    );
    set(
        "pd_upper",
        upper == 0,
        "is 0 as on a new page, but the page is not empty".into(),
    );
    set(
        "pd_special",
        special > len,
        format!("is beyond the page of {len} bytes"),
    );
    set(
        "pd_special",
        special % 8 != 0,
        "is not a multiple of 8".into(),
    );
    let size = usize::from(page.page_size());
    set(
        "pd_pagesize_version",
        size != len,
        format!("the page has {len} bytes"),
    );
    let version = page.layout_version();
    set(
        "pd_pagesize_version",
        version != LAYOUT_VERSION,
        format!("layout version {version} is not {LAYOUT_VERSION}"),
    );
}
