//! Reasons of Events and conditions that report no failure.

super::reasons! {
    /// A report beside the readiness of a custom resource.
    Remark {
        Reconciled, Fine, OnChange,
            "A pass changed children; the Event names them.",
            "";
        FieldsRemoved, Fine, OnChange,
            "The API server refused what is declared beside fields that other clients had set by update; the operator removed those fields, and the Event names them.",
            "Declare the fields, or apply them with a field manager of their own, to keep them.";
        Normalized, Fine, OnChange,
            "Fields of the spec were normalized and stored.",
            "";
        Persisted, Fine, OnChange,
            "The normalized values are stored in the custom resource.",
            "";
        InMemory, Fine, OnChange,
            "The normalized values are known to the operator only; the custom resource keeps its values.",
            "";
        ValidationWarning, Fine, OnChange,
            "The resource violates a rule that only warns.",
            "Change the custom resource as the message says.";
        CleanupScheduled, Fine, OnChange,
            "The conditions of `runtime.cleanup` hold, and the custom resource is deleted when `deleteAfter` has passed.",
            "Nothing; change what the conditions read to keep the custom resource.";
        CleanupRefused, Fine, OnChange,
            "The conditions of `runtime.cleanup` hold, and the custom resource is not deleted: a label protects it, or another client would create it again.",
            "Delete it where it is declared, or remove the label.";
        CleanedUp, Fine, OnChange,
            "The conditions of `runtime.cleanup` held for long enough: the operator deletes the custom resource.",
            "";
        InventoryIgnored, Fine, OnChange,
            "The annotation `orkestra.orkspace.io/inventory` lists kinds that no accepted revision of the Katalog declares; they are ignored.",
            "";
        ChildIgnored, Fine, OnChange,
            "An object carries the marks of a child, and no accepted revision of the Katalog permits children in its namespace; it is ignored.",
            "Delete the object if nothing else needs it.";
        NotOperated, Fine, OnChange,
            "No Katalog operates the custom resource any more: `Ready` is unknown, and its children stay as they are.",
            "Declare its kind in a Katalog to have it reconciled again, or delete it.";
        ValidationFailed, Fine, OnChange,
            "The condition `ValidationWarning` is set: the resource violates a rule that only warns.",
            "Change the custom resource as the message says.";
    }
}
