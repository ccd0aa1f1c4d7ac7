//! Copies: the source object that an entry copies, and the namespaces that it is created in.

use super::{BlockContext, Entry, blocks::Block};
use crate::{resources::CopySource, scope::At};
use orkestra_language::{
    api::{
        Text,
        children::{Control, Copies},
    },
    diagnostics::Code,
};
use orkestra_object::value::Key;
use orkestra_plan::inputs;
use orkestra_plan::{Allowed, ChildPlan, Coerce, CopyPlan, Leaf, NameRule};

impl BlockContext<'_> {
    /// Compiles the children of an entry that may be a copy, and may be created in several namespaces.
    pub(crate) fn copies(
        &self,
        shell: &Entry<'_>,
        source: &CopySource<'_>,
        copies: &Copies,
        child: impl Fn(&Entry<'_>) -> Option<ChildPlan>,
    ) -> Vec<ChildPlan> {
        let copy = self.copy(&shell.at, source, copies);
        // A copy follows its source in every block.
        let following = Control {
            reconcile: Some(true),
            ..shell.control.clone()
        };
        let follows = copy.is_some() && shell.control.reconcile.is_none();
        let control = match (follows, shell.block) {
            (true, Block::Create) => &following,
            _ => shell.control,
        };
        let shell = Entry {
            control,
            ..shell.clone()
        };
        let plans: Vec<ChildPlan> = if copies.to_namespaces.is_empty() {
            child(&shell).into_iter().collect()
        } else {
            spread(&shell, &copies.to_namespaces, child)
        };
        let with = |plan| ChildPlan {
            copy: copy.clone().map(Box::new),
            ..plan
        };
        plans.into_iter().map(with).collect()
    }

    /// Compiles the source of a copy, if the entry is one.
    fn copy(&self, at: &At<'_>, source: &CopySource<'_>, copies: &Copies) -> Option<CopyPlan> {
        let Some(name) = source.name else {
            let given = [
                ("fromNamespace", copies.from_namespace.is_some()),
                ("allowedSources", !copies.allowed_sources.is_empty()),
            ];
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!("without `{}` this has no effect", source.field);
                at.field(field).warn(Code::NoEffect, message);
            }
            return None;
        };
        let name_at = at.field(source.field);
        let name = named(&name_at, name, NameRule::Subdomain)?;
        let from_at = at.field("fromNamespace");
        let namespace = match &copies.from_namespace {
            Some(text) => Some(named(&from_at, text, NameRule::Label1123)?),
            None => None,
        };
        let mut allowed = allowed(&at.field("allowedSources"), &copies.allowed_sources);
        let fixed = |leaf: &Leaf| inputs::known_text(self.imports, self.import, leaf);
        let is_bound =
            fixed(&name).is_some() && namespace.as_ref().is_none_or(|leaf| fixed(leaf).is_some());
        let is_own = |leaf: &Leaf| inputs::is_own(self.imports, self.import, leaf);
        if !is_bound && allowed.is_none() && !namespace.as_ref().is_none_or(is_own) {
            let part = |text: Option<String>| text.unwrap_or_else(|| "*".to_owned());
            let permitted = (part(namespace.as_ref().and_then(fixed)), part(fixed(&name)));
            let place = if permitted.1 == "*" {
                &name_at
            } else {
                &from_at
            };
            place.warn_hint(
                Code::OpenSource,
                "the custom resource decides what is copied from another namespace: without `allowedSources` only objects of its own namespace are copied",
                format!("to permit others, add `allowedSources: [{}/{}]`, as narrow as possible", permitted.0, permitted.1),
            );
            // Each pass refuses a source that is not permitted.
            allowed = Some(Box::default());
        }
        Some(CopyPlan {
            kind: source.kind.clone(),
            name,
            namespace,
            allowed,
            parts: source.parts.iter().map(|part| Key::from(*part)).collect(),
        })
    }
}

/// Returns a name that is not empty.
fn named(at: &At<'_>, text: &Text, rule: NameRule) -> Option<Leaf> {
    let leaf = at.leaf(text, Coerce::OptionalText)?;
    if leaf
        .template
        .literal()
        .is_some_and(|literal| literal.trim().is_empty())
    {
        at.error(Code::Empty, "the value is empty");
        return None;
    }
    let is_legal = at.legal_name(&leaf.template, rule.as_check());
    is_legal.then_some(leaf)
}

/// Returns the patterns; `None` if nothing is listed.
fn allowed(at: &At<'_>, patterns: &[String]) -> Option<Box<[Allowed]>> {
    let parse = |(index, text): (usize, &String)| {
        let parsed = Allowed::parse(text);
        if parsed.is_none() {
            at.index(index).error_hint(
                Code::BadName,
                format!("`{text}` does not name objects in a namespace"),
                "write `namespace/name`, with `*` for any text: `infra/*-login`",
            );
        }
        parsed
    };
    let parsed = patterns.iter().enumerate().filter_map(parse).collect();
    (!patterns.is_empty()).then_some(parsed)
}

/// Compiles one child for each namespace.
fn spread(
    shell: &Entry<'_>,
    namespaces: &[Text],
    child: impl Fn(&Entry<'_>) -> Option<ChildPlan>,
) -> Vec<ChildPlan> {
    if shell.namespace.is_some() {
        shell.at.field("namespace").error(
            Code::Exclusive,
            "`namespace` and `toNamespaces` are mutually exclusive",
        );
    }
    let mut plans = Vec::with_capacity(namespaces.len());
    for (index, text) in namespaces.iter().enumerate() {
        let at = shell.at.field("toNamespaces").index(index);
        // Problems of the entry are reported once.
        let shell = Entry {
            at: shell.at.shared(),
            namespace: None,
            ..shell.clone()
        };
        let Some(namespace) = named(&at, text, NameRule::Label1123) else {
            continue;
        };
        plans.extend(child(&shell).map(|plan| ChildPlan {
            namespace: Some(namespace),
            spread: true,
            ..plan
        }));
    }
    plans
}
