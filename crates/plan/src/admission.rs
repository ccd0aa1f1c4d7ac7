//! The parts of a plan for admission, protection and conversion.

use std::collections::BTreeSet;

use orkestra_language::api::{FailurePolicy, Operation};
use orkestra_object::value::Path;

/// A moment at which rules apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// A custom resource is written.
    Admission,
    /// A reconcile pass.
    #[default]
    Pass,
}

/// The moments at which a rule or a call applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Why it does not apply at admission; `None` if it does.
    pub not_at_admission: Option<Box<str>>,
    /// Why it does not apply in passes; `None` if it does.
    pub not_in_passes: Option<Box<str>>,
}

impl Moments {
    /// True if it applies at that moment.
    pub fn includes(&self, moment: Moment) -> bool {
        match moment {
            Moment::Admission => self.not_at_admission.is_none(),
            Moment::Pass => self.not_in_passes.is_none(),
        }
    }
}

/// The part of an entry's rules and protection that applies when a custom resource is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionPlan {
    /// `security.webhooks.admission.enabled`: policies and the webhook apply rules if it is `true`, neither if it is `false`. With
    /// `None`, policies do, and the webhook if the gateway's environment says so.
    pub enabled: Option<bool>,
    /// True if `validation` applies at admission.
    pub validation: bool,
    /// True if `mutation` and `normalize` apply at admission.
    pub mutation: bool,
    /// The operations to which `validation` applies, sorted.
    pub operations: Box<[Operation]>,
    /// The result while rules cannot be evaluated.
    pub failure_policy: FailurePolicy,
    /// The protection against deletion.
    pub protection: Protection,
    /// The path that the scale subresource of the kind writes, if it has one: `kubectl scale` changes it without a write of the
    /// object.
    pub replicas: Option<Path>,
}

impl Default for AdmissionPlan {
    fn default() -> Self {
        Self {
            enabled: None,
            validation: true,
            mutation: true,
            operations: [Operation::Create, Operation::Update].into(),
            failure_policy: FailurePolicy::Fail,
            protection: Protection::default(),
            replicas: None,
        }
    }
}

impl AdmissionPlan {
    /// True if `normalize` is stored at admission, so that passes do not write specs.
    pub fn stores_normalized(&self) -> bool {
        self.enabled == Some(true) && self.mutation
    }
}

/// The protection of an entry's objects against deletion; all false if `deletionProtection` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// True if the definition is protected.
    pub definition: bool,
    /// True if custom resources are protected.
    pub resources: bool,
    /// True if the label alone does not remove the protection.
    pub strict: bool,
}

/// `security` of a Katalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityPlan {
    /// The Service that webhooks call, if it is declared.
    pub service_name: Option<Box<str>>,
    /// The URL that webhooks call instead, if it is declared.
    pub gateway_endpoint: Option<Box<str>>,
    /// The protection against deletion, unless it is off.
    pub deletion: Option<DeletionPlan>,
    /// The protection of namespaces, unless it is off.
    pub namespaces: Option<NamespacePlan>,
    /// `webhooks.admission.enabled`, as in [`AdmissionPlan`].
    pub admission: Option<bool>,
    /// `webhooks.failurePolicy`.
    pub failure_policy: FailurePolicy,
    /// `webhooks.serviceName`.
    pub webhooks_service_name: Option<Box<str>>,
    /// True if the webhooks of rules are removed when the gateway stops.
    pub cleanup: bool,
    /// `conversion.enabled`; `None` leaves it to the gateway's environment.
    pub conversion: Option<bool>,
    /// The number of conversions that statistics cover.
    pub conversion_window: u32,
}

/// `security.deletionProtection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionPlan {
    /// True if the label alone does not remove the protection.
    pub strict: bool,
    /// The result while the protection cannot be evaluated.
    pub failure_policy: FailurePolicy,
    /// True if it is removed when the gateway stops.
    pub cleanup: bool,
}

/// `security.namespaceProtection`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespacePlan {
    /// The namespaces in which custom resources are refused.
    pub restricted: BTreeSet<Box<str>>,
    /// The only namespaces in which custom resources are accepted; empty for all.
    pub allowed: BTreeSet<Box<str>>,
    /// The result while the protection cannot be evaluated.
    pub failure_policy: FailurePolicy,
    /// True if it is removed when the gateway stops.
    pub cleanup: bool,
}
