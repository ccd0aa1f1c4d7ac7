//! Determines the plain scalars that YAML does not parse as text.

/// True if a plain scalar would be parsed as something other than text.
///
/// Source: yaml.v2, `resolve` and `isBase60Float`.
pub(crate) fn is_other(text: &str) -> bool {
    const WORDS: [&str; 36] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no",
        "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "", "~", "null", "Null",
        "NULL", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "-.inf", "+.Inf",
    ];
    if WORDS.contains(&text) || ["+.INF", "-.Inf", "-.INF"].contains(&text) {
        return true;
    }
    match text.bytes().next() {
        Some(b'.') => go_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => is_date(text) || is_number(text) || is_base_60(text),
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    let plain = text.replace('_', "");
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let radix = |prefix: [&str; 2], radix: u32| {
        let digits = prefix.iter().find_map(|p| unsigned.strip_prefix(p));
        digits.is_some_and(|d| u64::from_str_radix(d, radix).is_ok() && !d.starts_with('+'))
    };
    let octal =
        unsigned.len() > 1 && unsigned.starts_with('0') && u64::from_str_radix(unsigned, 8).is_ok();
    let decimal = unsigned.parse::<u64>().is_ok()
        && !unsigned.starts_with('+')
        && (unsigned == "0" || !unsigned.starts_with('0'));
    octal
        || decimal
        || radix(["0x", "0X"], 16)
        || radix(["0o", "0O"], 8)
        || radix(["0b", "0B"], 2)
        || yaml_float(&plain)
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn yaml_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_exponent = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    is_mantissa && is_exponent
}

/// Go's `ParseFloat`, for texts that begin with a point.
fn go_float(text: &str) -> bool {
    yaml_float(&text.replace('_', "")) && !text.contains('_')
}

fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let is_first = first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut count = 0;
    let others = parts.all(|part| {
        count += 1;
        matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    let fraction = fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    is_first && others && count > 0 && fraction
}

/// True if a text is one of the timestamps that yaml.v2 recognizes.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let year = bytes.len() > 4 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-';
    if !year {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let number = |part: Option<&str>| -> Option<i8> {
        let part = part.filter(|p| matches!(p.len(), 1 | 2))?;
        part.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| part.parse().ok())?
    };
    let year: Option<i16> = parts.next().and_then(|year| year.parse().ok());
    let (month, day) = (number(parts.next()), number(parts.next()));
    let valid = match (year, month, day, parts.next()) {
        (Some(year), Some(month), Some(day), None) => {
            jiff::civil::Date::new(year, month, day).is_ok()
        }
        _ => false,
    };
    let Some((separator, time)) = time else {
        return valid;
    };
    let (clock, zone) = match separator {
        " " => (time, "Z"),
        _ => match time.find(['Z', '+', '-']) {
            Some(at) => time.split_at(at),
            None => return false,
        },
    };
    let zone_is_sound = zone == "Z"
        || matches!(zone.as_bytes(), [b'+' | b'-', a, b, b':', c, d]
            if [a, b, c, d].iter().all(|b| b.is_ascii_digit()));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(|part| number(Some(part)));
    let clock = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(Some(h)), Some(Some(m)), Some(Some(s)), None) => h < 24 && m < 60 && s < 60,
        _ => false,
    };
    let fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    valid && clock && zone_is_sound && fraction
}
