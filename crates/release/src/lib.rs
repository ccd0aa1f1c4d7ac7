//! Builds the parts of a release of Orkestra from its binary: the image, its SBOM and provenance, the chart's package, and the
//! checksums.
//!
//! ```text
//!  ork, CA roots ──► image ──► layout (folder, tar) ──► push ──► manifest, referrers, signature
//!  cargo metadata ──► sbom ─┐
//!  commit, Cargo.lock ──► provenance ┴──► referrers of the image, files of dist/
//! ```
//!
//! The output depends only on the inputs: files are sorted, times are [`Moment`], owners are fixed. Two builds of equal inputs have
//! equal bytes.

pub mod archive;
pub mod dist;
pub mod image;
pub mod places;
pub mod provenance;
pub mod push;
pub mod sbom;

use jiff::Timestamp;

/// The time in everything that a release contains: `SOURCE_DATE_EPOCH`, or the epoch.
///
/// Source: reproducible-builds.org, "`SOURCE_DATE_EPOCH` specification".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment(pub u32);

impl Moment {
    /// As RFC 3339 has it.
    pub fn text(self) -> String {
        Timestamp::from_second(self.0.into())
            .unwrap_or_default()
            .to_string()
    }
}
