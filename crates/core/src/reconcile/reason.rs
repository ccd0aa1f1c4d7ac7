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
    /// Two children of one custom resource have the same kind and name.
    DuplicateChild,
    /// The custom resource does not keep a rule of `validation`.
    ValidationFailed,
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
    /// The object kept changing under the write.
    WriteConflict,
    /// A pass ended in a panic: a fault of Orkestra.
    Panicked,
    /// Another manager holds a field that the Katalog declares.
    FieldConflict,
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
            Self::DuplicateChild => "DuplicateChild",
            Self::ValidationFailed => "ValidationFailed",
            Self::Invalid => "Invalid",
            Self::NameTaken => "NameTaken",
            Self::Forbidden => "Forbidden",
            Self::Denied => "Denied",
            Self::KindNotServed => "KindNotServed",
            Self::Unavailable => "Unavailable",
            Self::WriteConflict => "WriteConflict",
            Self::Panicked => "Panicked",
            Self::FieldConflict => "FieldConflict",
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
            | Self::DuplicateChild
            | Self::ValidationFailed
            | Self::Invalid
            | Self::NameTaken => true,
            Self::Forbidden
            | Self::Denied
            | Self::KindNotServed
            | Self::Unavailable
            | Self::WriteConflict
            | Self::Panicked
            | Self::FieldConflict
            | Self::ChildrenNotReady
            | Self::ChildFailed
            | Self::ReconcileSucceeded => false,
        }
    }
}
