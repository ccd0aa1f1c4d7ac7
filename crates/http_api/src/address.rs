//! Addresses below `/katalog/`: long ones with namespace and Katalog, short ones with the entry only.
//!
//! A Komposer is addressed as a Katalog is. If there is a Katalog of the same namespace and name, `komposer:NAME` stands for the
//! Komposer.

use orkestra_plan::Declaring;

use crate::ApiError;
use orkestra_controller::{KatalogView, OperatorView};

/// The longest accepted path, in bytes: enough for three names and a page.
const LONGEST: usize = 2048;

/// What stands before the name of a Komposer that shares it with a Katalog. No name contains a colon.
const KOMPOSER: &str = "komposer:";

/// The target of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) katalog: &'a KatalogView,
    pub(crate) operator: &'a OperatorView,
    pub(crate) page: Page<'a>,
}

/// A page about an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page<'a> {
    Operator,
    Health,
    Instances,
    Instance {
        namespace: Option<&'a str>,
        name: &'a str,
    },
}

/// Resolves the path after `/katalog/`.
///
/// A path may be valid as a long and as a short one; then the long one has precedence if it exists.
pub(crate) fn resolve<'a>(
    katalogs: &'a [KatalogView],
    path: &'a str,
) -> Result<Target<'a>, ApiError> {
    if path.len() > LONGEST {
        return Err(ApiError::bad_request("the path is too long", ""));
    }
    let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    if let Some(target) = long(katalogs, &segments) {
        return Ok(target);
    }
    let (entry, rest) = (segments[0], &segments[1..]);
    let found: Vec<_> = katalogs
        .iter()
        .filter_map(|katalog| Some((katalog, katalog.operator(entry)?)))
        .collect();
    let no_page = || {
        let hint = "pages: health, cr, cr/{name}, cr/{namespace}/{name}";
        ApiError::not_found(format!("there is no page /katalog/{path}"), hint)
    };
    match found.as_slice() {
        [] if segments.len() >= 3 && katalogs.iter().any(|katalog| is(katalog, &segments)) => {
            Err(no_page())
        }
        [] => Err(unknown(katalogs, entry)),
        [(katalog, operator)] => {
            let page = page(rest).ok_or_else(no_page)?;
            Ok(Target {
                katalog,
                operator,
                page,
            })
        }
        several => {
            let rest: String = rest.iter().flat_map(|segment| ["/", segment]).collect();
            let candidates = several
                .iter()
                .map(|(katalog, _)| format!("{}{rest}", long_path(katalogs, katalog, entry)))
                .collect();
            Err(ApiError::ambiguous(
                format!("{} Katalogs have an entry {entry}", several.len()),
                candidates,
            ))
        }
    }
}

/// `/katalog/{namespace}/{katalog}/{entry}`.
pub(crate) fn long_path(katalogs: &[KatalogView], katalog: &KatalogView, entry: &str) -> String {
    let reference = &katalog.reference;
    let other = reference.clone().of(Declaring::Katalog);
    let is_shared = reference.kind == Declaring::Komposer
        && (katalogs.binary_search_by(|one| one.reference.cmp(&other))).is_ok();
    let kind = if is_shared { KOMPOSER } else { "" };
    format!(
        "/katalog/{}/{kind}{}/{entry}",
        reference.namespace, reference.name
    )
}

/// True if a path names this Katalog: with its plain name, or a Komposer with its kind.
fn is(katalog: &KatalogView, segments: &[&str]) -> bool {
    let reference = &katalog.reference;
    let [namespace, name, ..] = segments else {
        return false;
    };
    let name = match name.strip_prefix(KOMPOSER) {
        Some(_) if reference.kind != Declaring::Komposer => return false,
        Some(name) => name,
        None => name,
    };
    (*namespace, name) == (&*reference.namespace, &*reference.name)
}

fn long<'a>(katalogs: &'a [KatalogView], segments: &[&'a str]) -> Option<Target<'a>> {
    let (entry, rest) = (segments.get(2)?, &segments[3..]);
    let mut found = katalogs.iter().filter(|katalog| is(katalog, segments));
    let (katalog, operator) =
        found.find_map(|katalog| Some((katalog, katalog.operator(entry)?)))?;
    Some(Target {
        katalog,
        operator,
        page: page(rest)?,
    })
}

fn page<'a>(rest: &[&'a str]) -> Option<Page<'a>> {
    match *rest {
        [] => Some(Page::Operator),
        ["health"] => Some(Page::Health),
        ["cr"] => Some(Page::Instances),
        ["cr", name] if !name.is_empty() => Some(Page::Instance {
            namespace: None,
            name,
        }),
        ["cr", namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Some(Page::Instance {
                namespace: Some(namespace),
                name,
            })
        }
        _ => None,
    }
}

fn unknown(katalogs: &[KatalogView], entry: &str) -> ApiError {
    if let Some(katalog) = katalogs
        .iter()
        .find(|katalog| katalog.disabled.iter().any(|name| name == entry))
    {
        return ApiError::not_found(
            format!(
                "entry {entry} of Katalog {} is disabled or stopped",
                katalog.reference
            ),
            "",
        );
    }
    let mut names: Vec<&str> = katalogs
        .iter()
        .flat_map(|katalog| &katalog.operators)
        .map(OperatorView::name)
        .collect();
    names.sort_unstable();
    names.dedup();
    let more = if names.len() > 20 { ", …" } else { "" };
    names.truncate(20);
    let hint = if names.is_empty() {
        "no operator is running".to_owned()
    } else {
        format!("running operators: {}{more}", names.join(", "))
    };
    ApiError::not_found(format!("no Katalog has an entry {entry}"), hint)
}
