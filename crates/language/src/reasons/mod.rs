//! Reasons: the fixed names that conditions, Events, pages and metrics share, each with its class and retry rule.
//!
//! ```text
//!  reasons! { … } ──► enum: Reason, KatalogReason, Remark ──► docs/reference/reasons.md (a test compares)
//!                       └── class: permanent or transient; again: when it is retried
//! ```
//!
//! Whether a failure is permanent is a property of its reason, never of the place where it occurred.

mod katalog;
mod page;
mod remark;
mod resource;

pub use self::{
    katalog::KatalogReason,
    page::page,
    remark::Remark,
    resource::{FailureScope, Reason},
};

/// The class of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Nothing is wrong.
    Fine,
    /// Nothing has failed, but something is not available yet.
    Waiting,
    /// It failed, and the same input may succeed later.
    Transient,
    /// It failed, and only a change of the input helps: it is reported once.
    Permanent,
}

impl Class {
    /// Returns the name of the class.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Waiting => "waiting",
            Self::Transient => "transient",
            Self::Permanent => "permanent",
        }
    }
}

/// When a failure is retried automatically; a change of the data that a pass reads, and a resync, always cause a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RetryWhen {
    /// When something changes: the missing object is watched, or nothing else helps.
    OnChange,
    /// About every 30 s as well: another party must fix it, and no watch reports the fix.
    Slowly,
    /// With backoff.
    Backoff,
}

impl RetryWhen {
    /// Returns the text for it.
    pub fn words(self) -> &'static str {
        match self {
            Self::OnChange => "on a change",
            Self::Slowly => "every 30 s",
            Self::Backoff => "with backoff",
        }
    }
}

/// The description of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonInfo {
    /// Its name in CamelCase.
    pub name: &'static str,
    /// Its class.
    pub class: Class,
    /// When it is retried.
    pub again: RetryWhen,
    /// Its meaning, in one sentence.
    pub meaning: &'static str,
    /// The remedy, in one sentence; empty if there is nothing to fix.
    pub remedy: &'static str,
}

/// Defines a family of reasons, each once: name, class, retry, meaning, remedy.
macro_rules! reasons {
    ($(#[$doc:meta])* $family:ident { $($name:ident, $class:ident, $again:ident, $meaning:literal, $remedy:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $family {
            $(#[doc = $meaning] $name),*
        }

        impl $family {
            /// All reasons of the family.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns its description.
            pub fn about(self) -> &'static $crate::reasons::ReasonInfo {
                match self {
                    $(Self::$name => &$crate::reasons::ReasonInfo {
                        name: stringify!($name),
                        class: $crate::reasons::Class::$class,
                        again: $crate::reasons::RetryWhen::$again,
                        meaning: $meaning,
                        remedy: $remedy,
                    }),*
                }
            }

            /// Returns the CamelCase name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),*
                }
            }

            /// Returns the CamelCase name.
            pub fn as_str(self) -> &'static str {
                self.name()
            }

            /// True if a retry can only succeed after the input changes. Such a failure is reported once and not retried with
            /// backoff.
            pub fn is_permanent(self) -> bool {
                self.about().class == $crate::reasons::Class::Permanent
            }

            /// Returns when it is retried automatically.
            pub fn again(self) -> $crate::reasons::RetryWhen {
                self.about().again
            }
        }

        impl std::fmt::Display for $family {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
use reasons;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> Vec<&'static ReasonInfo> {
        let resource = Reason::ALL.iter().map(|reason| reason.about());
        let katalog = KatalogReason::ALL.iter().map(|reason| reason.about());
        let remarks = Remark::ALL.iter().map(|reason| reason.about());
        resource.chain(katalog).chain(remarks).collect()
    }

    #[test]
    fn every_reason_is_one_that_the_api_server_takes_and_is_described_in_sentences() {
        for about in all() {
            let legal = about
                .name
                .starts_with(|first: char| first.is_ascii_uppercase())
                && about.name.chars().all(|one| one.is_ascii_alphanumeric())
                && about.name.len() <= 128;
            assert!(legal, "{about:?}");
            for text in [about.meaning, about.remedy] {
                let sentence = text.is_empty() || text.ends_with('.');
                assert!(sentence && !text.contains('|'), "{about:?}");
            }
            let failed = matches!(about.class, Class::Transient | Class::Permanent);
            assert!(!failed || !about.remedy.is_empty(), "{about:?}");
        }
    }

    #[test]
    fn what_only_another_input_mends_is_never_tried_again_with_backoff() {
        for about in all() {
            let hot = about.again == RetryWhen::Backoff;
            assert_eq!(hot, hot && about.class == Class::Transient, "{about:?}");
        }
    }

    #[test]
    fn what_only_another_input_fixes_counts_for_the_resource_alone() {
        for reason in Reason::ALL {
            assert!(
                !reason.is_permanent() || reason.scope() == FailureScope::CustomResource,
                "{reason} degrades the operator"
            );
        }
    }

    #[test]
    fn transient_failures_that_a_tenant_can_cause_count_for_the_namespace() {
        for reason in [
            Reason::Denied,
            Reason::ExternalCallFailed,
            Reason::HookFailed,
            Reason::WriteConflict,
        ] {
            assert_eq!(reason.scope(), FailureScope::Namespace, "{reason}");
        }
        // A tenant cannot revoke permissions of the operator, or make the API server unavailable.
        for reason in [Reason::Forbidden, Reason::Unavailable] {
            assert_eq!(reason.scope(), FailureScope::Operator, "{reason}");
        }
    }

    #[test]
    fn a_name_stands_once_in_a_family() {
        for names in [
            Reason::ALL
                .iter()
                .map(|one| one.as_str())
                .collect::<Vec<_>>(),
            KatalogReason::ALL.iter().map(|one| one.as_str()).collect(),
            Remark::ALL.iter().map(|one| one.as_str()).collect(),
        ] {
            let distinct: BTreeSet<_> = names.iter().collect();
            assert_eq!(distinct.len(), names.len());
        }
    }
}
