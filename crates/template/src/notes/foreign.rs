//! Functions of Sprig and Helm that templates here do not have, each with its replacement.
//!
//! Users who come from Helm charts type these names. One table serves the hints of diagnostics and
//! `ork notes search`; a test checks that every note it names exists.
//!
//! Source: Sprig's function reference; Helm, "Template Function List".
//!
//! One file: one table of functions and their replacements.

/// Functions with the same replacement.
pub(crate) struct ForeignFunctions {
    /// The names. Sprig's `must…` variants are found by these too.
    names: &'static [&'static str],
    /// Notes with the same or nearly the same effect; the hint names each of them.
    notes: &'static [&'static str],
    /// What to write instead.
    hint: &'static str,
}

/// One row of the table.
const fn row(
    names: &'static [&'static str],
    notes: &'static [&'static str],
    hint: &'static str,
) -> ForeignFunctions {
    ForeignFunctions { names, notes, hint }
}

static TABLE: &[ForeignFunctions] = &[
    // Multi-line values.
    row(
        &["toYaml", "toYamlPretty", "toToml"],
        &["toJson"],
        "a field that is exactly `{{ .spec.x }}` keeps lists and maps as they are; inside a text write `toJson`: JSON is YAML too",
    ),
    row(
        &["indent", "nindent"],
        &["replace"],
        "remove it: a template fills one field, so nothing has to be indented; inside a text write `replace .spec.x \"\\n\" \"\\n  \"`",
    ),
    row(
        &["fromYaml", "fromJson", "fromYamlArray", "fromJsonArray"],
        &["asMap", "asList"],
        "write `asMap` for a text that holds a map, `asList` for one that holds a list; fields of `.spec` are parsed already",
    ),
    row(
        &["toPrettyJson", "toRawJson"],
        &["toJson"],
        "write `toJson`, which gives compact JSON with sorted keys",
    ),
    // Text.
    row(
        &["quote", "squote"],
        &["toJson"],
        "remove it: text stays text without quotes; inside JSON write `toJson`",
    ),
    row(
        &["b64enc", "b32enc"],
        &["toBase64"],
        "write `toBase64`; `data` of `secrets` is encoded without it",
    ),
    row(&["b64dec", "b32dec"], &["fromBase64"], "write `fromBase64`"),
    row(
        &["trunc", "abbrev", "abbrevboth"],
        &["truncateName", "truncate"],
        "write `truncateName .spec.x 63`; `truncate` ends what it cuts in `...`",
    ),
    // Words of other languages.
    row(
        &[
            "upcase",
            "uppercase",
            "upperCase",
            "toUpperCase",
            "ucase",
            "capitalize",
        ],
        &["toUpper"],
        "write `toUpper`",
    ),
    row(
        &["downcase", "lowercase", "lowerCase", "toLowerCase", "lcase"],
        &["toLower"],
        "write `toLower`",
    ),
    row(
        &["startsWith", "startswith", "beginsWith", "starts_with"],
        &["hasPrefix"],
        "write `hasPrefix`",
    ),
    row(
        &["endsWith", "endswith", "ends_with"],
        &["hasSuffix"],
        "write `hasSuffix`",
    ),
    row(
        &["greater", "greaterThan", "moreThan"],
        &["gt"],
        "write `gt A B`",
    ),
    row(
        &["less", "lessThan", "fewerThan"],
        &["lt"],
        "write `lt A B`",
    ),
    row(
        &["greaterThanOrEqual", "atLeast"],
        &["ge"],
        "write `ge A B`",
    ),
    row(&["lessThanOrEqual", "atMost"], &["le"], "write `le A B`"),
    row(&["equals", "equal", "isEqual"], &["eq"], "write `eq A B`"),
    row(&["notEquals", "notEqual", "neq"], &["ne"], "write `ne A B`"),
    row(&["trimAll"], &["trim"], "write `trim .spec.x \"-\"`"),
    row(
        &["nospace"],
        &["replace"],
        "write `replace .spec.x \" \" \"\"`",
    ),
    row(&["substr"], &["slice"], "write `slice .spec.x 0 5`"),
    row(
        &["cat"],
        &["concat", "printf"],
        "write `concat A \" \" B`, or `printf \"%s %s\" A B`",
    ),
    row(
        &[
            "title",
            "untitle",
            "swapcase",
            "camelcase",
            "snakecase",
            "kebabcase",
            "initials",
            "plural",
        ],
        &["toUpper", "toLower", "camelToKebab", "slugify"],
        "there is none; functions that change case are `toUpper`, `toLower`, `camelToKebab` and `slugify`",
    ),
    row(
        &["wrap", "wrapWith", "shuffle"],
        &[],
        "there is none: write the text as it should be in the custom resource",
    ),
    row(
        &["splitList", "splitn"],
        &["split"],
        "write `split .spec.x \",\"`, which gives a list",
    ),
    row(
        &[
            "regexMatch",
            "regexFind",
            "regexFindAll",
            "regexReplaceAll",
            "regexReplaceAllLiteral",
            "regexSplit",
            "regexQuoteMeta",
        ],
        &["contains", "hasPrefix", "hasSuffix", "replace"],
        "regular expressions are for conditions: `regex` in `when`; templates have `contains`, `hasPrefix`, `hasSuffix` and `replace`",
    ),
    // Numbers.
    row(&["add1"], &["add"], "write `add .spec.x 1`"),
    row(
        &["addf", "add1f"],
        &["add"],
        "write `add`, which takes decimals too",
    ),
    row(&["subf"], &["sub"], "write `sub`, which takes decimals too"),
    row(&["mulf"], &["mul"], "write `mul`, which takes decimals too"),
    row(&["divf"], &["div"], "write `div`, which gives decimals too"),
    row(&["biggest", "maxf"], &["max"], "write `max`"),
    row(&["minf"], &["min"], "write `min`"),
    row(
        &["floor", "round", "ceil"],
        &["toInt", "printf"],
        "write `toInt`, which cuts decimals off, or `printf \"%.0f\"`, which rounds",
    ),
    row(&["int", "int64", "atoi"], &["toInt"], "write `toInt`"),
    row(&["float64", "toDecimal"], &["toFloat"], "write `toFloat`"),
    // Lists and maps.
    row(
        &["list", "tuple"],
        &["split"],
        "write a list in YAML, or `split \"a,b\" \",\"`; to create a child for each item use `forEach`",
    ),
    row(
        &["until", "untilStep", "seq"],
        &[],
        "there is none: list the items in the custom resource and use `range` or `forEach`",
    ),
    row(&["first"], &["listGet"], "write `listGet .spec.x 0`"),
    row(
        &["last"],
        &["index", "sub", "len"],
        "write `index .spec.x (sub (len .spec.x) 1)`",
    ),
    row(
        &["rest", "initial"],
        &["slice"],
        "write `slice .spec.x 1` for all items but the first",
    ),
    row(
        &["has"],
        &["listHas"],
        "write `listHas .spec.x \"item\"`: the list comes first",
    ),
    row(
        &[
            "append",
            "prepend",
            "reverse",
            "uniq",
            "without",
            "sortAlpha",
            "compact",
            "chunk",
            "toStrings",
        ],
        &["join", "slice"],
        "there is none: templates read lists with `range`, `join` and `slice`, and do not change them",
    ),
    row(
        &["all", "any"],
        &["and", "or"],
        "write `and A B` or `or A B`",
    ),
    row(
        &["dict"],
        &["mapGet"],
        "write a map in YAML at the field; `mapGet .spec.x \"key\"` reads one",
    ),
    row(
        &["hasKey"],
        &["notEmpty", "mapGet"],
        "write `notEmpty (mapGet .spec.x \"key\")`, or the condition `exists: true`",
    ),
    row(&["keys"], &["mapKeys"], "write `mapKeys`"),
    row(&["values"], &["mapValues"], "write `mapValues`"),
    row(&["pick"], &["mapPick"], "write `mapPick .spec.x \"key\"`"),
    row(&["omit"], &["mapOmit"], "write `mapOmit .spec.x \"key\"`"),
    row(
        &["dig", "pluck"],
        &["get"],
        "write `get .spec \"a\" \"b\"`; a missing key is never an error",
    ),
    row(
        &["merge", "mergeOverwrite", "unset", "deepCopy", "deepEqual"],
        &["mapPick", "mapOmit"],
        "there is none: templates do not change maps (`mapPick` and `mapOmit` select keys); `patch` of a child merges fields into its object",
    ),
    // Time.
    row(
        &["now", "unixEpoch"],
        &["timeSince", "isExpired"],
        "there is none: a value that differs in every reconcile pass never settles; compare with `timeSince .metadata.creationTimestamp` or `isExpired`",
    ),
    row(
        &["date", "dateInZone", "htmlDate", "htmlDateInZone", "toDate"],
        &["timeFormat"],
        "write `timeFormat .metadata.creationTimestamp \"2006-01-02\"`",
    ),
    row(
        &["ago", "durationRound"],
        &["timeAgo"],
        "write `timeAgo .metadata.creationTimestamp`",
    ),
    row(
        &["duration", "dateModify", "date_modify"],
        &["durationAdd", "durationSeconds"],
        "write `durationAdd` or `durationSeconds`",
    ),
    // Random values and cryptography.
    row(
        &[
            "randAlphaNum",
            "randAlpha",
            "randNumeric",
            "randAscii",
            "randInt",
            "derivePassword",
        ],
        &["randomAlphanumeric", "randomHex"],
        "write `randomAlphanumeric 24` or `randomHex 16`, in a Secret with `once: true`",
    ),
    row(
        &["randBytes"],
        &["randomBase64"],
        "write `randomBase64 32`, in a Secret with `once: true`",
    ),
    row(
        &[
            "genPrivateKey",
            "genCA",
            "genCAWithKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "buildCustomCert",
        ],
        &[],
        "there is none: `tls` of an entry in `secrets` creates a certificate and renews it",
    ),
    row(
        &["sha1sum", "sha512sum", "adler32sum"],
        &["sha256sum"],
        "write `sha256sum`",
    ),
    row(
        &["bcrypt", "htpasswd", "encryptAES", "decryptAES"],
        &[],
        "there is none: store what is encrypted in a Secret and refer to it",
    ),
    // Types.
    row(
        &["kindOf", "kindIs", "typeIs", "typeIsLike"],
        &["typeOf"],
        "write `eq (typeOf .spec.x) \"map\"`",
    ),
    row(
        &["semver"],
        &["semverMajor", "semverMinor", "semverPatch"],
        "write `semverMajor`, `semverMinor` or `semverPatch`",
    ),
    // Helm, the outside world, control.
    row(
        &["include", "tpl"],
        &[],
        "there is none: declare a function of your own under `notes.functions` and call it by its name",
    ),
    row(
        &["required", "fail"],
        &[],
        "there is none: list the field under `required` in the definition's schema, or declare a rule under `validation`",
    ),
    row(
        &["env", "expandenv"],
        &[],
        "there is none: templates cannot read the environment; put the value into the custom resource",
    ),
    row(
        &["getHostByName"],
        &[],
        "there is none: templates cannot access the network; declare a call under `external`",
    ),
    row(
        &["urlParse", "urlJoin"],
        &["domainHost", "concat"],
        "write `domainHost` for the host of an address, `concat` to put one together",
    ),
    row(
        &[
            "base", "dir", "ext", "clean", "isAbs", "osBase", "osDir", "osExt",
        ],
        &["split"],
        "there is none: `split .spec.path \"/\"` gives the parts",
    ),
];

/// Finds the row of a name.
fn find(name: &str) -> Option<&'static ForeignFunctions> {
    let has = |name: &str| TABLE.iter().find(|row| row.names.contains(&name));
    let plain = || {
        let rest = name.strip_prefix("must")?;
        let first = rest.chars().next()?.to_ascii_lowercase();
        has(&format!("{first}{}", &rest[first.len_utf8()..]))
    };
    has(name).or_else(plain)
}

/// Returns the replacement for a function of Sprig or Helm; `None` for an unknown name, or the name of a note.
pub(crate) fn instead(name: &str) -> Option<&'static str> {
    Some(find(name)?.hint)
}

/// Returns the notes that replace a function of Sprig or Helm, by its name in any case.
pub(crate) fn notes_for(word: &str) -> impl Iterator<Item = &'static str> {
    let has =
        move |row: &&ForeignFunctions| row.names.iter().any(|name| name.eq_ignore_ascii_case(word));
    TABLE.iter().filter(has).flat_map(|row| row.notes).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Template, notes};
    use orkestra_language::diagnostics::Code;

    #[test]
    fn each_note_that_replaces_a_function_exists_and_is_named() {
        for row in TABLE {
            for note in row.notes {
                assert!(notes::find(note).is_some(), "{note}");
                assert!(
                    row.hint.contains(&format!("`{note}"))
                        || row.hint.contains(&format!("({note} ")),
                    "{note}: {}",
                    row.hint
                );
            }
        }
    }

    #[test]
    fn each_function_of_others_is_unknown_and_its_hint_says_what_to_write() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            for name in row.names {
                assert!(notes::find(name).is_none() && seen.insert(name), "{name}");
                let errors = Template::parse(&format!("{{{{ .a | {name} }}}}")).unwrap_err();
                assert_eq!(errors[0].code, Code::UnknownNote, "{name}");
                assert_eq!(errors[0].hint.as_deref(), Some(row.hint), "{name}");
            }
        }
        assert!(seen.len() > 120, "{}", seen.len());
    }

    #[test]
    fn the_templates_that_hints_show_are_valid() {
        let shown = TABLE
            .iter()
            .flat_map(|row| row.hint.split('`').skip(1).step_by(2));
        for code in shown.filter(|code| code.contains(".spec") && !code.contains("{{")) {
            assert!(
                Template::parse(&format!("{{{{ {code} }}}}")).is_ok(),
                "{code}"
            );
        }
    }

    #[test]
    fn sprigs_strict_variants_have_the_same_hint() {
        assert_eq!(instead("mustFirst"), instead("first"));
        assert_eq!(instead("mustToDate"), instead("toDate"));
        assert_eq!((instead("must"), instead("toUpper")), (None, None));
    }
}
