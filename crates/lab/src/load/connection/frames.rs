//! Frames to the server, gathered so that one request is one write.

/// The version of the protocol, 3.0.
const PROTOCOL: i32 = 3 << 16;

/// The number in the place of a version that asks to cancel.
const CANCEL: i32 = 80_877_102;

/// Bytes that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Outgoing(Vec<u8>);

impl Outgoing {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn startup(&mut self, parameters: &[(&str, &str)]) {
        self.counted(|out| {
            out.i32(PROTOCOL);
            for (name, value) in parameters {
                out.text(name);
                out.text(value);
            }
            out.0.push(0);
        });
    }

    pub(super) fn cancel(&mut self, key: [u8; 8]) {
        self.counted(|out| {
            out.i32(CANCEL);
            out.0.extend_from_slice(&key);
        });
    }

    pub(super) fn query(&mut self, sql: &str) {
        self.frame(b'Q', |out| out.text(sql));
    }

    /// Types are left to the server.
    pub(super) fn parse(&mut self, name: &str, sql: &str) {
        self.frame(b'P', |out| {
            out.text(name);
            out.text(sql);
            out.i16(0);
        });
    }

    /// Values go as text and rows come as text.
    pub(super) fn bind_and_execute(&mut self, statement: &str, values: &[i64]) {
        self.frame(b'B', |out| {
            out.text("");
            out.text(statement);
            out.i16(0);
            out.i16(i16::try_from(values.len()).unwrap_or(i16::MAX));
            for value in values {
                let text = value.to_string();
                out.i32(i32::try_from(text.len()).unwrap_or(i32::MAX));
                out.0.extend_from_slice(text.as_bytes());
            }
            // One format for all columns, as libpq asks: text.
            out.i16(1);
            out.i16(0);
        });
        self.frame(b'D', |out| {
            out.0.push(b'P');
            out.text("");
        });
        self.frame(b'E', |out| {
            out.text("");
            out.i32(0);
        });
        self.sync();
    }

    pub(super) fn sync(&mut self) {
        self.frame(b'S', |_| {});
    }

    pub(super) fn terminate(&mut self) {
        self.frame(b'X', |_| {});
    }

    pub(super) fn copy_fail(&mut self, why: &str) {
        self.frame(b'f', |out| out.text(why));
    }

    pub(super) fn proof(&mut self, answer: &[u8]) {
        self.frame(b'p', |out| out.0.extend_from_slice(answer));
    }

    fn frame(&mut self, kind: u8, body: impl FnOnce(&mut Self)) {
        self.0.push(kind);
        self.counted(body);
    }

    /// A length that counts itself, and what it counts.
    fn counted(&mut self, body: impl FnOnce(&mut Self)) {
        let begin = self.0.len();
        self.i32(0);
        body(self);
        let length = u32::try_from(self.0.len() - begin).unwrap_or(u32::MAX);
        if let Some(place) = self.0.get_mut(begin..begin + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }

    fn i16(&mut self, number: i16) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn i32(&mut self, number: i32) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    /// A text ended by zero; a zero within would end it early.
    fn text(&mut self, text: &str) {
        self.0.extend(text.bytes().filter(|byte| *byte != 0));
        self.0.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_counts_its_length_but_not_its_kind() {
        let mut out = Outgoing::default();
        out.query("SELECT");
        assert_eq!(out.bytes(), b"Q\0\0\0\x0bSELECT\0");
    }

    #[test]
    fn bind_carries_each_value_as_text() {
        let mut out = Outgoing::default();
        out.bind_and_execute("s", &[-17]);
        let bind = b"B\0\0\0\x16\0s\0\0\0\0\x01\0\0\0\x03-17\0\x01\0\0";
        assert!(out.bytes().starts_with(bind), "{:?}", out.bytes());
        assert!(out.bytes().ends_with(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"));
    }
}
