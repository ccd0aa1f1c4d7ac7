//! `docs/develop/guarantees.md`: every row has a proof, and every named test exists. `docs/operate/security.md`: every named test exists.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::traps::is_a_test;

/// A row of the table: its name, the guarantee, and its proof.
struct Row<'a> {
    name: &'a str,
    guarantee: &'a str,
    proof: &'a str,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let is_row = |line: &&str| {
        let name = line.strip_prefix("| ").unwrap_or_default();
        ["G", "R", "S"].iter().any(|letter| {
            let number = name.strip_prefix(letter).unwrap_or_default();
            number.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let row = |line| {
        let mut cells = str::split(line, " | ").map(|cell| cell.trim_matches(['|', ' ']));
        Some(Row {
            name: cells.next()?,
            guarantee: cells.next()?,
            proof: cells.next()?,
        })
    };
    text.lines().filter(is_row).filter_map(row).collect()
}

/// Returns the tests that a proof names, as pairs of file and test.
fn tests(proof: &str) -> impl Iterator<Item = (&str, &str)> {
    let named = proof.split('`').skip(1).step_by(2);
    named.filter_map(|named| named.split_once("::"))
}

#[test]
fn every_guarantee_has_a_proof_and_every_test_that_is_named_exists() -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/develop/guarantees.md");
    let text = std::fs::read_to_string(&file).context("cannot read docs/develop/guarantees.md")?;
    let rows = rows(&text);
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let of = |letter: &str| -> Result<Vec<u32>> {
        let numbers = names.iter().filter_map(|name| name.strip_prefix(letter));
        let numbers = numbers.map(|number| number.parse().context("a row without a number"));
        numbers.collect()
    };
    for (letter, least) in [("G", 30), ("S", 27), ("R", 13)] {
        let numbers = of(letter)?;
        let last = u32::try_from(numbers.len())?;
        ensure!(last >= least, "only {last} rows of {letter}");
        ensure!(numbers == (1..=last).collect::<Vec<_>>(), "{numbers:?}");
    }
    let mut count = 0;
    for Row {
        name,
        guarantee,
        proof,
    } in rows
    {
        ensure!(guarantee.ends_with('.'), "{name}: {guarantee}");
        let mut proofs = 0;
        for (file, test) in tests(proof) {
            is_a_test(file, test)
                .with_context(|| format!("{name} of docs/develop/guarantees.md"))?;
            proofs += 1;
        }
        let is_partly = proof.starts_with("partly: ");
        let is_planned = proof.starts_with("planned: ");
        ensure!(proofs > 0 || is_partly || is_planned, "{name} has no proof");
        ensure!(
            proofs == 0 || !is_planned,
            "{name} is planned, and has tests"
        );
        count += proofs;
    }
    ensure!(count > 40, "only {count} tests are named");
    Ok(())
}

#[test]
fn a_test_that_is_gone_is_noticed() {
    let row = "| G1 | It works. | `tests/it/guarantees.rs::no_such_test_exists_here` |";
    let rows = rows(row);
    let named: Vec<_> = tests(rows[0].proof).collect();
    assert_eq!(
        named,
        [("tests/it/guarantees.rs", "no_such_test_exists_here")]
    );
    assert!(is_a_test(named[0].0, named[0].1).is_err());
}

#[test]
fn every_test_that_the_threat_model_names_exists() -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate/security.md");
    let text = std::fs::read_to_string(&file).context("cannot read docs/operate/security.md")?;
    let mut count = 0;
    for (file, test) in tests(&text) {
        is_a_test(file, test).context("docs/operate/security.md")?;
        count += 1;
    }
    ensure!(count > 25, "only {count} tests are named");
    Ok(())
}
