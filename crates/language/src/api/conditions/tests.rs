use super::*;

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::new(1_700_000_000 + second, 123_456_789).unwrap()
}

fn ready(status: ConditionStatus, message: &str) -> Condition {
    Condition::new(READY, status, "Progressing", message)
}

fn stalled(status: ConditionStatus) -> Condition {
    Condition::new(STALLED, status, "NoApiTypes", "")
}

#[test]
fn the_time_moves_only_with_the_status() {
    let first = merge(&[], &[ready(ConditionStatus::False, "one")], at(0));
    assert_eq!(
        first[0].last_transition_time.as_deref(),
        Some("2023-11-14T22:13:20Z")
    );
    let second = merge(
        &first,
        &[ready(ConditionStatus::False, "two").observed(Some(7))],
        at(60),
    );
    assert_eq!(
        second[0].last_transition_time,
        first[0].last_transition_time
    );
    assert_eq!(
        (second[0].message.as_str(), second[0].observed_generation),
        ("two", Some(7))
    );
    let third = merge(&second, &[ready(ConditionStatus::True, "two")], at(60));
    assert_eq!(
        third[0].last_transition_time.as_deref(),
        Some("2023-11-14T22:14:20Z")
    );
}

#[test]
fn a_condition_is_read_and_written_as_serde_does() {
    for text in [
        r#"{"type":"Ready","status":"True"}"#,
        r#"{"type":"Ready","status":"False","reason":"R","message":"m","lastTransitionTime":"t","observedGeneration":3}"#,
        r#"{"type":"Ready","status":"Unknown","by":{"a":[1,null]},"lastTransitionTime":null,"observedGeneration":null}"#,
        r#"{"type":"Ready","status":"true"}"#,
        r#"{"type":"Ready","status":1}"#,
        r#"{"type":"Ready"}"#,
        r#"{"status":"True"}"#,
        r#"{"type":null,"status":"True"}"#,
        r#"{"type":"Ready","status":"True","reason":null}"#,
        r#"{"type":"Ready","status":"True","message":7}"#,
        r#"{"type":"Ready","status":"True","lastTransitionTime":7}"#,
        r#"{"type":"Ready","status":"True","observedGeneration":"7"}"#,
        r#"{"type":"Ready","status":"True","observedGeneration":7.5}"#,
        r#"{"type":"Ready","status":"True","observedGeneration":9223372036854775808}"#,
        r#"["Ready"]"#,
        r#""Ready""#,
        "null",
    ] {
        let node: Node = serde_json::from_str(text).unwrap();
        let wanted: Option<Condition> = serde_json::from_value(node.to_json()).ok();
        let read = Condition::read(&node);
        assert_eq!(read, wanted, "{text}");
        if let Some(condition) = read {
            let written = Node::Map(condition.fields().collect());
            assert_eq!(written.to_json(), serde_json::to_value(&condition).unwrap());
        }
    }
}

#[test]
fn a_merge_of_the_same_changes_nothing() {
    let wanted = [
        ready(ConditionStatus::False, ""),
        stalled(ConditionStatus::True),
    ];
    let once = merge(&[], &wanted, at(0));
    assert_eq!(merge(&once, &wanted, at(99)), once);
}

#[test]
fn conditions_of_others_stay_as_they_are() {
    let theirs: Condition = serde_json::from_value(serde_json::json!({
        "type": "Audited", "status": "False", "lastTransitionTime": "yesterday", "auditor": "moss"
    }))
    .unwrap();
    let merged = merge(
        std::slice::from_ref(&theirs),
        &[ready(ConditionStatus::True, "")],
        at(0),
    );
    assert_eq!(merged[0], theirs);
    assert_eq!(serde_json::to_value(&merged[0]).unwrap()["auditor"], "moss");
    assert_eq!(merged[1].type_, READY);
}

#[test]
fn abnormal_conditions_go_when_they_are_not_true() {
    let there = merge(&[], &[stalled(ConditionStatus::True)], at(0));
    assert_eq!(there.len(), 1);
    assert!(merge(&there, &[], at(1)).is_empty());
    assert!(merge(&there, &[stalled(ConditionStatus::False)], at(1)).is_empty());
    assert!(merge(&[], &[stalled(ConditionStatus::Unknown)], at(1)).is_empty());
}

#[test]
fn long_messages_are_cut_between_characters() {
    let cut = cut_message(&"\u{1f980}".repeat(10_000));
    assert!(cut.len() <= MESSAGE_BYTES && cut.ends_with("\u{1f980}..."));
    assert_eq!(cut_message("short"), "short");
}

#[test]
fn of_many_things_each_has_its_say_and_none_is_passed_over() {
    let short = ["one".to_owned(), "two".to_owned()];
    assert_eq!(fit(&short, 100), "one; two");
    assert_eq!(fit(&[], 100), "");

    let long: Vec<String> = ["a".repeat(5000), "b".to_owned(), "\u{1f980}".repeat(5000)].into();
    let text = fit(&long, EVENT_BYTES);
    let parts: Vec<&str> = text.split("; ").collect();
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[1], "b");
    assert!(parts[0].starts_with("aaa") && parts[0].ends_with("a..."));
    assert!(parts[2].ends_with("\u{1f980}..."));
    assert!((1000..=EVENT_BYTES).contains(&text.len()), "{}", text.len());

    let many: Vec<String> = (0..500)
        .map(|n| format!("{n}{}", "x".repeat(300)))
        .collect();
    let text = fit(&many, EVENT_BYTES);
    assert!(text.ends_with("; and 492 more"), "{text}");
    assert!(text.len() <= EVENT_BYTES);
}

#[test]
fn no_limit_ever_splits_a_character_or_is_passed() {
    let lines: Vec<String> = [
        "e\u{301}\u{1f980}x".repeat(40),
        "\u{fc}".repeat(90),
        "z".to_owned(),
    ]
    .into();
    for bytes in 3..700 {
        let text = cut(&lines[0], bytes);
        assert!(text.len() <= bytes);
        if bytes > 64 {
            assert!(fit(&lines, bytes).len() <= bytes, "{bytes}");
        }
    }
}
