use super::*;

#[test]
fn ages_read_as_kubectls_do() {
    let start = Timestamp::UNIX_EPOCH;
    let cases = [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (11 * 60, "11m"),
        (179 * 60, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (26 * 3600, "26h"),
        (3 * 86400 + 7200, "3d2h"),
        (90 * 86400, "90d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ];
    for (seconds, text) in cases {
        assert_eq!(age(start, start + Duration::from_secs(seconds)), text);
    }
    assert_eq!(age(start + Duration::from_secs(5), start), "0s");
}

#[test]
fn fields_are_dot_paths() {
    let text = br#"{"a": [{"b": 7}], "c": "x"}"#;
    let value = |path: &str| {
        let path = parse_field(path).unwrap();
        let (value, _) = WantedParts::at(&path, 100).read(text).unwrap();
        at(&value, &path).clone()
    };
    assert_eq!(value("a.0.b"), 7);
    for absent in ["a.1.b", "c.d", "a.b", "d"] {
        assert_eq!(value(absent), Value::Null, "{absent}");
    }
    let parts = "a.".repeat(20);
    for bad in ["", ".", "a..b", &"x".repeat(300), &format!("{parts}b")] {
        assert!(parse_field(bad).is_err(), "{bad}");
    }
}
