//! Reasons of Katalogs and of their operators.

super::reasons! {
    /// The state of a Katalog, or of one of its operators.
    KatalogReason {
        Running, Fine, OnChange,
            "Every operator runs.",
            "";
        Yields, Fine, OnChange,
            "Another entry reconciles the kind, in another version.",
            "";
        Recovered, Fine, OnChange,
            "The operator is no longer degraded.",
            "";
        Accepted, Fine, OnChange,
            "A new revision compiles and is stored; its operators run it as soon as they can.",
            "";
        Switched, Fine, OnChange,
            "An operator runs another revision from now on.",
            "";
        DefinitionNarrowed, Fine, OnChange,
            "A definition that `schema` generates permits less than before; no stored custom resource is affected.",
            "";
        Resumed, Fine, OnChange,
            "The operators work again.",
            "";
        Progressing, Waiting, OnChange,
            "The controller is working towards the declared state.",
            "";
        Waiting, Waiting, OnChange,
            "An operator waits for something outside Orkestra, such as its CRD.",
            "Check what the message names.";
        Predecessor, Waiting, OnChange,
            "The operator that previously reconciled the kind has not stopped yet.",
            "";
        Releasing, Waiting, OnChange,
            "Kinds that are no longer declared are released.",
            "";
        Suspended, Waiting, OnChange,
            "`spec.suspend` or the annotation `orkestra.orkspace.io/suspend` stops the operators; custom resources can be deleted.",
            "Remove it to resume.";
        Terminating, Waiting, OnChange,
            "The Katalog is being deleted.",
            "";
        CrdMissing, Waiting, OnChange,
            "The CRD does not exist, is not established, or does not serve the version.",
            "Apply the CRD.";
        KindNotServed, Waiting, OnChange,
            "A kind that the Katalog declares children of, or watches, is not served, or has been unavailable for a minute.",
            "Install its CRD, or check what the message names, such as the APIService of the kind.";
        DependencyNotReady, Waiting, OnChange,
            "An operator of `dependsOn` does not meet its condition.",
            "Check that operator.";
        Conflict, Waiting, OnChange,
            "Another Katalog, which is older or belongs to another installation, has claimed the kind.",
            "Delete one of the two entries.";
        PassesFail, Transient, Backoff,
            "The operator is degraded: too many of its passes fail.",
            "Check what the message and the conditions of the custom resources name.";
        InstancesFailing, Permanent, OnChange,
            "More custom resources than `queue.failingPercent` permits were ready under an earlier revision and fail under the one in force.",
            "Correct the Katalog, or apply its previous revision again; the message names the reason and a custom resource.";
        OperatorFailed, Transient, Backoff,
            "A fault in Orkestra ended the operator; it is restarted with backoff, and the other operators continue.",
            "Report the fault with the message and the log; no action is needed once the operator runs again.";
        Forbidden, Transient, Slowly,
            "A permission is missing.",
            "Grant the rules that the message names, with the command that it names.";
        Unavailable, Transient, Backoff,
            "The API server does not answer, or not for this kind.",
            "None if the API server recovers; otherwise check the API server.";
        RevisionNotStored, Transient, Backoff,
            "The API server refused to store a revision, or did not respond.",
            "Check what the message names.";
        ReleaseFailed, Transient, Backoff,
            "Finalizers or labels of Orkestra could not be removed.",
            "Check what the message names.";
        LeftBehind, Fine, OnChange,
            "A Katalog was deleted by its annotation `orkestra.orkspace.io/release`, and a kind could not be released.",
            "`ork release -k FILE` removes the finalizers and labels.";
        Fetching, Waiting, OnChange,
            "Sources are fetched for the first time.",
            "";
        PendingApproval, Waiting, OnChange,
            "The new revision of a source needs additional permissions; its earlier revision runs.",
            "Review the permissions, grant them, and add the digest that the message names to `spec.approve`.";
        SourceFailed, Transient, Backoff,
            "A source cannot be fetched; the previous revision keeps running.",
            "Check what the message names.";
        NotLocked, Permanent, OnChange,
            "A source has another digest than `spec.locked`, or none is locked and `spec.lock` is `required`.",
            "Add the digest that the message names to `spec.locked`, if it is the expected one.";
        InvalidRevision, Permanent, OnChange,
            "The new revision has errors; the last good revision keeps running.",
            "Correct the Katalog as the message says.";
        RevisionTooLarge, Permanent, OnChange,
            "The new revision, with the documents of its sources, is too large to be stored; the last good revision keeps running.",
            "Divide the operators among several Katalogs or Komposers.";
        ChildNotPermitted, Permanent, OnChange,
            "The new revision declares a child that grants control over the cluster, and the flag `--sensitive-children` does not permit it; the last good revision keeps running.",
            "Remove the child, or ask the administrator of the controller to permit it.";
        DefinitionRefused, Permanent, Slowly,
            "The controller cannot replace a definition that `schema` generates: stored custom resources would lose a field or become invalid, or this Katalog has not created the definition; the last good revision keeps running.",
            "Change what the message names, or keep the fields.";
        BuiltInKind, Permanent, OnChange,
            "An entry for a built-in kind has no `labelSelector`: it stays stopped, and the other entries run.",
            "Add a `labelSelector` for the objects that it operates, or remove the entry.";
        NoApiTypes, Permanent, OnChange,
            "An entry has no `apiTypes`, and no definition provides them.",
            "Set `apiTypes`.";
        MotifNotFound, Permanent, OnChange,
            "A Motif that the Katalog imports does not exist; the Katalog runs as before until it does.",
            "Apply the Motif.";
        NotEnforced, Transient, Backoff,
            "Rules, protections or conversions that the Katalog declares are not in place at the API server.",
            "Check what the message names, such as a missing permission, the certificate, or the network path to the webhooks.";
        StatusNotWritable, Permanent, OnChange,
            "The CRD cannot hold the status that the Katalog declares.",
            "Extend the CRD's status schema, or declare less.";
    }
}
