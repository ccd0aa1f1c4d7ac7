//! Resource quantities: `250m` of a CPU, `2Gi` of memory.

use std::fmt;
use std::str::FromStr;

/// The resolution of amounts: a billionth.
const NANO: i128 = 1_000_000_000;
/// Amounts above 10^28 are refused, so that the sum of two never overflows.
const MOST_NANOS: i128 = 10_i128.pow(37);
/// The largest amount with a binary suffix. Like Kubernetes, parsing reduces larger amounts to it.
const MOST_BINARY: i128 = i64::MAX as i128 * NANO;
/// Longer texts are not valid quantities; this leaves room for more digits than any amount needs.
const LONGEST: usize = 256;

/// The suffixes for powers of 10, by exponent.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// The suffixes for powers of 1024, starting with the first power.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The notation of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// `250m`, `2G`
    Decimal,
    /// `2e9`
    Exponent,
    /// `2Gi`
    Binary,
}

/// An exact amount, in billionths, with the family of suffixes of its notation.
///
/// `Display` uses Kubernetes' canonical form: the largest suffix that leaves an integer; binary amounts below 1024 and those
/// that are not whole use a decimal suffix. Digits below a billionth are rounded away from 0.
///
/// ```
/// use orkestra_object::value::Quantity;
///
/// let sum = "1500m".parse::<Quantity>()?.plus("0.5".parse()?)?;
/// assert_eq!(sum.to_string(), "2");
/// # Ok::<(), orkestra_object::value::QuantityError>(())
/// ```
///
/// Source: k8s.io/apimachinery, `resource.Quantity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    family: Family,
}

/// Why a quantity is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a number with a suffix that Kubernetes supports.
    #[error(
        "a quantity is a number with one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi and Ei, or an exponent"
    )]
    Syntax,
    /// The amount is too large.
    #[error("the quantity is too large")]
    TooLarge,
}

impl Quantity {
    /// Returns a number of units, rounded to the nearest billionth, with decimal suffixes.
    ///
    /// # Errors
    /// [`QuantityError::TooLarge`], also for infinities and NaN.
    pub fn from_float(number: f64) -> Result<Quantity, QuantityError> {
        const BEYOND: f64 = 1e28;
        // False for NaN.
        if number.abs() < BEYOND {
            return format!("{number:.9}").parse();
        }
        Err(QuantityError::TooLarge)
    }

    /// Returns the same amount with binary suffixes if that is shorter, else with decimal ones.
    #[must_use]
    pub fn shortest(self) -> Quantity {
        let in_family = |family| Quantity { family, ..self };
        let [decimal, binary] = [Family::Decimal, Family::Binary].map(in_family);
        if binary.to_string().len() < decimal.to_string().len() {
            binary
        } else {
            decimal
        }
    }

    /// Returns the sum, in the notation of this quantity, or of the other one if this is 0.
    ///
    /// # Errors
    /// [`QuantityError::TooLarge`]
    pub fn plus(self, other: Quantity) -> Result<Quantity, QuantityError> {
        let family = if self.nanos == 0 {
            other.family
        } else {
            self.family
        };
        let nanos = self.nanos + other.nanos;
        if nanos.abs() > MOST_NANOS {
            return Err(QuantityError::TooLarge);
        }
        Ok(Quantity { nanos, family })
    }

    /// Returns the difference, in the notation described for [`Quantity::plus`].
    ///
    /// # Errors
    /// [`QuantityError::TooLarge`]
    pub fn minus(self, other: Quantity) -> Result<Quantity, QuantityError> {
        self.plus(Quantity {
            nanos: -other.nanos,
            ..other
        })
    }

    /// Returns the units, if they are an integer that fits.
    pub fn as_i64(self) -> Option<i64> {
        (self.nanos % NANO == 0).then(|| i64::try_from(self.nanos / NANO).ok())?
    }

    /// Returns the units as the nearest float.
    pub fn as_f64(self) -> f64 {
        let (whole, rest) = (self.nanos / NANO, (self.nanos % NANO).abs());
        let sign = if self.nanos < 0 { "-" } else { "" };
        // Rust parses digits to the nearest float; a calculation would round twice.
        let text = format!("{sign}{}.{rest:09}", whole.abs());
        text.parse().unwrap_or_default()
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Parses a sign, digits with at most one point, and a suffix or an exponent.
    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        if text.len() > LONGEST {
            return Err(QuantityError::Syntax);
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError::Syntax);
        }
        let (family, ten, two) = read_suffix(suffix)?;
        let places = i32::try_from(fraction.len()).map_err(|_| QuantityError::Syntax)?;
        let nanos = scaled(whole.bytes().chain(fraction.bytes()), ten - places, two)?;
        let (nanos, family) = match family {
            // An amount below 1 becomes a decimal one; an amount above the maximum is reduced to it.
            Family::Binary if nanos < NANO && nanos > 0 => (nanos, Family::Decimal),
            Family::Binary => (nanos.min(MOST_BINARY), family),
            family => (nanos, family),
        };
        Ok(Quantity {
            nanos: if negative { -nanos } else { nanos },
            family,
        })
    }
}

/// Returns the family of a suffix, and its powers of 10 and 2.
fn read_suffix(suffix: &str) -> Result<(Family, i32, u32), QuantityError> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Ok((Family::Decimal, *exponent, 0));
    }
    if let Some(at) = BINARY.iter().position(|known| *known == suffix) {
        let power = u32::try_from(at + 1).unwrap_or_default() * 10;
        return Ok((Family::Binary, 0, power));
    }
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::Syntax)?;
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError::Syntax)?;
    Ok((Family::Exponent, exponent, 0))
}

/// Returns digits times powers of 10 and 2, in billionths, rounded up.
fn scaled(digits: impl Iterator<Item = u8>, ten: i32, two: u32) -> Result<i128, QuantityError> {
    // As many digits as an amount may have; the other digits only set the remainder.
    let mut mantissa: i128 = 0;
    let mut ten = ten.saturating_add(9);
    let mut remainder = false;
    for digit in digits {
        let longer = mantissa
            .checked_mul(10)
            .and_then(|n| n.checked_add(i128::from(digit - b'0')));
        if let Some(longer) = longer.filter(|n| *n <= MOST_NANOS) {
            mantissa = longer;
        } else {
            ten = ten.saturating_add(1);
            remainder |= digit != b'0';
        }
    }
    if mantissa == 0 {
        return Ok(0);
    }
    let mut left = two;
    let too_large = QuantityError::TooLarge;
    while ten < 0 {
        // Doubling before each division preserves amounts that binary suffixes make whole.
        while left > 0 && mantissa <= i128::MAX / 2 {
            mantissa *= 2;
            left -= 1;
        }
        remainder |= mantissa % 10 != 0;
        mantissa /= 10;
        ten += 1;
        if mantissa == 0 && left == 0 {
            break;
        }
    }
    let factor = 10_i128
        .checked_pow(ten.max(0).unsigned_abs())
        .ok_or(too_large)?;
    let nanos = mantissa
        .checked_mul(factor)
        .and_then(|n| n.checked_mul(1 << left))
        .and_then(|n| n.checked_add(i128::from(remainder)))
        .filter(|n| *n <= MOST_NANOS);
    nanos.ok_or(too_large)
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantity { nanos, family } = *self;
        if nanos == 0 {
            return f.write_str("0");
        }
        let small = nanos.abs() < 1024 * NANO;
        if family == Family::Binary && !small && nanos % NANO == 0 {
            let (mut number, mut power) = (nanos / NANO, 0);
            while number % 1024 == 0 && power < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            let suffix = power.checked_sub(1).map_or("", |at| BINARY[at]);
            return write!(f, "{number}{suffix}");
        }
        // Only exponents have no maximum.
        let most = if family == Family::Exponent {
            i32::MAX
        } else {
            18
        };
        let (mut number, mut exponent) = (nanos, -9);
        while number % 1000 == 0 && exponent < most {
            number /= 1000;
            exponent += 3;
        }
        let suffix = DECIMAL.iter().find(|(_, known)| *known == exponent);
        match (family, suffix) {
            _ if exponent == 0 => write!(f, "{number}"),
            (Family::Exponent, _) | (_, None) => write!(f, "{number}e{exponent}"),
            (_, Some((suffix, _))) => write!(f, "{number}{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests;
