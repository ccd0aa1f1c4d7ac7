//! The reference pages: every block with its fields and a sample that a test runs.
//!
//! One file: the table of all blocks.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use super::explain::find;
use super::{in_order, named_maps, support_note, type_with, words};
use crate::api::children::{ChildList, Common, Lifecycle};
use crate::api::shape::{Field, ObjectShape, Shape};
use crate::enrich::ADDITIONS;

/// A part of a page.
#[derive(Debug, Clone)]
pub struct PageBlock {
    /// The heading.
    pub title: &'static str,
    /// The path of its field, with the kind: `motif.inputs`.
    pub path: Cow<'static, str>,
    /// The description.
    pub about: &'static str,
    /// A whole document, or several.
    pub sample: &'static str,
}

/// A part of the pages.
enum Part {
    PageBlock(PageBlock),
    /// The list of children with that name.
    List(&'static str),
    /// All lists that have no place of their own.
    OtherLists,
}

macro_rules! parts {
    ($($($part:tt),+;)*) => { &[$(parts!(@ $($part),+)),*] };
    (@ $file:literal, $title:literal, $path:literal, $about:literal) => {
        Part::PageBlock(PageBlock {
            title: $title,
            path: Cow::Borrowed($path),
            about: $about,
            sample: include_str!(concat!("../../../../docs/reference/samples/", $file, ".yaml")),
        })
    };
    (@ $list:literal) => { Part::List($list) };
    (@ other_lists) => { Part::OtherLists };
}

/// The blocks of a Katalog, a Motif and a Komposer, in the order of the pages.
pub static BLOCKS: LazyLock<Vec<PageBlock>> = LazyLock::new(|| {
    let is_placed = |list: &&ChildList| {
        let is_it = |part: &Part| matches!(part, Part::List(name) if *name == list.list);
        PARTS.iter().any(is_it)
    };
    let lists = Lifecycle::LISTS.iter();
    let blocks = PARTS.iter().flat_map(|part| match part {
        Part::PageBlock(block) => vec![block.clone()],
        Part::List(name) => {
            let named = lists.clone().filter(|list| list.list == *name);
            named.map(PageBlock::of_list).collect()
        }
        Part::OtherLists => {
            let others = lists.clone().filter(|list| !is_placed(list));
            others.map(PageBlock::of_list).collect()
        }
    });
    blocks.collect()
});

impl PageBlock {
    fn of_list(list: &ChildList) -> Self {
        Self {
            title: list.title(),
            path: format!("katalog.spec.crds.operatorBox.onCreate.{}", list.list).into(),
            about: list.about,
            sample: list.sample,
        }
    }
}

/// The parts of the pages in order: sample, title, path and description of a block, or the name of a list of children.
const PARTS: &[Part] = parts! {
    "katalog/katalog", "The document", "katalog", "A Katalog declares operators. As a file it can be run without being stored in a cluster; as an object it is run by `ork controller`. Top-level blocks may also be written under `spec`.";
    "katalog/operator", "An operator", "katalog.spec.crds", "One entry for each kind that is operated. The key is the name of the operator.";
    "katalog/operator-box", "The box", "katalog.spec.crds.operatorBox", "Declares what the operator does for each custom resource.";
    "katalog/reconciler", "The reconciler", "katalog.spec.crds.operatorBox.reconciler", "The number of workers, the resync period, and when custom resources are reconciled again.";
    "katalog/queue", "The queue", "katalog.spec.crds.operatorBox.reconciler.queue", "The work queue of the reconciler. It contains each custom resource at most once and never drops one.";
    "katalog/children", "Children", "katalog.spec.crds.operatorBox.onCreate", "The objects that are created for a custom resource, by kind. Objects under `onReconcile` are kept as declared, and removed when their conditions no longer hold. Objects under `onCreate` are created once: one that is deleted later is not created again, and `Ready` reports it. Keys are not case-sensitive.";
    "katalog/conditions", "Conditions", "katalog.spec.crds.operatorBox.onCreate.deployments.when", "The conditions under which a child is created or a status field is written. All operators of one condition must hold.";
    "deployments";
    "katalog/containers", "Several containers", "katalog.spec.crds.operatorBox.onCreate.deployments.containers", "Additional containers beside that of `image`, and init containers, written as in a Pod.";
    "katalog/patch", "Patches", "katalog.spec.crds.operatorBox.onCreate.deployments.patch", "Fields that the shorthand does not have are merged into the object. The container of `image` has the name of its workload.";
    "services";
    "configMaps";
    "secrets";
    "katalog/secrets-once", "Secrets that are generated once", "katalog.spec.crds.operatorBox.onCreate.secrets.once", "With `once` the values are generated when the Secret is created and then kept, so they may be random. Such a Secret is created again when it is deleted, and its values are replaced in place when they are older than `rotateAfter`.";
    "katalog/certificates", "Certificates", "katalog.spec.crds.operatorBox.onCreate.secrets.tls", "A Secret with a certificate for its hosts, signed by an authority of its own, whose key is discarded. It is renewed after two thirds of its lifetime.";
    "katalog/copies", "Copies", "katalog.spec.crds.operatorBox.onCreate.secrets.fromSecret", "A copy of another object, in one namespace or in several. While the source is missing, the copy is not created, or stays as it is.";
    "katalog/rolling", "Pods that roll with their configuration", "katalog.spec.crds.operatorBox.onCreate.deployments.rollOnChange", "Pods read environment variables only when they start. A hash of the Secrets and ConfigMaps that they use is written to their template, so that a change starts a rollout.";
    "serviceAccounts";
    "katalog/custom", "Objects of any kind", "katalog.spec.crds.operatorBox.onCreate.custom", "A whole object of any kind. Every text in it may be a template.";
    "katalog/for-each", "Children for each element", "katalog.spec.crds.operatorBox.onCreate.deployments.forEach", "One declaration with an object for each element of a list or map. Elements are expanded first; conditions are evaluated for each element. If several elements have the same name, the first one gets the object, and the others are reported as an error. `onFalse` determines what happens to the object of an element that is removed.";
    "statefulSets";
    "daemonSets";
    "replicaSets";
    "pods";
    "jobs";
    "cronJobs";
    "katalog/workload-autoscale", "Scaling of workloads", "katalog.spec.crds.operatorBox.onCreate.deployments.autoscale", "Changes the number of replicas by conditions.";
    "ingresses";
    "networkPolicies";
    "hpa";
    "pdb";
    "persistentVolumeClaims";
    "persistentVolumes";
    "storageClasses";
    "namespaces";
    "roles";
    "clusterRoles";
    "roleBindings";
    "clusterRoleBindings";
    "resourceQuotas";
    "limitRanges";
    "priorityClasses";
    other_lists;
    "katalog/status", "Status", "katalog.spec.crds.operatorBox.status", "The status of the custom resource, in addition to the automatic conditions.";
    "katalog/on-delete", "Deletion", "katalog.spec.crds.operatorBox.onDelete", "The steps before a custom resource is deleted. Jobs are created without an owner, awaited and then removed; other entries are children to delete, identified by kind, name and namespace. The finalizer stays until all steps are complete; the annotation `orkestra.orkspace.io/skip-on-delete: \"true\"` removes it at once, whatever the deletion waits for. In a namespace that is being deleted no Job can be created, and the remaining Jobs are skipped.";
    "katalog/cross", "Other custom resources", "katalog.spec.crds.operatorBox.cross", "Custom resources of other operators that templates read as `.cross.<as>`.";
    "katalog/external", "Calls to the outside", "katalog.spec.crds.operatorBox.onCreate.external", "HTTP calls. Templates read the response as `.external.<name>`.";
    "katalog/hooks", "Hooks", "katalog.spec.crds.operatorBox.hooks", "Functions outside of the Katalog, in any language. Templates read the data that they return as `.hook.<name>`; their children are owned, corrected and pruned like all others.";
    "katalog/constructor", "A constructor", "katalog.spec.crds.operatorBox.constructor", "A function outside of the Katalog that decides on all children, with `default: false` of the box. A server that was written for Metacontroller works without a change.";
    "katalog/observe", "Other triggers", "katalog.spec.crds.operatorBox.observe", "Objects and Events that start a pass, in addition to the custom resource and its children.";
    "katalog/pre-reconcile", "Gates before a pass", "katalog.spec.crds.operatorBox.preReconcile", "The conditions under which a custom resource is queued and reconciled.";
    "katalog/autoscale", "Scaling of the operator", "katalog.spec.crds.operatorBox.autoscale", "Changes the number of workers and the depth of the queue by load.";
    "katalog/providers", "Resources outside of the cluster", "katalog.spec.crds.operatorBox.providers", "Resources that the providers of the Katalog create.";
    "katalog/validation", "Validation", "katalog.spec.crds.validation", "Rules that custom resources must satisfy.";
    "katalog/mutation", "Mutation", "katalog.spec.crds.mutation", "Rules that set fields of custom resources.";
    "katalog/normalize", "Normalisation", "katalog.spec.crds.normalize", "Converts values of the spec to a canonical form before a pass reads them.";
    "katalog/conversion", "Conversion", "katalog.spec.crds.conversion", "Converts custom resources between versions.";
    "katalog/depends-on", "Dependencies", "katalog.spec.crds.dependsOn", "Operators that must run first. Until they run, and while one that must be healthy is not, the operator starts no pass; changes are not lost, and custom resources that are being deleted are handled. Operators stop in the reverse order.";
    "katalog/enrich", "More about children", "katalog.spec.crds.enrich", "Data that is added to children for templates. The objects that it is taken from are watched, and a change starts a pass of the affected custom resources only. If there is nothing to add, the key is absent; if a permission is missing, fields that read the key keep their values. `enrichAll` adds everything that templates read.";
    "katalog/imports", "Imports", "katalog.spec.crds.imports", "Motifs that are part of the operator. Under `spec.imports` a Motif provides profiles and functions to the whole Katalog.";
    "katalog/profiles", "Profiles", "katalog.spec.profiles", "Named values of some fields, which `profile` refers to. They take precedence over built-in profiles of the same name.";
    "katalog/notes", "Functions", "katalog.spec.notes", "Functions of the Katalog. Each is a named template.";
    "katalog/security", "Security", "katalog.spec.security", "Protection and webhooks. All webhooks share one server and one certificate.";
    "katalog/notification", "Notification", "katalog.spec.notification", "Notifications about failures.";
    "katalog/providers-list", "Providers", "katalog.spec.providers", "Providers of resources outside of the cluster.";
    "katalog/sources", "Sources", "katalog.spec.sources", "Other Katalogs to include.";
    "motif/motif", "The Motif", "motif", "A Motif is a reusable part of operators. It does nothing by itself: a Katalog imports it and sets its inputs. All blocks may also be written under `spec`.";
    "motif/inputs", "Inputs", "motif.inputs", "Values that an import sets under `with`. Templates read them as `.inputs.<name>`, conditions as `inputs.<name>`.";
    "motif/resources", "Resources", "motif.resources", "Children, as in an operatorBox: those under `onCreate` are created once, the others are kept as declared.";
    "motif/status", "Status fields", "motif.status", "Fields of the status of the importing operator's custom resources.";
    "motif/admission", "Rules", "motif.admission", "Rules for the importing operator's custom resources.";
    "komposer/komposer", "The Komposer", "komposer", "A Komposer runs the operators of Katalogs from other places. `spec.crds` overrides their fields. Top-level blocks may also be written under `spec`.";
    "komposer/sources", "Sources of a Komposer", "komposer.spec.sources", "The sources of Katalogs. Each source provides all Katalogs that it contains.";
    "komposer/registry", "Registries", "komposer.spec.sources.registry", "An artifact of an OCI registry, as written by `ork push`. Its `katalog.yaml` is used.";
    "komposer/files", "Files", "komposer.spec.sources.files", "Files on disk are for `ork run` and other commands that read files; a controller reads HTTPS URLs only.";
    "komposer/git", "Git repositories", "komposer.spec.sources.git", "A file or a folder of a repository. Katalogs may refer to other files of the repository.";
    "komposer/helm", "Charts", "komposer.spec.sources.helm", "A chart is rendered, and its Katalogs and Komposers are used.";
    "komposer/cluster", "ConfigMaps", "komposer.spec.sources.configMaps", "A ConfigMap of the Komposer's namespace.";
    "komposer/cluster", "Katalogs of the cluster", "komposer.spec.sources.katalogs", "Suspended Katalogs of the Komposer's namespace.";
};

/// `docs/reference/katalog.md`.
pub fn katalog_page() -> String {
    let mut page = ReferencePage::new(KATALOG);
    page.text.push_str(
        "# Katalog\n\nEvery field, block by block. `ork explain PATH` prints the same for one field, `ork schema` a JSON \
         Schema for editors. A test executes every sample.\n\nA *value* is text, a number or a boolean; a template may be used \
         wherever text or a value is expected, except in names of files and of operators. Numbers may be written in \
         quotes. [older-documents.md](older-documents.md) lists other spellings, and fields that have no effect or are not \
         supported.\n",
    );
    page.blocks();
    page.text
}

/// `docs/reference/motif.md`.
pub fn motif_page() -> String {
    let mut page = ReferencePage::new(MOTIF);
    page.text.push_str(
        "# Motif\n\nThe fields that only a Motif has. Fields that it shares with a Katalog are described in [katalog.md](katalog.md).\n",
    );
    page.blocks();
    page.text
}

/// `docs/reference/komposer.md`.
pub fn komposer_page() -> String {
    let mut page = ReferencePage::new(KOMPOSER);
    page.text.push_str(
        "# Komposer\n\nThe fields of a Komposer and of `sources`. The fields of an operator, which `spec.crds` overrides, are in \
         [katalog.md](katalog.md). [composing.md](../guides/composing.md) describes how sources are merged, and [komposers.md](../guides/komposers.md) \
         how Komposers run in a cluster.\n",
    );
    page.blocks();
    page.text
}

const KATALOG: &str = "katalog.md";
const MOTIF: &str = "motif.md";
const KOMPOSER: &str = "komposer.md";
pub(crate) const OLDER: &str = "older-documents.md";

/// Returns the page of a block.
fn page_of(block: &PageBlock) -> &'static str {
    let is_later = find(&block.path).is_ok_and(|place| place.is_later);
    match block.path.split('.').next() {
        _ if is_later => OLDER,
        Some("motif") => MOTIF,
        Some("komposer") => KOMPOSER,
        _ => KATALOG,
    }
}

/// The start of every page.
const HEAD: &str = "<!-- Generated from crates/language/src/api: UPDATE=1 cargo test -p orkestra-compiler --test reference -->\n";

pub(crate) struct ReferencePage {
    name: &'static str,
    pub(crate) text: String,
    blocks: Vec<&'static PageBlock>,
    /// The link target for each type.
    pub(crate) anchors: BTreeMap<String, String>,
    /// Types that have been described, here or on another page.
    pub(crate) done: BTreeSet<String>,
    pub(crate) common: BTreeMap<String, Field>,
}

impl ReferencePage {
    pub(crate) fn new(name: &'static str) -> Self {
        let homes = homes();
        let is_here = |home: &str| home == name;
        let done = homes.iter().filter(|(_, (home, _))| !is_here(home));
        let done = done.map(|(of, _)| of.clone()).collect();
        let anchors = homes.into_iter().map(|(of, (home, title))| {
            let home = if is_here(home) { "" } else { home };
            (of, format!("{home}#{}", slug(&title)))
        });
        let common = match Shape::of::<Common>() {
            Shape::Object(object) => object.fields.clone(),
            _ => BTreeMap::new(),
        };
        ReferencePage {
            name,
            text: HEAD.to_owned(),
            blocks: BLOCKS
                .iter()
                .filter(|block| is_here(page_of(block)))
                .collect(),
            anchors: anchors.collect(),
            done,
            common,
        }
    }

    pub(crate) fn blocks(&mut self) {
        for block in self.blocks.clone() {
            let Ok(place) = find(&block.path) else {
                continue;
            };
            let _ = write!(self.text, "\n## {}\n\n{}\n", block.title, block.about);
            let path = place.path.join(".");
            if !path.is_empty() {
                let _ = write!(self.text, "\n`{path}`");
                let note = place.is_later.then_some(": **not supported yet**");
                let _ = writeln!(self.text, "{}", note.unwrap_or_default());
            }
            let _ = write!(self.text, "\n```yaml\n{}```\n", block.sample);
            if block.path == "katalog.spec.crds.enrich" {
                self.additions();
            }
            let mut next: Vec<Arc<ObjectShape>> = Vec::new();
            for object in shapes(block) {
                if self.done.insert(object.name.clone()) {
                    self.table(&object, &mut next);
                }
            }
            self.types(next);
        }
    }

    /// Adds a section for each type that has none yet, and for the types inside.
    pub(crate) fn types(&mut self, mut next: Vec<Arc<ObjectShape>>) {
        let of_blocks: BTreeSet<String> = BLOCKS.iter().flat_map(roots).collect();
        next.reverse();
        while let Some(object) = next.pop() {
            if of_blocks.contains(&object.name) || !self.done.insert(object.name.clone()) {
                continue;
            }
            let _ = write!(
                self.text,
                "\n### {}\n\n{}\n",
                object.name, object.description
            );
            let mut inner = Vec::new();
            self.table(&object, &mut inner);
            next.extend(inner.into_iter().rev());
        }
    }

    fn additions(&mut self) {
        self.text
            .push_str("\n| `enrich` | On | Adds | |\n|---|---|---|---|\n");
        for addition in ADDITIONS {
            let kinds: Vec<&str> = addition.kinds().collect();
            let on = if kinds.is_empty() {
                "any".to_owned()
            } else {
                kinds.join(", ")
            };
            let (word, key) = (addition.target.word(), addition.key);
            let _ = writeln!(
                self.text,
                "| `{word}` | {on} | `{key}` | {} |",
                addition.doc
            );
        }
    }

    /// Adds the table of a type. The pages list the fields that work; that of older documents lists all.
    fn table(&mut self, object: &ObjectShape, next: &mut Vec<Arc<ObjectShape>>) {
        let is_child = self
            .common
            .keys()
            .all(|name| object.fields.contains_key(name));
        let is_first = is_child && self.done.insert("\u{0}common".to_owned());
        let rows: Vec<(&String, &Field)> = in_order(&object.fields)
            .into_iter()
            .filter(|(name, _)| !is_child || is_first || !self.common.contains_key(*name))
            .filter(|(_, field)| field.works() || self.name == OLDER)
            .collect();
        if is_child && !is_first {
            self.text
                .push_str("\nIt also has the fields of [every child](#deployments).\n");
        }
        if rows.is_empty() {
            return;
        }
        self.text
            .push_str("\n| Field | Type | Default | Description |\n|---|---|---|---|\n");
        for (name, field) in rows {
            let required = if field.required { "*required*" } else { "" };
            let default = field.default.as_deref().unwrap_or(required);
            let mut about = description(field);
            if let Some(note) = support_note(field) {
                let _ = write!(about, " ({note})");
            }
            let cells = [&self.linked(&field.shape), default, &about].map(cell);
            let _ = writeln!(self.text, "| `{name}` | {} |", cells.join(" | "));
            next.extend(named_maps(&field.shape).into_iter().cloned());
        }
        if object.rest.is_some() {
            let text = "\nOther keys are the user's own.\n";
            self.text.push_str(text);
        }
    }

    /// Returns the type, with links to the tables of maps.
    fn linked(&self, shape: &Shape) -> String {
        type_with(shape, &|name| match self.anchors.get(name) {
            Some(anchor) => format!("[{name}]({anchor})"),
            None => name.to_owned(),
        })
    }
}

/// Returns the description and the possible words, without the facts in other columns.
pub(crate) fn description(field: &Field) -> String {
    let mut text = field.description.clone();
    if let Some(at) = text.find("Default") {
        let end = text[at..].find(". ").map_or(text.len(), |end| at + end + 2);
        text.replace_range(at..end, "");
        text.truncate(text.trim_end().len());
    }
    let list = |words: &[String]| format!("`{}`", words.join("`, `"));
    if let Some((values, _)) = words(&field.shape) {
        let _ = write!(text, " One of {}.", list(values));
    }
    text.trim().to_owned()
}

pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('\n', " ")
        .replace('<', "&lt;")
}

/// Returns the maps that a block describes.
fn shapes(block: &PageBlock) -> Vec<Arc<ObjectShape>> {
    let place = find(&block.path).ok();
    let maps = place.iter().flat_map(|place| named_maps(place.shape));
    maps.cloned().collect()
}

fn roots(block: &PageBlock) -> Vec<String> {
    shapes(block)
        .iter()
        .map(|object| object.name.clone())
        .collect()
}

/// Returns the page and the title of the section for each type. A type of a block is in the section of the block, any other on the
/// first page with a field of it that works; types of which there is no such field are on the page of older documents.
fn homes() -> BTreeMap<String, (&'static str, String)> {
    let mut homes = BTreeMap::new();
    for block in BLOCKS.iter() {
        for name in roots(block) {
            homes.insert(name, (page_of(block), block.title.to_owned()));
        }
    }
    for (page, kind) in [
        (KATALOG, "katalog"),
        (MOTIF, "motif"),
        (KOMPOSER, "komposer"),
    ] {
        walk(kind, Field::works, |object| {
            let home = homes.entry(object.name.clone());
            home.or_insert_with(|| (page, object.name.clone())).0 == page
        });
    }
    for kind in ["katalog", "motif", "komposer"] {
        walk(
            kind,
            |_| true,
            |object| {
                let home = homes.entry(object.name.clone());
                home.or_insert_with(|| (OLDER, object.name.clone()));
                true
            },
        );
    }
    homes
}

/// Visits each type of a kind of document once, through the fields that `follow` accepts. `enter` returns whether to visit the types
/// inside.
pub(crate) fn walk(
    kind: &str,
    follow: impl Fn(&Field) -> bool,
    mut enter: impl FnMut(&Arc<ObjectShape>) -> bool,
) {
    let mut seen = BTreeSet::new();
    let place = find(kind).ok();
    let roots = place.iter().flat_map(|place| named_maps(place.shape));
    let mut next: Vec<Arc<ObjectShape>> = roots.cloned().collect();
    while let Some(object) = next.pop() {
        if seen.insert(object.name.clone()) && enter(&object) {
            let fields = object.fields.values().filter(|field| follow(field));
            let inner = fields.flat_map(|field| named_maps(&field.shape));
            next.extend(inner.cloned());
        }
    }
}

/// Returns the anchor of a heading.
fn slug(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}
