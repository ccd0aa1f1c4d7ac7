//! Logs: constant messages with fields, to stderr.

use std::{fmt, str::FromStr};

use tracing_subscriber::EnvFilter;

/// The default log filter. The HTTP stack below logs little of use at its info level.
pub const DEFAULT_FILTER: &str = "info";

/// The modules that a level without a module is about: those of our crates, which all start like this, and the program itself.
const OWN: [&str; 2] = ["orkestra", "ork"];

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// A log filter: a level, or levels by module, such as `warn,orkestra=debug`.
///
/// ```
/// use orkestra::telemetry::LogFilter;
///
/// assert!("info".parse::<LogFilter>().is_ok());
/// assert!("warn,orkestra_controller=debug".parse::<LogFilter>().is_ok());
/// // A misspelt level would silence everything but a module of that name.
/// assert!("inof".parse::<LogFilter>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// The text is not a valid filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}: expected a level (error, warn, info, debug, trace, off), or levels per module, such as warn,orkestra=debug"
)]
pub struct NotAFilter(String);

impl Default for LogFilter {
    fn default() -> Self {
        Self(DEFAULT_FILTER.to_owned())
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LogFilter {
    /// Returns the directives: a level without a module is about our own modules as far as it shows more than [`DEFAULT_FILTER`].
    /// What libraries log at these levels, HTTP/2 above all, hides our own lines; a filter that names a module shows its lines.
    fn directives(&self) -> String {
        let mut directives: Vec<String> = Vec::new();
        for directive in self.0.split(',').map(str::trim) {
            let level = directive.to_ascii_lowercase();
            if matches!(&*level, "debug" | "trace") {
                directives.push(DEFAULT_FILTER.to_owned());
                directives.extend(OWN.map(|module| format!("{module}={level}")));
            } else {
                directives.push(directive.to_owned());
            }
        }
        // kube's client logs complete responses at debug level, including those about Secrets: only a filter that names it enables
        // that.
        let names_it = self.0.contains("kube_client");
        let text = self.0.to_ascii_lowercase();
        if !names_it && ["debug", "trace"].iter().any(|level| text.contains(level)) {
            directives.push("kube_client=info".to_owned());
        }
        directives.join(",")
    }
}

impl FromStr for LogFilter {
    type Err = NotAFilter;

    fn from_str(text: &str) -> Result<Self, NotAFilter> {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        let text = text.trim();
        // A variable with an empty value is treated as not set.
        if text.is_empty() {
            return Ok(Self::default());
        }
        for directive in text.split(',').map(str::trim) {
            let bare = !directive.contains(['=', '[']);
            if bare
                && !LEVELS
                    .iter()
                    .any(|level| directive.eq_ignore_ascii_case(level))
            {
                return Err(NotAFilter(format!("`{directive}` is not a level")));
            }
        }
        EnvFilter::try_new(text).map_err(|error| NotAFilter(error.to_string()))?;
        Ok(Self(text.to_owned()))
    }
}

/// Starts logging, once per process; later calls have no effect.
pub fn init(format: LogFormat, filter: &LogFilter) {
    let filter = EnvFilter::new(filter.directives());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that logging was started before.
    let _ = match format {
        LogFormat::Human => builder.with_ansi(is_terminal()).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .try_init(),
    };
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_shows_our_own_modules_and_others_only_if_they_are_named() {
        for (text, directives) in [
            ("", "info"),
            ("warn", "warn"),
            ("debug", "info,orkestra=debug,ork=debug,kube_client=info"),
            ("TRACE", "info,orkestra=trace,ork=trace,kube_client=info"),
            (
                "debug,h2=debug",
                "info,orkestra=debug,ork=debug,h2=debug,kube_client=info",
            ),
            (
                "warn,orkestra_controller=debug",
                "warn,orkestra_controller=debug,kube_client=info",
            ),
            ("info,kube_client=debug", "info,kube_client=debug"),
        ] {
            let filter: LogFilter = text.parse().unwrap();
            assert_eq!(filter.directives(), directives, "{text}");
            assert!(EnvFilter::try_new(filter.directives()).is_ok(), "{text}");
        }
    }
}
