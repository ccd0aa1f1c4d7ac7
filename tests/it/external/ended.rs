//! External calls whose task ends unexpectedly.

use anyhow::{Result, ensure};
use orkestra_ground::tasks::Task;
use serde_json::json;

use crate::scenario::{LIMIT, Scenario};

/// Ends the tasks of a call, and checks that the custom resource is reconciled nevertheless.
pub(crate) async fn a_call_whose_task_ends_is_made_again(scenario: &Scenario) -> Result<()> {
    let deployments = scenario.objects("deployments");
    for (task, image) in [(Task::ExternalCall, "6"), (Task::OutboundConnection, "4")] {
        let (failed, _) = scenario.task_counts(task).await?;
        scenario.strike(task).await?;
        let image = format!("registry.example/web:{image}");
        let change = json!({ "spec": { "image": image } });
        scenario.objects("ponds").patch("north", &change).await?;
        let field = "/spec/template/spec/containers/0/image";
        deployments
            .until_equal("north", field, json!(image), LIMIT)
            .await?;
        let (now, _) = scenario.task_counts(task).await?;
        ensure!(now == failed + 1, "{task:?}: {now}");
    }
    Ok(())
}
