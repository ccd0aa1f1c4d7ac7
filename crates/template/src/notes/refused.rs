//! Functions of other engines that templates here cannot call, each with the reason.

/// Functions that are unavailable for one reason.
struct Refused {
    names: &'static [&'static str],
    /// Completes the sentence `<name> …`.
    reason: &'static str,
    hint: Option<&'static str>,
}

static REFUSED: &[Refused] = &[
    Refused {
        names: &["js"],
        reason: "is not available: Kubernetes objects contain no JavaScript",
        hint: Some("`toJson` writes JSON"),
    },
    Refused {
        names: &["call"],
        reason: "is not available: values cannot be functions",
        hint: Some("call a function by its name"),
    },
    Refused {
        names: &[
            "promAboveThreshold",
            "promBelowThreshold",
            "promLabelValues",
            "promMax",
            "promSeriesCount",
            "promSum",
            "promValue",
        ],
        reason: "is not supported yet: it reads responses of Prometheus, which Orkestra does not query",
        hint: None,
    },
    Refused {
        names: &[
            "getServeAlias",
            "getServeSource",
            "getServeTarget",
            "hasServeAlias",
            "hasServeSource",
            "hasServeTarget",
            "isDirectApply",
        ],
        reason: "is not supported yet: it reads data of `serve`, which is not supported",
        hint: None,
    },
    Refused {
        names: &[
            "gitChanged",
            "gitDefaultBranch",
            "gitIsCommit",
            "gitRefShort",
            "gitShortCommit",
            "repoHTTPSToSSH",
            "repoHost",
            "repoName",
            "repoOrg",
            "repoSSHToHTTPS",
        ],
        reason: "is not supported yet: it is for the source `git`, which is not implemented",
        hint: None,
    },
    Refused {
        names: &[
            "dockerBuildSucceeded",
            "dockerCommitTag",
            "dockerHasDigest",
            "dockerName",
            "dockerNoTag",
            "dockerRegistry",
            "dockerRepo",
            "dockerTag",
            "dockerWithDigest",
            "dockerWithTag",
        ],
        reason: "is not supported yet: it is for the source `docker`, which is not implemented",
        hint: None,
    },
];

/// Returns why a name cannot be called and what to write instead; `None` for an unknown name.
pub(crate) fn refused(name: &str) -> Option<(String, Option<&'static str>)> {
    let found = REFUSED.iter().find(|one| one.names.contains(&name))?;
    let message = format!("`{name}` {}", found.reason);
    Some((message, found.hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Template;
    use crate::notes;
    use orkestra_language::diagnostics::Code;

    #[test]
    fn what_is_refused_is_no_note_and_says_why() {
        for one in REFUSED {
            for name in one.names {
                assert!(notes::find(name).is_none(), "{name}");
                let source = format!("{{{{ .a | {name} }}}}");
                let errors = Template::parse(&source).unwrap_err();
                let (message, hint) = refused(name).unwrap();
                assert_eq!(errors.len(), 1);
                assert_eq!(
                    (errors[0].code, &errors[0].message),
                    (Code::RefusedNote, &message)
                );
                assert_eq!(errors[0].hint.as_deref(), hint);
                assert_eq!((errors[0].offset, errors[0].len), (8, name.len()));
            }
        }
        assert!(refused("toUpper").is_none());
    }
}
