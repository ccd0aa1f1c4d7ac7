//! The WebAssembly modules of hooks: where they are from, read and checked.
//!
//! A file is read where the document is one, and a `ConfigMap` where it is an object of a cluster. A document that was fetched names
//! none: its author is not the one who may put code here.

use std::sync::Arc;

use super::inputs::{InputRequest, ModuleAnswer};
use super::resolving::Resolving;
use super::{Compilation, DocumentSite};
use crate::scope::{self, LibraryModule, ModuleReference};
use orkestra_language::api::HookWasm;
use orkestra_plan::ModulePlace;
use orkestra_wasm::Module;

/// The key of a `ConfigMap` that names none.
const KEY: &str = "hook.wasm";
/// Why a document that was fetched has no modules.
const FETCHED: &str = "a document of a source has no modules: serve the hook over HTTP, and name its address under `http`";
/// Why an object of a cluster has no files.
const NO_FILES: &str = "files are not available in the cluster: put the module into a ConfigMap, as with `kubectl create configmap NAME \
                        --from-file=hook.wasm`, and name it under `configMap`";

impl Compilation {
    /// Looks up the modules of hooks. Returns the requests for those that are not known.
    pub(crate) fn missing_modules(&self, resolving: &mut Resolving) -> Vec<InputRequest> {
        let Some((document, _)) = resolving.katalog() else {
            return Vec::new();
        };
        let mut needed = Vec::new();
        for reference in resolving.library.missing_modules(&document.spec) {
            match self.module(resolving, &reference) {
                Ok(found) => resolving.library.put_module(reference, found),
                Err(request) if needed.contains(&request) => {}
                Err(request) => needed.push(request),
            }
        }
        needed
    }

    /// Returns a module, or why it cannot be used.
    ///
    /// # Errors
    /// The request for it.
    fn module(
        &self,
        resolving: &Resolving,
        reference: &ModuleReference,
    ) -> Result<Result<LibraryModule, Box<str>>, InputRequest> {
        let HookWasm {
            file,
            config_map,
            digest,
            finalize: _,
        } = &reference.declared;
        let from = reference.file.as_deref();
        let composed = resolving.katalog().and_then(|(_, composed)| composed);
        if from.is_some_and(|from| composed.is_some_and(|composed| composed.is_of_artifact(from))) {
            return Ok(Err(FETCHED.into()));
        }
        let config_map = config_map.as_ref().map(|declared| ModulePlace::ConfigMap {
            name: declared.name.as_str().into(),
            key: declared.key.as_deref().unwrap_or(KEY).into(),
        });
        // The place is what is shown, the request where it is read.
        let (place, asked) = match (&self.site, file, config_map) {
            (DocumentSite::File(own), Some(file), _) => {
                let own = own.display().to_string();
                let path = scope::beside(from.unwrap_or(&own), file);
                let place = ModulePlace::File(file.as_str().into());
                (place, ModulePlace::File(path.into()))
            }
            (DocumentSite::Cluster(_), _, Some(place)) => (place.clone(), place),
            (DocumentSite::File(_), None, Some(place)) => {
                return Ok(Ok(LibraryModule {
                    place,
                    module: None,
                }));
            }
            (DocumentSite::Cluster(_), _, None) => return Ok(Err(NO_FILES.into())),
            // The check of the field reports it.
            (DocumentSite::File(_), None, None) => return Ok(Err(Box::default())),
        };
        let Some(answer) = self.inputs.modules.get(&asked) else {
            return Err(InputRequest::Module(asked));
        };
        let module = match answer {
            ModuleAnswer::Found(bytes) => load(&asked, bytes, digest.as_deref()).map(Some),
            ModuleAnswer::Unread(why) => Err(format!("cannot read {asked}: {why}").into()),
            ModuleAnswer::NotNeeded => Ok(None),
        };
        Ok(module.map(|module| LibraryModule { place, module }))
    }
}

/// Loads a module that has the declared digest.
fn load(
    place: &ModulePlace,
    bytes: &Arc<[u8]>,
    declared: Option<&str>,
) -> Result<Arc<Module>, Box<str>> {
    let digest = Module::digest_of(bytes);
    if let Some(declared) = declared.filter(|declared| !declared.eq_ignore_ascii_case(&digest)) {
        let why = format!("{place} has the digest {digest}, and {declared} is declared");
        return Err(why.into());
    }
    Module::load(Arc::clone(bytes)).map_err(|why| format!("{place}: {why}").into())
}

#[cfg(test)]
mod tests {
    use orkestra_language::document::parse_stream;
    use orkestra_plan::{KatalogRef, definitions::Schemas};

    use super::*;
    use crate::compilation::{CompilationResult, CompilationStep, CompiledKatalog, InputAnswer};

    const MODULE: &str = r#"(module (memory (export "memory") 1) (func (export "_start")))"#;

    fn katalog(wasm: &str) -> String {
        format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: ponds }}\nspec:\n  crds:\n    pond:\n      \
             apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}\n      operatorBox:\n        hooks:\n          \
             - {{ name: quota, wasm: {wasm} }}\n"
        )
    }

    /// Compiles a Katalog whose hook declares that; each module has these bytes. Returns what was asked for, too.
    fn compile(
        wasm: &str,
        site: DocumentSite,
        bytes: &[u8],
    ) -> (Result<Box<CompiledKatalog>, String>, Vec<ModulePlace>) {
        let source = parse_stream("ponds/katalog.yaml", &katalog(wasm))
            .sources
            .remove(0);
        let mut compilation = Compilation::new(source, site);
        let mut asked = Vec::new();
        let step = compilation.run(|request| {
            Some(match request {
                InputRequest::Module(place) => {
                    asked.push(place.clone());
                    InputAnswer::Module(place.clone(), ModuleAnswer::Found(bytes.into()))
                }
                InputRequest::Schemas(kinds) => {
                    InputAnswer::Schemas(kinds.clone(), Schemas::default())
                }
                _ => return None,
            })
        });
        let CompilationStep::Ended(result) = step else {
            panic!("{step:?}")
        };
        let result = match *result {
            CompilationResult::Compiled(compiled) => Ok(compiled),
            CompilationResult::Refused(refused) => Err(refused.to_string()),
            CompilationResult::Motif(problems) => Err(problems.to_string()),
        };
        (result, asked)
    }

    fn file() -> DocumentSite {
        DocumentSite::File("ponds/katalog.yaml".into())
    }

    fn cluster() -> DocumentSite {
        DocumentSite::Cluster(KatalogRef::new("shop".to_owned(), "ponds".to_owned()))
    }

    fn config_map(name: &str, key: &str) -> ModulePlace {
        ModulePlace::ConfigMap {
            name: name.into(),
            key: key.into(),
        }
    }

    #[test]
    fn a_module_is_a_file_beside_the_document_and_a_config_map_in_a_cluster() {
        let module = wat::parse_str(MODULE).unwrap();
        let both = "{ file: hooks/q.wasm, configMap: { name: quota } }";
        let (compiled, asked) = compile(both, file(), &module);
        let compiled = compiled.unwrap();
        assert_eq!(asked, [ModulePlace::File("ponds/hooks/q.wasm".into())]);
        let hook = compiled.plan.operators[0].hooks[0].module().unwrap();
        let digest = hook.module.as_ref().unwrap().digest().to_owned();
        assert_eq!(*digest, *Module::digest_of(&module));
        assert!(compiled.used.modules.is_empty());

        let (compiled, asked) = compile(both, cluster(), &module);
        let place = config_map("quota", "hook.wasm");
        assert_eq!(asked, std::slice::from_ref(&place));
        let compiled = compiled.unwrap();
        assert_eq!(*compiled.used.modules[&place], module[..]);
        let rules = format!("{:?}", orkestra_plan::rbac::rules(&compiled.plan));
        assert!(
            rules.contains("quota") && rules.contains("configmaps"),
            "{rules}"
        );

        // Without a file, a module of a cluster is unknown elsewhere.
        let (compiled, asked) = compile("{ configMap: { name: quota, key: q } }", file(), &module);
        let compiled = compiled.unwrap();
        let hook = compiled.plan.operators[0].hooks[0].module().unwrap();
        assert!(asked.is_empty() && hook.module.is_none());
        assert_eq!(hook.place, config_map("quota", "q"));
    }

    #[test]
    fn another_module_is_another_plan() {
        let hash = |text: &str| {
            let module = wat::parse_str(text).unwrap();
            let (compiled, _) = compile("{ configMap: { name: quota } }", cluster(), &module);
            compiled.unwrap().plan.operators[0].hash.clone()
        };
        let other = MODULE.replace(
            "(memory (export \"memory\") 1)",
            "(memory (export \"memory\") 2)",
        );
        assert_eq!(hash(MODULE), hash(MODULE));
        assert_ne!(hash(MODULE), hash(&other));
    }

    #[test]
    fn modules_that_cannot_be_used_are_refused_with_the_fix() {
        let module = wat::parse_str(MODULE).unwrap();
        let digest = format!("sha256:{}", "0".repeat(64));
        let pinned = format!("{{ file: q.wasm, digest: \"{digest}\" }}");
        let import = wat::parse_str(r#"(module (import "env" "now" (func)))"#).unwrap();
        let cases: [(&str, DocumentSite, &[u8], &str); 4] = [
            (
                "{ file: q.wasm }",
                cluster(),
                &module,
                "kubectl create configmap",
            ),
            (&pinned, file(), &module, "has the digest sha256:"),
            (
                "{ file: q.wasm }",
                file(),
                b"text",
                "file `ponds/q.wasm`: it is not a WebAssembly module",
            ),
            ("{ file: q.wasm }", file(), &import, "it imports `env.now`"),
        ];
        for (wasm, site, bytes, expected) in cases {
            let error = compile(wasm, site, bytes).0.unwrap_err();
            assert!(
                error.contains(expected) && error.contains("ORK0007"),
                "{wasm}: {error}"
            );
        }
    }
}
