//! Reasons: the fixed names that conditions, events and metrics share, and what follows from each.

/// Why a custom resource, or one of its children, is not as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A template failed over the values of this custom resource.
    TemplateFailed,
    /// A template used up the time or memory that a pass may use.
    BudgetExhausted,
    /// A rendered value does not fit its field.
    WrongType,
    /// A rendered name is illegal for its kind.
    InvalidName,
    /// The Katalog allows no child in that namespace.
    RestrictedNamespace,
    /// Two children of one custom resource have the same kind and name.
    DuplicateChild,
    /// The API server refused the object as invalid.
    Invalid,
    /// An object of that name exists, and it is not ours.
    NameTaken,
    /// A right is missing.
    Forbidden,
    /// Admission, a quota or a terminating namespace refused the write.
    Denied,
    /// The child's kind is not served.
    KindNotServed,
    /// The API server could not be reached or did not answer in time.
    Unavailable,
    /// A call to the outside failed.
    ExternalCallFailed,
    /// A call to the outside is one that may not or cannot be made.
    ExternalCallRefused,
    /// The object kept changing under the write.
    WriteConflict,
    /// What a child is a copy of does not exist yet.
    SourceMissing,
    /// What a child is a copy of may not be copied.
    SourceRefused,
    /// A condition compares what cannot be compared.
    NotCompared,
    /// A pass ended in a panic: a fault of Orkestra.
    Panicked,
    /// Another manager holds a field that the Katalog declares.
    FieldConflict,
    /// It is being deleted, and what its end waits for is on its way.
    Ending,
    /// What its end waits for has taken too long: it stays until that is done, or the annotation lets it go.
    EndTimedOut,
    /// A child is on its way.
    ChildrenNotReady,
    /// A child will not get ready without a change.
    ChildFailed,
    /// Everything is as declared and ready.
    ReconcileSucceeded,
}

impl Reason {
    /// The CamelCase name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TemplateFailed => "TemplateFailed",
            Self::BudgetExhausted => "BudgetExhausted",
            Self::WrongType => "WrongType",
            Self::InvalidName => "InvalidName",
            Self::RestrictedNamespace => "RestrictedNamespace",
            Self::DuplicateChild => "DuplicateChild",
            Self::Invalid => "Invalid",
            Self::NameTaken => "NameTaken",
            Self::Forbidden => "Forbidden",
            Self::Denied => "Denied",
            Self::KindNotServed => "KindNotServed",
            Self::Unavailable => "Unavailable",
            Self::ExternalCallFailed => "ExternalCallFailed",
            Self::ExternalCallRefused => "ExternalCallRefused",
            Self::WriteConflict => "WriteConflict",
            Self::SourceMissing => "SourceMissing",
            Self::SourceRefused => "SourceRefused",
            Self::NotCompared => "NotCompared",
            Self::Panicked => "Panicked",
            Self::FieldConflict => "FieldConflict",
            Self::Ending => "Ending",
            Self::EndTimedOut => "EndTimedOut",
            Self::ChildrenNotReady => "ChildrenNotReady",
            Self::ChildFailed => "ChildFailed",
            Self::ReconcileSucceeded => "ReconcileSucceeded",
        }
    }

    /// Whether trying again can only help once the input changes: the custom resource, the Katalog, or what stands in
    /// the way. Such a failure is reported once and not retried hot.
    pub fn is_permanent(self) -> bool {
        match self {
            Self::TemplateFailed
            | Self::BudgetExhausted
            | Self::WrongType
            | Self::InvalidName
            | Self::RestrictedNamespace
            | Self::DuplicateChild
            | Self::Invalid
            | Self::ExternalCallRefused
            | Self::SourceRefused
            | Self::NameTaken
            | Self::NotCompared => true,
            Self::Forbidden
            | Self::Denied
            | Self::KindNotServed
            | Self::Unavailable
            | Self::ExternalCallFailed
            | Self::WriteConflict
            | Self::SourceMissing
            | Self::Panicked
            | Self::FieldConflict
            | Self::Ending
            | Self::EndTimedOut
            | Self::ChildrenNotReady
            | Self::ChildFailed
            | Self::ReconcileSucceeded => false,
        }
    }
}
