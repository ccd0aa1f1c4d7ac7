//! The inventory annotation: the kinds of a custom resource's children, written before the first is created.

mod declared;

use std::{collections::BTreeSet, sync::Arc};

pub use self::declared::DeclaredKinds;
use super::identity::Uid;
use orkestra_object::value::intern::Interner;
use orkestra_plan::{ChildKey, GroupKind, MetadataKey, ObjectKey};

/// The maximum number of kinds, labels or finalizers to read.
const MOST_NAMES: usize = 512;
/// The maximum number of children created once, or Jobs of `onDelete`, to read: the API server accepts no annotations that
/// hold more.
const MOST_CHILDREN: usize = 8192;
/// How many kinds a message names.
const MOST_NAMED: usize = 5;
/// How many bytes of a kind a message shows.
const NAMED_BYTES: usize = 100;

/// The group-kinds of a custom resource's children, the children that were created once, and our other metadata on it.
///
/// Its text is `kinds` separated by commas, then for each child that is created once a `!kind=namespace/name`, for each Job of its
/// end a `~kind=namespace/name`, for each label a `@key`, for each annotation a `^key`, for each finalizer of others a `+name`, for
/// each text that it holds a `=record`, and `#uid`: `ConfigMap,Deployment.apps,!Secret=shop/db`. Names of Kubernetes objects hold neither comma, `!` nor `=`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// Group-kinds in use; never fewer than exist.
    pub kinds: BTreeSet<GroupKind>,
    /// Children of plain `onCreate` entries that have been created: they are not created again when a user deletes them.
    pub made: BTreeSet<ChildKey>,
    /// Jobs of `onDelete` that have been created: they are not created again when they are gone.
    pub ended: BTreeSet<ChildKey>,
    /// The records of the texts that it was the first to hold, for `unique`.
    pub held: BTreeSet<Box<str>>,
    /// Which custom resource it was written for. Equal inventories are shared, so it does not hold the uid.
    pub written_for: WrittenFor,
    /// The labels and annotations that we put on it.
    pub labels: BTreeSet<MetadataKey>,
    /// Finalizers of others that we put on it.
    pub finalizers: BTreeSet<Box<str>>,
    /// Whether the text has more than is read. Our own inventory never does, so such a text is replaced.
    pub excessive: bool,
}

/// The custom resource that an inventory was written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WrittenFor {
    /// Not recorded: no child keeps values.
    #[default]
    Unrecorded,
    /// The one that carries it.
    This,
    /// One with another uid: the one that carries it is a copy, or was restored from a backup.
    Another,
}

impl Inventory {
    /// Parses the annotation's text on the custom resource of that uid.
    pub fn of(text: &str, uid: &Uid) -> Self {
        let mut inventory = Self::parse(text);
        let own = uid_item(uid);
        if text.split(',').any(|item| item.trim() == own) {
            inventory.written_for = WrittenFor::This;
        }
        inventory
    }

    /// Parses the annotation's text; unreadable parts are skipped, since a user may have edited it.
    pub fn parse(text: &str) -> Self {
        let mut inventory = Self::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let put = if let Some(made) = item.strip_prefix('!') {
                put(&mut inventory.made, MOST_CHILDREN, child(made))
            } else if let Some(ended) = item.strip_prefix('~') {
                put(&mut inventory.ended, MOST_CHILDREN, child(ended))
            } else if let Some(held) = item.strip_prefix('=') {
                put(&mut inventory.held, MOST_NAMES, Some(held.into()))
            } else if item.starts_with('#') {
                inventory.written_for = WrittenFor::Another;
                true
            } else if let Some(label) = item.strip_prefix('@') {
                let label = MetadataKey::Label(label.into());
                put(&mut inventory.labels, MOST_NAMES, Some(label))
            } else if let Some(annotation) = item.strip_prefix('^') {
                let annotation = MetadataKey::Annotation(annotation.into());
                put(&mut inventory.labels, MOST_NAMES, Some(annotation))
            } else if let Some(finalizer) = item.strip_prefix('+') {
                put(
                    &mut inventory.finalizers,
                    MOST_NAMES,
                    Some(finalizer.into()),
                )
            } else {
                let kind = GroupKind::parse(item);
                put(&mut inventory.kinds, MOST_NAMES, Some(kind))
            };
            inventory.excessive |= !put;
        }
        inventory
    }

    /// Returns the part of it that some accepted revision declared. Anything else is not ours: every client that may write
    /// the custom resource may write its annotations.
    #[must_use]
    pub fn checked(self: &Arc<Self>, declared: &DeclaredKinds) -> Arc<Self> {
        let is_ours = |key: &ChildKey| declared.kinds.contains(&key.kind);
        let is_checked = !self.excessive
            && self.kinds.is_subset(&declared.kinds)
            && self.made.iter().chain(&self.ended).all(is_ours)
            && self.labels.is_subset(&declared.labels)
            && self.finalizers.is_subset(&declared.finalizers);
        if is_checked {
            return self.clone();
        }
        let ours = |keys: &BTreeSet<ChildKey>| -> BTreeSet<ChildKey> {
            keys.iter().filter(|key| is_ours(key)).cloned().collect()
        };
        let checked = Self {
            kinds: &self.kinds & &declared.kinds,
            made: ours(&self.made),
            ended: ours(&self.ended),
            held: self.held.clone(),
            written_for: self.written_for,
            labels: &self.labels & &declared.labels,
            finalizers: &self.finalizers & &declared.finalizers,
            excessive: false,
        };
        checked.share()
    }

    /// Describes what [`Inventory::checked`] left out; `None` if that is nothing. It names a few of many.
    pub fn ignored(&self, checked: &Self) -> Option<String> {
        let beyond = |all: usize, checked: usize| all.saturating_sub(checked);
        let kinds: Vec<&GroupKind> = self.kinds.difference(&checked.kinds).collect();
        let others = beyond(self.made.len(), checked.made.len())
            + beyond(self.ended.len(), checked.ended.len())
            + beyond(self.labels.len(), checked.labels.len())
            + beyond(self.finalizers.len(), checked.finalizers.len());
        let mut parts: Vec<String> = kinds
            .iter()
            .take(MOST_NAMED)
            .map(|kind| format_kind(kind))
            .collect();
        let more = kinds.len().saturating_sub(MOST_NAMED);
        let more_or_all = if self.excessive { "at least " } else { "" };
        if more > 0 || self.excessive {
            parts.push(format!("{more_or_all}{more} more kinds"));
        }
        if others > 0 {
            parts.push(format!("{others} other items"));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the shared instance of equal inventories: custom resources of one template have the same kinds.
    pub fn share(self) -> Arc<Self> {
        static SHARED: Interner<Inventory> = Interner::new();
        SHARED.share(self)
    }

    /// Returns the annotation's text on the custom resource of that uid.
    pub fn text_on(&self, uid: &Uid) -> String {
        let mark = match self.written_for {
            WrittenFor::Unrecorded => return self.text(),
            WrittenFor::This => uid_item(uid),
            WrittenFor::Another => "#".to_owned(),
        };
        let mut text = self.text();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&mark);
        text
    }

    /// Returns the annotation's text, without the uid; equal inventories have equal texts.
    pub fn text(&self) -> String {
        let Self {
            kinds,
            made,
            ended,
            held,
            written_for: _,
            labels,
            finalizers,
            excessive: _,
        } = self;
        let mut items: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        let children = |mark, children: &BTreeSet<ChildKey>| {
            let text = |child: &ChildKey| format!("{mark}{}={}", child.kind, child.object);
            children.iter().map(text).collect::<Vec<_>>()
        };
        items.extend(children('!', made));
        items.extend(children('~', ended));
        items.extend(labels.iter().map(|key| match key {
            MetadataKey::Label(key) => format!("@{key}"),
            MetadataKey::Annotation(key) => format!("^{key}"),
        }));
        items.extend(finalizers.iter().map(|name| format!("+{name}")));
        items.extend(held.iter().map(|held| format!("={held}")));
        items.join(",")
    }
}

fn uid_item(uid: &Uid) -> String {
    format!("#{uid}")
}

/// Adds an item, if there is one; false if there was no room for it.
fn put<T: Ord>(items: &mut BTreeSet<T>, most: usize, item: Option<T>) -> bool {
    let Some(item) = item else { return true };
    if items.len() >= most {
        return items.contains(&item);
    }
    items.insert(item);
    true
}

/// Formats a kind for a message, cut if it is too long.
fn format_kind(kind: &GroupKind) -> String {
    let text = kind.to_string();
    let end = text.floor_char_boundary(NAMED_BYTES);
    format!("`{}`", &text[..end])
}

fn child(text: &str) -> Option<ChildKey> {
    let (kind, object) = text.split_once('=')?;
    let (namespace, name) = object
        .split_once('/')
        .map_or((None, object), |(namespace, name)| (Some(namespace), name));
    Some(ChildKey {
        kind: GroupKind::parse(kind),
        object: ObjectKey {
            namespace: namespace.map(Into::into),
            name: name.into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_reads_back_as_the_same_inventory() {
        let text = "ConfigMap,Deployment.apps,!Namespace=shop,!Job.batch=shop/build,~Job.batch=shop/drain,\
                    @example.org/tier,^example.org/note,+example.org/backup,=0a1b";
        let inventory = Inventory::parse(text);
        assert_eq!(inventory.kinds.len(), 2);
        assert_eq!(inventory.made.len(), 2);
        assert_eq!(inventory.ended.len(), 1);
        assert_eq!(inventory.text(), text);
    }

    #[test]
    fn a_copy_carries_the_inventory_of_another_resource() {
        let [one, two] = ["u1", "u2"].map(Uid::from);
        let inventory = Inventory {
            written_for: WrittenFor::This,
            ..Inventory::parse("Secret")
        };
        let text = inventory.text_on(&one);
        assert_eq!(text, "Secret,#u1");
        assert_eq!(Inventory::of(&text, &one), inventory);
        let copied = Inventory::of(&text, &two);
        assert_eq!(copied.written_for, WrittenFor::Another);
        let kept = Inventory::of(&copied.text_on(&two), &two);
        assert_eq!(kept.written_for, WrittenFor::Another);
        let none = Inventory::of("Secret", &two);
        assert_eq!(none.written_for, WrittenFor::Unrecorded);
        assert_eq!(none.text_on(&two), "Secret");
    }

    #[test]
    fn only_what_a_revision_declared_counts() {
        let text = "ConfigMap,Secret,!ConfigMap=shop/a,!Secret=shop/b,~Job.batch=shop/c,@tier,@theirs,+example.org/ours,\
                    +example.org/theirs";
        let written = Arc::new(Inventory::parse(text));
        let declared = DeclaredKinds {
            kinds: [GroupKind::parse("ConfigMap"), GroupKind::parse("Job.batch")].into(),
            labels: [MetadataKey::Label("tier".into())].into(),
            finalizers: ["example.org/ours".into()].into(),
            ..DeclaredKinds::default()
        };
        let checked = written.checked(&declared);
        assert_eq!(
            checked.text(),
            "ConfigMap,!ConfigMap=shop/a,~Job.batch=shop/c,@tier,+example.org/ours"
        );
        assert_eq!(
            written.ignored(&checked).unwrap(),
            "`Secret`, 3 other items"
        );
        assert_eq!(checked.ignored(&checked), None);
        assert!(Arc::ptr_eq(&checked, &checked.checked(&declared)));
    }

    #[test]
    fn an_inventory_of_thousands_of_kinds_is_read_in_part_and_never_equals_one_of_ours() {
        let kinds: Vec<String> = (0..5000)
            .map(|number| format!("Kind{number}.x.example"))
            .collect();
        let written = Arc::new(Inventory::parse(&kinds.join(",")));
        assert_eq!((written.kinds.len(), written.excessive), (MOST_NAMES, true));
        let checked = written.checked(&DeclaredKinds {
            kinds: written.kinds.clone(),
            ..DeclaredKinds::default()
        });
        assert!(*checked != *written && !checked.excessive);
        let message = written.ignored(&Arc::default()).unwrap();
        assert!(
            message.len() < 300 && message.ends_with("at least 507 more kinds"),
            "{message}"
        );
        let long = Inventory::parse(&"\u{e9}".repeat(10_000));
        assert!(long.ignored(&Inventory::default()).unwrap().len() < 200);
    }

    #[test]
    fn what_a_user_made_of_it_is_passed_over() {
        assert_eq!(Inventory::parse(" ,!, !x,ConfigMap").kinds.len(), 1);
    }
}
