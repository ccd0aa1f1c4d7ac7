//! The conversion that a CRD records: it needs no Katalog, so stored objects stay readable after the entry is removed.

use super::of_entry;
use crate::scope::{At, Problems, Symbols, profiles::ProfileTables};
use orkestra_language::api::Conversion;
use orkestra_plan::{
    ConversionPlan, ConversionStep, DeclaredConversion, GroupKind, definitions::CrdShape,
};
use orkestra_template::{FunctionSource, Functions};

/// Returns what a CRD records of a conversion: its declaration, and the notes that it calls.
pub(crate) fn declared(
    at: &At<'_>,
    conversion: &Conversion,
    steps: &[ConversionStep],
) -> DeclaredConversion {
    let mut calls_notes = false;
    for (_, tree) in steps.iter().flat_map(|step| &step.fields) {
        tree.visit(&mut |leaf| calls_notes |= leaf.template.notes_hash().is_some());
    }
    let known = at.symbols().filter(|_| calls_notes);
    let known = known.map(|symbols| &symbols.functions);
    let note = |functions: &Functions, name: &str| {
        let template = functions.get(name)?;
        Some((name.to_owned(), template.source().to_owned()))
    };
    let notes = known.into_iter().flat_map(|functions| {
        let names = functions.names();
        names.filter_map(|name| note(functions, name))
    });
    DeclaredConversion {
        conversion: conversion.clone(),
        notes: notes.collect(),
    }
}

/// Compiles a recorded conversion for the kind of a definition. It was checked when it was declared: what the definition no longer
/// permits is left out. `None` if nothing can be converted.
pub fn recorded(declared: &DeclaredConversion, shape: &CrdShape) -> Option<ConversionPlan> {
    let sources: Vec<FunctionSource<'_>> = (declared.notes.iter())
        .map(|(name, expression)| FunctionSource {
            name,
            expression,
            shadow: true,
        })
        .collect();
    let (functions, _) = Functions::compile(&sources);
    let problems = Problems::default();
    let root = At::root(&problems);
    let symbols = Symbols {
        functions,
        profiles: ProfileTables::new(&root),
    };
    let kind = GroupKind {
        group: shape.group.as_str().into(),
        kind: shape.kind.as_str().into(),
    };
    let of = (kind, Some(shape.plural.as_str().into()));
    of_entry(&root.with(&symbols), &declared.conversion, of, Some(shape))
}
