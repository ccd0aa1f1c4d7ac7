//! The hook of a new Katalog.

use super::ANSWERS as ANSWERS_FILE;

/// The answers of the hook for the sample.
pub(crate) const ANSWERS: &str = include_str!("templates/hook/answers.yaml");
/// The environment of the container, from the data of the hook.
const ENV: &str = "              env: {WORKERS: \"{{ .hook.workers.count }}\"}\n";

/// What serves the hook of a new Katalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaffoldHook {
    /// A server, in Python.
    Http,
    /// A WebAssembly module, in Go.
    Wasm,
}

impl ScaffoldHook {
    /// Returns its files: names and templates.
    pub(crate) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Http => &[
                ("hook.py", include_str!("templates/hook/hook.py")),
                (ANSWERS_FILE, ANSWERS),
            ],
            Self::Wasm => &[
                ("hook/main.go", include_str!("templates/hook/main.go")),
                ("hook/go.mod", include_str!("templates/hook/go.mod")),
                ("hook/build.sh", include_str!("templates/hook/build.sh")),
            ],
        }
    }

    fn declaration(self) -> &'static str {
        match self {
            Self::Http => include_str!("templates/hook/http.yaml"),
            Self::Wasm => include_str!("templates/hook/wasm.yaml"),
        }
    }

    fn section(self) -> &'static str {
        match self {
            Self::Http => include_str!("templates/hook/http.md"),
            Self::Wasm => include_str!("templates/hook/wasm.md"),
        }
    }

    /// The rows of the table of files.
    fn rows(self) -> &'static str {
        match self {
            Self::Http => {
                "| `hook.py` | the hook: a function of the custom resource |\n| `answers/` | the answers of the hook for each sample |\n"
            }
            Self::Wasm => {
                "| `hook/` | the hook: a function of the custom resource, built as a WebAssembly module |\n"
            }
        }
    }

    /// How it is started for `ork run`.
    fn start(self) -> &'static str {
        match self {
            Self::Http => "Start the hook in a terminal of its own:\n\n```sh\n./hook.py\n```\n\n",
            Self::Wasm => "",
        }
    }

    /// How a cluster gets it.
    fn cluster(self) -> &'static str {
        match self {
            Self::Http => {
                "Run the hook in a Deployment with a Service, put the address of the Service into `katalog.yaml`, and start the controller \
                 with `--external-allow`.\n\n"
            }
            Self::Wasm => {
                "Put the module into a ConfigMap:\n\n```sh\nkubectl create configmap [[ name ]]-hook \
                 --from-file=hook.wasm=hook/hook.wasm.gz\n```\n\n"
            }
        }
    }

    /// The option of `ork run` that permits its calls.
    fn option(self) -> &'static str {
        match self {
            Self::Http => " --external-allow 127.0.0.1:18080",
            Self::Wasm => "",
        }
    }
}

/// Fills the parts of a template that belong to a hook.
pub(crate) fn fill_in(template: &str, hook: Option<ScaffoldHook>) -> String {
    let of = |part: fn(ScaffoldHook) -> &'static str| hook.map(part).unwrap_or_default();
    template
        .replace("[[ hooks ]]", of(ScaffoldHook::declaration))
        .replace("[[ env ]]", of(|_| ENV))
        .replace("[[ hook ]]", of(ScaffoldHook::section))
        .replace("[[ files ]]", of(ScaffoldHook::rows))
        .replace("[[ serve ]]", of(ScaffoldHook::start))
        .replace("[[ module ]]", of(ScaffoldHook::cluster))
        .replace("[[ allow ]]", of(ScaffoldHook::option))
}
