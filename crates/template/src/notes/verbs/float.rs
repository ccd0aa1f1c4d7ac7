//! Floats.

use super::Printer;
use crate::error::EvalFailure;
use orkestra_object::value::Node;

pub(crate) const VERBS: &str = "vbeEfFgGxX";

/// The maximum number of digits after the point. No float has more; further digits are zeros.
const MOST_DIGITS: usize = 1100;

/// The stored bits of the mantissa, without the first.
const STORED_BITS: u32 = 52;

impl Printer<'_> {
    /// Prints a float: `%v` exactly, the other verbs as Go does.
    pub(crate) fn float(&mut self, n: f64, verb: char) -> Result<(), EvalFailure> {
        let precision = self.flags.precision;
        self.budget.longer(self.out.len(), precision.unwrap_or(0))?;
        let mut digits = magnitude(n.abs(), verb, precision, self.exact);
        if self.flags.sharp && n.is_finite() {
            digits = pointed(&digits, verb, precision);
        }
        if matches!(verb, 'E' | 'G' | 'X') {
            digits = digits.to_ascii_uppercase();
        }
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
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(&format!("{sign}{digits}"))?;
        self.flags.zero = zero;
        Ok(())
    }
}

/// Returns the digits of a float that is not negative.
fn magnitude(n: f64, verb: char, precision: Option<usize>, exact: bool) -> String {
    if n.is_nan() {
        return String::from("NaN");
    }
    if n.is_infinite() {
        return String::from("Inf");
    }
    match verb {
        'b' => binary(n),
        'e' | 'E' => exponent(n, Some(precision.unwrap_or(6))),
        'f' | 'F' => fixed(n, precision.unwrap_or(6)),
        'x' | 'X' => hexadecimal(n, precision),
        'v' if precision.is_none() && exact => Node::Float(n).to_text().into_owned(),
        _ => general(n, precision),
    }
}

/// Formats the mantissa and the power of two as integers: `4503599627370496p-51`.
fn binary(n: f64) -> String {
    let (mantissa, power) = parts(n);
    format!("{mantissa}p{:+}", power - i64::from(STORED_BITS))
}

/// `0x1.8p+00`; without a precision, all digits that are not zero.
fn hexadecimal(n: f64, precision: Option<usize>) -> String {
    const NIBBLES: usize = STORED_BITS as usize / 4;
    let (mut mantissa, mut power) = parts(n);
    if mantissa == 0 {
        let zeros = "0".repeat(precision.unwrap_or(0));
        let point = if zeros.is_empty() { "" } else { "." };
        return format!("0x0{point}{zeros}p+00");
    }
    // Subnormal floats lack the implicit first bit.
    let lacking = i64::from(mantissa.leading_zeros()) - i64::from(u64::BITS - STORED_BITS - 1);
    mantissa <<= lacking;
    power -= lacking;
    if let Some(precision) = precision.filter(|precision| *precision < NIBBLES) {
        let cut = (NIBBLES - precision) * 4;
        // Rounds half to even.
        let odd = (mantissa >> cut) & 1;
        mantissa = (mantissa + (1 << (cut - 1)) - 1 + odd) >> cut << cut;
        if mantissa >> (STORED_BITS + 1) > 0 {
            mantissa >>= 1;
            power += 1;
        }
    }
    let fraction = format!("{:0NIBBLES$x}", mantissa & ((1 << STORED_BITS) - 1));
    let fraction = match precision {
        None => fraction.trim_end_matches('0').to_owned(),
        Some(precision) if precision < NIBBLES => fraction[..precision].to_owned(),
        Some(precision) => format!("{fraction:0<precision$}"),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if power < 0 { '-' } else { '+' };
    format!("0x1{point}{fraction}p{sign}{:02}", power.abs())
}

/// Returns the mantissa including its first bit, and the power of two of that bit.
///
/// Source: IEEE 754, binary64.
fn parts(n: f64) -> (u64, i64) {
    const BIAS: i64 = 1023;
    let bits = n.to_bits();
    let stored = bits & ((1 << STORED_BITS) - 1);
    match (bits >> STORED_BITS) & 0x7ff {
        0 if stored == 0 => (0, -BIAS + 1),
        0 => (stored, -BIAS + 1),
        power => (
            stored | 1 << STORED_BITS,
            i64::try_from(power).unwrap_or(0) - BIAS,
        ),
    }
}

/// Applies the flag `#`: always a point, and for `%g` the zeros that it otherwise omits.
fn pointed(digits: &str, verb: char, precision: Option<usize>) -> String {
    if verb == 'b' {
        return digits.into();
    }
    let tail = digits.find(if matches!(verb, 'x' | 'X') { 'p' } else { 'e' });
    let (number, tail) = digits.split_at(tail.unwrap_or(digits.len()));
    let wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let shown = number.trim_start_matches(['0', '.']);
    let mut shown = shown.chars().filter(|c| *c != '.').count();
    let point = if number.contains('.') { "" } else { "." };
    if number == "0" {
        shown = 1;
    }
    let zeros = "0".repeat(wanted.saturating_sub(shown));
    format!("{number}{point}{zeros}{tail}")
}

/// `123.457`
fn fixed(n: f64, precision: usize) -> String {
    let shown = precision.min(MOST_DIGITS);
    format!("{n:.shown$}{}", "0".repeat(precision - shown))
}

/// `1.234568e+02`; without a precision, the shortest digits that round-trip.
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
        // Digits before the point that the precision cut off.
        let zeros = usize::try_from(power + 1 - count).unwrap_or(0);
        return format!("{significant}{}", "0".repeat(zeros));
    }
    fixed(n, behind_point)
}
