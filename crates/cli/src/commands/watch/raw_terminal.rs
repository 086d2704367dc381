//! A terminal that gives each key at once, and gets back what it was.

use std::io::{self, BufRead, stdin, stdout};

use pgclinic_report::ScreenKey;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// As it was before.
pub(super) struct RawTerminal(Termios);

impl RawTerminal {
    /// Without echo and lines; a read waits for a key for a tenth of a second. Signals stay.
    pub(super) fn new() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(RawTerminal(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _gone = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

/// Columns and rows now.
pub(super) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok()?;
    let size = (usize::from(size.ws_col), usize::from(size.ws_row));
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// What was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pressed {
    Nothing,
    Quit,
    Key(ScreenKey),
}

/// Waits for a key for a tenth of a second.
pub(super) fn pressed(input: &mut dyn BufRead) -> io::Result<Pressed> {
    let bytes = match input.fill_buf() {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Pressed::Nothing),
        Err(error) => return Err(error),
    };
    let (pressed, length) = key_of(bytes);
    input.consume(length);
    Ok(pressed)
}

/// The first key of these bytes, and how many they are of it.
fn key_of(bytes: &[u8]) -> (Pressed, usize) {
    let key = Pressed::Key;
    match bytes {
        [] => (Pressed::Nothing, 0),
        [0x1b, b'[' | b'O', arrow, ..] => (
            match arrow {
                b'A' => key(ScreenKey::Up),
                b'B' => key(ScreenKey::Down),
                b'C' => key(ScreenKey::Right),
                b'D' => key(ScreenKey::Left),
                _ => Pressed::Nothing,
            },
            3,
        ),
        [0x1b, ..] => (key(ScreenKey::Back), 1),
        [b'q' | b'Q', ..] => (Pressed::Quit, 1),
        [digit @ b'0'..=b'9', ..] => (key(ScreenKey::Digit(digit - b'0')), 1),
        _ => (Pressed::Nothing, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_one_by_one() {
        let mut bytes: &[u8] = b"3\x1b[Bx\x1b[Cq";
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (pressed, length) = key_of(bytes);
            all.push(pressed);
            bytes = &bytes[length..];
        }
        let expected = [
            Pressed::Key(ScreenKey::Digit(3)),
            Pressed::Key(ScreenKey::Down),
            Pressed::Nothing,
            Pressed::Key(ScreenKey::Right),
            Pressed::Quit,
        ];
        assert_eq!(all, expected);
        assert_eq!(key_of(b"\x1b").0, Pressed::Key(ScreenKey::Back));
    }
}
