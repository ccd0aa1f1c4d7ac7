//! Reads files, streams and objects into untyped documents.

use serde_json::Value;

use super::fix;
use super::yaml::{self, Chunk, MAX_DEPTH};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::tree::Tree;
use orkestra_object::value::nesting;

/// The maximum length of a text: several times the limit of a cluster's storage.
const MAX_BYTES: usize = 4 << 20;
/// The maximum number of documents in a text.
const MAX_DOCUMENTS: usize = 1000;

/// One untyped document.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The file, as the user named it.
    pub file: Option<String>,
    /// Its values.
    pub tree: Tree,
}

impl Source {
    /// Creates a document from an object of the API server.
    ///
    /// # Errors
    /// One diagnostic if values are nested too deeply to walk.
    pub fn from_object(object: &Value) -> Result<Self, Diagnostics> {
        if exceeds(object, MAX_DEPTH) {
            let message = format!("values are nested more than {MAX_DEPTH} deep");
            return Err(Diagnostic::error(Code::TooLarge, FieldPath::root(), message).into());
        }
        Ok(Source {
            file: None,
            tree: Tree::from_json(object),
        })
    }
}

fn exceeds(value: &Value, depth: usize) -> bool {
    match (value, depth.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(left)) => items.iter().any(|item| exceeds(item, left)),
        (Value::Object(map), Some(left)) => map.values().any(|value| exceeds(value, left)),
        _ => false,
    }
}

/// The contents of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stream {
    /// The documents that could be parsed, in order. Empty ones are omitted.
    pub sources: Vec<Source>,
    /// The errors of the others. A document with an obvious mistake is in `sources` in spite of it, corrected, so that its
    /// further problems are found; the mistake is listed here.
    pub problems: Diagnostics,
}

/// Parses a YAML or JSON stream of any number of documents.
///
/// Messages refer to the text as `file`. A document that cannot be parsed does not hide the others.
pub fn parse_stream(file: &str, text: &str) -> Stream {
    let mut stream = Stream::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let chunks = match limited(file, text) {
        Ok(chunks) => chunks,
        Err(problem) => {
            stream.problems.push(*problem);
            return stream;
        }
    };
    for (tree, problems) in with_room(|| chunks.into_iter().map(parse_chunk).collect()) {
        stream.sources.extend(tree.map(|tree| Source {
            file: Some(file.to_owned()),
            tree,
        }));
        stream
            .problems
            .extend(problems.into_iter().map(|problem| in_file(file, problem)));
    }
    stream
}

/// Returns the documents of a text, unless it has too many.
fn limited<'t>(file: &str, text: &'t str) -> Result<Vec<Chunk<'t>>, Box<Diagnostic>> {
    let refused = |message: String| {
        let problem = Diagnostic::error(Code::TooLarge, FieldPath::root(), message);
        Err(Box::new(in_file(file, problem)))
    };
    if text.len() > MAX_BYTES {
        let len = text.len();
        return refused(format!(
            "{len} bytes are too many; at most {MAX_BYTES} are read"
        ));
    }
    let chunks = yaml::split(text);
    if chunks.len() > MAX_DOCUMENTS {
        let number = chunks.len();
        return refused(format!(
            "{number} documents are too many; at most {MAX_DOCUMENTS} are read"
        ));
    }
    Ok(chunks)
}

/// Parses every document of a text. An empty one has no values.
///
/// # Errors
/// Every problem of every document, with its position.
pub(crate) fn parse_chunks<'t>(
    file: &str,
    text: &'t str,
) -> Result<Vec<(Chunk<'t>, Option<Tree>)>, Diagnostics> {
    let chunks = limited(file, text).map_err(|problem| *problem)?;
    let parsed = with_room(|| chunks.iter().copied().map(parse_chunk).collect());
    let (trees, problems): (Vec<_>, Vec<_>) = parsed.into_iter().unzip();
    let problems = problems.into_iter().flatten();
    let problems: Diagnostics = problems.map(|problem| in_file(file, problem)).collect();
    if problems.is_empty() {
        Ok(chunks.into_iter().zip(trees).collect())
    } else {
        Err(problems)
    }
}

/// Parses one document; `None` if it is empty or cannot be parsed.
pub(crate) fn parse_alone(chunk: Chunk<'_>) -> Option<Tree> {
    let parsed = with_room(|| vec![parse_chunk(chunk)]);
    let (tree, problems) = parsed.into_iter().next()?;
    tree.filter(|_| problems.is_empty())
}

/// Sets the file of a problem.
pub(crate) fn in_file(file: &str, mut diagnostic: Diagnostic) -> Diagnostic {
    diagnostic.file = Some(file.to_owned());
    diagnostic
}

/// The result of parsing a document.
type Parsed = (Option<Tree>, Vec<Diagnostic>);

/// The parser's stack, in bytes. Each level takes about 35 kB in a debug build, so on the 2 MiB that most threads have the
/// stack would overflow before the depth limit is reached.
const STACK_BYTES: usize = 16 << 20;

/// Runs the parser on a thread whose stack is large enough for its depth limit.
fn with_room(parse: impl FnOnce() -> Vec<Parsed> + Send) -> Vec<Parsed> {
    let failed = |message: String| {
        vec![(
            None,
            vec![Diagnostic::error(
                Code::TooLarge,
                FieldPath::root(),
                message,
            )],
        )]
    };
    match nesting::on_stack(STACK_BYTES, parse) {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(_)) => failed("the YAML parser failed on this text".to_owned()),
        Err(error) => failed(format!("no room to parse: {error}")),
    }
}

fn parse_chunk(chunk: Chunk<'_>) -> Parsed {
    let error = match yaml::parse(chunk) {
        Ok(tree) => return (tree, Vec::new()),
        Err(error) => error,
    };
    let broken = fix::broken_quotes(chunk);
    if broken.is_empty() {
        let mut diagnostic =
            Diagnostic::error(error.code, FieldPath::root(), error.message).at(error.span);
        diagnostic.hint = error.hint;
        return (None, vec![diagnostic]);
    }
    let problems = broken.iter().map(|one| {
        let message = "a double quote inside a double-quoted text ends the text";
        let hint = format!("write {}", one.fixed);
        Diagnostic::error(Code::Syntax, FieldPath::root(), message)
            .hint(hint)
            .at(Some(one.span))
    });
    let problems = problems.collect();
    let fixed = fix::fix_chunk(chunk.text, &broken);
    let tree = fixed.and_then(|text| {
        yaml::parse(Chunk {
            text: &text,
            ..chunk
        })
        .ok()
    });
    (tree.flatten(), problems)
}
