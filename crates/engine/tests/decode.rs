//! Lists and watch events of the API server, decoded to records.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a fixture that cannot be read is a fault of the test"
)]

use orkestra_engine::reconcile::record::{ChildRecord, CrRecord};
use orkestra_object::{
    decode::*,
    value::{Cause, Fault, Node, Path, Projection},
};
use orkestra_plan::GroupKind;
use proptest::prelude::*;

fn paths(texts: &[&str]) -> Vec<Path> {
    texts
        .iter()
        .map(|text| Path::parse(text).unwrap())
        .collect()
}

/// Reads a page that arrives in parts of `size` bytes, and returns its objects.
fn page(projection: &Projection, text: &[u8], size: usize) -> Result<Vec<Node>, BadPage> {
    let (mut page, mut objects) = (Page::new(projection), Vec::new());
    let mut take = |listed| {
        if let Listed::Object(object) = listed {
            objects.push(object);
        }
    };
    for part in text.chunks(size) {
        page.feed(part, &mut take)?;
    }
    page.end(&mut take)?;
    Ok(objects)
}

fn events(projection: &Projection, text: &[u8], size: usize) -> Vec<Event> {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    for mut part in text.chunks(size) {
        while !part.is_empty() {
            let (used, event) = lines.feed(part, projection);
            found.extend(event);
            part = &part[used..];
        }
    }
    found
}

fn metadata(name: &str, more: &str) -> String {
    format!(
        r#""metadata":{{"name":"{name}","namespace":"shop","uid":"u-{name}","resourceVersion":"7"{more}}}"#
    )
}

fn object(name: &str, more: &str) -> String {
    format!("{{{}{more}}}", metadata(name, ""))
}

fn deep(levels: usize) -> String {
    let (open, close) = (r#"{"d":"#.repeat(levels), "}".repeat(levels));
    format!("{open}1{close}")
}

/// Objects that cannot be read as a whole, each with the path that is unreadable when `spec` is read, and the cause.
fn hostile() -> Vec<(String, String, &'static str, Cause)> {
    let spec = |name: &str, value: &str| {
        (
            name.to_owned(),
            object(name, &format!(r#","spec":{value}"#)),
        )
    };
    let row = |(name, text): (String, String), path, cause| (name, text, path, cause);
    vec![
        row(spec("deep", &deep(9_999)), "spec", Cause::TooDeep),
        row(spec("number", r#"{"n":1e400}"#), "spec", Cause::Number),
        row(spec("surrogate", r#"{"t":"\ud800"}"#), "spec", Cause::Text),
        row(
            spec("twice", r#"{"a":{"b":1,"b":2}}"#),
            "spec",
            Cause::Duplicate,
        ),
        row(spec("syntax", r#"{"a":nil}"#), "spec", Cause::Syntax),
        row(
            (
                "both".to_owned(),
                object("both", r#","spec":{},"spec":{"a":1}"#),
            ),
            "spec",
            Cause::Duplicate,
        ),
    ]
}

#[test]
fn a_hostile_object_is_named_and_its_neighbours_are_read() {
    let paths = paths(&["spec", "status.phase"]);
    let projection = CrRecord::projection(&paths);
    for (name, text, path, cause) in hostile() {
        let list = format!(
            r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{},{text},{}]}}"#,
            object("before", r#","spec":{"a":1}"#),
            object("after", "")
        );
        let watch = format!(
            "{{\"type\":\"ADDED\",\"object\":{text}}}\n{{\"type\":\"DELETED\",\"object\":{}}}\n",
            object("after", "")
        );
        for size in [7, 1 << 20] {
            let objects = page(&projection, list.as_bytes(), size).unwrap();
            let records: Vec<CrRecord> = objects
                .iter()
                .map(|object| CrRecord::read(object, &paths).unwrap())
                .collect();
            let names: Vec<&str> = records.iter().map(|record| &*record.id.key.name).collect();
            assert_eq!(names, ["before", &*name, "after"]);
            assert!(records[0].unread.is_none() && records[2].unread.is_none());
            let fault = records[1].unread.as_deref().unwrap();
            assert_eq!(
                (fault.path.to_string().as_str(), fault.cause),
                (path, cause),
                "{name}"
            );
            let found = events(&projection, watch.as_bytes(), size);
            assert!(matches!(&found[..], [Event::Put(one), Event::Gone(_)] if *one == objects[1]));
        }
    }
}

#[test]
fn what_nobody_reads_may_be_anything() {
    let paths = paths(&["status.phase"]);
    let projection = CrRecord::projection(&paths);
    for (name, text, ..) in hostile() {
        if name == "syntax" {
            continue;
        }
        let object = projection.decode(text.as_bytes());
        let record = CrRecord::read(&object, &paths).unwrap();
        assert_eq!((record.unread, &*record.id.key.name), (None, &*name));
    }
}

#[test]
fn a_deep_annotation_of_managed_fields_by_another_s_update_hurts_nobody() {
    let entry = |manager: &str, operation: &str, fields: &str| {
        format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{fields}}}"#)
    };
    let kind = GroupKind::parse("Deployment.apps");
    let projection = ChildRecord::projection(&[]);
    let read = |other: &str| {
        let ours = entry(
            "orkestra/websites.shop.example",
            "Apply",
            r#"{"f:spec":{}}"#,
        );
        let fields = format!(r#","managedFields":[{other},{ours}]"#);
        let text = format!("{{{}}}", metadata("web", &fields));
        ChildRecord::read(&kind, &projection.decode(text.as_bytes()), &[]).unwrap()
    };
    let update = read(&entry("kubectl-edit", "Update", &deep(300)));
    assert_eq!(update.unread(), None);
    assert!(update.ownership.wrote("orkestra/websites.shop.example"));
    let apply = read(&entry("helm", "Apply", &deep(300)));
    assert_eq!(apply.unread().unwrap().cause, Cause::TooDeep);
}

#[test]
fn a_child_that_cannot_be_read_is_never_deleted_and_never_taken_for_gone() {
    let kind = GroupKind::parse("ConfigMap");
    let manager = "orkestra/websites.shop.example";
    let marks = format!(
        r#","labels":{{"orkestra.orkspace.io/owner-uid":"cr-1"}},"annotations":{{"orkestra.orkspace.io/child":"ConfigMap/web"}},"managedFields":[{{"manager":"{manager}","operation":"Apply","fieldsV1":{{"f:data":{{}}}}}}]"#
    );
    let kept = paths(&["data"]);
    let read = |data: &str| {
        let text = format!(r#"{{{},"data":{data}}}"#, metadata("web", &marks));
        let object = ChildRecord::projection(&kept).decode(text.as_bytes());
        ChildRecord::read(&kind, &object, &kept).unwrap()
    };
    let uid = "cr-1".into();
    let whole = read(r#"{"a":"b"}"#);
    assert!(whole.is_ours(&uid, manager) && whole.is_uncollected(&uid, manager));
    assert!(!whole.is_unread_and_uncollected(&uid));
    let part = read(&deep(300));
    assert!(!part.is_ours(&uid, manager) && !part.is_uncollected(&uid, manager));
    assert!(part.is_unread_and_uncollected(&uid));
    assert!(!part.is_unread_and_uncollected(&"cr-2".into()));
    assert_eq!((part.owner(), &part.id), (Some(&uid), &whole.id));
    assert!(part.differs(&whole));
}

#[test]
fn an_object_that_is_too_large_is_named_from_its_beginning() {
    let projection = CrRecord::projection(&[]);
    let large = object(
        "large",
        &format!(r#","spec":{{"a":"{}"}}"#, "x".repeat(LARGEST_OBJECT)),
    );
    let list = format!(
        r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{large},{}]}}"#,
        object("small", "")
    );
    let objects = page(&projection, list.as_bytes(), 1 << 16).unwrap();
    let records: Vec<CrRecord> = objects
        .iter()
        .map(|object| CrRecord::read(object, &[]).unwrap())
        .collect();
    assert_eq!(records[0].unread.as_deref().unwrap().cause, Cause::TooLarge);
    assert_eq!(&*records[0].id.key.name, "large");
    assert_eq!(records[1].unread, None);
    let watch = format!("{{\"type\":\"MODIFIED\",\"object\":{large}}}\n");
    let found = events(&projection, watch.as_bytes(), 1 << 16);
    let [Event::Put(found)] = &found[..] else {
        panic!()
    };
    assert_eq!(CrRecord::read(found, &[]).unwrap(), records[0]);
}

/// Objects of the maximum size that the API server accepts, in several dimensions.
#[test]
fn objects_as_large_as_the_api_server_lets_in_are_read() {
    let names = ["a".repeat(253), "a".to_owned()];
    let key = format!("{}/{}", "k".repeat(253), "n".repeat(63));
    let annotations = format!(r#","annotations":{{"{key}":"{}"}}"#, "x".repeat(1_400_000));
    let owners: Vec<String> = (0..5_000)
        .map(|n| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"o{n}","uid":"u{n}"}}"#))
        .collect();
    let owners = format!(r#","ownerReferences":[{}]"#, owners.join(","));
    let managers: Vec<String> = (0..3_000)
        .map(|n| format!(r#"{{"manager":"m{n}","operation":"Apply","fieldsV1":{{"f:spec":{{"f:a{n}":{{}}}}}}}}"#))
        .collect();
    let managers = format!(r#","managedFields":[{}]"#, managers.join(","));
    let kind = GroupKind::parse("ConfigMap");
    for more in ["", &annotations, &owners, &managers] {
        for name in &names {
            let text = format!("{{{}}}", metadata(name, more));
            let cr = CrRecord::projection(&[]).decode(text.as_bytes());
            assert_eq!(CrRecord::read(&cr, &[]).unwrap().unread, None);
            let child = ChildRecord::projection(&[]).decode(text.as_bytes());
            let child = ChildRecord::read(&kind, &child, &[]).unwrap();
            assert_eq!((child.unread(), &*child.id.key.name), (None, &**name));
        }
    }
}

#[test]
fn an_error_is_distinguished_from_what_is_no_event() {
    let projection = CrRecord::projection(&[]);
    let line = |text: &str| events(&projection, format!("{text}\n").as_bytes(), 5);
    let status = r#"{"kind":"Status","code":410,"reason":"Expired"}"#;
    assert!(matches!(&line(status)[..], [Event::Refused(_)]));
    let typed = format!(r#"{{"type":"ERROR","object":{status}}}"#);
    assert!(matches!(&line(&typed)[..], [Event::Refused(_)]));
    for text in [
        "garbage",
        "{}",
        r#"{"type":"ADDED"}"#,
        r#"{"a":1}"#,
        "[]",
        r#"{"type":1,"object":{}}"#,
    ] {
        assert_eq!(line(text), [Event::Lost], "{text}");
    }
    assert_eq!(line(""), []);
    assert_eq!(line(r#"{"type":"NEW","object":{}}"#), []);
}

#[test]
fn an_answer_is_read_but_for_what_cannot_be() {
    let text = object(
        "web",
        &format!(
            r#","spec":{{"a":1,"deep":{}}},"status":{{"n":1e400,"m":2}}"#,
            deep(500)
        ),
    );
    let answer = Projection::whole().decode(text.as_bytes());
    assert_eq!(
        answer.at(&Path::parse("spec.a").unwrap()),
        Some(&Node::Int(1))
    );
    assert_eq!(
        answer.at(&Path::parse("status.m").unwrap()),
        Some(&Node::Int(2))
    );
    let faults: Vec<String> = Fault::all_of(&answer)
        .iter()
        .map(|fault| fault.path.to_string())
        .collect();
    assert_eq!(faults.len(), 2);
    assert!(
        faults[0].starts_with("spec.deep") && faults[1] == "status.n",
        "{faults:?}"
    );
    let unread = |texts: &[&str]| CrRecord::read(&answer, &paths(texts)).unwrap().unread;
    assert_eq!(unread(&["spec.a", "status.m"]), None);
    assert!(unread(&["spec"]).is_some() && unread(&["status.n.x"]).is_some());
}

proptest! {
    #[test]
    fn any_bytes_give_a_result(text in prop::collection::vec(any::<u8>(), 0..200), size in 1..50_usize) {
        let projection = CrRecord::projection(&paths(&["spec", "status.phase"]));
        let _ = page(&projection, &text, size);
        let _ = events(&projection, &text, size);
        let _ = projection.decode(&text);
        let _ = Projection::whole().decode(&text);
    }
}
