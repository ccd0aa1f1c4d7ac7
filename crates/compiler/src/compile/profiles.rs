//! Checks the values of all profiles that documents declare, used or not.

use crate::{
    resources::{self, limit_range, network_policy, pod, resource_quota, workload},
    scope::{At, profiles::ProfileTables},
};

impl ProfileTables<'_> {
    /// Checks the values of all declared profiles, used or not; `at` carries the symbols.
    pub(crate) fn check(&self, at: &At<'_>) {
        let Self {
            // Numbers, whose ranges the document's own check validates.
            reconciler: _,
            network_policies,
            resource_quotas,
            limit_ranges,
            hpa,
            pdb,
            rolling_update,
            resources: quantities,
            probes,
            container_security,
            pod_security,
        } = self;
        network_policies.check(at, network_policy::rules);
        resource_quotas.check(at, resource_quota::hard);
        limit_ranges.check(at, limit_range::limits);
        hpa.check(at, resources::hpa::scaling);
        pdb.check(at, resources::pdb::bounds);
        rolling_update.check(at, workload::pace);
        quantities.check(at, pod::quantities);
        probes.check(at, resources::probes::times);
        container_security.check(at, resources::context);
        pod_security.check(at, resources::pod_context);
    }
}
