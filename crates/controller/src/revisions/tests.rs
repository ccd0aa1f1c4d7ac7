use super::*;

fn revision(name: &str, number: i64) -> Revision {
    Revision {
        name: name.to_owned(),
        number,
        accepted: None,
        author: None,
        packed: Packed {
            head: Value::Null,
            parts: Vec::new(),
        },
    }
}

fn katalog() -> Value {
    json!({ "kind": "Katalog", "metadata": { "name": "k", "namespace": "n" }, "spec": {} })
}

fn object(name: &str, number: i64, data: &Value) -> DynamicObject {
    let object = json!({ "metadata": { "name": name }, "revision": number, "data": data });
    serde_json::from_value(object).unwrap()
}

/// Returns the content of a revision, and the objects that store it in three parts.
fn large() -> (RevisionContent, Vec<DynamicObject>) {
    let digits: Vec<String> = (0..130_000_u32)
        .map(|number| value::hash_text(&number.to_string()))
        .collect();
    let content = RevisionContent {
        document: essence(&katalog()),
        motifs: Map::from_iter([("reeds".to_owned(), json!({ "text": digits.concat() }))]),
        sources: Map::new(),
    };
    let packed = Packed::of(&content.data()).unwrap();
    assert_eq!(packed.parts.len(), 3);
    let mut objects = vec![object("k-1", 4, &packed.head)];
    for (index, chunk) in packed.parts.iter().enumerate() {
        let (of, number) = ("k-1".to_owned(), index + 1);
        let data = packed::part(&ChunkPosition { of, number }, chunk);
        objects.push(object(&part_name("k-1", number), 0, &data));
    }
    (content, objects)
}

#[test]
fn the_three_before_the_accepted_revision_are_kept() {
    let stored: Vec<_> = (1..=6)
        .map(|number| revision(&format!("r{number}"), number))
        .collect();
    assert_eq!(superfluous(&stored, "new", 3), ["r1", "r2", "r3"]);
    assert_eq!(
        superfluous(&stored, "r1", 3),
        ["r2", "r3"],
        "the accepted revision is kept"
    );
    assert_eq!(superfluous(&stored[..3], "new", 3), Vec::<&str>::new());
}

#[test]
fn the_essence_of_a_katalog_leaves_out_what_does_not_change_what_runs() {
    let one = json!({ "kind": "Katalog", "metadata": { "name": "k", "namespace": "n", "resourceVersion": "1" }, "spec": { "crds": {} }, "status": {} });
    let mut other = one.clone();
    other["metadata"]["resourceVersion"] = json!("2");
    other["status"] = json!({ "ready": "1/1" });
    other["spec"]["suspend"] = json!(true);
    assert_eq!(essence(&one), essence(&other));
    assert_eq!(essence(&one)["spec"], one["spec"]);
}

#[test]
fn a_revision_holds_the_motifs_that_it_took_and_one_of_an_earlier_release_is_read() {
    let motifs = Map::from_iter([("reeds".to_owned(), json!({ "kind": "Motif" }))]);
    let content = RevisionContent {
        document: katalog(),
        motifs: motifs.clone(),
        sources: Map::new(),
    };
    // Earlier releases stored the data uncompressed in one object, whatever its size.
    let stored = Stored::of(std::iter::once(object("k-1", 4, &content.data())));
    let [revision] = stored.revisions.as_slice() else {
        panic!("{stored:?}");
    };
    let read = revision.content().unwrap();
    assert_eq!((revision.number, read.document), (4, essence(&katalog())));
    assert_eq!(read.motifs, motifs);
    let without = RevisionContent {
        motifs: Map::new(),
        ..content
    };
    assert_eq!(without.data(), essence(&katalog()));
}

#[test]
fn a_large_revision_is_read_from_its_parts_in_any_order_and_without_one_of_them_it_is_not() {
    let (content, mut objects) = large();
    objects.reverse();
    let stored = Stored::of(objects.clone().into_iter());
    assert_eq!(stored.revisions.len(), 1);
    assert_eq!(stored.revisions[0].content(), Some(content));
    objects.remove(1);
    let stored = Stored::of(objects.into_iter());
    assert_eq!(stored.revisions[0].content(), None);
}

#[test]
fn parts_go_with_their_revision_and_those_without_one_are_removed() {
    let (_, objects) = large();
    let stored = Stored::of(objects.clone().into_iter());
    assert_eq!(stored.parts_to_remove("k-2", 0, &[]), Vec::<&str>::new());
    let all = ["k-1-p1", "k-1-p2", "k-1-p3"];
    assert_eq!(stored.parts_to_remove("k-2", 0, &["k-1"]), all);
    assert_eq!(stored.parts_to_remove("k-1", 2, &[]), ["k-1-p3"]);
    let orphans = Stored::of(objects.into_iter().skip(1));
    assert_eq!(orphans.parts_to_remove("k-2", 0, &[]), all);
}

#[test]
fn names_are_legal_and_differ_between_documents_and_uids() {
    let long = "k".repeat(253);
    let one = name(&long, "u1", &json!({ "spec": 1 }));
    assert_eq!(one.len(), 253);
    assert!(names::check_dns1123_subdomain(&one).is_ok());
    assert_ne!(one, name(&long, "u1", &json!({ "spec": 2 })));
    assert_ne!(one, name(&long, "u2", &json!({ "spec": 1 })));
    let part = part_name(&one, 7);
    assert_eq!(part.len(), 253);
    assert!(names::check_dns1123_subdomain(&part).is_ok());
    assert_ne!(part, part_name(&one, 6));
}
