//! The table of other spellings: earlier ones, later ones, and synonyms.

/// A key, or a path of keys, that stands for another.
#[derive(Debug)]
pub struct Alias {
    /// The type of the map that contains both, as [`crate::api::shape::ObjectShape::name`]. Empty means every map that has
    /// the present spelling and not the other.
    pub of: &'static str,
    /// The other spelling.
    pub from: &'static [&'static str],
    /// The present spelling.
    pub to: &'static [&'static str],
    /// True if the other spelling causes a warning. Equivalent spellings are accepted silently.
    pub warns: bool,
}

/// A value that stands for another. In a list it is an item, either alone or as the only key of a map.
#[derive(Debug)]
pub struct WordAlias {
    /// The type of the map; empty means every map.
    pub of: &'static str,
    /// The fields with this value.
    pub fields: &'static [&'static str],
    /// The other spelling.
    pub from: &'static str,
    /// The present spelling.
    pub to: &'static str,
    /// True if the other spelling causes a warning.
    pub warns: bool,
}

macro_rules! aliases {
    ($($of:literal: $($from:ident).+ => $($to:ident).+ $(, $quiet:ident)?;)*) => {
        &[$(Alias {
            of: $of,
            from: &[$(stringify!($from)),+],
            to: &[$(stringify!($to)),+],
            warns: aliases!(@warns $($quiet)?),
        },)*]
    };
    (@warns quiet) => { false };
    (@warns) => { true };
}

/// Other spellings of keys, in the order in which they are moved.
pub const ALIASES: &[Alias] = aliases! {
    "KatalogSpecDocument": metadata.deprecation => spec.lifecycle.deprecation;
    "MotifSpecDocument": metadata.deprecation => spec.info.deprecation;
    "CrdEntry": queue => operatorBox.reconciler.queue;
    "CrdEntry": resync => operatorBox.reconciler.resync;
    "CrdEntry": requeue => operatorBox.reconciler.requeue;
    // The earliest layout: the reconciler is next to `apiTypes`.
    "CrdEntry": reconciler.onCreate => operatorBox.onCreate;
    "CrdEntry": reconciler.onReconcile => operatorBox.onReconcile;
    "CrdEntry": reconciler.onDelete => operatorBox.onDelete;
    "CrdEntry": reconciler.status => operatorBox.status;
    "CrdEntry": reconciler.default => operatorBox.default;
    "CrdEntry": reconciler.hooks => operatorBox.hooks;
    "CrdEntry": reconciler.constructor => operatorBox.constructor;
    "CrdEntry": reconciler.finalizers => finalizers;
    "CrdEntry": reconciler => operatorBox.reconciler;
    // The grouped layout.
    "CrdEntry": admission.validation => validation;
    "CrdEntry": admission.mutation => mutation;
    "CrdEntry": admission.conversion => conversion;
    "CrdEntry": admission.webhooks => webhooks;
    "CrdEntry": operatorBox.runtime.removeFinalizers => removeFinalizers;
    "CrdEntry": operatorBox.runtime.deletionProtection => deletionProtection;
    "CrdEntry": operatorBox.runtime.allowedNamespaces => allowedNamespaces;
    "CrdEntry": operatorBox.runtime.restrictedNamespaces => restrictedNamespaces;
    "CrdEntry": operatorBox.runtime.ignoreStatusPatch => ignoreStatusPatch;
    "CrdEntry": operatorBox.runtime.ignoreObservedGeneration => ignoreObservedGeneration;
    "CrdEntry": operatorBox.reconcile.imports => imports;
    "CrdEntry": operatorBox.reconcile.forceConflict => forceConflict;
    "EntryWebhooks": admission.validation => validation;
    "EntryWebhooks": admission.mutation => mutation;
    "OperatorBox": workers => reconciler.workers;
    "OperatorBox": resync => reconciler.resync;
    "OperatorBox": queue => reconciler.queue;
    "OperatorBox": requeue => reconciler.requeue;
    "OperatorBox": reconcile.onCreate => onCreate;
    "OperatorBox": reconcile.onReconcile => onReconcile;
    "OperatorBox": reconcile.onDelete => onDelete;
    "OperatorBox": reconcile.workers => reconciler.workers;
    "OperatorBox": reconcile.resync => reconciler.resync;
    "OperatorBox": reconcile.queue => reconciler.queue;
    "OperatorBox": reconcile.default => default;
    "OperatorBox": reconcile.hooks => hooks;
    "OperatorBox": reconcile.constructor => constructor;
    "OperatorBox": reconcile.profile => reconciler.profile;
    "OperatorBox": reconcile.include => reconciler.include;
    "OperatorBox": reconcile.requeue => reconciler.requeue;
    "OperatorBox": reconcile.providers => providers;
    "OperatorBox": reconcile.normalize => normalize;
    "OperatorBox": reconcile => reconciler;
    "OperatorBox": reconciler.onCreate => onCreate;
    "OperatorBox": reconciler.onReconcile => onReconcile;
    "OperatorBox": reconciler.onDelete => onDelete;
    "OperatorBox": reconciler.default => default;
    "OperatorBox": reconciler.hooks => hooks, quiet;
    "OperatorBox": reconciler.constructor => constructor, quiet;
    "OperatorBox": runtime.autoscale => autoscale;
    "OperatorBox": runtime.finalizers => finalizers;
    "OperatorBox": runtime.rollBackOnError => rollBackOnError;
    "OperatorBox": runtime.rollback => rollback;
    "OperatorBox": emit.status => status;
    "OperatorBox": observe.cross => cross;
    "OperatorBox": watch => observe.watch;
    // YAML 1.1, which kubectl reads, parses the key `on` as a boolean.
    "Watch": true => on, quiet;
    "EventFilter": true => on, quiet;
    "EmittedEvent": true => on, quiet;
    "Queue": maxQueueDepth => maxDepth;
    "Queue": degradeThreshold => failureThreshold;
    "QueueProfile": maxQueueDepth => maxDepth;
    "Hook": resources => managedResources;
    "Constructor": resources => managedResources;
    "Profiles": reconcile => reconciler;
    "PreReconcile": gate => reconcileGate;
    "Cross": name => as;
    "CrossSource": type => protocol;
    "Custom": metadata.namespaced => namespaced;
    "HorizontalPodAutoscaler": deploymentRef => scaleTargetRef.name;
    "ProviderAuth": uri => mongoUri;
    "KomposerSpec": imports => sources;
    "": anyOf => or;
    "": hasPrefix => prefix, quiet;
    "": hasSuffix => suffix, quiet;
    "": gt => greaterThan;
    "": lt => lessThan;
    "": pvc => persistentVolumeClaims;
    "": pvcs => persistentVolumeClaims;
    "": pvs => persistentVolumes;
    "": hpas => hpa;
    "": horizontalPodAutoscalers => hpa;
    "": pdbs => pdb;
    "": podDisruptionBudgets => pdb;
};

macro_rules! words {
    ($($of:literal $($field:ident)|+: $from:ident => $to:ident $(, $quiet:ident)?;)*) => {
        &[$(WordAlias {
            of: $of,
            fields: &[$(stringify!($field)),+],
            from: stringify!($from),
            to: stringify!($to),
            warns: aliases!(@warns $($quiet)?),
        },)*]
    };
}

/// Other spellings of values.
pub const WORD_ALIASES: &[WordAlias] = words! {
    "" operator: eq => equals;
    "" operator: neq => notEquals;
    "" operator: ne => notEquals;
    "" operator: hasPrefix => prefix, quiet;
    "" operator: hasSuffix => suffix, quiet;
    "" operator: matches => regex, quiet;
    "" operator: greaterThan => gt, quiet;
    "" operator: lessThan => lt, quiet;
    "" operator: greaterThanOrEqual => gte, quiet;
    "" operator: lessThanOrEqual => lte, quiet;
    "StatusField" type: str => string, quiet;
    "StatusField" type: integer => int, quiet;
    "StatusField" type: boolean => bool, quiet;
    "" enrich | except: pod => pods, quiet;
    "" enrich | except: event => events, quiet;
    "" enrich | except: ev => events, quiet;
    "" enrich | except: warnings => events, quiet;
    "" enrich | except: pvclaim => pvc, quiet;
    "" enrich | except: persistentvolumeclaim => pvc, quiet;
    "" enrich | except: pvs => pv, quiet;
    "" enrich | except: persistentvolume => pv, quiet;
    "" enrich | except: sc => storageclass, quiet;
    "" enrich | except: storageclasses => storageclass, quiet;
    "" enrich | except: ep => endpoints, quiet;
    "" enrich | except: endpointslice => endpoints, quiet;
    "" enrich | except: cj => cronjob, quiet;
    "" enrich | except: cronjobs => cronjob, quiet;
    "" enrich | except: ing => ingress, quiet;
    "" enrich | except: ingresses => ingress, quiet;
};
