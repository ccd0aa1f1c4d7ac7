//! Versions of charts, selected as helm does.

use orkestra_template::go::{parse_version, satisfies};
use semver::Version;

/// Returns the position of the version that `wanted` selects: the one spelled so, else the highest that satisfies it as a range.
/// Empty selects the highest that is no pre-release. A version that is not a semantic one is only selected by its spelling.
///
/// # Errors
/// A sentence with the reason.
pub(crate) fn select<'a>(
    wanted: &str,
    versions: impl IntoIterator<Item = &'a str>,
) -> Result<usize, String> {
    let versions: Vec<&str> = versions.into_iter().collect();
    let wanted = wanted.trim();
    if !wanted.is_empty()
        && let Some(exact) = versions.iter().position(|version| *version == wanted)
    {
        return Ok(exact);
    }
    let range = if wanted.is_empty() { "*" } else { wanted };
    let mut best: Option<(Version, usize)> = None;
    for (place, text) in versions.iter().enumerate() {
        let Some(version) = parse_version(text) else {
            continue;
        };
        let matches = satisfies(range, &version)
            .ok_or_else(|| format!("`{wanted}` is neither a version nor a range of versions"))?;
        if matches && best.as_ref().is_none_or(|(best, _)| version > *best) {
            best = Some((version, place));
        }
    }
    best.map(|(_, place)| place).ok_or_else(|| {
        if versions.is_empty() {
            "it has no versions".to_owned()
        } else if wanted.is_empty() {
            "it has no released version; name one".to_owned()
        } else {
            format!("no version of it satisfies `{wanted}`")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_select_the_highest_and_a_spelling_itself() {
        let versions = ["1.2.3", "v1.10.0", "1.9.0", "2.0.0-rc.1", "nightly"];
        let selected = |wanted: &str| select(wanted, versions).map(|place| versions[place]);
        assert_eq!(selected(""), Ok("v1.10.0"));
        assert_eq!(selected("^1.2"), Ok("v1.10.0"));
        assert_eq!(selected("~1.9"), Ok("1.9.0"));
        assert_eq!(selected(">=1.0 <1.5"), Ok("1.2.3"));
        assert_eq!(selected("1.x.x"), Ok("v1.10.0"));
        assert_eq!(selected(">1-0"), Ok("2.0.0-rc.1"));
        assert_eq!(selected("2.0.0-rc.1"), Ok("2.0.0-rc.1"));
        assert_eq!(selected("nightly"), Ok("nightly"));
        assert!(selected("3").unwrap_err().contains("satisfies"));
        assert!(selected("not a range").unwrap_err().contains("neither"));
        assert!(select("", []).unwrap_err().contains("no versions"));
    }
}
