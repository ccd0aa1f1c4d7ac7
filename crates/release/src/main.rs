//! `release`: builds the parts of a release from a binary.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use orkestra_registry::{Client, Keychain, Options, Reference, signature::PrivateKey};
use release::{
    Moment,
    archive::{Entry, tar},
    dist,
    image::{self, Image, Source},
    places::Places,
    provenance::{self, Build},
    push::{self, Document},
    sbom,
};
use serde_json::Value;

/// Where distributions of Linux keep CA roots.
const ROOTS: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];
/// The package of the binary.
const PACKAGE: &str = "orkestra";

#[derive(Debug, Parser)]
#[command(about = "Build the parts of a release from a binary")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the image without a daemon, as a layout folder and as a tar of it; prints its digest
    Image {
        #[command(flatten)]
        inputs: Inputs,
        /// Layout folder to write
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Push the image of a layout folder with its SBOM, its provenance and, with a key, a signature; prints its digest
    Push {
        #[command(flatten)]
        inputs: Inputs,
        /// Layout folder
        #[arg(long, value_name = "DIR")]
        layout: PathBuf,
        /// Private key of `cosign generate-key-pair`; its password is in $`COSIGN_PASSWORD`
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Call the registry over plain HTTP
        #[arg(long)]
        plain_http: bool,
        /// host/path:tag
        #[arg(value_name = "REF")]
        reference: String,
    },
    /// Assemble the folder of a release
    Dist {
        #[command(flatten)]
        inputs: Inputs,
        /// Folder to write
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
    },
}

/// Where the release is published: the same variables as those of the build of `ork`. Empty ones publish nothing.
#[derive(Debug, clap::Args)]
struct Published {
    /// Repository of the image
    #[arg(long = "published-image", env = "ORK_PUBLISHED_IMAGE")]
    image: Option<String>,
    /// Address of the folders of releases
    #[arg(long = "published-releases", env = "ORK_PUBLISHED_RELEASES")]
    releases: Option<String>,
    /// Address of the documentation
    #[arg(long = "published-docs", env = "ORK_PUBLISHED_DOCS")]
    docs: Option<String>,
    /// Address of the repository with the sources
    #[arg(long = "published-source", env = "ORK_PUBLISHED_SOURCE")]
    source: Option<String>,
}

fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// What a release is made of.
#[derive(Debug, clap::Args)]
struct Inputs {
    /// The binary
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// CA roots in PEM [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    ca_roots: Option<PathBuf>,
    /// The commit
    #[arg(long, env = "ORK_COMMIT", default_value = "unknown")]
    commit: String,
    /// The identity of the builder, as a URI
    #[arg(long, env = "ORK_BUILDER", default_value = "urn:orkestra:make")]
    builder: String,
    #[command(flatten)]
    published: Published,
    /// Seconds since 1970 in everything
    #[arg(long, env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    epoch: u32,
}

impl Inputs {
    fn source(&self) -> Result<Source> {
        let found = ROOTS.iter().map(PathBuf::from).find(|file| file.exists());
        let roots = self
            .ca_roots
            .clone()
            .or(found)
            .context("no CA roots: give --ca-roots")?;
        Ok(Source {
            binary: read(&self.binary)?,
            roots: read(&roots)?,
            license: read(&self.root.join("LICENSE"))?,
            architecture: architecture().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: self.commit.clone(),
            moment: Moment(self.epoch),
        })
    }

    /// The SBOM and the provenance of the binary and of an image.
    fn documents(&self, image: &Image, source: &Source) -> Result<[Vec<u8>; 2]> {
        let manifest = self.root.join("Cargo.toml");
        let arguments: [&OsStr; 5] = [
            "metadata".as_ref(),
            "--format-version=1".as_ref(),
            "--locked".as_ref(),
            "--manifest-path".as_ref(),
            manifest.as_ref(),
        ];
        let metadata: Value =
            serde_json::from_slice(&dist::printed(Path::new("cargo"), &arguments)?)?;
        let lock = read(&self.root.join("Cargo.lock"))?;
        let moment = Moment(self.epoch);
        let bill = sbom::sbom(&metadata, &String::from_utf8_lossy(&lock), PACKAGE, moment)?;
        let compiler = dist::printed(Path::new("rustc"), &["--version".as_ref()])?;
        let build = Build {
            commit: self.commit.clone(),
            compiler: String::from_utf8_lossy(&compiler).trim().to_owned(),
            target: format!("linux/{}", architecture()),
            source: given(self.published.source.as_deref()).map(str::to_owned),
            builder: self.builder.clone(),
            lock,
            roots: source.roots.clone(),
            moment,
        };
        let subjects = [
            (program(), orkestra_registry::Digest::of(&source.binary)),
            ("orkestra".to_owned(), image.digest()),
        ];
        let statement = provenance::statement(&subjects, &build);
        Ok([
            serde_json::to_vec_pretty(&bill)?,
            serde_json::to_vec_pretty(&statement)?,
        ])
    }
}

/// This machine's architecture in Go's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The name of the binary in a release.
fn program() -> String {
    format!("ork-linux-{}", architecture())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    match Cli::parse().command {
        Command::Image { inputs, output } => build_image(&inputs, &output),
        Command::Push {
            inputs,
            layout,
            key,
            plain_http,
            reference,
        } => {
            let image = Image::read(&layout)
                .with_context(|| format!("cannot read the image in {}", layout.display()))?;
            let built = image.commit().unwrap_or_default();
            ensure!(
                built == inputs.commit,
                "the image is of commit `{built}`, not of `{}`: run `make image`",
                inputs.commit
            );
            let documents = inputs.documents(&image, &inputs.source()?)?;
            push_image(&image, documents, key.as_deref(), plain_http, &reference).await
        }
        Command::Dist { inputs, output } => assemble(&inputs, &output),
    }
}

fn build_image(inputs: &Inputs, output: &Path) -> Result<()> {
    let source = inputs.source()?;
    let image = Image::build(&source)?;
    let layout = image.layout(&source.version)?;
    image::write(output, &layout)?;
    fs::write(output.with_extension("tar"), tar(&layout, source.moment)?)?;
    println!("{}", image.digest());
    Ok(())
}

async fn push_image(
    image: &Image,
    [bill, statement]: [Vec<u8>; 2],
    key: Option<&Path>,
    plain_http: bool,
    reference: &str,
) -> Result<()> {
    let reference = Reference::parse(reference, "")?;
    let key = key.map(private).transpose()?;
    let client = Client::new(Options {
        plain_http,
        ..Options::of_user(Keychain::of_user()?, Vec::new())
    });
    let documents = [
        Document {
            media_type: sbom::MEDIA_TYPE,
            content: bill.into(),
        },
        Document {
            media_type: provenance::MEDIA_TYPE,
            content: statement.into(),
        },
    ];
    let digest = push::push(&client, &reference, image, &documents, key.as_ref()).await?;
    println!("{}@{digest}", reference.repository);
    Ok(())
}

fn private(file: &Path) -> Result<PrivateKey> {
    let text = String::from_utf8(read(file)?)?;
    let password = std::env::var("COSIGN_PASSWORD").unwrap_or_default();
    let key = PrivateKey::from_pem(&text, password.as_bytes());
    key.with_context(|| format!("cannot use the private key {}", file.display()))
}

/// Writes the folder of a release. It must not exist, or be empty.
fn assemble(inputs: &Inputs, output: &Path) -> Result<()> {
    let is_empty = fs::read_dir(output).map_or(true, |mut files| files.next().is_none());
    ensure!(is_empty, "{} is not empty", output.display());
    let source = inputs.source()?;
    let image = Image::build(&source)?;
    let [bill, statement] = inputs.documents(&image, &source)?;
    let chart = inputs.root.join("charts").join(PACKAGE);
    let Published {
        image: repository,
        releases,
        docs,
        ..
    } = &inputs.published;
    let places = Places {
        image: given(repository.as_deref()),
        digest: image.digest(),
        releases: given(releases.as_deref()),
        docs: given(docs.as_deref()),
    };
    let mut entries = dist::printed_by(&inputs.binary, &places, source.moment)?;
    let layout = tar(&image.layout(&source.version)?, source.moment)?;
    entries.extend([
        Entry::file(
            format!("orkestra-{}.tgz", source.version),
            dist::chart(&chart, &places, source.moment)?,
        ),
        Entry::file(
            format!("orkestra-image-linux-{}.tar", architecture()),
            layout,
        ),
        Entry::file(format!("{}.cdx.json", program()), bill),
        Entry::file(format!("{}.intoto.json", program()), statement),
        Entry::file(
            "install.sh",
            places.installer(&read(&inputs.root.join("install.sh"))?),
        ),
        Entry::file(program(), source.binary),
    ]);
    entries.push(dist::checksums(&entries));
    image::write(output, &entries)?;
    println!(
        "wrote {} files to {}; image {}",
        entries.len(),
        output.display(),
        image.digest()
    );
    Ok(())
}
