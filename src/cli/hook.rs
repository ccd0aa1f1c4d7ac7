//! `ork hook`

use std::path::PathBuf;

use clap::ValueEnum;
use jiff::Timestamp;
use orkestra_language::api::hook_contract::{hook_answer_schema, hook_request_schema};

use super::{
    Failure,
    options::FileOptions,
    output::{self, Counts},
    sources::SourceOptions,
};
use orkestra_author::hook::{self, HookOutcome, HookTarget, HookTestRequest};

/// Test hooks, and print the schemas of their requests and answers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Test(Box<TestArgs>),
    Schema(SchemaArgs),
}

/// Check whether a hook keeps the contract of hooks, without a cluster
///
/// The command asks the hook about a custom resource, as the reconcile pass of its operator does, and checks that it answers, that the
/// answer is valid, that its children are of managed kinds and in the namespace of the custom resource, that the same request has the same answer,
/// that the answer is stable once its children exist, that finalizing ends, and that a broken request is refused.
///
/// By default the URL or the module that the Katalog declares is called. The command calls no other server, and other hooks are answered as
/// by `ork render`: modules run, and `--external` has the responses of servers.
///
/// Exit codes: 0 the hook keeps the contract, 1 it does not, or it cannot be called.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct TestArgs {
    #[command(flatten)]
    files: FileOptions,
    /// Name of the hook; `constructor` for a constructor
    #[arg(long, value_name = "NAME")]
    hook: String,
    /// Custom resource that the hook is asked about
    #[arg(long, value_name = "FILE")]
    cr: PathBuf,
    /// URL to call instead of what the Katalog declares
    #[arg(long, value_name = "URL", conflicts_with = "wasm")]
    url: Option<String>,
    /// URL to call for a custom resource that is being deleted [default: the one of `--url`]
    #[arg(long, value_name = "URL", requires = "url")]
    finalize_url: Option<String>,
    /// WebAssembly module to run instead of what the Katalog declares
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,
    /// Existing objects: children of the custom resource, and objects that it reads; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    children: Vec<PathBuf>,
    /// Responses to `external` calls and other hooks, in the format of `ork render --external`
    #[arg(long, value_name = "FILE")]
    external: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    sources: SourceOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Human-readable text
    #[default]
    Text,
    /// One JSON object
    Json,
    /// `JUnit` XML
    Junit,
}

/// Print the JSON Schema of the requests or the answers of hooks
#[derive(Debug, clap::Args)]
struct SchemaArgs {
    /// Which schema
    #[arg(value_enum)]
    of: Message,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Message {
    /// What a hook is asked with
    Request,
    /// What a hook answers
    Answer,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Test(args) => test(*args).await,
        Command::Schema(SchemaArgs { of }) => {
            let schema = match of {
                Message::Request => hook_request_schema(),
                Message::Answer => hook_answer_schema(),
            };
            let text = serde_json::to_string_pretty(&schema).map_err(anyhow::Error::new)?;
            Ok(output::print(&(text + "\n"))?)
        }
    }
}

async fn test(args: TestArgs) -> Result<(), Failure> {
    let katalogs = args.files.or_default()?;
    let fetch = args.sources.fetch(&katalogs)?;
    let url = args.url.map(|url| HookTarget::Url(url, args.finalize_url));
    let request = HookTestRequest {
        katalogs,
        resource: args.cr,
        children: args.children,
        calls: args.external,
        hook: args.hook,
        instead: url.or_else(|| args.wasm.map(HookTarget::Module)),
        now: Timestamp::UNIX_EPOCH,
        fetch,
    };
    let testing = Box::pin(hook::test(&request));
    let tested = output::progress("testing", testing).await;
    let tested = tested.map_err(anyhow::Error::new)?;
    output::snippets(&tested.problems.0, &tested.texts);
    let text = match args.output {
        Format::Text => hook::to_text(&tested),
        Format::Junit => hook::to_junit(&tested),
        Format::Json => {
            let value = hook::to_json(&tested);
            serde_json::to_string_pretty(&value).map_err(anyhow::Error::new)? + "\n"
        }
    };
    output::print(&text)?;
    let counts = Counts::of(&tested.problems);
    if counts.errors > 0 {
        output::note(&counts.to_string());
    }
    let failed = tested.cases.iter();
    let failed = failed.filter(|case| matches!(case.outcome, HookOutcome::Failed(_)));
    match failed.count() {
        0 if tested.is_passed() => Ok(()),
        0 => Err(Failure::Reported),
        failed => {
            let all = output::count(tested.cases.len(), "rule");
            output::note(&format!("{failed} of {all} are broken"));
            Err(Failure::Reported)
        }
    }
}
