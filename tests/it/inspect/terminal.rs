//! What a person sees: `ork` on a pseudo-terminal of 60 and of 200 columns, with colours, with `NO_COLOR`, and on a dumb terminal.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    process::{Command, Stdio},
};

use anyhow::{Result, ensure};
use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::json;

use super::with_trouble;
use crate::scenario::Scenario;

/// A colour.
const ESCAPE: char = '\u{1b}';

/// Returns what a command prints on a terminal of that width, with line feeds as the ends of lines.
fn on_terminal(mut command: Command, columns: u16) -> Result<String> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    let size = Winsize {
        ws_row: 40,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size)?;
    command.stdin(Stdio::from(slave.try_clone()?));
    command.stdout(Stdio::from(slave));
    // The line that says what a command waits for is on standard error, and appears on a slow machine only.
    command.stderr(Stdio::null());
    let mut child = command.spawn()?;
    // The command has its own copies of the terminal, and the last one ends the output.
    drop(command);
    let mut output = Vec::new();
    let mut master = File::from(master);
    let mut part = [0; 4096];
    loop {
        match master.read(&mut part) {
            Ok(0) => break,
            Ok(read) => output.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Linux reports the end of a pseudo-terminal as EIO.
            Err(_) => break,
        }
    }
    child.wait()?;
    Ok(String::from_utf8_lossy(&output).replace("\r\n", "\n"))
}

/// Runs `ork` on a terminal of that kind and width.
fn seen(
    scenario: &Scenario,
    args: &[&str],
    (term, no_color): (&str, bool),
    columns: u16,
) -> Result<String> {
    let mut command = scenario.command_as(&scenario.cluster.admin());
    command
        .args(args)
        .args(["--namespace", &scenario.namespace]);
    command.env("TERM", term).env_remove("COLORTERM");
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    if no_color {
        command.env("NO_COLOR", "1");
    }
    on_terminal(command, columns)
}

/// Returns the widest line as a person sees it.
fn widest(text: &str) -> usize {
    let plain = anstream::adapter::strip_str(text).to_string();
    let widths = plain.lines().map(textwrap::core::display_width);
    widths.max().unwrap_or_default()
}

// Over 60 lines: a table of terminals and what is seen on each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_fits_the_terminal_and_has_colours_only_where_they_are_shown() -> Result<()> {
    let mut scenario = with_trouble("terminal").await?;
    // What others write must not move the cursor, nor begin a row.
    let pods = scenario.objects("pods");
    let hostile = json!({ "status": { "phase": "Pending", "containerStatuses": [{
        "name": "lost-db", "image": "registry.example/db:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off\n\u{1b}[2J\u{202e}Pod good Current" } },
    }] } });
    pods.patch("lost-db-0/status", &hostile).await?;
    let set = "statefulset/lost-db";
    let colour = ("xterm-256color", false);

    let wide = seen(&scenario, &["tree", set], colour, 200)?;
    ensure!(widest(&wide) <= 200, "{wide}");
    ensure!(wide.contains("\u{1b}[33mInProgress\u{1b}[0m"), "{wide:?}");
    ensure!(wide.contains("└─ ") && wide.contains("MESSAGE"), "{wide}");
    // The head, the object and its Pod.
    ensure!(wide.lines().count() == 3, "{wide}");
    ensure!(
        !wide.contains("\u{1b}[2J") && !wide.contains('\u{202e}'),
        "{wide:?}"
    );
    ensure!(wide.contains("\\u{202e}"), "{wide:?}");

    let narrow = seen(&scenario, &["tree", set], colour, 60)?;
    ensure!(widest(&narrow) <= 60, "{narrow}");
    let plain = anstream::adapter::strip_str(&narrow).to_string();
    // Messages are below their objects, beside the lines of the tree.
    ensure!(!plain.contains("MESSAGE"), "{plain}");
    let lines: Vec<&str> = plain.lines().collect();
    ensure!(lines[0].starts_with("NAME"), "{plain}");
    let is_below = |line: &&str| line.starts_with("   ") && line.contains("container lost-db:");
    ensure!(lines.iter().any(is_below), "{plain}");

    for (terminal, frame) in [(("xterm-256color", true), "└─ "), (("dumb", false), "`- ")] {
        for columns in [60, 200] {
            let text = seen(&scenario, &["tree", set], terminal, columns)?;
            ensure!(!text.contains(ESCAPE), "{terminal:?}: {text:?}");
            ensure!(text.contains(frame), "{terminal:?}: {text}");
            ensure!(
                widest(&text) <= usize::from(columns),
                "{terminal:?}: {text}"
            );
        }
    }

    // Rows of a list are cut, unless they are asked for as a whole.
    let kind = format!("ponds.{}", scenario.group);
    let ponds = ["get", &kind, "lost"];
    let narrow = seen(&scenario, &ponds, colour, 70)?;
    ensure!(widest(&narrow) <= 70 && narrow.contains('…'), "{narrow}");
    ensure!(narrow.lines().count() == 2, "{narrow}");
    let wide = seen(
        &scenario,
        &[&ponds[..], &["--output", "wide"]].concat(),
        colour,
        70,
    )?;
    ensure!(!wide.contains('…') && wide.contains("v1alpha1"), "{wide}");
    // JSON has no colours, and is not cut.
    let operators = ["get", "operators", "--output", "json"];
    let json = seen(&scenario, &operators, colour, 60)?;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    ensure!(json["items"][0]["name"] == "pond", "{json:#}");
    scenario.check_running()
}
