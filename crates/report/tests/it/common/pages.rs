//! Pages for the documents.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};
use pgclinic_format::types::Lsn;

/// A heap page of a few rows.
pub(crate) fn heap(len: u16, rows: u16) -> Vec<u8> {
    let mut page = PageBuilder::new(len, &[]).lsn(Lsn(0x1_6B37_4D48));
    for row in 1..=rows {
        let mut data = u32::from(row).to_le_bytes().to_vec();
        let text = format!("row number {row} of public.docs");
        data.push(u8::try_from((text.len() + 1) << 1 | 1).expect("a short value"));
        data.extend_from_slice(text.as_bytes());
        let tuple = TupleBuilder::new(2)
            .xids(745, 0)
            .ctid(1, row)
            .infomask(0x0902);
        page = page.item(&tuple.data(&data).finish());
    }
    page.finish(1)
}

/// The same page with `pd_lower` beyond `pd_upper` and garbage over a row.
pub(crate) fn hurt() -> Vec<u8> {
    let mut page = heap(8192, 60);
    put_u16(&mut page, 12, 8001);
    put_u16(&mut page, 14, 8000);
    page[6992..7024].copy_from_slice(b"GET /index.html HTTP/1.1\r\nHost: ");
    page
}

/// Bytes as documents hold them.
pub(crate) fn base64(page: &[u8]) -> String {
    STANDARD.encode(page)
}
