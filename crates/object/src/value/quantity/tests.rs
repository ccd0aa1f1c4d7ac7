use super::*;

fn canonical(text: &str) -> String {
    text.parse().map_or_else(
        |error: QuantityError| error.to_string(),
        |quantity: Quantity| quantity.to_string(),
    )
}

#[test]
fn amounts_and_numbers_are_exact() {
    let cases = [
        ("250m", 0.25_f64, None),
        ("2Gi", 2_147_483_648.0, Some(2_147_483_648)),
        ("-1.5", -1.5, None),
        ("1n", 1e-9, None),
        ("8Ei", 9_223_372_036_854_775_807.0, Some(i64::MAX)),
        ("9223372036854775808", 9_223_372_036_854_775_808.0, None),
        ("-100m", -0.1, None),
    ];
    for (text, float, int) in cases {
        let quantity: Quantity = text.parse().unwrap();
        assert_eq!(quantity.as_f64().to_bits(), float.to_bits(), "{text}");
        assert_eq!(quantity.as_i64(), int, "{text}");
    }
}

#[test]
fn numbers_print_as_short_as_they_can() {
    let cases = [
        (0.25, "250m"),
        (2_147_483_648.0, "2Gi"),
        (1024.0, "1Ki"),
        (1000.0, "1k"),
        (1_024_000.0, "1024k"),
        (1e10, "10G"),
        (1536.0, "1536"),
        (0.1 + 0.2, "300m"),
        (-2.5, "-2500m"),
        (-0.0, "0"),
        (1e-12, "0"),
    ];
    for (number, text) in cases {
        let quantity = Quantity::from_float(number).unwrap().shortest();
        assert_eq!(quantity.to_string(), text);
    }
    for number in [f64::NAN, f64::INFINITY, -1e28] {
        assert_eq!(Quantity::from_float(number), Err(QuantityError::TooLarge));
    }
}

#[test]
fn a_sum_is_written_as_its_first_part_that_is_not_0() {
    let cases = [
        ("250m", "750m", "1"),
        ("1Gi", "1024", "1048577Ki"),
        ("1G", "1Gi", "2073741824"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "-1Gi", "0"),
        ("0.1", "0.2", "300m"),
    ];
    for (a, b, sum) in cases {
        let [a, b] = [a, b].map(|text| text.parse::<Quantity>().unwrap());
        assert_eq!(a.plus(b).unwrap().to_string(), sum);
        assert_eq!(a.plus(b).unwrap().minus(b).unwrap().nanos, a.nanos);
    }
    let most: Quantity = "10e27".parse().unwrap();
    assert_eq!(most.plus(most), Err(QuantityError::TooLarge));
    assert_eq!("1e29".parse::<Quantity>(), Err(QuantityError::TooLarge));
    assert_eq!(
        "1e2000000000".parse::<Quantity>(),
        Err(QuantityError::TooLarge)
    );
}

/// The expectations are the results of `resource.ParseQuantity` and of `String` on a copy without its cached text.
#[test]
fn the_canonical_form_is_that_of_kubernetes() {
    for (text, expected) in CANONICAL {
        assert_eq!(canonical(text), *expected, "{text}");
    }
    for bad in [
        "",
        "-",
        ".",
        "m",
        "Ki",
        "1 ",
        " 1",
        "1K",
        "1ki",
        "1mi",
        "1.2.3",
        "1e",
        "1e1.5",
        "1x",
        "--1",
        "+-1",
        "1Kim",
        "1e5m",
        "\u{665}",
        "1\u{b5}",
        "inf",
        "nan",
        &"1".repeat(300),
    ] {
        assert_eq!(bad.parse::<Quantity>(), Err(QuantityError::Syntax), "{bad}");
    }
}

const CANONICAL: &[(&str, &str)] = &[
    ("0", "0"),
    ("1", "1"),
    ("1000", "1k"),
    ("1500", "1500"),
    ("1100", "1100"),
    ("100000", "100k"),
    ("1500m", "1500m"),
    ("0.25", "250m"),
    ("1000m", "1"),
    ("0.001", "1m"),
    ("1.5", "1500m"),
    ("1Gi", "1Gi"),
    ("1024Ki", "1Mi"),
    ("1.5Gi", "1536Mi"),
    ("0.5Gi", "512Mi"),
    ("1023", "1023"),
    ("1023Ki", "1023Ki"),
    ("1Ki", "1Ki"),
    ("0.5Ki", "512"),
    ("0.9Ki", "921600m"),
    ("0.0001Ki", "102400u"),
    ("1024", "1024"),
    ("1e3", "1e3"),
    ("12e6", "12e6"),
    ("1.5e3", "1500"),
    ("1E3", "1e3"),
    ("1e-3", "1e-3"),
    ("1E", "1E"),
    ("1e0", "1"),
    ("2e1", "20"),
    ("0.1m", "100u"),
    ("0.1n", "1n"),
    ("1.1n", "2n"),
    ("123456789n", "123456789n"),
    ("1000000000n", "1"),
    ("-1", "-1"),
    ("-0.1n", "-1n"),
    ("-1.5Gi", "-1536Mi"),
    ("+1", "1"),
    ("9223372036854775807", "9223372036854775807"),
    ("8Ei", "9223372036854775807"),
    ("9Ei", "9223372036854775807"),
    ("100Ei", "9223372036854775807"),
    ("1000P", "1E"),
    ("10Pi", "10Pi"),
    ("1.", "1"),
    (".5", "500m"),
    ("00010", "10"),
    ("000.010", "10m"),
    ("0.123456789012Ki", "126419751949n"),
    ("1234567.891Mi", "1294538260873216m"),
    ("3k", "3k"),
    ("3000k", "3M"),
    ("1e21", "1e21"),
    ("5e-9", "5e-9"),
    ("5e-10", "1e-9"),
    ("0n", "0"),
    ("0Ki", "0"),
    ("1.00000000001", "1000000001n"),
    ("1024Ei", "9223372036854775807"),
    ("0.1Gi", "107374182400m"),
    ("0.3Mi", "314572800m"),
    ("1e18", "1e18"),
    ("1e19", "10e18"),
    ("12345678901234567890", "12345678901234567890"),
    ("-0.5Ki", "-512"),
    ("-2Ki", "-2Ki"),
    ("1e+3", "1e3"),
];
