//! The information about the cluster that a chart can read.

use orkestra_template::go::parse_version;

/// `.Capabilities`: the version of Kubernetes and the APIs that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The version of Kubernetes, with a `v`.
    pub kube_version: String,
    /// Group-versions, such as `apps/v1`; also `apps/v1/Deployment` if the caller knows the kinds.
    pub api_versions: Vec<String>,
    /// The version of helm that a chart reads.
    pub helm_version: String,
}

/// The group-versions that helm 4.3 assumes without a cluster.
const API_VERSIONS: [&str; 57] = [
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

impl Default for Capabilities {
    /// The defaults of `helm template` of helm 4.3 without a cluster.
    fn default() -> Capabilities {
        Capabilities {
            kube_version: "v1.37.0".into(),
            api_versions: API_VERSIONS.map(String::from).to_vec(),
            helm_version: "v4.3".into(),
        }
    }
}

impl Capabilities {
    /// Returns the major and the minor version, as text.
    pub(crate) fn numbers(&self) -> (String, String) {
        let version = parse_version(&self.kube_version);
        let part = |part: fn(&semver::Version) -> u64| {
            version
                .as_ref()
                .map(|version| part(version).to_string())
                .unwrap_or_default()
        };
        (part(|version| version.major), part(|version| version.minor))
    }

    /// Returns the version without the distributor's suffix: `v1.34.1` for `v1.34.1-gke.7`.
    pub(crate) fn normal_version(&self) -> String {
        match parse_version(&self.kube_version) {
            Some(version) => format!("v{}.{}.{}", version.major, version.minor, version.patch),
            None => self.kube_version.clone(),
        }
    }
}
