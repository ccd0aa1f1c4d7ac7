//! Who suspended a custom resource: read once, when the status does not say yet that it is suspended.

use orkestra_engine::reconcile::{record::Observed, suspension};
use orkestra_language::api::conditions::{self, Condition, ConditionStatus};

use super::Pass;

/// Returns who suspended the custom resource, and when. `None` if the status says already that it is suspended, or if the object
/// cannot be read: the condition says less then.
pub(crate) async fn set_by(pass: &Pass<'_>, observed: &Observed) -> Option<String> {
    let status = observed.cr.view.get("status");
    let listed = status.and_then(|status| status.get("conditions")?.as_list());
    let mut said = listed
        .unwrap_or_default()
        .iter()
        .filter_map(Condition::read);
    if said.any(|one| one.type_ == conditions::SUSPENDED && one.status == ConditionStatus::True) {
        return None;
    }
    let cluster = &pass.shared.requests.cluster;
    match cluster.get(pass.bound.served(), &observed.cr.id.key).await {
        Ok(object) => suspension::set_by(&object),
        Err(error) => {
            tracing::debug!(custom_resource = %pass.key, %error, "cannot read who suspended it");
            None
        }
    }
}
