//! Reasons of custom resources.

super::reasons! {
    /// Why a custom resource, or one of its children, is not as declared.
    Reason {
        TemplateFailed, Permanent, OnChange,
            "A template failed with the values of this custom resource.",
            "Correct the template, or the value that it reads.";
        BudgetExhausted, Permanent, OnChange,
            "A template exceeded the time or memory limit of a pass.",
            "Simplify the template, or reduce the data that it iterates over.";
        WrongType, Permanent, OnChange,
            "A rendered value does not fit its field.",
            "Correct the template, or the value that it reads.";
        InvalidName, Permanent, OnChange,
            "A rendered name is not valid for its kind.",
            "Correct the template of the name, or the value that it reads.";
        RestrictedNamespace, Permanent, OnChange,
            "The Katalog does not permit children in that namespace.",
            "Choose another namespace, or allow this one in the Katalog.";
        DuplicateChild, Permanent, OnChange,
            "Two children of one custom resource have the same kind and name.",
            "Give one of them another name.";
        ValidationFailed, Permanent, OnChange,
            "The custom resource violates a rule of `validation`.",
            "Change the custom resource as the message says.";
        Invalid, Permanent, OnChange,
            "The API server refused the object as invalid.",
            "Correct what the message names, in the Katalog or in the custom resource.";
        ImmutableField, Permanent, OnChange,
            "The declared value of an immutable field changed, and the API server refuses to change the object.",
            "Change it back, delete the object, or declare `onImmutable: recreate`.";
        NameTaken, Permanent, Slowly,
            "An object of that name exists and does not belong to this custom resource.",
            "Delete it, choose another name, or set `adopt: true`.";
        Forbidden, Transient, Slowly,
            "A permission is missing.",
            "Grant the rule that the message names; `ork generate rbac` prints all rules.";
        Denied, Transient, Backoff,
            "Admission, a quota, a terminating namespace or RBAC escalation prevention refused the write.",
            "Ask the owner of the policy, or raise the quota; a role or a binding can grant only permissions that Orkestra has.";
        NamespaceMissing, Transient, Slowly,
            "The namespace of a child does not exist.",
            "Create the namespace, or choose another one.";
        KindNotServed, Transient, Slowly,
            "The child's kind is not served.",
            "Install its CRD.";
        Unreadable, Permanent, OnChange,
            "The object, or one of its children, contains data that cannot be decoded: a field that is too deep, a number that is out of range, text that is not Unicode, or a key that occurs twice.",
            "Correct the field that the message names; the object is read again when it changes.";
        Unavailable, Transient, Backoff,
            "The API server could not be reached, did not answer in time, or throttled requests.",
            "None if the API server recovers; otherwise check the API server.";
        ExternalCallFailed, Transient, Backoff,
            "An external call failed.",
            "Check the service that is called.";
        ExternalCallRefused, Permanent, OnChange,
            "An external call is not permitted, or cannot be made.",
            "Correct the URL, or allow it with `--external-allow`.";
        HookFailed, Transient, Backoff,
            "A hook could not be called, or reported that it failed.",
            "Check the service of the hook; the message says what it answered.";
        HookRefused, Permanent, Slowly,
            "The answer of a hook is not valid, or the hook reported a failure that a retry does not fix. Nothing of the answer is used.",
            "Correct the hook, or the custom resource; the message says what it answered.";
        WriteConflict, Transient, Backoff,
            "The object changed repeatedly during the write.",
            "None; if it persists, find the other client that writes to the object.";
        RestorePending, Waiting, OnChange,
            "The custom resource was restored from a backup, and an object with its generated values is missing so far.",
            "Restore that object; if it is lost, new values are generated 30 s after the creation of the custom resource.";
        SourceMissing, Waiting, OnChange,
            "The object that a child copies does not exist yet.",
            "Create it.";
        SourceRefused, Permanent, OnChange,
            "The object that a child copies is not permitted as a source.",
            "Copy another object.";
        TargetRefused, Permanent, OnChange,
            "The custom resource chooses a namespace that `allowedTargets` does not permit for its children, or a binding needs a role of the Katalog that was not created for it.",
            "Choose another namespace or name, or permit the namespace in the Katalog.";
        NotCompared, Permanent, OnChange,
            "A condition compares values that cannot be compared.",
            "Correct the condition, or the value that it reads.";
        Panicked, Transient, Backoff,
            "A pass panicked because of a bug in Orkestra.",
            "Report the fault with the related log lines.";
        FieldConflict, Waiting, OnChange,
            "Another manager holds a field that the Katalog declares.",
            "Remove the field from one of the two, or set `forceConflict: true`.";
        Autoscaled, Fine, OnChange,
            "A `HorizontalPodAutoscaler` sets the replicas of a child.",
            "";
        Ending, Waiting, OnChange,
            "The custom resource is being deleted, and waits for a step of `onDelete` to complete.",
            "";
        Terminating, Waiting, OnChange,
            "The custom resource is being deleted, and waits for children to be deleted first.",
            "Check the finalizers that the message names, or set the annotation `orkestra.orkspace.io/skip-on-delete`.";
        EndTimedOut, Waiting, OnChange,
            "A step of `onDelete` has taken longer than its timeout. The finalizer stays until the step completes or the annotation is set.",
            "Check what the message names, or set the annotation `orkestra.orkspace.io/skip-on-delete`.";
        ChildrenNotReady, Waiting, OnChange,
            "A child is not ready yet.",
            "";
        GateClosed, Waiting, OnChange,
            "A gate of `preReconcile` is closed, so no pass runs. `Ready` has this reason only if no pass has seen the current spec.",
            "Nothing, if the gate opens by itself; otherwise change what the condition of the gate reads.";
        Suspended, Waiting, OnChange,
            "The annotation `orkestra.orkspace.io/suspend` suspends the custom resource: its children stay as they are, and drift is not corrected. A deletion is carried out.",
            "`ork resume`, or remove the annotation.";
        ConditionsNotMet, Waiting, OnChange,
            "The conditions that the Katalog requires for readiness are not met yet.",
            "";
        ChildFailed, Permanent, OnChange,
            "A child cannot become ready without a change.",
            "Check the child that the message names.";
        ChildMissing, Permanent, OnChange,
            "A child that was created once is gone, and is not created again.",
            "Create an object of that name, or declare it under `onReconcile`.";
        ReconcileSucceeded, Fine, OnChange,
            "Everything is as declared and ready.",
            "";
    }
}

/// How far a failure reaches: what it counts for in the operator's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureScope {
    /// The custom resource alone: its own input is the cause, that is the fields that its author wrote, and the names,
    /// namespaces and URLs derived from them. However many resources have such a failure, it does not affect the operator's
    /// health: otherwise authors of custom resources could degrade an operator that others use.
    CustomResource,
    /// The namespace of the custom resource, unless other namespaces have such failures too: its quota, its policies, its
    /// deletion, the services that its custom resources name, other clients that write its objects.
    Namespace,
    /// The operator.
    Operator,
}

impl Reason {
    /// Returns how far a failure for this reason reaches.
    pub fn scope(self) -> FailureScope {
        match self {
            Self::TemplateFailed
            | Self::BudgetExhausted
            | Self::WrongType
            | Self::InvalidName
            | Self::RestrictedNamespace
            | Self::DuplicateChild
            | Self::ValidationFailed
            | Self::Invalid
            | Self::ImmutableField
            | Self::Unreadable
            | Self::NameTaken
            | Self::NamespaceMissing
            | Self::ExternalCallRefused
            | Self::HookRefused
            | Self::RestorePending
            | Self::SourceMissing
            | Self::SourceRefused
            | Self::TargetRefused
            | Self::NotCompared
            | Self::FieldConflict
            | Self::ChildFailed
            | Self::ChildMissing => FailureScope::CustomResource,
            Self::Denied | Self::ExternalCallFailed | Self::HookFailed | Self::WriteConflict => {
                FailureScope::Namespace
            }
            Self::Forbidden
            | Self::KindNotServed
            | Self::Unavailable
            | Self::Panicked
            | Self::Autoscaled
            | Self::Ending
            | Self::Terminating
            | Self::EndTimedOut
            | Self::ChildrenNotReady
            | Self::GateClosed
            | Self::Suspended
            | Self::ConditionsNotMet
            | Self::ReconcileSucceeded => FailureScope::Operator,
        }
    }
}
