//! Runs the operators under test in this process, as `ork run` does.

use std::{path::PathBuf, sync::Arc, time::Duration};

use orkestra_cluster::client::Connection;
use orkestra_ground::tasks::{self, Task};
use orkestra_language::diagnostics::Diagnostics;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::E2eOptions;
use orkestra_controller::{
    AppliedObject, Feed, FileError, Installation, KatalogFiles, Notice, Runtime,
};
use orkestra_operator::{context::Context, metrics::CallMetrics};

/// The files do not change during a test.
const POLL: Duration = Duration::from_hours(24);
/// The timeout for stopping the operators.
const STOP: Duration = Duration::from_secs(25);
/// The timeout for sending the last Events.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// The reason why the operators do not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperatorError {
    #[error("the Katalog has errors")]
    Invalid(Diagnostics),
    #[error(transparent)]
    File(FileError),
    #[error("the operators ended")]
    Ended,
    #[error("cannot set up metrics: {0}")]
    Metrics(String),
}

impl From<FileError> for OperatorError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Invalid(problems) => Self::Invalid(problems),
            error => Self::File(error),
        }
    }
}

/// Running operators.
#[derive(Debug)]
pub(crate) struct TestedOperators {
    stop: CancellationToken,
    ended: JoinHandle<Result<bool, FileError>>,
    notices: mpsc::UnboundedReceiver<Notice>,
    context: Arc<Context>,
}

impl TestedOperators {
    /// Starts the operators of a Katalog file. When this returns, the setup, CRDs and custom resources in the file are
    /// applied. The created objects are added to `applied`, even if the operators do not start.
    pub(crate) async fn start(
        connection: &Connection,
        katalog: PathBuf,
        options: &E2eOptions,
        applied: &mut Vec<AppliedObject>,
    ) -> Result<Self, OperatorError> {
        let context = Context::new(connection.client.clone(), &connection.flow);
        let mut context = context.map_err(|error| OperatorError::Metrics(error.to_string()))?;
        let counted = CallMetrics::new(&context.metrics);
        context.external = (options.external)(connection).counting_into(counted);
        let context = Arc::new(context);
        let installation = Installation::of_files("ork e2e", std::slice::from_ref(&katalog));
        let runtime = Runtime::new(Arc::clone(&context)).of(installation);
        let mut synced = runtime.synced();
        let (sender, notices) = mpsc::unbounded_channel();
        let of = katalog.display().to_string();
        let feed = Feed::Files(KatalogFiles {
            paths: vec![katalog],
            poll: POLL,
            notices: sender,
            fetch: Arc::clone(&options.fetch),
        });
        let stop = CancellationToken::new();
        let running = Box::pin(runtime.run(feed, stop.clone(), STOP));
        let mut this = Self {
            ended: tasks::named(Task::OperatorUnderTest, of).start(running),
            stop,
            notices,
            context,
        };
        let ended = tokio::select! {
            is_synced = synced.wait_for(|synced| *synced) => is_synced.is_err().then_some(None),
            ended = &mut this.ended => Some(Some(ended)),
        };
        this.take_applied(applied);
        match ended {
            None => Ok(this),
            Some(Some(Ok(Err(error)))) => Err(error.into()),
            Some(_) => Err(OperatorError::Ended),
        }
    }

    /// Adds the objects applied since the last call.
    fn take_applied(&mut self, applied: &mut Vec<AppliedObject>) {
        while let Ok(notice) = self.notices.try_recv() {
            if let Notice::Applied(object) = notice {
                applied.push(object);
            }
        }
    }

    /// Stops the operators; returns false if some did not stop in time.
    pub(crate) async fn stop(self) -> bool {
        self.stop.cancel();
        let ended = self.ended.await;
        self.context.events.flush(LAST_EVENTS).await;
        matches!(ended, Ok(Ok(true)))
    }
}
