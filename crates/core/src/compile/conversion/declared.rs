//! The conversion that a CRD records: it needs no Katalog, so stored objects stay readable after the entry is removed.

use super::of_entry;
use crate::{
    api::Conversion,
    definitions::CrdShape,
    plan::{ConversionPlan, ConversionStep, DeclaredConversion, GroupKind},
    scope::{At, Problems, Symbols, profiles::ProfileTables},
    template::{FunctionSource, Functions},
};

impl DeclaredConversion {
    pub(super) fn of(at: &At<'_>, conversion: &Conversion, steps: &[ConversionStep]) -> Self {
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
        Self {
            conversion: conversion.clone(),
            notes: notes.collect(),
        }
    }

    /// Compiles it for the kind of a definition. It was checked when it was declared: what the definition no longer permits is
    /// left out. `None` if nothing can be converted.
    pub fn compile(&self, shape: &CrdShape) -> Option<ConversionPlan> {
        let sources: Vec<FunctionSource<'_>> = (self.notes.iter())
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
        of_entry(&root.with(&symbols), &self.conversion, of, Some(shape))
    }
}
