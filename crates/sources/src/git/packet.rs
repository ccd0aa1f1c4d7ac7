//! Packet lines of Git's protocol.
//!
//! Source: gitprotocol-common(5), "pkt-line Format"; gitprotocol-v2(5), "Packet-Line Framing".

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    /// The end of a message.
    Flush,
    /// The end of a section.
    Delimiter,
    /// Content.
    Data(&'a [u8]),
}

/// Splits a text into packets. A malformed one ends the iteration with an error.
pub(crate) struct Packets<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = read(self.0);
        match read {
            Ok((packet, rest)) => {
                self.0 = rest;
                Some(Ok(packet))
            }
            Err(why) => {
                self.0 = &[];
                Some(Err(why))
            }
        }
    }
}

fn read(bytes: &[u8]) -> Result<(Packet<'_>, &[u8]), String> {
    let broken = || "the answer is not in Git's packet format".to_owned();
    let (head, rest) = bytes.split_at_checked(4).ok_or_else(broken)?;
    let head = std::str::from_utf8(head).map_err(|_| broken())?;
    if !head.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(broken());
    }
    match usize::from_str_radix(head, 16).map_err(|_| broken())? {
        0 => Ok((Packet::Flush, rest)),
        // 2 ends a response of a connection without state.
        1 | 2 => Ok((Packet::Delimiter, rest)),
        3 => Err(broken()),
        length => {
            let (data, rest) = rest.split_at_checked(length - 4).ok_or_else(broken)?;
            Ok((Packet::Data(data), rest))
        }
    }
}

/// A line without its line break.
pub(crate) fn line(data: &[u8]) -> &[u8] {
    data.strip_suffix(b"\n").unwrap_or(data)
}

/// A message in the making.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn line(mut self, text: &str) -> Self {
        self.0
            .extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
        self
    }

    pub(crate) fn delimiter(mut self) -> Self {
        self.0.extend_from_slice(b"0001");
        self
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"0000");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_and_other_bytes_are_an_error() {
        let written = Writer::default()
            .line("command=ls-refs")
            .delimiter()
            .line("peel")
            .finish();
        let read: Result<Vec<Packet<'_>>, String> = Packets(&written).collect();
        let expected = [
            Packet::Data(b"command=ls-refs\n"),
            Packet::Delimiter,
            Packet::Data(b"peel\n"),
            Packet::Flush,
        ];
        assert_eq!(read.unwrap(), expected);
        for broken in ["<html>", "0003", "00ff", "+00a", "ffffabc", "00"] {
            assert!(
                Packets(broken.as_bytes()).any(|packet| packet.is_err()),
                "{broken}"
            );
        }
    }
}
