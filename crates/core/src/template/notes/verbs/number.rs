//! Integers and floats.

use super::Printer;
use crate::template::error::Failure;
use crate::value::Node;

pub(super) const INTEGER_VERBS: &str = "vdboOxXcqU";
pub(super) const FLOAT_VERBS: &str = "veEfFgG";

/// No float has more digits behind the point than these; further ones are zeros.
const MOST_DIGITS: usize = 1100;

impl Printer<'_> {
    /// A 64-bit integer, with or without a sign.
    pub(super) fn integer(&mut self, n: i128, verb: char) -> Result<(), Failure> {
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
            'O' => "0o",
            'b' if self.flags.sharp => "0b",
            'o' if self.flags.sharp && zeros == 0 && n != 0 => "0",
            'x' if self.flags.sharp => "0x",
            'X' if self.flags.sharp => "0X",
            _ => "",
        };
        // The zeros are digits here, so the rest is filled with spaces.
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

    /// `U+0041`, and the character itself with `#`.
    fn code_point(&mut self, n: i128) -> Result<(), Failure> {
        // Negative numbers are taken for their bits.
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
        self.flags.zero = false;
        self.pad(&text)
    }

    /// A float: `%v` exactly, the others as Go does.
    pub(super) fn float(&mut self, n: f64, verb: char) -> Result<(), Failure> {
        let precision = self.flags.precision;
        self.budget.longer(self.out.len(), precision.unwrap_or(0))?;
        let magnitude = n.abs();
        let digits = if n.is_nan() {
            String::from("NaN")
        } else if n.is_infinite() {
            String::from("Inf")
        } else {
            match verb {
                'e' | 'E' => exponent(magnitude, Some(precision.unwrap_or(6))),
                'f' | 'F' => fixed(magnitude, precision.unwrap_or(6)),
                'g' | 'G' => general(magnitude, precision),
                _ => match precision {
                    Some(_) => general(magnitude, precision),
                    None => Node::Float(magnitude).to_text().into_owned(),
                },
            }
        };
        let digits = match verb {
            'E' | 'G' => digits.replace('e', "E"),
            _ => digits,
        };
        let sign = match () {
            () if n.is_sign_negative() && !n.is_nan() => "-",
            () if self.flags.plus || n.is_infinite() && verb == 'v' => "+",
            () if self.flags.space => " ",
            () if n.is_infinite() => "+",
            () => "",
        };
        if n.is_finite() && self.flags.zero && !self.flags.minus {
            let length = sign.len() + digits.len();
            let missing = self.flags.width.unwrap_or(0).saturating_sub(length);
            self.write(sign)?;
            self.fill('0', missing)?;
            return self.write(&digits);
        }
        self.flags.zero = false;
        self.pad(&format!("{sign}{digits}"))
    }
}

/// The character of a number; what is none is the replacement character.
fn character(n: i128) -> char {
    let code = u32::try_from(n).ok();
    code.and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// `123.457`
fn fixed(n: f64, precision: usize) -> String {
    let shown = precision.min(MOST_DIGITS);
    format!("{n:.shown$}{}", "0".repeat(precision - shown))
}

/// `1.234568e+02`; without a precision the shortest digits that give the number back.
fn exponent(n: f64, precision: Option<usize>) -> String {
    let (digits, zeros) = match precision {
        Some(precision) => {
            let shown = precision.min(MOST_DIGITS);
            (format!("{n:.shown$e}"), precision - shown)
        }
        None => (format!("{n:e}"), 0),
    };
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}{}e{sign}{exponent:0>2}", "0".repeat(zeros))
}

/// The shorter of the two forms, without trailing zeros.
fn general(n: f64, precision: Option<usize>) -> String {
    let wanted = precision.map(|p| p.clamp(1, MOST_DIGITS));
    let digits = match wanted {
        Some(wanted) => format!("{n:.*e}", wanted - 1),
        None => format!("{n:e}"),
    };
    let (mantissa, power) = digits.split_once('e').unwrap_or((&digits, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let significant: String = mantissa.chars().filter(|c| *c != '.').collect();
    let significant = match significant.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let count = i32::try_from(significant.len()).unwrap_or(i32::MAX);
    let wanted = wanted.and_then(|wanted| i32::try_from(wanted).ok());
    let limit = match wanted {
        None => 6,
        Some(wanted) if wanted > count && count > power => count,
        Some(wanted) => wanted,
    };
    let behind_first = significant.len() - 1;
    if power < -4 || power >= limit {
        return exponent(n, Some(behind_first));
    }
    let behind_point = usize::try_from(count - 1 - power).unwrap_or(0);
    if power >= count {
        // Digits that the precision cut off before the point.
        let zeros = usize::try_from(power + 1 - count).unwrap_or(0);
        return format!("{significant}{}", "0".repeat(zeros));
    }
    fixed(n, behind_point)
}
