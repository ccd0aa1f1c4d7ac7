//! A control plane for local use: `testbed up` starts one in the background, `testbed down` ends it.

mod cluster;
mod schemas;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// A genuine Kubernetes control plane on loopback.
#[derive(Parser)]
#[command(name = "testbed")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a control plane in the background, wait until it serves and print how to use it
    Up {
        #[command(flatten)]
        place: Place,
        /// Add a scheduler and a fake node: pods run and Jobs complete
        #[arg(long)]
        nodes: bool,
    },
    /// End the control plane and remove its data
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Print a kubeconfig for a user of the running control plane
    Kubeconfig {
        #[command(flatten)]
        place: Place,
        /// The user's name, as RBAC has it
        #[arg(long)]
        user: String,
        /// A group of the user; at most two
        #[arg(long = "group")]
        groups: Vec<String>,
    },
    /// Print a free loopback port
    Port,
    /// Start a control plane, write the schemas of its kinds to a file and end it
    #[command(hide = true)]
    Schemas {
        /// The file to write
        file: PathBuf,
    },
    /// Run a control plane in the foreground until SIGTERM or Ctrl-C; `up` starts this
    Serve {
        #[command(flatten)]
        place: Place,
        /// Add a scheduler and a fake node
        #[arg(long)]
        nodes: bool,
        /// Standard input is the folder's lock, which is already taken
        #[arg(long, hide = true)]
        locked: bool,
    },
}

#[derive(Args)]
struct Place {
    /// The folder that holds the control plane's kubeconfig, log and data
    #[arg(long, default_value = ".cluster")]
    dir: PathBuf,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Up { place, nodes } => cluster::up(&place.dir, nodes),
        Command::Down { place } => cluster::down(&place.dir),
        Command::Schemas { file } => schemas::write(&file),
        Command::Port => testbed::free_port().map(|port| println!("{port}")),
        Command::Serve {
            place,
            nodes,
            locked,
        } => cluster::serve(&place.dir, locked, nodes),
        Command::Kubeconfig {
            place,
            user,
            groups,
        } => cluster::kubeconfig(&place.dir, &user, &groups),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
