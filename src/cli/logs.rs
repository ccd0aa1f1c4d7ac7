//! `ork logs`

use std::{io, time::Duration};

use orkestra_admin::{
    inspect::{self, LogFilter, LogLine, LogRequest, Reader},
    operate::ObjectName,
};
use orkestra_cluster::requests::LogQuery;
use orkestra_language::api::duration;
use orkestra_plan::rbac;

use super::{
    Failure, connection::ConnectionOptions, options::parse_namespace, output, tree::unavailable,
};

/// Print the log of the controller: all lines, or those about an operator or an object
///
/// Lines of all Pods of the controller are printed, each with the name of its Pod if there are several. Lines are selected by their
/// fields `operator`, `katalog` and `object`, in both formats of the log. The command needs the permission to get `pods/log` in the
/// namespace of the controller.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Only lines about this object, such as `katalog/ponds` or `pond/north`
    #[arg(value_name = "KIND/NAME")]
    object: Option<ObjectName>,
    /// Namespace of the object [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// Only lines about the operator of this entry of a Katalog; may be repeated
    #[arg(long = "operator", value_name = "ENTRY")]
    operators: Vec<String>,
    /// Namespace of the controller
    #[arg(long, value_name = "NS", value_parser = parse_namespace, default_value = rbac::NAMESPACE)]
    system_namespace: String,
    /// Print further lines until the command is interrupted
    #[arg(short, long, conflicts_with = "previous")]
    follow: bool,
    /// The log of the containers that ended last
    #[arg(short, long)]
    previous: bool,
    /// Only the last lines of each log, before lines are selected [default: all]
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// Only lines of this time, such as `10m`
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
    /// Container of the Pods [default: the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let connection = args.cluster.connect().await?;
    let reader = Reader::new(&connection).await?;
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace());
    let mut filter = match &args.object {
        Some(object) => {
            let (kind, key) = reader.kinds().find(object, namespace)?;
            LogFilter::about(&reader, &kind, &key).await
        }
        None => LogFilter::default(),
    };
    if !args.operators.is_empty() {
        filter.operators = Some(args.operators);
    }
    let request = LogRequest {
        system: args.system_namespace,
        query: LogQuery {
            container: args.container,
            follow: args.follow,
            previous: args.previous,
            tail: args.tail,
            since_seconds: args.since.map(|since| since.as_secs().max(1)),
        },
        filter,
    };
    let (pods, _) = reader.controller_pods(&request.system).await;
    let has_several = pods.len() > 1;
    let mut take = |line: LogLine| {
        let prefix = if has_several {
            format!("[{}] ", line.pod)
        } else {
            String::new()
        };
        let text = line.text;
        output::print(&format!("{prefix}{text}\n")).map_err(io::Error::other)
    };
    let missing = inspect::logs(&reader, &request, &mut take).await?;
    unavailable(&missing);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::Reported)
    }
}
