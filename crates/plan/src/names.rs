//! The syntax of object names.

use orkestra_language::api::names;

/// The rule for names of a kind. Source: Kubernetes, "Object Names and IDs".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain, at most 253 characters.
    Subdomain,
    /// DNS-1123 subdomain, at most 63 characters: Jobs, whose name is a label of their pods.
    Job,
    /// DNS-1123 subdomain, at most 52 characters: `CronJobs`, whose Jobs have 11 more.
    CronJob,
    /// DNS-1035 label, at most 63 characters: Services.
    Label1035,
    /// DNS-1123 label, at most 63 characters: Namespaces.
    Label1123,
    /// Any path segment, for RBAC kinds and unknown kinds: no `/`, no `%`, not `.` or `..`, at most 253 characters.
    PathSegment,
}

/// Longest name of any object, in bytes.
const NAME_BYTES: usize = 253;
/// Longest DNS label, in bytes.
const LABEL_BYTES: usize = 63;
/// Longest name of a `CronJob`, in bytes. Source: Kubernetes, "`CronJob` limitations".
const CRON_JOB_BYTES: usize = 52;

impl NameRule {
    /// Checks a rendered or literal name.
    ///
    /// # Errors
    /// The permitted names, and what is wrong with this one.
    ///
    /// Source: Kubernetes, "Object Names and IDs".
    pub fn check(self, name: &str) -> Result<(), String> {
        self.as_check()(name)
    }

    /// Returns the check as a function.
    pub fn as_check(self) -> fn(&str) -> Result<(), String> {
        match self {
            Self::Subdomain => names::check_dns1123_subdomain,
            Self::Job => |name| at_most(LABEL_BYTES, name),
            Self::CronJob => |name| at_most(CRON_JOB_BYTES, name),
            Self::Label1035 => names::check_dns1035_label,
            Self::Label1123 => label,
            Self::PathSegment => path_segment,
        }
    }
}

fn label(name: &str) -> Result<(), String> {
    if name.contains('.') {
        return Err(format!(
            "`{name}` is not a valid name here: `.` is not permitted"
        ));
    }
    at_most(LABEL_BYTES, name)
}

fn at_most(bytes: usize, name: &str) -> Result<(), String> {
    if name.len() > bytes {
        return Err(format!(
            "`{name}` has {} characters; at most {bytes} are allowed",
            name.len()
        ));
    }
    names::check_dns1123_subdomain(name)
}

fn path_segment(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    if name.len() > NAME_BYTES {
        return Err(format!(
            "`{name}` has {} characters; at most {NAME_BYTES} are allowed",
            name.len()
        ));
    }
    if matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Err(format!(
            "`{name}` is not a valid name: it cannot be `.` or `..`, or contain `/` or `%`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_rule() {
        assert!(NameRule::Subdomain.check("a.b").is_ok());
        assert!(NameRule::Label1035.check("1a").is_err());
        assert!(NameRule::Label1123.check("1a").is_ok());
        assert!(NameRule::Label1123.check("a.b").is_err());
        assert!(NameRule::Label1123.check(&"a".repeat(64)).is_err());
        assert!(NameRule::Job.check("a.b").is_ok());
        for (rule, longest) in [(NameRule::Job, 63), (NameRule::CronJob, 52)] {
            assert!(rule.check(&"a".repeat(longest)).is_ok());
            assert!(rule.check(&"a".repeat(longest + 1)).is_err());
        }
        assert!(NameRule::PathSegment.check("system:node").is_ok());
        for bad in ["", ".", "..", "a/b", "a%b", &"a".repeat(254)] {
            assert!(NameRule::PathSegment.check(bad).is_err(), "{bad}");
        }
    }
}
