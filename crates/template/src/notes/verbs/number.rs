//! Integers.

use super::Printer;
use crate::error::EvalFailure;

pub(crate) const INTEGER_VERBS: &str = "vdboOxXcqU";

impl Printer<'_> {
    /// Prints a 64-bit integer, signed or unsigned.
    pub(crate) fn integer(&mut self, n: i128, verb: char) -> Result<(), EvalFailure> {
        let magnitude = n.unsigned_abs();
        let digits = match verb {
            'c' => return self.pad(character(n).encode_utf8(&mut [0; 4])),
            'q' => {
                let quoted = super::quote::character(character(n), self.flags.plus);
                return self.pad(&quoted);
            }
            'U' => return self.code_point(n),
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        let sign = match () {
            () if n < 0 => "-",
            () if self.flags.plus => "+",
            () if self.flags.space => " ",
            () => "",
        };
        let zeros = match (self.flags.precision, self.flags.width) {
            (Some(0), width) if n == 0 => return self.fill(' ', width.unwrap_or(0)),
            (Some(precision), _) => precision,
            (None, Some(width)) if self.flags.zero && !self.flags.minus => {
                width - sign.len().min(width)
            }
            _ => 0,
        };
        let zeros = zeros.saturating_sub(digits.len());
        let prefix = match verb {
            'O' if self.flags.sharp && zeros == 0 && n != 0 => "0o0",
            'O' => "0o",
            'b' if self.flags.sharp => "0b",
            'o' if self.flags.sharp && zeros == 0 && n != 0 => "0",
            'x' if self.flags.sharp => "0x",
            'X' if self.flags.sharp => "0X",
            _ => "",
        };
        // The zeros are digits here, so the padding is spaces.
        let length = sign.len() + prefix.len() + zeros + digits.len();
        let missing = self.flags.width.unwrap_or(0).saturating_sub(length);
        if !self.flags.minus {
            self.fill(' ', missing)?;
        }
        self.write(sign)?;
        self.write(prefix)?;
        self.fill('0', zeros)?;
        self.write(&digits)?;
        self.fill(' ', if self.flags.minus { missing } else { 0 })
    }

    /// `U+0041`, followed by the character itself with `#`.
    fn code_point(&mut self, n: i128) -> Result<(), EvalFailure> {
        // Negative numbers are printed as their bits.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the bits"
        )]
        let bits = n as u64;
        let digits = format!("{bits:X}");
        let zeros = self
            .flags
            .precision
            .unwrap_or(4)
            .max(4)
            .saturating_sub(digits.len());
        self.budget.longer(self.out.len(), zeros)?;
        let mut text = format!("U+{}{digits}", "0".repeat(zeros));
        let known = u32::try_from(bits).ok().and_then(char::from_u32);
        if let Some(c) = known.filter(|c| self.flags.sharp && super::quote::printable(*c)) {
            text.extend([' ', '\'', c, '\'']);
        }
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(&text)?;
        self.flags.zero = zero;
        Ok(())
    }
}

/// Returns the character of a number, or the replacement character if there is none.
fn character(n: i128) -> char {
    let code = u32::try_from(n).ok();
    code.and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
