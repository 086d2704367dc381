//! Network addresses; truth: `network.c`, `src/port/inet_net_ntop.c`, `mac.c`, `mac8.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

/// `PGSQL_AF_INET`.
const FAMILY_4: u8 = 2;
/// `PGSQL_AF_INET6`.
const FAMILY_6: u8 = 3;

pub(super) fn print_inet(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let (bits, bits_max) = address(printer, value)?;
    if bits == bits_max {
        Ok(())
    } else {
        printer.put(format_args!("/{bits}"))
    }
}

/// As `inet`, with the length of the prefix always shown.
pub(super) fn print_cidr(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let (bits, _) = address(printer, value)?;
    printer.put(format_args!("/{bits}"))
}

/// Prints the address; the prefix length that stands with it, and the longest there is.
fn address(printer: &mut Printer, value: &[u8]) -> Result<(u8, u8), Undecodable> {
    let mut reader = Reader::new(value);
    let (family, bits) = (reader.u8()?, reader.u8()?);
    let bits_max = match family {
        FAMILY_4 => {
            let bytes = reader.bytes(4)?;
            ipv4(printer, bytes)?;
            32
        }
        FAMILY_6 => {
            let mut words = [0; 8];
            for word in &mut words {
                *word = reader.u16()?.swap_bytes();
            }
            ipv6(printer, words)?;
            128
        }
        _ => {
            return Err(Undecodable::damaged(
                "the address family is neither 2 nor 3",
                0,
            ));
        }
    };
    reader.end()?;
    if bits > bits_max {
        return Err(Undecodable::damaged(
            "the network prefix is longer than the address",
            1,
        ));
    }
    Ok((bits, bits_max))
}

fn ipv4(printer: &mut Printer, bytes: &[u8]) -> Result<(), Undecodable> {
    for (place, byte) in bytes.iter().enumerate() {
        printer.put(format_args!("{}{byte}", if place > 0 { "." } else { "" }))?;
    }
    Ok(())
}

/// The longest run of two and more zero words is `::`; addresses that hold an IPv4 address
/// behind zeros (or zeros and ffff) show it with dots.
fn ipv6(printer: &mut Printer, words: [u16; 8]) -> Result<(), Undecodable> {
    let (start, length) = longest_zeros(&words);
    let holds_ipv4 = start == 0
        && match length {
            5 => words[5] == 0xFFFF,
            6 => true,
            7 => words[7] != 1,
            _ => false,
        };
    for (place, word) in words.iter().enumerate() {
        if (start..start + length).contains(&place) {
            if place == start {
                printer.byte(b':')?;
            }
            continue;
        }
        if place > 0 {
            printer.byte(b':')?;
        }
        if place == 6 && holds_ipv4 {
            let [a, b] = words[6].to_be_bytes();
            let [c, d] = words[7].to_be_bytes();
            return ipv4(printer, &[a, b, c, d]);
        }
        printer.put(format_args!("{word:x}"))?;
    }
    if length > 0 && start + length == words.len() {
        printer.byte(b':')
    } else {
        Ok(())
    }
}

/// Start and length of the first longest run of zeros; length 0 when none has two words.
fn longest_zeros(words: &[u16; 8]) -> (usize, usize) {
    let mut best = (0, 0);
    let mut start = 0;
    for run in words.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
        if run.first() == Some(&0) && run.len() >= 2 && run.len() > best.1 {
            best = (start, run.len());
        }
        start += run.len();
    }
    best
}

/// Six or eight bytes.
pub(super) fn print_macaddr(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    if !matches!(value.len(), 6 | 8) {
        return Err(Undecodable::damaged(
            "the value has the wrong length",
            value.len(),
        ));
    }
    for (place, byte) in value.iter().enumerate() {
        printer.put(format_args!(
            "{}{byte:02x}",
            if place > 0 { ":" } else { "" }
        ))?;
    }
    Ok(())
}
